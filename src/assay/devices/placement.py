"""Bring operands together, move trees of tensors, and read on the CPU: the only code that copies between devices."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from assay.devices.policies import can_hold, policy
from assay.errors import DeviceError, PlacementWarning, calling_frame, describe

_DISPATCH: Any = Tensor.__torch_dispatch__
"""What subclasses have that leave operators to torch."""
_warned: set[tuple[str, str, str, str, int]] = set()


def as_current_cuda_device(tensor: Tensor) -> AbstractContextManager[None]:
    """Inside, the device of a tensor is CUDA's current one, where Triton launches; nothing for tensors on the CPU."""
    return torch.cuda.device_of(tensor)  # type: ignore[no-untyped-call]


def bring_together(
    *, to: torch.device | None = None, strict: bool = False, **tensors: Tensor | None
) -> dict[str, Tensor | None]:
    """Bring the arguments of a call to one device.

    They meet where the first of them is, so give ``preds`` first. A tensor that is elsewhere is moved, with one warning
    a line of the caller's code. Where the meeting place cannot hold a dtype (float64 on an Apple GPU), all meet on the
    CPU, so that no value is rounded. A 0-dimensional CPU tensor is moved without a word, as torch itself mixes those.

    Args:
        to: the device to meet on, instead of that of the first tensor.
        strict: raise instead of moving.
        **tensors: the arguments by name; ``None`` stays ``None``.

    Returns:
        The same names, with all tensors on one device. Tensors that were there already are the same objects.

    Raises:
        DeviceError: tensors are on several devices and ``strict`` is set.

    Warns:
        PlacementWarning: a tensor was moved.

    Example:
        >>> operands = bring_together(preds=torch.zeros(3), target=torch.ones(3), weights=None)
        >>> operands["target"]
        tensor([1., 1., 1.])
    """
    home = to
    for tensor in tensors.values():
        if tensor is None:
            continue
        if home is None:
            home = tensor.device
        elif tensor.device != home:
            return _bring(home, strict, tensors)
    return tensors


def to_host(tensor: Tensor) -> Tensor:
    """A copy of a tensor on the CPU for reading; the tensor itself where it is there already.

    It is made contiguous first, because copies of strided tensors from an Apple GPU are wrong in some versions
    (pytorch/pytorch#189961).
    """
    tensor = tensor.detach()
    return tensor if tensor.device.type == "cpu" else tensor.contiguous().to("cpu")


def same_kind(one: torch.device, other: torch.device) -> bool:
    """Whether two devices are of one kind, such as the first and the second GPU.

    Example:
        >>> same_kind(torch.device("cuda:0"), torch.device("cuda:1"))
        True
    """
    return one.type == other.type


def constants(numbers: Sequence[float], like: Tensor) -> Tensor:
    """A vector of numbers in the dtype and on the device of a tensor, without synchronizing with the device.

    To copy a list to a device synchronizes with it, so the vector is filled one by one there.

    Example:
        >>> constants((0.5, 2.0), torch.zeros(3))
        tensor([0.5000, 2.0000])
    """
    if like.device.type == "cpu":
        return torch.tensor(numbers, dtype=like.dtype, device="cpu")
    return torch.cat([like.new_full((1,), number) for number in numbers])


def has_values(tensor: Tensor) -> bool:
    """Whether a tensor holds values; on the device `meta` it has but a shape and a dtype."""
    return tensor.device.type != "meta"


def is_plain(tensor: Tensor) -> bool:
    """Whether a tensor's operators are those of torch: not one of a masked, distributed, fake or packed kind."""
    kind: Any = type(tensor)
    return kind.__torch_dispatch__ is _DISPATCH or getattr(kind, "is_plain", False)


def can_read(tensor: Tensor) -> bool:
    """Whether reading a value of a tensor waits for no device: an ordinary one in host memory, and no mode of torch."""
    return is_in_host_memory(tensor) and not (is_compiling() or torch._C._len_torch_dispatch_stack())


def is_in_host_memory(tensor: Any) -> bool:
    """Whether this is an ordinary tensor in host memory that requires no gradient."""
    return type(tensor) is Tensor and tensor.is_cpu and not tensor.requires_grad


def is_freed(tensor: Tensor) -> bool:
    """Whether a tensor's storage is too small for it, as after `untyped_storage().resize_(0)`; torch crashes on those.

    Raises:
        NotImplementedError: it has no storage, as inside of `torch.func.vmap`.
    """
    if not tensor.numel() or type(tensor).__torch_dispatch__ is not _DISPATCH:
        return False
    if tensor.is_contiguous() and not tensor.storage_offset():  # as most are
        return tensor.untyped_storage().nbytes() < tensor.nbytes
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return tensor.untyped_storage().nbytes() < (tensor.storage_offset() + last + 1) * tensor.element_size()


