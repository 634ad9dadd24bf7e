"""What ``torch.nn.DataParallel`` asks of torch's C code: copies between the devices of one process.

A CPU build lacks these functions (torch/csrc/cuda/comm.cpp). The values and places of their results are those of the
originals; torch's Python code around them, autograd included, is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Tensors = Sequence[Tensor]


def broadcast(tensor: Tensor, devices: Sequence[int]) -> tuple[Tensor, ...]:
    """One copy for each device; where the tensor already is, the tensor itself."""
    return tuple(tensor.to(torch.device("cuda", index)) for index in devices)


def broadcast_out(tensor: Tensor, out: Tensors) -> Tensors:
    """The values of ``tensor`` in each tensor of ``out``."""
    for target in out:
        target.copy_(tensor, non_blocking=True)
    return out


def broadcast_coalesced(tensors: Tensors, devices: Sequence[int], buffer_size: int) -> list[list[Tensor]]:
    """A list of the tensors for each device; those of the first are the tensors themselves."""
    first = torch.device("cuda", devices[0])
    if any(tensor.device != first for tensor in tensors):
        raise RuntimeError(f"all tensors must be on devices[0]: {devices[0]}")
    return [[tensor.to(torch.device("cuda", index)) for tensor in tensors] for index in devices]


def scatter(
    tensor: Tensor, devices: Sequence[int], chunk_sizes: Sequence[int] | None, dim: int, streams: Any = None
) -> list[Tensor]:
    """One part of ``tensor`` for each device: of these sizes, or as equal as :func:`torch.chunk` makes them."""
    parts = tensor.chunk(len(devices), dim) if chunk_sizes is None else torch.split(tensor, list(chunk_sizes), dim)
    targets = [torch.device("cpu") if index < 0 else torch.device("cuda", index) for index in devices]
    return [part.to(target, non_blocking=True) for part, target in zip(parts, targets, strict=False)]


def scatter_out(tensor: Tensor, out: Tensors, dim: int, streams: Any = None) -> Tensors:
    """The parts of ``tensor`` in the tensors of ``out``, whose sizes along ``dim`` say where it is cut."""
    for part, target in zip(torch.split(tensor, [target.size(dim) for target in out], dim), out, strict=True):
        target.copy_(part, non_blocking=True)
    return out


def gather(tensors: Tensors, dim: int, destination: int | None) -> Tensor:
    """The tensors one after the other on one device: by default the current one, on the CPU for ``-1``."""
    index = torch.cuda.current_device() if destination is None else destination
    target = torch.device("cpu") if index < 0 else torch.device("cuda", index)
    return torch.cat([tensor.to(target) for tensor in tensors], dim)


def gather_out(tensors: Tensors, out: Tensor, dim: int) -> Tensor:
    """The tensors one after the other in ``out``."""
    return out.copy_(torch.cat([tensor.to(out.device) for tensor in tensors], dim))


COMMUNICATION: dict[str, Callable[..., Any]] = {
    f"_{function.__name__}": function
    for function in (broadcast, broadcast_out, broadcast_coalesced, scatter, scatter_out, gather, gather_out)
}
"""The functions of ``torch._C`` by name."""
