"""What a device does other than computing: where tensors land, what copies keep, what synchronizes, what raises."""

from __future__ import annotations

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

One = Callable[[str], Any]  # given the name of the device


def _x(d: str, *shape: int) -> Tensor:
    """Well-conditioned float32 matrices."""
    rows, columns = shape or (3, 3)
    values = torch.arange(1.0, 1 + rows * columns).reshape(rows, columns).sqrt()
    return (values + torch.eye(rows, columns)).to(d)


def _i(d: str) -> Tensor:
    return torch.tensor([0, 2, 1]).to(d)


def _m(d: str) -> Tensor:
    return torch.tensor([True, False, True]).to(d)


def _kind(d: str) -> str:
    return d.split(":")[0]


def _loaded(d: str) -> Tensor:
    file = io.BytesIO()
    torch.save(torch.ones(2, device=d), file)
    file.seek(0)
    return torch.load(file)


def _mapped(d: str) -> Tensor:
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    file.seek(0)
    return torch.load(file, map_location=d)


def _in(d: str, make: Callable[[], Tensor]) -> Tensor:
    with torch.device(d):
        return make()


LANDS: dict[str, One] = {
    "zeros": lambda d: torch.zeros(2),
    "zeros on the device": lambda d: torch.zeros(2, device=d),
    "zeros on the kind": lambda d: torch.zeros(2, device=_kind(d)),
    "zeros_like": lambda d: torch.zeros_like(_x(d)),
    "new_zeros": lambda d: _x(d).new_zeros(2),
    "new_tensor": lambda d: _x(d).new_tensor([1.0]),
    "tensor": lambda d: torch.tensor([1.0], device=d),
    "tensor of a tensor": lambda d: torch.as_tensor(_x(d)),
    "as_tensor of numpy": lambda d: torch.as_tensor(np.ones(2, np.float32), device=d),
    "asarray": lambda d: torch.asarray([1.0, 2.0], device=d),
    "from_numpy": lambda d: torch.from_numpy(np.ones(2)),
    "arange": lambda d: torch.arange(3, device=d),
    "randn": lambda d: torch.randn(2, device=d),
    "randn with the CPU's generator": lambda d: torch.randn(2, device=d, generator=torch.Generator()),
    "randn with a generator": lambda d: torch.randn(2, device=d, generator=torch.Generator(d)),
    "randperm": lambda d: torch.randperm(4, device=d),
    "eye": lambda d: torch.eye(2, device=d),
    "one_hot": lambda d: F.one_hot(_i(d), 3),
    "nonzero": lambda d: _x(d).nonzero(),
    "module": lambda d: nn.Linear(2, 2, device=d).weight,
    "module moved": lambda d: nn.Linear(2, 2).to(d).weight,
    "to the kind": lambda d: torch.ones(2).to(_kind(d)),
    "from the device to the kind": lambda d: _x(d).to(_kind(d)),
    "method of the kind": lambda d: getattr(torch.ones(2), _kind(d))(),
    "method of the kind, from the device": lambda d: getattr(_x(d), _kind(d))(),
    "in a device context": lambda d: _in(d, lambda: torch.zeros(2)),
    "in a device context, tensor": lambda d: _in(d, lambda: torch.tensor([1.0])),
    "in a device context, from_numpy": lambda d: _in(d, lambda: torch.from_numpy(np.ones(2))),
    "in a device context, module": lambda d: _in(d, lambda: nn.Linear(2, 2).weight),
    "generator": lambda d: str(torch.Generator(d).device),
    "storage": lambda d: str(_x(d).untyped_storage().device),
    "load": _loaded,
    "load with map_location": _mapped,
    "pickle": lambda d: pickle.loads(pickle.dumps(_x(d))),
    "deepcopy": lambda d: copy.deepcopy(_x(d)),
    "deepcopy of a module": lambda d: copy.deepcopy(nn.Linear(2, 2).to(d)).weight,
    "state_dict": lambda d: nn.Linear(2, 2).to(d).state_dict()["weight"],
    "optimizer's state": lambda d: _stepped(d).state_dict()["state"][0]["exp_avg"],
    "optimizer's step": lambda d: _stepped(d).state_dict()["state"][0]["step"],
    "device of no such index": lambda d: torch.zeros(1, device=f"{_kind(d)}:17"),
    "hash of the device": lambda d: _x(d).device == torch.device(d),
    "type": lambda d: _x(d).type(),
    "repr": lambda d: repr(torch.ones(2, device=d)),
    "is_pinned": lambda d: torch.ones(2).is_pinned(),
    "pin_memory": lambda d: torch.ones(2).pin_memory().is_pinned(),
    "pin_memory of the device": lambda d: _x(d).pin_memory(),
    "current stream": lambda d: torch.accelerator.current_stream().device.type,
    "current accelerator": lambda d: str(torch.accelerator.current_accelerator()),
}


