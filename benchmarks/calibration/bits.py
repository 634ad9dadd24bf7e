"""Whether two results have the same bits: trees of tensors and numbers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

SPARSE = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}


class Rounding(str):
    """A difference no larger than torch.testing.assert_close allows: the same sums in another order."""


def differ(expected: Any, found: Any, values: bool = True) -> str:
    """In what two results differ, or an empty text; without ``values``, only dtypes and shapes are compared."""
    wanted, shape = pytree.tree_flatten(expected)
    got, other = pytree.tree_flatten(found)
    if len(wanted) != len(got):
        return f"{other} instead of {shape}"
    for a, b in zip(wanted, got, strict=True):
        if why := _leaf(a, b, values):
            return why
    return ""


def _leaf(a: Any, b: Any, values: bool) -> str:
    if isinstance(a, Tensor) != isinstance(b, Tensor):
        return f"{type(b).__name__} instead of {type(a).__name__}"
    if not isinstance(a, Tensor):
        same = a == b or (a != a and b != b)
        return "" if same or not values else f"{b!r} instead of {a!r}"
    for what in ("dtype", "shape", "layout", "is_nested"):
        if what == "shape" and a.is_nested:
            continue
        if getattr(a, what) != getattr(b, what):
            return f"{what} {getattr(b, what)} instead of {getattr(a, what)}"
    return _tensor(a, b) if values else ""


def _tensor(a: Tensor, b: Tensor) -> str:
    if a.is_nested:
        return next((why for x, y in zip(a.unbind(), b.unbind(), strict=True) if (why := _tensor(x, y))), "")
    if a.layout in SPARSE:
        parts = SPARSE[a.layout]
        return next((why for part in parts if (why := _tensor(getattr(a, part)(), getattr(b, part)()))), "")
    x, y = _plain(a), _plain(b)
    if torch.equal(_bytes(x), _bytes(y)):
        return ""
    wide = torch.complex128 if x.is_complex() else torch.float64
    gap = (x.to(wide) - y.to(wide)).abs().nan_to_num(nan=float("inf")).max().item()
    return (Rounding if _close(x, y) else str)(f"values differ by up to {gap:.2g}")


def _close(x: Tensor, y: Tensor) -> bool:
    try:
        torch.testing.assert_close(y, x, equal_nan=True)
    except AssertionError:
        return False
    return x.is_floating_point() or x.is_complex()


def _plain(tensor: Tensor) -> Tensor:
    """A contiguous copy on the CPU; every NaN is the same NaN."""
    host = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    if host.is_floating_point() and host.element_size() > 1:
        host = torch.where(host.isnan(), torch.full_like(host, float("nan")), host)
    return host


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.reshape(-1).view(torch.uint8)
