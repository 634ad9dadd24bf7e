"""Numbers that a function or a network of the caller gives for each sample, as rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from assay.devices.modules import evaluation_mode, locations
from assay.devices.placement import move, to_host
from assay.devices.policies import can_hold
from assay.encode.base import TENSORS, Encoder, raw_samples
from assay.errors import ConfigError, DeviceError, DtypeError, PlacementWarning, ShapeError, describe, warn
from assay.tally.inputs import check_inputs, readable, type_name


@dataclass(frozen=True)
class FunctionEncoder(Encoder):
    """A row of numbers for each sample, from one call of a function for the whole batch.

    The name stands for the function: encoders with equal names and options are equal, whichever function they hold. A
    meter refuses two functions of one name.

    Args:
        function: a function or a module; see `PerSample`.
        name: the name of the function.
        numbers: the names of the numbers that it gives for each sample; empty for one number.
        takes: what samples are.
        uses_target: whether the function takes the target.
        columns: the named columns that it takes.
    """

    function: Callable[..., Any] = field(compare=False, repr=False)  # type: ignore[misc]
    name: str
    numbers: tuple[str, ...]
    takes: str  # type: ignore[misc]
    uses_target: bool
    columns: frozenset[str]  # type: ignore[misc]

    @property
    def on_cpu(self) -> bool:  # type: ignore[override]
        return self.takes != TENSORS

    @property
    def width(self) -> int:
        """How many numbers a sample has."""
        return max(len(self.numbers), 1)

    @property
    def module(self) -> nn.Module | None:
        """The module that is called, or whose method is."""
        owner = getattr(self.function, "__self__", self.function)
        return owner if isinstance(owner, nn.Module) else None

    def check(self, preds: Any, target: Any) -> None:
        if self.uses_target and target is None:
            do = "Pass target, or uses_target=False for a function of preds alone"
            raise ShapeError(describe("target", "nothing", f"what {self.name!r} compares preds with", do))

    def rows(self, preds: Any, target: Any) -> Tensor:
        return self.encode(preds, target, {})

    def encode(self, preds: Any, target: Any, columns: Mapping[str, Any]) -> Tensor:
        """The numbers of each sample: on the device of `preds` for tensors, else on the CPU."""
        self.check(preds, target)
        if self.on_cpu:
            sides = preds, preds if target is None else target  # without a target, the function takes none
            lists = (list(each) if isinstance(each, Tensor) else each for each in sides)
            return to_host(self._rows(*raw_samples(*lists), columns))
        tensors = self._tensors({"preds": preds, "target": target, **columns})
        samples, others = tensors.pop("preds"), tensors.pop("target", None)
        rows = self._rows(samples, others, tensors)
        return move(rows, preds.device) if can_hold(preds.device, rows.dtype) else rows

    def _tensors(self, arguments: Mapping[str, Any]) -> dict[str, Tensor]:
        """Tensors on the device of the module, in a dtype that is no narrower than its own."""
        lists = [name for name, value in arguments.items() if isinstance(value, list | tuple)]
        if lists:
            do = f'Pass PerSample(..., takes="strings"), if {self.name!r} takes lists'
            raise ShapeError(describe(lists[0], type_name(arguments[lists[0]]), "a tensor", do))
        checked = check_inputs({**arguments, "weights": None}, False, False)
        dtype = next((each.dtype for each in _parameters(self.module) if each.dtype.is_floating_point), None)
        return {name: self._placed(name, _floats(each, dtype)) for name, each in checked.items()}

    def _placed(self, name: str, tensor: Tensor) -> Tensor:
        """A tensor where the module is; it stays where it is if the module is on no device, or on several."""
        homes = locations(self.module)
        if len(homes) != 1 or tensor.device in homes:
            return tensor
        (home,) = homes
        got, expected = f"a tensor on {tensor.device}", f"one on {home}, where the weights of {self.name!r} are"
        if not can_hold(home, tensor.dtype):
            raise DeviceError(describe(name, f"{got} of {tensor.dtype}", expected, f"Pass {name}.float()"))
        do = f"It has been moved; to save the copy, move {self.name!r} to {tensor.device} before the loop"
        warn(describe(name, got, expected, do), PlacementWarning)
        return move(tensor, home)  # type: ignore[no-any-return]

    def _rows(self, preds: Any, target: Any, columns: Mapping[str, Any]) -> Tensor:
        if not len(preds):
            return torch.zeros(0, self.width, dtype=torch.float32, device="cpu")
        arguments = [preds, target] if self.uses_target else [preds]
        devices = {torch.device("cpu"), *locations(self.module), getattr(preds, "device", torch.device("cpu"))}
        with evaluation_mode(self.module), torch.inference_mode(), _without_autocast(devices):
            return self._table(self.function(*arguments, **columns), len(preds))

    def _table(self, result: Any, count: int) -> Tensor:
        """What the function gave as `(N, k)`."""
        if isinstance(result, Mapping):
            result = self._selected(result)
        if self.numbers and isinstance(result, tuple):
            if len(result) != self.width:
                raise self._refused(f"{len(result)} results", f"{self.width}: {', '.join(self.numbers)}")
            parts = [self._numbers(each, (count,)) for each in result]
            return torch.stack([move(part, parts[0].device) for part in parts], 1)
        return self._numbers(result, (count, self.width) if self.numbers else (count,)).reshape(count, self.width)

    def _selected(self, result: Mapping[str, Any]) -> tuple[Any, ...]:
        missing = [name for name in self.numbers if name not in result]
        if missing or not self.numbers:
            got = f"a dictionary with {', '.join(map(str, result))}"
            expected = f"one with {', '.join(missing)}" if missing else "one number for each sample"
            raise self._refused(got, expected, f"Pass numbers={tuple(map(str, result))!r}, or those of them to keep")
        return tuple(result[name] for name in self.numbers)

    def _numbers(self, value: Any, shape: tuple[int, ...]) -> Tensor:
        """One result as real numbers of a shape, behind which dimensions of size 1 may follow."""
        if not isinstance(value, Tensor):
            try:
                value = torch.as_tensor(np.asarray(value), device="cpu")
            except (TypeError, ValueError) as error:
                raise self._refused(type_name(value), "numbers, as a tensor, an array or a list") from error
        if value.dtype.is_complex:
            do = "Return the real part or the modulus"
            raise DtypeError(describe(f"what {self.name!r} gives", value.dtype, "real numbers", do))
        if tuple(value.shape[: len(shape)]) != shape or value.numel() != np.prod(shape):
            do = "Return the numbers before they are averaged, as with reduction='none'"
            raise self._refused(f"shape {tuple(value.shape)}", f"{shape}, one row for each sample", do)
        numbers: Tensor = value
        narrow = numbers.dtype.is_floating_point and numbers.dtype.itemsize < 4
        return (numbers.float() if narrow else numbers).reshape(shape)

    def _refused(self, got: str, expected: str, do: str = "Correct the function, or numbers=") -> ShapeError:
        return ShapeError(describe(f"what {self.name!r} gives", got, expected, do))


def check_names(argument: str, names: Sequence[Any]) -> tuple[str, ...]:
    """Names as a tuple of strings, each of which is there once.

    Raises:
        ConfigError: they are not.
    """
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        do = f'Pass {argument}=("...",)'
        raise ConfigError(describe(argument, repr(names), "a tuple of names", do))
    if len(set(names)) < len(names):
        raise ConfigError(describe(argument, repr(names), "different names", "Name each once"))
    return tuple(names)


def _parameters(module: nn.Module | None) -> Iterator[Tensor]:
    return iter(()) if module is None else module.parameters()


def _floats(tensor: Tensor, dtype: torch.dtype | None) -> Tensor:
    """Floats that are narrower than those of a module in its dtype, and float8 as float32: the same values."""
    if not tensor.dtype.is_floating_point:
        return tensor
    tensor = readable(tensor)
    return tensor.to(dtype) if dtype is not None and tensor.dtype.itemsize < dtype.itemsize else tensor


@contextmanager
def _without_autocast(devices: set[torch.device]) -> Iterator[None]:
    with ExitStack() as stack:
        for kind in sorted({device.type for device in devices}):
            if torch.amp.is_autocast_available(kind):
                stack.enter_context(torch.autocast(kind, enabled=False))
        yield
