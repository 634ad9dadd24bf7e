"""Count the ATen calls and the host synchronisations of a block, so that tests can assert them exactly.

A synchronisation is anything that makes the host wait for a value of the device: reading a scalar, or an operator whose
output shape depends on values. On the CPU these cost little, which is why they are counted and not timed.

    with counted() as counts:
        metric.update(preds, target)
    assert counts.syncs == []
    assert counts.calls <= 12
"""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Operators that read the device from the host, or whose output shape depends on values.
SYNCS = frozenset(
    {
        "_local_scalar_dense",  # .item(), .tolist() of one element, bool(tensor), float(tensor)
        "item",
        "is_nonzero",
        "equal",
        "nonzero",
        "masked_select",
        "bincount",  # reads its maximum and minimum on the CPU (twice on CUDA)
        "_unique",
        "_unique2",
        "unique_dim",
        "unique_consecutive",
        "unique_dim_consecutive",
        "repeat_interleave",
        "histc",
        "histogram",
        "_histogramdd_from_bin_cts",
    }
)
# Views and bookkeeping that start no kernel.
FREE = frozenset(
    {
        *(
            "view",
            "_unsafe_view",
            "reshape",
            "alias",
            "detach",
            "slice",
            "select",
            "expand",
            "permute",
            "transpose",
            "t",
        ),
        *("unsqueeze", "squeeze", "as_strided", "split", "split_with_sizes", "unbind", "narrow", "diagonal"),
        *("empty", "empty_strided", "empty_like", "new_empty", "view_as_real"),
    }
)
_MASKS = (torch.bool, torch.uint8)


class Counts:
    """What a block did: ``ops`` (name to count), ``calls`` (kernels), ``syncs`` and ``copies`` (names in order)."""

    def __init__(self) -> None:
        self.ops: Counter[str] = Counter()
        self.syncs: list[str] = []
        self.copies: list[str] = []

    @property
    def calls(self) -> int:
        """The ATen calls of the block, without views and empty allocations."""
        return sum(count for name, count in self.ops.items() if name not in FREE)

    @property
    def all_calls(self) -> int:
        """The ATen calls of the block, everything included."""
        return sum(self.ops.values())


class counted(TorchDispatchMode):  # noqa: N801 - reads as a word in a with statement
    """Count the ATen calls and the host synchronisations of a block; entering gives the :class:`Counts`."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counts()

    def __enter__(self) -> Counts:
        super().__enter__()
        return self.counts

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        self.counts.ops[name] += 1
        if _synchronises(name, args):
            self.counts.syncs.append(name)
        result = func(*args, **(kwargs or {}))
        if _changes_device(name, args, result):
            self.counts.copies.append(name)
        return result


def _synchronises(name: str, args: tuple[Any, ...]) -> bool:
    if name == "repeat_interleave":  # with repeats as a tensor the size of the output is read on the CPU
        return any(isinstance(arg, torch.Tensor) for arg in args[1:2]) or len(args) == 1
    if name in ("index", "index_put", "index_put_", "_index_put_impl_"):
        return any(isinstance(index, torch.Tensor) and index.dtype in _MASKS for index in args[1])
    return name in SYNCS


def _changes_device(name: str, args: tuple[Any, ...], result: Any) -> bool:
    if name == "copy_":
        return isinstance(args[1], torch.Tensor) and args[0].device != args[1].device
    return name == "_to_copy" and args[0].device != result.device
