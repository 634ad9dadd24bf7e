"""Where the program synchronizes with a device: calls that do and calls that do not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from assay.conformance.fixed_inputs import counts, indices, mask, matrix, scalar, vector

Make: TypeAlias = Callable[[str], Any]
"""Makes one input on a device, given its name."""


def _put(x: Tensor, index: Any, value: Any) -> None:
    x[index] = value


def _if(x: Tensor) -> bool:
    return bool(x)


def _optimizer(d: str) -> torch.optim.Adam:
    layer = nn.Linear(2, 2).to(d)
    layer(torch.ones(1, 2, device=d)).sum().backward()
    return torch.optim.Adam(layer.parameters())


def _weight(d: str) -> nn.Parameter:
    weight = nn.Parameter(matrix(d))
    weight.grad = matrix(d)
    return weight


def _ready(d: str, make: Callable[..., Any], *inputs: Make) -> Callable[[], Any]:
    """Make the inputs first: only the call itself is watched."""
    made = [one(d) for one in inputs]
    return lambda: make(*made)


def _watched(make: Callable[..., Any], *inputs: Make) -> Callable[[str], Callable[[], Any]]:
    return lambda d: _ready(d, make, *inputs)


def _host(make: Make) -> Make:
    return lambda d: make("cpu")


def _place(d: str) -> str:
    return d


WAITS: dict[str, Callable[[str], Callable[[], Any]]] = {
    "item": _watched(Tensor.item, scalar),
    "tolist": _watched(lambda x: x.tolist(), vector),
    "float": _watched(float, scalar),
    "int": _watched(int, scalar),
    "if": _watched(_if, scalar),
    "if any": _watched(lambda x: _if(x.any()), vector),
    "any": _watched(torch.any, scalar),
    "repr": _watched(repr, vector),
    "format": _watched("{:.3f}".format, scalar),
    "cpu": _watched(Tensor.cpu, vector),
    "to the CPU without waiting": _watched(lambda x: x.to("cpu", non_blocking=True), vector),
    "to the device": _watched(Tensor.to, _host(vector), _place),
    "to the device without waiting": _watched(lambda x, d: x.to(d, non_blocking=True), _host(vector), _place),
    "pinned to the device without waiting": _watched(
        lambda x, d: x.to(d, non_blocking=True), lambda d: torch.ones(3, device="cpu").pin_memory(), _place
    ),
    "pinned to the device": _watched(Tensor.to, lambda d: torch.ones(3, device="cpu").pin_memory(), _place),
    "copy on the device": _watched(Tensor.clone, vector),
    "copy to another dtype": _watched(Tensor.half, vector),
    "tensor of a list": _watched(lambda d: torch.tensor([1.0, 2.0], device=d), _place),
    "tensor of a number": _watched(lambda d: torch.tensor(1.0, device=d), _place),
    "zeros": _watched(lambda d: torch.zeros(3, device=d), _place),
    "full": _watched(lambda d: torch.full((3,), 2.0, device=d), _place),
    "full of a tensor": _watched(lambda x: torch.full((3,), x, device="cpu"), scalar),
    "arange": _watched(lambda d: torch.arange(3, device=d), _place),
    "arange to a tensor": _watched(lambda x: torch.arange(x, device="cpu"), scalar),
    "linspace": _watched(lambda d: torch.linspace(0, 1, 5, device=d), _place),
    "randn": _watched(lambda d: torch.randn(3, device=d), _place),
    "randperm": _watched(lambda d: torch.randperm(20000, device=d), _place),
    "add": _watched(torch.add, vector, vector),
    "matmul": _watched(torch.matmul, matrix, matrix),
    "sum": _watched(torch.sum, vector),
    "max": _watched(torch.max, vector),
    "sort": _watched(torch.sort, vector),
    "topk": _watched(lambda x: x.topk(2), vector),
    "cumsum": _watched(lambda x: x.cumsum(0), vector),
    "median": _watched(torch.median, vector),
    "quantile": _watched(lambda x: x.quantile(0.5), vector),
    "searchsorted": _watched(torch.searchsorted, vector, vector),
    "isin": _watched(torch.isin, vector, vector),
    "where": _watched(torch.where, mask, vector, vector),
    "where of one argument": _watched(torch.where, mask),
    "nonzero": _watched(lambda x: x.nonzero(), vector),
    "argwhere": _watched(torch.argwhere, vector),
    "count_nonzero": _watched(torch.count_nonzero, vector),
    "masked_select": _watched(torch.masked_select, vector, mask),
    "masked_fill": _watched(lambda x, m: x.masked_fill(m, 0.0), vector, mask),
    "index by mask": _watched(lambda x, m: x[m], vector, mask),
    "index by the CPU's mask": _watched(lambda x, m: x[m], vector, _host(mask)),
    "index": _watched(lambda x, i: x[i], vector, indices),
    "index by the CPU's indices": _watched(lambda x, i: x[i], vector, _host(indices)),
    "index by a list": _watched(lambda x: x[[0, 2]], vector),
    "index by a slice": _watched(lambda x: x[1:], vector),
    "index by a number of the device": _watched(lambda x, i: x[i], vector, lambda d: indices(d)[0]),
    "slice up to a number of the device": _watched(lambda x, i: x[:i], vector, lambda d: indices(d)[1]),
    "put a number by mask": _watched(lambda x, m: _put(x, m, 1.0), vector, mask),
    "put a tensor by mask": _watched(_put, vector, mask, scalar),
    "put a tensor by the CPU's mask": _watched(_put, vector, _host(mask), scalar),
    "put a tensor": _watched(_put, vector, indices, scalar),
    "put a tensor by the CPU's indices": _watched(_put, vector, _host(indices), scalar),
    "put the CPU's number": _watched(_put, vector, lambda d: 0, _host(scalar)),
    "put a Python number": _watched(lambda x: _put(x, 0, 1.0), vector),
    "unique": _watched(torch.unique, vector),
    "unique_consecutive": _watched(torch.unique_consecutive, vector),
    "bincount": _watched(torch.bincount, counts),
    "bincount with minlength": _watched(lambda x: x.bincount(minlength=9), counts),
    "histc": _watched(lambda x: x.histc(4, 0, 4), vector),
    "histc without a range": _watched(lambda x: x.histc(4), vector),
    "one_hot": _watched(F.one_hot, counts),
    "one_hot with classes": _watched(lambda x: F.one_hot(x, 3), counts),
    "repeat_interleave": _watched(torch.repeat_interleave, vector, counts),
    "repeat_interleave with a size": _watched(lambda x, n: x.repeat_interleave(n, output_size=4), vector, counts),
    "repeat_interleave by a number": _watched(lambda x: x.repeat_interleave(2), vector),
    "scatter_add_": _watched(lambda x, i: x.scatter_add_(0, i, x.clone()), vector, indices),
    "index_add_": _watched(lambda x, i: x.index_add_(0, i, x.clone()), vector, indices),
    "equal": _watched(torch.equal, vector, vector),
    "allclose": _watched(torch.allclose, vector, vector),
    "isclose": _watched(torch.isclose, vector, vector),
    "multinomial": _watched(lambda x: x.multinomial(2), vector),
    "bernoulli": _watched(torch.bernoulli, lambda d: vector(d) / 4),
    "linalg.inv": _watched(torch.linalg.inv, matrix),
    "linalg.inv_ex": _watched(torch.linalg.inv_ex, matrix),
    "linalg.solve": _watched(torch.linalg.solve, matrix, matrix),
    "linalg.det": _watched(torch.linalg.det, matrix),
    "linalg.cholesky": _watched(torch.linalg.cholesky, lambda d: matrix(d) @ matrix(d).T + torch.eye(3, device=d)),
    "linalg.cholesky_ex": _watched(
        torch.linalg.cholesky_ex, lambda d: matrix(d) @ matrix(d).T + torch.eye(3, device=d)
    ),
    "linalg.qr": _watched(torch.linalg.qr, matrix),
    "linalg.svd": _watched(torch.linalg.svd, matrix),
    "linalg.eigh": _watched(torch.linalg.eigh, lambda d: matrix(d) + matrix(d).T),
    "linalg.matrix_rank": _watched(torch.linalg.matrix_rank, matrix),
    "cross_entropy": _watched(F.cross_entropy, matrix, indices),
    "embedding": _watched(F.embedding, indices, matrix),
    "conv2d": _watched(F.conv2d, lambda d: matrix(d)[None, None], lambda d: matrix(d)[None, None]),
    "dropout": _watched(F.dropout, vector),
    "layer_norm": _watched(lambda x: F.layer_norm(x, (3,)), matrix),
    "ctc_loss": _watched(
        F.ctc_loss,
        lambda d: matrix(d)[:, None].log_softmax(-1),
        lambda d: torch.ones(1, 2, dtype=torch.int64, device=d),
        lambda d: torch.tensor([3], device="cpu"),
        lambda d: torch.tensor([2], device="cpu"),
    ),
    "clip_grad_norm_": _watched(lambda w: nn.utils.clip_grad_norm_([w], 1.0), _weight),
    "clip_grad_norm_ that checks": _watched(
        lambda w: nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True), _weight
    ),
    "Adam step": _watched(lambda o: o.step(), _optimizer),
    "backward": _watched(lambda w: (w * 2).sum().backward(), _weight),
    "module to the device": _watched(lambda d: nn.Linear(2, 2).to(d), _place),
    "pack_padded_sequence": _watched(
        lambda x, n: nn.utils.rnn.pack_padded_sequence(x, n, enforce_sorted=False),
        lambda d: matrix(d, 3, 3)[..., None],
        lambda d: torch.tensor([3, 2, 1], device="cpu"),
    ),
    "tensor_split by a tensor": _watched(
        lambda x, i: x.tensor_split(i), vector, lambda d: torch.tensor([1, 2], device="cpu")
    ),
    "synchronize": _watched(lambda d: torch.accelerator.synchronize(), _place),
    "empty nonzero": _watched(lambda x: x.nonzero(), lambda d: torch.zeros(0, device=d)),
}
"""Given the device, each makes its inputs and returns the call that is watched."""
