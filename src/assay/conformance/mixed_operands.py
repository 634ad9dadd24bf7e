"""Operands on different devices: what each family of operators does, with either operand on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Two = Callable[[Tensor, Tensor], Any]
WHOLE = torch.tensor([[0, 1], [1, 0]], device="cpu")


def _i(x: Tensor) -> Tensor:
    """Indices on the device of a tensor."""
    return WHOLE.to(x.device)


def _m(x: Tensor) -> Tensor:
    return (WHOLE == 1).to(x.device)


def _image(x: Tensor) -> Tensor:
    return x.reshape(1, 1, 2, 2)


FAMILIES: dict[str, Two] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: torch.sub(a, b),
    "mul_": lambda a, b: a.mul_(b),
    "div": lambda a, b: a / b,
    "floor_divide": lambda a, b: torch.floor_divide(a, b),
    "compare": lambda a, b: a < b,
    "maximum": lambda a, b: torch.maximum(a, b),
    "where values": lambda a, b: torch.where(_m(a), a, b),
    "where condition": lambda a, b: torch.where(_m(b), a, a),
    "lerp": lambda a, b: torch.lerp(a, b, 0.5),
    "lerp weight": lambda a, b: torch.lerp(a, a, b),
    "addcmul": lambda a, b: torch.addcmul(a, a, b),
    "clamp": lambda a, b: torch.clamp(a, min=b),
    "out=": lambda a, b: torch.add(a, a, out=b),
    "sum out=": lambda a, b: torch.sum(a, 0, out=b[0].clone()),
    "cat": lambda a, b: torch.cat([a, b]),
    "cat empty": lambda a, b: torch.cat([a, b.new_empty(0)]),
    "cat out=": lambda a, b: torch.cat([a, a], out=b.new_empty(0)),
    "stack": lambda a, b: torch.stack([a, b]),
    "mm": lambda a, b: a.mm(b),
    "matmul": lambda a, b: a @ b,
    "bmm": lambda a, b: torch.bmm(a[None], b[None]),
    "addmm": lambda a, b: torch.addmm(a, a, b),
    "addmm bias": lambda a, b: torch.addmm(b, a, a),
    "mv": lambda a, b: torch.mv(a, b[0]),
    "dot": lambda a, b: torch.dot(a[0], b[0]),
    "einsum": lambda a, b: torch.einsum("ij,jk->ik", a, b),
    "linear": lambda a, b: F.linear(a, b),
    "linear bias": lambda a, b: F.linear(a, a, b[0]),
    "conv1d": lambda a, b: F.conv1d(a[None], b[None]),
    "conv2d": lambda a, b: F.conv2d(_image(a), _image(b)),
    "conv_transpose2d": lambda a, b: F.conv_transpose2d(_image(a), _image(b)),
    "batch_norm": lambda a, b: F.batch_norm(a, b[0], b[1]),
    "layer_norm": lambda a, b: F.layer_norm(a, (2,), b[0], b[1]),
    "group_norm": lambda a, b: F.group_norm(a, 1, b[0], b[1]),
    "prelu": lambda a, b: F.prelu(a, b[0, :1]),
    "embedding": lambda a, b: F.embedding(_i(a), b),
    "embedding_bag": lambda a, b: F.embedding_bag(_i(a), b),
    "scaled_dot_product_attention": lambda a, b: F.scaled_dot_product_attention(a[None], b[None], b[None]),
    "bilinear": lambda a, b: F.bilinear(a, a, b[None]),
    "cross_entropy": lambda a, b: F.cross_entropy(a, _i(b)[0]),
    "cross_entropy weight": lambda a, b: F.cross_entropy(a, _i(a)[0], weight=b[0]),
    "nll_loss": lambda a, b: F.nll_loss(a, _i(b)[0]),
    "mse_loss": lambda a, b: F.mse_loss(a, b),
    "l1_loss": lambda a, b: F.l1_loss(a, b),
    "smooth_l1_loss": lambda a, b: F.smooth_l1_loss(a, b),
    "kl_div": lambda a, b: F.kl_div(a, b, reduction="sum"),
    "binary_cross_entropy": lambda a, b: F.binary_cross_entropy(a.sigmoid(), b.sigmoid()),
    "bce_with_logits": lambda a, b: F.binary_cross_entropy_with_logits(a, b),
    "cosine_similarity": lambda a, b: F.cosine_similarity(a, b),
    "cdist": lambda a, b: torch.cdist(a, b),
    "dist": lambda a, b: torch.dist(a, b),
    "cross": lambda a, b: torch.linalg.cross(a.new_ones(1, 3), b.new_ones(1, 3)),
    "kron": lambda a, b: torch.kron(a, b),
    "gather": lambda a, b: a.gather(0, _i(b)),
    "take": lambda a, b: a.take(_i(b)),
    "take_along_dim": lambda a, b: a.take_along_dim(_i(b), 0),
    "index_select": lambda a, b: a.index_select(0, _i(b)[0]),
    "index": lambda a, b: a[_i(b)[0]],
    "index by mask": lambda a, b: a[_m(b)],
    "index_put value": lambda a, b: a.index_put_((_i(a)[0],), b),
    "index_put indices": lambda a, b: a.index_put_((_i(b)[0],), a.clone()),
    "index_add_": lambda a, b: a.index_add_(0, _i(a)[0], b),
    "index_copy_": lambda a, b: a.index_copy_(0, _i(a)[0], b),
    "index_fill_": lambda a, b: a.index_fill_(0, _i(b)[0], 1.0),
    "scatter_": lambda a, b: a.scatter_(0, _i(a), b),
    "scatter_ index": lambda a, b: a.scatter_(0, _i(b), a.clone()),
    "scatter_add_": lambda a, b: a.scatter_add_(0, _i(a), b),
    "scatter_reduce_": lambda a, b: a.scatter_reduce_(0, _i(a), b, "sum"),
    "masked_fill": lambda a, b: a.masked_fill(_m(b), 0.0),
    "masked_select": lambda a, b: a.masked_select(_m(b)),
    "masked_scatter_": lambda a, b: a.masked_scatter_(_m(a), b),
    "searchsorted": lambda a, b: torch.searchsorted(a, b),
    "bucketize": lambda a, b: torch.bucketize(a, b[0]),
    "isin": lambda a, b: torch.isin(a, b),
    "bincount weights": lambda a, b: torch.bincount(_i(a)[0], weights=b[0]),
    "repeat_interleave": lambda a, b: a.repeat_interleave(_i(b)[0], 0),
    "equal": lambda a, b: torch.equal(a, b),
    "allclose": lambda a, b: torch.allclose(a, b),
    "linalg.solve": lambda a, b: torch.linalg.solve(a, b),
    "grid_sample": lambda a, b: F.grid_sample(_image(a), b.reshape(1, 1, 2, 2)),
    "one_hot": lambda a, b: F.one_hot(_i(a), 2) + b[0],
    "copy_": lambda a, b: a.copy_(b),
    "set_": lambda a, b: a.set_(b),  # type: ignore[call-overload]
    "set_ storage": lambda a, b: a.set_(b.untyped_storage()),
    "data =": lambda a, b: setattr(a, "data", b),
    "_foreach_add": lambda a, b: torch._foreach_add([a, a], [b, b]),
    "backward gradient": lambda a, b: torch.autograd.backward(a.requires_grad_() * 2, b),
    "LSTM hidden": lambda a, b: torch.nn.LSTM(2, 2).to(a.device)(a[None], (b[None], b[None])),
}
"""Both operands are 2x2 float32; one of them is on the device, the other on the CPU, and then the other way round."""

NUMBERS: dict[str, Two] = {
    "add": lambda x, s: x + s,
    "radd": lambda x, s: s + x,
    "add_": lambda x, s: x.add_(s),
    "add double": lambda x, s: x + s.double(),
    "pow": lambda x, s: x**s,
    "compare": lambda x, s: x > s,
    "maximum": lambda x, s: torch.maximum(x, s),
    "where": lambda x, s: torch.where(_m(x), x, s),
    "where both": lambda x, s: torch.where(_m(x), s, s),
    "clamp": lambda x, s: torch.clamp(x, min=s),
    "lerp weight": lambda x, s: torch.lerp(x, x, s),
    "addcmul": lambda x, s: torch.addcmul(x, x, s),
    "masked_fill": lambda x, s: x.masked_fill(_m(x), s),
    "fill_": lambda x, s: x.fill_(s),
    "setitem": lambda x, s: x.__setitem__(0, s),
    "setitem by mask": lambda x, s: x.__setitem__(_m(x), s),
    "setitem by index": lambda x, s: x.__setitem__(_i(x)[0], s),
    "index_fill_": lambda x, s: x.index_fill_(0, _i(x)[0], s),
    "index_add_": lambda x, s: x.index_add_(0, _i(x)[0], s.expand(2, 2)),
    "index by number": lambda x, s: x[s.long()],
    "stack": lambda x, s: torch.stack([x[0, 0], s]),
    "matmul": lambda x, s: x @ s.expand(2, 2),
    "isin": lambda x, s: torch.isin(x, s),
    "mse_loss": lambda x, s: F.mse_loss(x, s.expand(2, 2)),
    "out=": lambda x, s: torch.add(s, s, out=x),
    "_foreach_mul_": lambda x, s: torch._foreach_mul_([x], s),
    "full": lambda x, s: torch.full((2,), s, device="cpu"),  # type: ignore[call-overload]
    "isclose": lambda x, s: torch.isclose(x, s),
    "number of the device and matrix of the CPU": lambda x, s: x.cpu() + s.to(x.device),
    "addition of numbers": lambda x, s: x[0, 0] + s,
}
"""One operand has no dimension. On most devices such a tensor may be on the CPU, as a Python number may."""