def _trained(d: str) -> torch.optim.Adam:
    layer = nn.Linear(2, 2).to(d)
    layer(torch.ones(1, 2, device=d)).sum().backward()
    return torch.optim.Adam(layer.parameters())


def _stepped(d: str) -> torch.optim.Adam:
    optimizer = _trained(d)
    optimizer.step()
    return optimizer


def _strides(tensor: Tensor) -> str:
    return str(tuple(tensor.stride()))


COPIES: dict[str, One] = {
    "to the same device is the same tensor": lambda d: (x := _x(d)).to(d) is x,
    "to with copy is another": lambda d: (x := _x(d)).to(d, copy=True) is x,
    "cpu of the CPU is the same tensor": lambda d: (x := torch.ones(2)).cpu() is x,
    "copy to the device": lambda d: torch.zeros(2, device=d).copy_(torch.ones(2)).tolist(),
    "copy to the CPU": lambda d: torch.zeros(2).copy_(torch.ones(2, device=d)).tolist(),
    "copy with a dtype": lambda d: torch.zeros(2, device=d).copy_(torch.ones(2, dtype=torch.int64)).tolist(),
    "copy with broadcasting": lambda d: torch.zeros(2, 2, device=d).copy_(torch.arange(2.0)).tolist(),
    "copy of a strided view": lambda d: _x(d)[:, ::2].cpu().tolist(),
    "copy into a strided view": lambda d: (
        (y := torch.zeros(3, 4, device=d))[:, ::2].copy_(torch.ones(3, 2)).sum() + y.sum()
    ),
    "copy without waiting": lambda d: _x(d).to("cpu", non_blocking=True).shape,
    "strides of a transposed copy": lambda d: _strides(torch.ones(2, 3).t().to(d)),
    "strides of a channels-last copy": lambda d: _strides(
        torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).to(d)
    ),
    "strides of an expanded copy": lambda d: _strides(torch.ones(3).expand(2, 3).to(d)),
    "numpy": lambda d: _x(d).numpy(),
    "np.asarray": lambda d: np.asarray(_x(d)),
    "numpy of the CPU's copy": lambda d: _x(d).cpu().numpy().shape,
    "tolist": lambda d: torch.arange(3, device=d).tolist(),
    "iterate": lambda d: [float(v) for v in torch.arange(3.0, device=d)],
    "view shares memory": lambda d: (x := torch.zeros(2, device=d)).view(2).data_ptr() == x.data_ptr(),
    "a change of a view is seen": lambda d: ((x := torch.zeros(2, device=d))[0].fill_(3.0), x.tolist())[1],
    "data_ptr": lambda d: _x(d).data_ptr() != 0,
    "dlpack": lambda d: str(_x(d).__dlpack_device__()[0]),
    "share_memory_": lambda d: _x(d).share_memory_().is_shared(),
    "requires_grad crosses": lambda d: torch.ones(2, requires_grad=True).to(d).requires_grad,
    "gradient crosses": lambda d: _crossing(d),
    "gradient on another device": lambda d: setattr(torch.ones(2, requires_grad=True), "grad", torch.ones(2, device=d)),
    "double to the device": lambda d: torch.ones(2, dtype=torch.float64).to(d),
    "complex128 to the device": lambda d: torch.ones(2, dtype=torch.complex128).to(d),
    "double on the device": lambda d: torch.zeros(2, dtype=torch.float64, device=d),
    "double of a tensor": lambda d: _x(d).double(),
    "tensor of a double": lambda d: torch.tensor(np.float64(1.0), device=d),
    "tensor of numpy doubles": lambda d: torch.tensor(np.ones(2), device=d),
    "sum in double": lambda d: _x(d).sum(dtype=torch.float64),
    "bfloat16 on the device": lambda d: torch.zeros(2, dtype=torch.bfloat16, device=d),
    "multiply by a Python float": lambda d: _x(d) * 0.1,
    "integers divided": lambda d: torch.arange(3, device=d) / 2,
    "int64 on the device": lambda d: torch.full((2,), 2**40, dtype=torch.int64, device=d).sum().item(),
}


