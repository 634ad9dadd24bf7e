"""What a device does other than computing: where tensors land, what copies keep, indices out of range."""

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

from assay.conformance.fixed_inputs import indices, matrix, vector

One = Callable[[str], Any]  # given the name of the device


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
    "zeros_like": lambda d: torch.zeros_like(matrix(d)),
    "new_zeros": lambda d: matrix(d).new_zeros(2),
    "new_tensor": lambda d: matrix(d).new_tensor([1.0]),
    "tensor": lambda d: torch.tensor([1.0], device=d),
    "tensor of a tensor": lambda d: torch.as_tensor(matrix(d)),
    "as_tensor of numpy": lambda d: torch.as_tensor(np.ones(2, np.float32), device=d),
    "asarray": lambda d: torch.asarray([1.0, 2.0], device=d),
    "from_numpy": lambda d: torch.from_numpy(np.ones(2)),
    "arange": lambda d: torch.arange(3, device=d),
    "randn": lambda d: torch.randn(2, device=d),
    "randn with the CPU's generator": lambda d: torch.randn(2, device=d, generator=torch.Generator()),
    "randn with a generator": lambda d: torch.randn(2, device=d, generator=torch.Generator(d)),
    "randperm": lambda d: torch.randperm(4, device=d),
    "eye": lambda d: torch.eye(2, device=d),
    "one_hot": lambda d: F.one_hot(indices(d), 3),
    "nonzero": lambda d: matrix(d).nonzero(),
    "module": lambda d: nn.Linear(2, 2, device=d).weight,
    "module moved": lambda d: nn.Linear(2, 2).to(d).weight,
    "to the kind": lambda d: torch.ones(2).to(_kind(d)),
    "from the device to the kind": lambda d: matrix(d).to(_kind(d)),
    "method of the kind": lambda d: getattr(torch.ones(2), _kind(d))(),
    "method of the kind, from the device": lambda d: getattr(matrix(d), _kind(d))(),
    "in a device context": lambda d: _in(d, lambda: torch.zeros(2)),
    "in a device context, tensor": lambda d: _in(d, lambda: torch.tensor([1.0])),
    "in a device context, from_numpy": lambda d: _in(d, lambda: torch.from_numpy(np.ones(2))),
    "in a device context, module": lambda d: _in(d, lambda: nn.Linear(2, 2).weight),
    "generator": lambda d: str(torch.Generator(d).device),
    "storage": lambda d: str(matrix(d).untyped_storage().device),
    "load": _loaded,
    "load with map_location": _mapped,
    "pickle": lambda d: pickle.loads(pickle.dumps(matrix(d))),
    "deepcopy": lambda d: copy.deepcopy(matrix(d)),
    "deepcopy of a module": lambda d: copy.deepcopy(nn.Linear(2, 2).to(d)).weight,
    "state_dict": lambda d: nn.Linear(2, 2).to(d).state_dict()["weight"],
    "optimizer's state": lambda d: _stepped(d).state_dict()["state"][0]["exp_avg"],
    "optimizer's step": lambda d: _stepped(d).state_dict()["state"][0]["step"],
    "device of no such index": lambda d: torch.zeros(1, device=f"{_kind(d)}:17"),
    "hash of the device": lambda d: matrix(d).device == torch.device(d),
    "type": lambda d: matrix(d).type(),
    "repr": lambda d: repr(torch.ones(2, device=d)),
    "is_pinned": lambda d: torch.ones(2).is_pinned(),
    "pin_memory": lambda d: torch.ones(2).pin_memory().is_pinned(),
    "pin_memory of the device": lambda d: matrix(d).pin_memory(),
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
    "to the same device is the same tensor": lambda d: (x := matrix(d)).to(d) is x,
    "to with copy is another": lambda d: (x := matrix(d)).to(d, copy=True) is x,
    "cpu of the CPU is the same tensor": lambda d: (x := torch.ones(2)).cpu() is x,
    "copy to the device": lambda d: torch.zeros(2, device=d).copy_(torch.ones(2)).tolist(),
    "copy to the CPU": lambda d: torch.zeros(2).copy_(torch.ones(2, device=d)).tolist(),
    "copy with a dtype": lambda d: torch.zeros(2, device=d).copy_(torch.ones(2, dtype=torch.int64)).tolist(),
    "copy with broadcasting": lambda d: torch.zeros(2, 2, device=d).copy_(torch.arange(2.0)).tolist(),
    "copy of a strided view": lambda d: matrix(d)[:, ::2].cpu().tolist(),
    "copy into a strided view": lambda d: (
        (y := torch.zeros(3, 4, device=d))[:, ::2].copy_(torch.ones(3, 2)).sum() + y.sum()
    ),
    "copy without waiting": lambda d: matrix(d).to("cpu", non_blocking=True).shape,
    "strides of a transposed copy": lambda d: _strides(torch.ones(2, 3).t().to(d)),
    "strides of a channels-last copy": lambda d: _strides(
        torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).to(d)
    ),
    "strides of an expanded copy": lambda d: _strides(torch.ones(3).expand(2, 3).to(d)),
    "numpy": lambda d: matrix(d).numpy(),
    "np.asarray": lambda d: np.asarray(matrix(d)),
    "numpy of the CPU's copy": lambda d: matrix(d).cpu().numpy().shape,
    "tolist": lambda d: torch.arange(3, device=d).tolist(),
    "iterate": lambda d: [float(v) for v in torch.arange(3.0, device=d)],
    "view shares memory": lambda d: (x := torch.zeros(2, device=d)).view(2).data_ptr() == x.data_ptr(),
    "a change of a view is seen": lambda d: ((x := torch.zeros(2, device=d))[0].fill_(3.0), x.tolist())[1],
    "data_ptr": lambda d: matrix(d).data_ptr() != 0,
    "dlpack": lambda d: str(matrix(d).__dlpack_device__()[0]),
    "share_memory_": lambda d: matrix(d).share_memory_().is_shared(),
    "requires_grad crosses": lambda d: torch.ones(2, requires_grad=True).to(d).requires_grad,
    "gradient crosses": lambda d: _crossing(d),
    "gradient on another device": lambda d: setattr(torch.ones(2, requires_grad=True), "grad", torch.ones(2, device=d)),
    "double to the device": lambda d: torch.ones(2, dtype=torch.float64).to(d),
    "complex128 to the device": lambda d: torch.ones(2, dtype=torch.complex128).to(d),
    "double on the device": lambda d: torch.zeros(2, dtype=torch.float64, device=d),
    "double of a tensor": lambda d: matrix(d).double(),
    "tensor of a double": lambda d: torch.tensor(np.float64(1.0), device=d),
    "tensor of numpy doubles": lambda d: torch.tensor(np.ones(2), device=d),
    "sum in double": lambda d: matrix(d).sum(dtype=torch.float64),
    "bfloat16 on the device": lambda d: torch.zeros(2, dtype=torch.bfloat16, device=d),
    "multiply by a Python float": lambda d: matrix(d) * 0.1,
    "integers divided": lambda d: torch.arange(3, device=d) / 2,
    "int64 on the device": lambda d: torch.full((2,), 2**40, dtype=torch.int64, device=d).sum().item(),
}


