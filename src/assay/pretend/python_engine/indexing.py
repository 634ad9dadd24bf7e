"""``tensor[index]`` of a wrapped tensor, taken apart into operators as torch takes it apart.

torch does that in C++, under a guard of the device that only a build with the device has. What is done here, and which
of its steps synchronize with the device, follows ``torch/csrc/autograd/python_variable_indexing.cpp`` and
``aten/src/ATen/TensorIndexing.h`` in pytorch/pytorch.
"""

from __future__ import annotations

import operator
import sys
import warnings
from numbers import Integral
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
_DEPRECATED = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; "
    "use x[tuple(seq)] instead of x[seq]"
)
Indices = list[Tensor | None]


def get(tensor: Tensor, index: Any) -> Tensor:
    """What ``tensor[index]`` is."""
    view, indices = _applied(tensor, index)
    if indices:
        return aten.index.Tensor(view, indices)  # type: ignore[no-any-return]
    return aten.alias(view) if view is tensor else view


def put(tensor: Tensor, index: Any, value: Any) -> None:
    """What ``tensor[index] = value`` does."""
    new = value if isinstance(value, Tensor) else _number(tensor, value)
    if index is False:
        return
    view, indices = (tensor.unsqueeze(0), []) if index is True else _applied(tensor, index)
    if indices:
        aten.index_put_(view, indices, _without_leading_ones(new))
    elif new.shape == view.shape:
        view.copy_(new)
    elif new.dim() == 0 and new.is_cpu:
        aten.fill_.Tensor(view, new)
    else:
        view.copy_(_without_leading_ones(new).expand(view.shape))


def _number(tensor: Tensor, value: Any) -> Tensor:
    """A number as a tensor: on CUDA torch makes it in host memory, elsewhere on the device."""
    if not isinstance(value, int | float | complex):
        raise TypeError(f"can't assign a {type(value).__name__} to a {tensor.type()}")
    return torch.scalar_tensor(value, dtype=tensor.dtype, device="cpu" if tensor.is_cuda else tensor.device)


def _without_leading_ones(value: Tensor) -> Tensor:
    ones = 0
    while ones < value.dim() and value.shape[ones] == 1:
        ones += 1
    return value.view(value.shape[ones:]) if ones else value


def _applied(tensor: Tensor, index: Any) -> tuple[Tensor, Indices]:
    """The view that the integers and slices make, and the tensors that are left to index it."""
    items = _items(index)
    specified = sum(_dims(item) for item in items)
    if specified > tensor.dim():
        if tensor.dim() == 0 and isinstance(index, Integral | slice):
            _refuse_without_dimensions(index)
        raise IndexError(f"too many indices for tensor of dimension {tensor.dim()}")
    view, dim, covered = tensor, 0, 0  # covered: how many dimensions `indices` stand for so far
    indices: Indices = []
    for place, item in enumerate(items):
        if item is Ellipsis:
            dim += tensor.dim() - specified
        elif item is None:
            view, dim = view.unsqueeze(dim), dim + 1
        elif isinstance(item, slice):
            view, dim = _sliced(view, dim, item), dim + 1
        elif _is_integer(item):
            view = _selected(view, dim, operator.index(item), place)
        else:
            view, index_tensor = _tensor_index(tensor, view, dim, item)
            indices += [None] * (dim - covered) + [index_tensor]
            dim = covered = dim + max(1, _dims(index_tensor))
    return view, indices


def _items(index: Any) -> tuple[Any, ...]:
    if isinstance(index, tuple):
        return tuple(index)
    if isinstance(index, list) and len(index) < 32 and any(_deep(item) for item in index):
        warnings.warn(_DEPRECATED, UserWarning, stacklevel=4)
        return tuple(index)
    return (index,)


def _deep(item: Any) -> bool:
    return item is None or item is Ellipsis or isinstance(item, Tensor | slice) or _is_sequence(item)


def _is_sequence(item: Any) -> bool:
    return hasattr(item, "__getitem__") and hasattr(item, "__len__") and not isinstance(item, dict | Tensor)


def _is_integer(item: Any) -> bool:
    """An integer, or a tensor that stands for one: reading it synchronizes with the device."""
    if isinstance(item, Tensor):
        return item.dim() == 0 and item.dtype in (torch.int64, torch.int32, torch.int16, torch.int8)
    if isinstance(item, bool) or (_is_sequence(item) and getattr(item, "ndim", True)):
        return False
    try:
        operator.index(item)
    except TypeError:
        name = f"numpy.{type(item).__name__}" if type(item).__module__ == "numpy" else type(item).__name__
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
            f"(got {name})"
        ) from None
    return True


def _dims(item: Any) -> int:
    """How many dimensions an index takes up."""
    if item is None or item is Ellipsis or isinstance(item, bool):
        return 0
    if isinstance(item, Tensor) and item.dtype in (torch.bool, torch.uint8):
        return item.dim()
    return 1


def _bounds(item: slice) -> tuple[int, int, int]:
    start = 0 if item.start is None else operator.index(item.start)
    stop = sys.maxsize if item.stop is None else operator.index(item.stop)
    step = 1 if item.step is None else operator.index(item.step)
    if step == 0:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    return start, stop, step


def _sliced(view: Tensor, dim: int, item: slice) -> Tensor:
    start, stop, step = _bounds(item)
    if start == 0 and step == 1 and stop >= view.shape[dim]:
        return view
    return aten.slice.Tensor(view, dim, start, stop, step)  # type: ignore[no-any-return]


def _selected(view: Tensor, dim: int, index: int, place: int) -> Tensor:
    size = view.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for dimension {place} with size {size}")
    return aten.select.int(view, dim, index)  # type: ignore[no-any-return]


def _refuse_without_dimensions(item: Any) -> None:
    if isinstance(item, slice):
        _bounds(item)
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if item != 0:
        raise IndexError(f"index {item} is out of bounds for dimension 0 with size 0")
    raise IndexError(
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ "
        "to convert a 0-dim tensor to a number"
    )


def _tensor_index(tensor: Tensor, view: Tensor, dim: int, item: Any) -> tuple[Tensor, Tensor]:
    """An index that is a tensor, a truth value or a sequence, and the view that it indexes."""
    if isinstance(item, Tensor) and item.dim() == 0 and item.dtype in (torch.bool, torch.uint8):
        item = bool(item)
    if isinstance(item, bool):
        one = torch.zeros(int(item), dtype=torch.int64, device=tensor.device)
        return view.unsqueeze(dim), one
    if isinstance(item, Tensor):
        return view, item
    index = torch.as_tensor(item)
    if index.dtype not in (torch.bool, torch.uint8):
        index = index.to(torch.int64)
    return view, index.to(tensor.device)