def _crossing(d: str) -> str:
    leaf = torch.ones(2, requires_grad=True)
    (leaf.to(d) * 2).sum().backward()
    assert leaf.grad is not None
    return str(leaf.grad.device)


def _put(x: Tensor, index: Any, value: Any) -> None:
    x[index] = value


def _if(x: Tensor) -> bool:
    return bool(x)


def _weight(d: str) -> nn.Parameter:
    weight = nn.Parameter(_x(d))
    weight.grad = _x(d)
    return weight


def _ready(d: str, make: Callable[..., Any], *inputs: Callable[[str], Any]) -> Callable[[], Any]:
    """Make the inputs first: only the call itself is watched."""
    made = [one(d) for one in inputs]
    return lambda: make(*made)


def _watched(make: Callable[..., Any], *inputs: Callable[[str], Any]) -> Callable[[str], Callable[[], Any]]:
    return lambda d: _ready(d, make, *inputs)


def _v(d: str) -> Tensor:
    return torch.tensor([3.0, 1.0, 2.0]).to(d)


def _s(d: str) -> Tensor:
    return torch.tensor(1.0).to(d)


def _n(d: str) -> Tensor:
    return torch.tensor([1, 2, 1]).to(d)


def _host(make: Callable[[str], Any]) -> Callable[[str], Any]:
    return lambda d: make("cpu")


def _place(d: str) -> str:
    return d


