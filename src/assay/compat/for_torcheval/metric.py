"""Metrics with the arguments and definitions of TorchEval's classes, on assay's counts."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from assay.compat.errors_of_others import error_as_there
from assay.compat.for_torchmetrics.values import placed
from assay.devices.placement import to_host
from assay.errors import InputError, NoDataWarning, StateError, describe, taken_warnings
from assay.integrations.optional_packages import import_package
from assay.meter import Meter

_Metric: Any = import_package("torcheval.metrics", "metrics of its names").Metric

COUNTS = "counts"
"""The name of the one state."""


class CompatibleTorchEval(_Metric):  # type: ignore[misc]
    """A metric with the arguments of a class of TorchEval, whose constructor checks them and keeps them.

    `update`, `merge_state`, `reset` and `to` give the metric itself. Values are on the device of `to`.

    Attributes:
        meters: what was counted, by name.
    """

    original: ClassVar[Any]
    dtype: ClassVar[torch.dtype] = torch.float32
    """That of values."""

    meters: dict[str, Meter]
    _size: int | None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        bound = inspect.signature(self.original).bind(*args, **kwargs)
        bound.apply_defaults()
        self._arguments = dict(bound.arguments)
        self.original.__init__(self, *args, **kwargs)
        self._states_there = tuple(self._state_name_to_default)
        for name in self._states_there:
            delattr(self, name)
        self._state_name_to_default.clear()
        self.reset()
        self._state_name_to_default[COUNTS] = self.counts

    @abstractmethod
    def _meters_of(self, size: int) -> dict[str, Meter]:
        """Empty meters of data of this size, which a class gives a meaning."""

    @abstractmethod
    def _count(self, *args: Any, **kwargs: Any) -> None:
        """Count a batch with the arguments of `update` of TorchEval."""

    @abstractmethod
    def _value(self) -> Any:
        """The value of at least one sample, as TorchEval gives it; in any dtype, on any device."""

    def _begin(self, size: int) -> None:
        """Count data of this size, where nothing says yet which size data has."""
        if self._size is None:
            self._size, self.meters = size, self._meters_of(size)
        elif size != self._size:
            do = "Pass batches of one shape, or use a metric for each"
            raise StateError(describe("batch", f"data of size {size}", f"of size {self._size}, as before", do))

    def reset(self) -> Any:
        """Forget everything that was counted."""
        self._size, self.meters = None, {}
        return self

    def update(self, *args: Any, **kwargs: Any) -> Any:
        """Count a batch.

        Raises:
            InputError: of metadata; also of the class that TorchEval raises, and with its text.
        """
        try:
            self._count(*args, **kwargs)
        except InputError as error:
            raise self._error_as_there(error, *args, **kwargs) from error
        return self

    def _error_as_there(self, error: InputError, *args: Any, **kwargs: Any) -> InputError:
        return error_as_there(error, lambda: self.original(**self._arguments).update(*args, **kwargs), "TorchEval")

    def compute(self) -> Any:
        """The value, as the class of TorchEval gives it."""
        if not self._has_data():
            return self.original(**self._arguments).compute()
        with taken_warnings(NoDataWarning):
            return placed(self._value(), self._value_dtype(), self.device)

    def _value_dtype(self) -> torch.dtype:
        return self.dtype

    def _has_data(self) -> bool:
        return any(meter.rows for meter in self.meters.values())

    def _read(self, name: str = "value") -> Any:
        """The value of a meter."""
        return self.meters[name].compute()["value"]

    def merge_state(self, metrics: Iterable[Any]) -> Any:
        """Add what other metrics of the same arguments have counted.

        Args:
            metrics: metrics, or objects with their states as attributes, as `sync_and_compute` makes them.
        """
        for each in metrics:
            self._add(each if isinstance(each, CompatibleTorchEval) else self._with(getattr(each, COUNTS)))
        return self

    def _prepare_for_merge_state(self) -> None:
        """Nothing: `state_dict` gives all that was counted."""

    def _add(self, other: Any) -> None:
        if other._size is None:
            return
        self._begin(other._size)
        for name, meter in self.meters.items():
            meter.merge(other.meters[name])

    def _with(self, packed: Tensor) -> Any:
        """A metric like this one that has counted what a state says."""
        found = type(self)(**self._arguments)
        from safetensors.torch import load  # here, so that the classes need no safetensors

        found._take(load(to_host(packed).numpy().tobytes()))
        return found

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        """What was counted, as tensors by name."""
        if self._size is not None:
            yield "size", torch.tensor(self._size, device="cpu")
        for name, meter in self.meters.items():
            for key, tensor in meter.state_dict().items():
                yield f"{name}/{key}", tensor

    def _take(self, tensors: Mapping[str, Tensor]) -> None:
        """Count what `_tensors` gave."""
        self.reset()
        if "size" in tensors:
            self._begin(int(tensors["size"]))
        for name, meter in self.meters.items():
            meter.load_state_dict(inside(tensors, f"{name}/"))

    @property
    def counts(self) -> Tensor:
        """What was counted, as bytes: the one state."""
        from safetensors.torch import save

        packed = save({name: each.contiguous() for name, each in self._tensors()})
        return torch.frombuffer(bytearray(packed), dtype=torch.uint8).to(self.device)

    def state_dict(self) -> dict[str, Any]:
        """What was counted, by the name of the one state."""
        return {COUNTS: self.counts}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Count what `state_dict` gave, in the place of what was counted.

        Raises:
            KeysError: `strict` is True and the names are others, as those of a class of TorchEval.
        """
        if strict and set(state_dict) != {COUNTS}:
            got = f"the states {', '.join(sorted(state_dict)) or 'of nothing'}"
            do = "Load what state_dict of this class gave; sums that TorchEval has rounded are no exact counts"
            raise KeysError(describe("state_dict", got, COUNTS, do))
        if COUNTS in state_dict:
            from safetensors.torch import load

            self._take(load(to_host(state_dict[COUNTS]).numpy().tobytes()))

    def to(self, device: str | torch.device, *args: Any, **kwargs: Any) -> Any:
        """Give values on a device; what was counted stays where its batches were."""
        self._device = torch.device(device)
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._arguments.items())})"


class CountsOfOthers(CompatibleTorchEval):
    """Assay counts what TorchEval counts, and the class of TorchEval computes the value of it, in float64."""

    @abstractmethod
    def _states(self) -> dict[str, Tensor]:
        """The states of TorchEval's class."""

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("_states_there", ()) or not self._has_data():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return self._states()[name]

    def _value(self) -> Any:
        return self._by_states(self.original.compute)

    def _by_states(self, method: Any, *args: Any) -> Any:
        """What a method of TorchEval's class gives that reads its states."""
        states = self._states()
        self.__dict__.update(states)
        try:
            return method(self, *args)
        finally:
            for name in states:
                del self.__dict__[name]


class KeysError(StateError, RuntimeError):
    """Names of states that TorchEval refuses with a `RuntimeError`."""


def inside(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)}