def _crossing(d: str) -> str:
    leaf = torch.ones(2, requires_grad=True)
    (leaf.to(d) * 2).sum().backward()
    assert leaf.grad is not None
    return str(leaf.grad.device)


# Indices out of range. A real device may only notice inside the kernel, and the process is then of no more use.
RANGE: dict[str, One] = {
    "integer": lambda d: vector(d)[10],
    "indices": lambda d: _waited(vector(d)[torch.tensor([10]).to(d)]),
    "the CPU's indices": lambda d: _waited(vector(d)[torch.tensor([10])]),
    "gather": lambda d: _waited(vector(d).gather(0, torch.tensor([10]).to(d))),
    "gather of a negative index": lambda d: _waited(vector(d).gather(0, torch.tensor([-1]).to(d))),
    "scatter_": lambda d: _waited(vector(d).scatter_(0, torch.tensor([10]).to(d), 1.0)),
    "index_select": lambda d: _waited(vector(d).index_select(0, torch.tensor([10]).to(d))),
    "index_add_": lambda d: _waited(vector(d).index_add_(0, torch.tensor([10]).to(d), vector(d)[:1])),
    "take": lambda d: _waited(vector(d).take(torch.tensor([10]).to(d))),
    "embedding": lambda d: _waited(F.embedding(torch.tensor([10]).to(d), matrix(d))),
    "cross_entropy": lambda d: _waited(F.cross_entropy(matrix(d), torch.tensor([0, 1, 10]).to(d))),
    "nll_loss": lambda d: _waited(F.nll_loss(matrix(d), torch.tensor([0, 1, 10]).to(d))),
    "one_hot": lambda d: _waited(F.one_hot(torch.tensor([10]).to(d), 3)),
    "bincount of a negative number": lambda d: _waited(torch.bincount(torch.tensor([-1]).to(d))),
    "multinomial of negative weights": lambda d: _waited(torch.multinomial(-vector(d), 1)),
    "binary_cross_entropy outside of [0, 1]": lambda d: _waited(F.binary_cross_entropy(vector(d), vector(d))),
    "linalg.inv of a singular matrix": lambda d: _waited(torch.linalg.inv(torch.zeros(2, 2, device=d))),
    "linalg.cholesky of a negative matrix": lambda d: _waited(torch.linalg.cholesky(-torch.eye(2, device=d))),
    "integer division by zero": lambda d: _waited(indices(d) // torch.zeros_like(indices(d))),
}


def _waited(result: Tensor) -> Tensor:
    """Read the result: an error inside a kernel comes to light when the CPU waits."""
    result.cpu()
    return result