# Does the CPU synchronize with the device? Given the device, each makes its inputs and returns what is watched.
WAITS: dict[str, Callable[[str], Callable[[], Any]]] = {
    "item": _watched(Tensor.item, _s),
    "tolist": _watched(Tensor.tolist, _v),
    "float": _watched(float, _s),
    "int": _watched(int, _s),
    "if": _watched(_if, _s),
    "if any": _watched(lambda x: _if(x.any()), _v),
    "any": _watched(torch.any, _s),
    "repr": _watched(repr, _v),
    "format": _watched("{:.3f}".format, _s),
    "cpu": _watched(Tensor.cpu, _v),
    "to the CPU without waiting": _watched(lambda x: x.to("cpu", non_blocking=True), _v),
    "to the device": _watched(Tensor.to, _host(_v), _place),
    "to the device without waiting": _watched(lambda x, d: x.to(d, non_blocking=True), _host(_v), _place),
    "pinned to the device without waiting": _watched(
        lambda x, d: x.to(d, non_blocking=True), lambda d: torch.ones(3).pin_memory(), _place
    ),
    "pinned to the device": _watched(Tensor.to, lambda d: torch.ones(3).pin_memory(), _place),
    "copy on the device": _watched(Tensor.clone, _v),
    "copy to another dtype": _watched(Tensor.half, _v),
    "tensor of a list": _watched(lambda d: torch.tensor([1.0, 2.0], device=d), _place),
    "tensor of a number": _watched(lambda d: torch.tensor(1.0, device=d), _place),
    "zeros": _watched(lambda d: torch.zeros(3, device=d), _place),
    "full": _watched(lambda d: torch.full((3,), 2.0, device=d), _place),
    "full of a tensor": _watched(lambda x: torch.full((3,), x), _s),
    "arange": _watched(lambda d: torch.arange(3, device=d), _place),
    "arange to a tensor": _watched(lambda x: torch.arange(x), _s),
    "linspace": _watched(lambda d: torch.linspace(0, 1, 5, device=d), _place),
    "randn": _watched(lambda d: torch.randn(3, device=d), _place),
    "randperm": _watched(lambda d: torch.randperm(20000, device=d), _place),
    "add": _watched(torch.add, _v, _v),
    "matmul": _watched(torch.matmul, _x, _x),
    "sum": _watched(torch.sum, _v),
    "max": _watched(torch.max, _v),
    "sort": _watched(torch.sort, _v),
    "topk": _watched(lambda x: x.topk(2), _v),
    "cumsum": _watched(lambda x: x.cumsum(0), _v),
    "median": _watched(torch.median, _v),
    "quantile": _watched(lambda x: x.quantile(0.5), _v),
    "searchsorted": _watched(torch.searchsorted, _v, _v),
    "isin": _watched(torch.isin, _v, _v),
    "where": _watched(torch.where, _m, _v, _v),
    "where of one argument": _watched(torch.where, _m),
    "nonzero": _watched(torch.nonzero, _v),
    "argwhere": _watched(torch.argwhere, _v),
    "count_nonzero": _watched(torch.count_nonzero, _v),
    "masked_select": _watched(torch.masked_select, _v, _m),
    "masked_fill": _watched(lambda x, m: x.masked_fill(m, 0.0), _v, _m),
    "index by mask": _watched(lambda x, m: x[m], _v, _m),
    "index by the CPU's mask": _watched(lambda x, m: x[m], _v, _host(_m)),
    "index": _watched(lambda x, i: x[i], _v, _i),
    "index by the CPU's indices": _watched(lambda x, i: x[i], _v, _host(_i)),
    "index by a list": _watched(lambda x: x[[0, 2]], _v),
    "index by a slice": _watched(lambda x: x[1:], _v),
    "index by a number of the device": _watched(lambda x, i: x[i], _v, lambda d: _i(d)[0]),
    "slice up to a number of the device": _watched(lambda x, i: x[:i], _v, lambda d: _i(d)[1]),
    "put a number by mask": _watched(lambda x, m: _put(x, m, 1.0), _v, _m),
    "put a tensor by mask": _watched(_put, _v, _m, _s),
    "put a tensor by the CPU's mask": _watched(_put, _v, _host(_m), _s),
    "put a tensor": _watched(_put, _v, _i, _s),
    "put a tensor by the CPU's indices": _watched(_put, _v, _host(_i), _s),
    "put the CPU's number": _watched(_put, _v, lambda d: 0, _host(_s)),
    "put a Python number": _watched(lambda x: _put(x, 0, 1.0), _v),
    "unique": _watched(torch.unique, _v),
    "unique_consecutive": _watched(torch.unique_consecutive, _v),
    "bincount": _watched(torch.bincount, _n),
    "bincount with minlength": _watched(lambda x: x.bincount(minlength=9), _n),
    "histc": _watched(lambda x: x.histc(4, 0, 4), _v),
    "histc without a range": _watched(lambda x: x.histc(4), _v),
    "one_hot": _watched(F.one_hot, _n),
    "one_hot with classes": _watched(lambda x: F.one_hot(x, 3), _n),
    "repeat_interleave": _watched(torch.repeat_interleave, _v, _n),
    "repeat_interleave with a size": _watched(lambda x, n: x.repeat_interleave(n, output_size=4), _v, _n),
    "repeat_interleave by a number": _watched(lambda x: x.repeat_interleave(2), _v),
    "scatter_add_": _watched(lambda x, i: x.scatter_add_(0, i, x.clone()), _v, _i),
    "index_add_": _watched(lambda x, i: x.index_add_(0, i, x.clone()), _v, _i),
    "equal": _watched(torch.equal, _v, _v),
    "allclose": _watched(torch.allclose, _v, _v),
    "isclose": _watched(torch.isclose, _v, _v),
    "multinomial": _watched(lambda x: x.multinomial(2), _v),
    "bernoulli": _watched(torch.bernoulli, lambda d: _v(d) / 4),
    "linalg.inv": _watched(torch.linalg.inv, _x),
    "linalg.inv_ex": _watched(torch.linalg.inv_ex, _x),
    "linalg.solve": _watched(torch.linalg.solve, _x, _x),
    "linalg.det": _watched(torch.linalg.det, _x),
    "linalg.cholesky": _watched(torch.linalg.cholesky, lambda d: _x(d) @ _x(d).T + torch.eye(3, device=d)),
    "linalg.cholesky_ex": _watched(torch.linalg.cholesky_ex, lambda d: _x(d) @ _x(d).T + torch.eye(3, device=d)),
    "linalg.qr": _watched(torch.linalg.qr, _x),
    "linalg.svd": _watched(torch.linalg.svd, _x),
    "linalg.eigh": _watched(torch.linalg.eigh, lambda d: _x(d) + _x(d).T),
    "linalg.matrix_rank": _watched(torch.linalg.matrix_rank, _x),
    "cross_entropy": _watched(F.cross_entropy, _x, _i),
    "embedding": _watched(F.embedding, _i, _x),
    "conv2d": _watched(F.conv2d, lambda d: _x(d)[None, None], lambda d: _x(d)[None, None]),
    "dropout": _watched(F.dropout, _v),
    "layer_norm": _watched(lambda x: F.layer_norm(x, (3,)), _x),
    "ctc_loss": _watched(
        F.ctc_loss, lambda d: _x(d)[:, None].log_softmax(-1), lambda d: torch.ones(1, 2, dtype=torch.int64, device=d),
        lambda d: torch.tensor([3]), lambda d: torch.tensor([2]),
    ),
    "clip_grad_norm_": _watched(lambda w: nn.utils.clip_grad_norm_([w], 1.0), _weight),
    "clip_grad_norm_ that checks": _watched(
        lambda w: nn.utils.clip_grad_norm_([w], 1.0, error_if_nonfinite=True), _weight
    ),
    "Adam step": _watched(lambda o: o.step(), _trained),
    "backward": _watched(lambda w: (w * 2).sum().backward(), _weight),
    "module to the device": _watched(lambda d: nn.Linear(2, 2).to(d), _place),
    "pack_padded_sequence": _watched(
        lambda x, n: nn.utils.rnn.pack_padded_sequence(x, n, enforce_sorted=False),
        lambda d: _x(d, 3, 3)[..., None], lambda d: torch.tensor([3, 2, 1]),
    ),
    "tensor_split by a tensor": _watched(lambda x, i: x.tensor_split(i), _v, _host(lambda d: torch.tensor([1, 2]))),
    "synchronize": _watched(lambda d: torch.accelerator.synchronize(), _place),
    "empty nonzero": _watched(torch.nonzero, lambda d: torch.zeros(0, device=d)),
}  # fmt: skip


