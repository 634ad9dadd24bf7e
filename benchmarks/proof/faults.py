"""A device that counts wrongly: a pretended one, of whose operators one gives another result than it should."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

SRC = Path(__file__).parents[2] / "src" / "assay"
WRAP = 1 << 32
COUNTING = {
    *("sums/exact.py", "sums/sums.py", "sums/row_sums.py", "sums/fingerprints.py", "points/cluster_sums.py"),
    *("sums/extremes.py", "sums/largest_error.py", "points/feature_moments.py", "sums/integer_products.py"),
    *("labels/confusion.py", "labels/groups.py", "labels/sample_hits.py", "stores/sample_store.py"),
    *("scores/threshold_counts.py", "scores/histogram.py", "scores/score_histogram.py"),
}
"""Where values become counts. Operators that are called elsewhere compute what is counted."""
OF_VALUES = {"sum_each_row", "_inspect", "_summary", "_terms", "_places", "_decided", "_of_row", "add_invalid"} | {
    *("_found", "_add_floats", "_ends", "keys", "_pair_keys", "_exact_keys", "_ordered", "elements_without_weight")
}
"""Functions there that compute what is counted, too."""

Spoil = Callable[[Any, list[Any], dict[str, Any], torch.Generator], tuple[Any, bool]]
"""Calls an operator wrongly: its result, and whether that is another one than it should be."""


def _place(found: Tensor, generator: torch.Generator) -> int | None:
    """One of the places that are not 0, drawn at random; None without any."""
    places = found.reshape(-1).nonzero()[:, 0]
    return int(places[int(torch.randint(len(places), (), generator=generator))]) if len(places) else None


def _host(tensor: Tensor) -> Tensor:
    return tensor.detach().contiguous().to("cpu").clone()


def _scatter(change: str) -> Spoil:
    def spoil(call: Any, args: list[Any], kwargs: dict[str, Any], generator: torch.Generator) -> tuple[Any, bool]:
        into, dim, index, source = args[:4]
        rows = call._schema.name == "aten::index_add_"
        found, places = _host(source), _host(index)
        flat = found.reshape(len(places), -1).ne(0).any(1) if rows and dim == 0 else found
        place = _place(flat, generator)
        if place is None or (rows and dim):
            return call(*args, **kwargs), False
        if change == "misplaces":
            spot = places.view(-1)
            size = into.shape[dim]
            other = int(spot[place]) + 1
            spot[place] = other if other < size else int(spot[place]) - 1
            is_wrong = size > 1
        else:
            cells = found.view(len(places), -1) if rows else found.view(-1)
            cells[place] *= 0 if change == "loses" else 2
            is_wrong = True
        if not is_wrong:
            return call(*args, **kwargs), False
        return call(into, dim, places.to(index.device), found.to(source.device), *args[4:], **kwargs), True

    return spoil


def _result(change: Callable[[Tensor, int], None], of_input: bool = False) -> Spoil:
    """Changes an element of the result, or one of the first argument that is not 0."""

    def spoil(call: Any, args: list[Any], kwargs: dict[str, Any], generator: torch.Generator) -> tuple[Any, bool]:
        if of_input:
            given = _host(args[0])
            place = _place(given, generator)
            if place is None:
                return call(*args, **kwargs), False
            change(given.view(-1), place)
            return call(given.to(args[0].device), *args[1:], **kwargs), True
        result = call(*args, **kwargs)
        tensor = result[1] if isinstance(result, tuple) else result
        changed = _host(tensor)
        if not changed.numel():
            return result, False
        before = changed.clone()
        change(changed.view(-1), int(torch.randint(changed.numel(), (), generator=generator)))
        tensor.copy_(changed)
        return result, not torch.equal(before, changed)

    return spoil


def _add_one(values: Tensor, place: int) -> None:
    if not values.dtype.is_floating_point:
        values[place] += 1


def _add_ulp(values: Tensor, place: int) -> None:
    if values.dtype.is_floating_point:
        values[place] = torch.nextafter(values[place], torch.full((), torch.inf, dtype=values.dtype))


def _lose(values: Tensor, place: int) -> None:
    values[place] = 0


def _flip(values: Tensor, place: int) -> None:
    values[place] = values[place] == 0


def _other_class(values: Tensor, place: int) -> None:
    values[place] = values[place] - 1 if values[place] > 0 else values[place] + 1


def _wrapped(call: Any, args: list[Any], kwargs: dict[str, Any], generator: torch.Generator) -> tuple[Any, bool]:
    result = call(*args, **kwargs)
    if not isinstance(result, Tensor) or result.dtype != torch.int64:
        return result, False
    before = _host(result)
    after = (before + WRAP // 2).remainder(WRAP) - WRAP // 2
    is_wrong = not torch.equal(before, after)
    if is_wrong:
        result.copy_(after)
    return result, is_wrong


def _torn(call: Any, args: list[Any], kwargs: dict[str, Any], generator: torch.Generator) -> tuple[Any, bool]:
    """A copy from the device whose last half is not there yet."""
    result = call(*args, **kwargs)
    if not isinstance(result, Tensor) or result.device.type != "cpu" or args[0].device.type == "cpu":
        return result, False
    flat = result.view(-1)
    half = flat[len(flat) // 2 :]
    is_wrong = bool(half.any())
    half.zero_()
    return result, is_wrong


def _torn_on_device(call: Any, args: list[Any], kwargs: dict[str, Any], generator: torch.Generator) -> tuple[Any, bool]:
    """A copy from one tensor of the device to another one, whose last half keeps what was there."""
    into, source = args[:2]
    if source.device.type == "cpu" or into.device.type == "cpu" or into.numel() < 2:
        return call(*args, **kwargs), False
    before = _host(into)
    result = call(*args, **kwargs)
    after = _host(result)
    half = after.numel() // 2
    is_wrong = not torch.equal(before.view(-1)[half:], after.view(-1)[half:])
    after.view(-1)[half:] = before.view(-1)[half:]
    result.copy_(after)
    return result, is_wrong


def _from_beginning(call: Any, args: list[Any], kwargs: dict[str, Any], generator: torch.Generator) -> tuple[Any, bool]:
    """A view is read as if it began where its memory does."""
    place = next((k for k, each in enumerate(args) if isinstance(each, Tensor) and each.storage_offset()), None)
    if place is None or (place == 0 and call._schema.name.endswith("_")):
        return call(*args, **kwargs), False
    view = args[place]
    wrong = view.as_strided(view.shape, view.stride(), 0)
    is_wrong = not torch.equal(_host(view), _host(wrong))
    return call(*args[:place], wrong, *args[place + 1 :], **kwargs), is_wrong


def _arbitrary(values: Tensor) -> None:
    """Something that lay in the memory before."""
    numbers = torch.arange(values.numel()).view(values.shape) % 7
    values.copy_(numbers == 0 if values.dtype == torch.bool else numbers)


def _from_elsewhere(fill: Callable[[Tensor], None]) -> Spoil:
    """A copy from the device that holds something else."""

    def spoil(call: Any, args: list[Any], kwargs: dict[str, Any], generator: torch.Generator) -> tuple[Any, bool]:
        result = call(*args, **kwargs)
        if not isinstance(result, Tensor) or result.device.type != "cpu" or args[0].device.type == "cpu":
            return result, False
        before = result.clone()
        fill(result)
        return result, not torch.equal(before.view(-1), result.view(-1))

    return spoil


def _as_if_dense(call: Any, args: list[Any], kwargs: dict[str, Any], generator: torch.Generator) -> tuple[Any, bool]:
    """A strided view is read as if its elements lay one after the other."""
    place = next((k for k, each in enumerate(args) if isinstance(each, Tensor) and not each.is_contiguous()), None)
    if place is None or (place == 0 and call._schema.name.endswith("_")) or 0 in args[place].stride():
        return call(*args, **kwargs), False
    view = args[place]
    steps = [math.prod(view.shape[k + 1 :]) for k in range(view.ndim)]
    wrong = view.as_strided(view.shape, steps, view.storage_offset())
    is_wrong = not torch.equal(_host(view), _host(wrong))
    return call(*args[:place], wrong, *args[place + 1 :], **kwargs), is_wrong


def _one_for_nothing(
    call: Any, args: list[Any], kwargs: dict[str, Any], generator: torch.Generator
) -> tuple[Any, bool]:
    """An operator that gives 1 where it is given an empty tensor."""
    result = call(*args, **kwargs)
    if args[0].numel() or not isinstance(result, Tensor) or not result.numel():
        return result, False
    return result.fill_(1), True


@dataclass(frozen=True)
class Kind:
    """A kind of fault: which operators are wrong, and how."""

    name: str
    operators: tuple[str, ...]
    spoil: Spoil
    of_inputs: bool = False
    """Whether it only changes what is counted, wherever it is."""


_SCATTER = ("scatter_add_", "index_add_")
KINDS = (
    Kind("a scatter loses one", _SCATTER, _scatter("loses")),
    Kind("a scatter doubles one", _SCATTER, _scatter("doubles")),
    Kind("a scatter misplaces one", _SCATTER, _scatter("misplaces")),
    Kind("a sum of integers is one too large", ("sum",), _result(_add_one)),
    Kind("a sum of floats is one ulp too large", ("sum",), _result(_add_ulp)),
    Kind("a sum leaves one out", ("sum",), _result(_lose, of_input=True)),
    Kind("a count of what is not 0 is one too large", ("count_nonzero",), _result(_add_one)),
    Kind("int64 wraps at 32 bits", (*_SCATTER, "sum", "mul", "add_", "__lshift__", "bitwise_left_shift"), _wrapped),
    Kind("half of a copy from the device is missing", ("_to_copy", "copy_"), _torn),
    Kind("a copy from the device is stale", ("_to_copy", "copy_"), _from_elsewhere(lambda x: x.zero_())),
    Kind("a copy from the device is not initialized", ("_to_copy", "copy_"), _from_elsewhere(_arbitrary)),
    Kind("a copy on the device is torn", ("copy_",), _torn_on_device),
    Kind(
        "views are read from the beginning of their memory",
        ("copy_", "clone", "_to_copy", "add", "sub", "mul", "eq", "gt", "index_select", "gather"),
        _from_beginning,
        of_inputs=True,
    ),
    Kind(
        "strided views are read as if they were dense",
        ("copy_", "clone", "_to_copy", "mul", "eq"),
        _as_if_dense,
        of_inputs=True,
    ),
    Kind("the sum of nothing is 1", ("sum", "count_nonzero"), _one_for_nothing),
    Kind("argmax is wrong", ("argmax", "max"), _result(_other_class)),
    Kind("a comparison is wrong", ("eq", "ne", "lt", "le", "gt", "ge"), _result(_flip)),
)


class FaultyOperator(TorchDispatchMode):
    """Inside, an operator of a device is wrong: each time, or in one call.

    Attributes:
        fired: how often it was wrong.
        counts: whether it was wrong, the first time, where values become counts.
    """

    def __init__(self, kind: Kind, device: str, strikes: int | None, seed: int) -> None:
        super().__init__()
        self._kind, self._device, self._strikes = kind, device, strikes
        self._generator = torch.Generator().manual_seed(seed)
        self._calls = 0
        self._names = {f"aten::{name}" for name in kind.operators}
        self.fired, self.counts = 0, False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        first = next((each for each in args if isinstance(each, Tensor)), None)
        if func._schema.name not in self._names or first is None or first.device.type != self._device:
            return func(*args, **(kwargs or {}))
        self._calls += 1
        if self._strikes is not None and (self.fired or self._calls < self._strikes):
            return func(*args, **(kwargs or {}))
        result, is_wrong = self._kind.spoil(func, list(args), kwargs or {}, self._generator)
        if is_wrong:
            self.counts = not self._kind.of_inputs and _is_counting() if not self.fired else self.counts
            self.fired += 1
        return result


def _is_counting() -> bool:
    """Whether the function of assay that called the operator makes counts of values."""
    frame = sys._getframe(1)
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        if SRC in path.parents and "pretend" not in path.parts:
            if path.parts[-2] == "devices":  # copies from a device
                return True
            return "/".join(path.parts[-2:]) in COUNTING and frame.f_code.co_name not in OF_VALUES
        frame = frame.f_back
    return False