def outside_inference() -> AbstractContextManager[Any]:
    """A block whose tensors are ordinary ones, also where the caller is in inference mode."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext()


def is_as_read(tensor: Tensor) -> bool:
    """Whether the numbers of a tensor lie one after the other, and are not to be negated or conjugated."""
    is_as_it_lies = tensor.is_contiguous() and not tensor.is_neg() and not tensor.is_conj()
    return is_as_it_lies and tensor.data_ptr() != 0


def has_own_memory(tensor: Tensor) -> bool:
    """Whether a tensor's values are those in its memory: it is ordinary, and not lazily negated, conjugated or zero."""
    return is_plain(tensor) and not (tensor.is_neg() or tensor.is_conj() or tensor._is_zerotensor())


def plain(tensor: Tensor) -> Tensor:
    """The same values as an ordinary tensor that has them in memory: negated, conjugated and filled with zeros."""
    if type(tensor) is not Tensor and type(tensor).__torch_dispatch__ is _DISPATCH:
        tensor = tensor.as_subclass(Tensor)
    if not is_compiling() and tensor._is_zerotensor():
        tensor = tensor.clone()
    return tensor.resolve_conj().resolve_neg()


def move(tree: Any, device: str | torch.device) -> Any:
    """Move every tensor of a tree to a device and leave the rest unchanged.

    Args:
        tree: a tensor, or a mapping, list, tuple, named tuple or dataclass of trees, nested at will.
        device: where to.

    Returns:
        A tree of the same types. The tree given is not changed.

    Example:
        >>> batch = {"image": torch.zeros(2), "meta": ["a", (torch.ones(1), 3)]}
        >>> move(batch, "cpu")["meta"][1]
        (tensor([1.]), 3)
    """
    return _move(tree, torch.device(device))


def _move(tree: Any, device: torch.device) -> Any:
    if isinstance(tree, Tensor):
        return _to(tree, device)
    if isinstance(tree, Mapping):
        return _move_mapping(tree, device)
    if isinstance(tree, tuple):
        moved = [_move(branch, device) for branch in tree]
        return type(tree)(*moved) if hasattr(tree, "_fields") else type(tree)(moved)
    if isinstance(tree, list):
        return type(tree)(_move(branch, device) for branch in tree)
    if is_dataclass(tree) and not isinstance(tree, type):
        moved_copy = copy.copy(tree)
        for field in fields(tree):  # object.__setattr__, because the dataclass may be frozen
            object.__setattr__(moved_copy, field.name, _move(getattr(tree, field.name), device))
        return moved_copy
    return tree


def _move_mapping(tree: Mapping[Any, Any], device: torch.device) -> Any:
    moved = {key: _move(branch, device) for key, branch in tree.items()}
    if not isinstance(tree, MutableMapping) or type(tree) is dict:
        return moved
    result = copy.copy(tree)  # keeps a default factory, and the class that a model gives back
    for key, branch in moved.items():
        result[key] = branch
    return result


def _to(tensor: Tensor, device: torch.device) -> Tensor:
    if tensor.device == device:
        return tensor
    asynchronous = policy(device).non_blocking.value and tensor.device.type == "cpu" and tensor.is_pinned()
    return tensor.to(device, non_blocking=asynchronous)


def _bring(home: torch.device, strict: bool, tensors: dict[str, Tensor | None]) -> dict[str, Tensor | None]:
    home = _common_ground(home, tensors)
    moved: dict[str, Tensor | None] = {}
    for name, tensor in tensors.items():
        if tensor is None or tensor.device == home:
            moved[name] = tensor
            continue
        if not (tensor.dim() == 0 and tensor.device.type == "cpu"):
            _tell(name, tensor, home, strict)
        moved[name] = _to(tensor, home)
    return moved


def _common_ground(home: torch.device, tensors: dict[str, Tensor | None]) -> torch.device:
    if all(tensor is None or can_hold(home, tensor.dtype) for tensor in tensors.values()):
        return home
    return torch.device("cpu")


def _tell(name: str, tensor: Tensor, home: torch.device, strict: bool) -> None:
    caller = calling_frame()
    filename, line = caller.f_code.co_filename, caller.f_lineno
    key = (name, str(tensor.device), str(home), filename, line)
    if not strict and key in _warned:
        return
    do = f'Call {name}.to("{home}") once before the loop'
    if not strict:
        do = f"It has been moved; to save the copy each time, call {name}.to({str(home)!r}) yourself, "
        do += "or pass strict=True to make this an error"
    expected = f"one on {home}, where the other arguments are"
    message = describe(f"{name} at {filename}:{line}", f"a tensor on {tensor.device}", expected, do)
    if strict:
        raise DeviceError(message)
    warnings.warn_explicit(message, PlacementWarning, filename, line)
    _warned.add(key)