def _back(run: Callable[[Tensor], Any], *shape: int) -> One:
    """Forward as usual, backward with deterministic algorithms."""

    def both(d: str) -> Any:
        x = torch.randn(*shape, device=d, requires_grad=True)
        out = run(x)
        torch.use_deterministic_algorithms(True)
        return torch.autograd.grad(out.sum(), x)[0]

    return both


def _strict(run: One) -> One:
    def both(d: str) -> Any:
        torch.use_deterministic_algorithms(True)
        return run(d)

    return both


def _l(d: str) -> Tensor:
    return torch.zeros(2, 2, dtype=torch.int64, device=d)


# With torch.use_deterministic_algorithms(True): what raises, and with which text.
DETERMINISTIC: dict[str, One] = {
    "cumsum": _strict(lambda d: _v(d).cumsum(0)),
    "cumsum of integers": _strict(lambda d: _i(d).cumsum(0)),
    "put_": _strict(lambda d: _v(d).put_(_i(d), _v(d))),
    "put_ accumulate": _strict(lambda d: _v(d).put_(_i(d), _v(d), accumulate=True)),
    "histc": _strict(lambda d: _v(d).histc(3, 0, 3)),
    "histc of integers": _strict(lambda d: _i(d).histc(3, 0, 3)),
    "bincount": _strict(lambda d: _n(d).bincount()),
    "bincount with weights": _strict(lambda d: _n(d).bincount(_v(d))),
    "kthvalue": _strict(lambda d: _v(d).kthvalue(1)),
    "median": _strict(lambda d: _v(d).median()),
    "median of a dimension": _strict(lambda d: _v(d).median(0)),
    "mode": _strict(lambda d: _v(d).mode(0)),
    "scatter_": _strict(lambda d: _v(d).scatter_(0, _i(d), _v(d))),
    "scatter_add_": _strict(lambda d: _v(d).scatter_add_(0, _i(d), _v(d))),
    "scatter_add_ of two dimensions": _strict(lambda d: _x(d, 2, 2).scatter_add_(0, _l(d), _x(d, 2, 2))),
    "scatter_reduce_ sum": _strict(lambda d: _v(d).scatter_reduce_(0, _i(d), _v(d), "sum")),
    "scatter_reduce_ mean": _strict(lambda d: _v(d).scatter_reduce_(0, _i(d), _v(d), "mean")),
    "scatter_reduce_ amax": _strict(lambda d: _v(d).scatter_reduce_(0, _i(d), _v(d), "amax")),
    "index_add_": _strict(lambda d: _v(d).index_add_(0, _i(d), _v(d))),
    "index_copy_": _strict(lambda d: _v(d).index_copy_(0, _i(d), _v(d))),
    "index_put_": _strict(lambda d: _v(d).index_put_((_i(d),), _v(d))),
    "index_put_ accumulate": _strict(lambda d: _v(d).index_put_((_i(d),), _v(d), accumulate=True)),
    "masked_scatter_": _strict(lambda d: _v(d).masked_scatter_(_m(d), _v(d))),
    "resize_": _strict(lambda d: _v(d).resize_(5)[3:].isnan().all().item()),
    "empty": _strict(lambda d: torch.empty(3, device=d).isnan().all().item()),
    "nll_loss of images": _strict(lambda d: F.nll_loss(torch.randn(1, 2, 2, 2, device=d), _l(d)[None])),
    "cross_entropy of images": _strict(lambda d: F.cross_entropy(torch.randn(1, 2, 2, 2, device=d), _l(d)[None])),
    "cross_entropy": _strict(lambda d: F.cross_entropy(_x(d), _i(d))),
    "max_unpool2d": _strict(lambda d: F.max_unpool2d(torch.randn(1, 1, 2, 2, device=d), _l(d)[None, None], 2)),
    "max_unpool3d": _strict(lambda d: F.max_unpool3d(torch.randn(1, 1, 1, 2, 2, device=d), _l(d)[None, None, None], 2)),
    "mm without CUBLAS_WORKSPACE_CONFIG": _strict(lambda d: _x(d) @ _x(d)),
    "avg_pool3d backward": _back(lambda x: F.avg_pool3d(x, 3), 2, 3, 3, 3),
    "adaptive_avg_pool2d backward": _back(lambda x: F.adaptive_avg_pool2d(x, 3), 2, 3, 3),
    "adaptive_avg_pool3d backward": _back(lambda x: F.adaptive_avg_pool3d(x, 3), 2, 3, 3, 3),
    "adaptive_max_pool2d backward": _back(lambda x: F.adaptive_max_pool2d(x, 3), 2, 3, 3),
    "max_pool2d backward": _back(lambda x: F.max_pool2d(x, 2), 1, 1, 4, 4),
    "max_pool3d backward": _back(lambda x: F.max_pool3d(x, 3), 2, 3, 3, 3),
    "fractional_max_pool2d backward": _back(
        lambda x: F.fractional_max_pool2d(x, 2, output_ratio=(0.5, 0.5)), 2, 3, 4, 4
    ),
    "fractional_max_pool3d backward": _back(
        lambda x: F.fractional_max_pool3d(x, 2, output_ratio=(0.5, 0.5, 0.5)), 2, 3, 4, 4, 4
    ),
    "interpolate linear backward": _back(lambda x: F.interpolate(x, size=12, mode="linear"), 1, 2, 4),
    "interpolate bilinear backward": _back(lambda x: F.interpolate(x, size=12, mode="bilinear"), 1, 2, 4, 4),
    "interpolate bicubic backward": _back(lambda x: F.interpolate(x, size=12, mode="bicubic"), 1, 2, 4, 4),
    "interpolate trilinear backward": _back(lambda x: F.interpolate(x, size=12, mode="trilinear"), 1, 2, 4, 4, 4),
    "interpolate nearest backward": _back(lambda x: F.interpolate(x, size=12), 1, 2, 4, 4),
    "reflection_pad1d backward": _back(lambda x: F.pad(x, (1, 2), "reflect"), 2, 3, 8),
    "reflection_pad2d backward": _back(lambda x: F.pad(x, (1, 2, 3, 4), "reflect"), 2, 3, 8, 8),
    "reflection_pad3d backward": _back(lambda x: F.pad(x, (1, 2, 3, 4, 5, 6), "reflect"), 2, 3, 8, 8, 8),
    "replication_pad1d backward": _back(lambda x: F.pad(x, (1, 2), "replicate"), 2, 3, 4),
    "replication_pad2d backward": _back(lambda x: F.pad(x, (1, 2, 3, 4), "replicate"), 2, 3, 4, 4),
    "replication_pad3d backward": _back(lambda x: F.pad(x, (1, 2, 3, 4, 5, 6), "replicate"), 2, 3, 4, 4, 4),
    "grid_sample 2d backward": _back(
        lambda x: F.grid_sample(x, torch.zeros(1, 1, 1, 2, device=x.device), align_corners=False), 1, 1, 2, 2
    ),
    "grid_sample 3d backward": _back(
        lambda x: F.grid_sample(x, torch.zeros(1, 1, 1, 2, 3, device=x.device), align_corners=False), 1, 1, 2, 2, 2
    ),
    "ctc_loss backward": _back(
        lambda x: F.ctc_loss(x.log_softmax(-1), torch.ones(1, 2, dtype=torch.int64, device=x.device), [3], [2]), 3, 1, 3
    ),
    "embedding backward": _back(lambda x: F.embedding(_i(str(x.device)), x), 3, 2),
    "embedding_bag max backward": _back(lambda x: F.embedding_bag(_l(str(x.device)), x, mode="max"), 4, 3),
    "gather backward": _back(lambda x: x.gather(0, _i(str(x.device))), 3),
    "index backward": _back(lambda x: x[_i(str(x.device))], 3),
    "index_select backward": _back(lambda x: x.index_select(0, _i(str(x.device))), 3),
    "repeat_interleave backward": _back(lambda x: x.repeat_interleave(2), 3),
    "cumsum backward": _back(lambda x: x.cumsum(0), 3),
    "prod backward": _back(torch.prod, 3),
    "median backward": _back(torch.median, 3),
}

# Indices out of range. A real device may only notice inside the kernel, and the process is then of no more use.
RANGE: dict[str, One] = {
    "integer": lambda d: _v(d)[10],
    "indices": lambda d: _waited(_v(d)[torch.tensor([10]).to(d)]),
    "the CPU's indices": lambda d: _waited(_v(d)[torch.tensor([10])]),
    "gather": lambda d: _waited(_v(d).gather(0, torch.tensor([10]).to(d))),
    "gather of a negative index": lambda d: _waited(_v(d).gather(0, torch.tensor([-1]).to(d))),
    "scatter_": lambda d: _waited(_v(d).scatter_(0, torch.tensor([10]).to(d), 1.0)),
    "index_select": lambda d: _waited(_v(d).index_select(0, torch.tensor([10]).to(d))),
    "index_add_": lambda d: _waited(_v(d).index_add_(0, torch.tensor([10]).to(d), _v(d)[:1])),
    "take": lambda d: _waited(_v(d).take(torch.tensor([10]).to(d))),
    "embedding": lambda d: _waited(F.embedding(torch.tensor([10]).to(d), _x(d))),
    "cross_entropy": lambda d: _waited(F.cross_entropy(_x(d), torch.tensor([0, 1, 10]).to(d))),
    "nll_loss": lambda d: _waited(F.nll_loss(_x(d), torch.tensor([0, 1, 10]).to(d))),
    "one_hot": lambda d: _waited(F.one_hot(torch.tensor([10]).to(d), 3)),
    "bincount of a negative number": lambda d: _waited(torch.bincount(torch.tensor([-1]).to(d))),
    "multinomial of negative weights": lambda d: _waited(torch.multinomial(-_v(d), 1)),
    "binary_cross_entropy outside of [0, 1]": lambda d: _waited(F.binary_cross_entropy(_v(d), _v(d))),
    "linalg.inv of a singular matrix": lambda d: _waited(torch.linalg.inv(torch.zeros(2, 2, device=d))),
    "linalg.cholesky of a negative matrix": lambda d: _waited(torch.linalg.cholesky(-torch.eye(2, device=d))),
    "integer division by zero": lambda d: _waited(_i(d) // torch.zeros_like(_i(d))),
}


def _waited(result: Tensor) -> Tensor:
    """Read the result: an error inside a kernel comes to light when the CPU waits."""
    result.cpu()
    return result
