"""What classes with the names, arguments and definitions of Ignite's metrics have in common: assay counts."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from assay.compat.errors_of_others import error_as_there
from assay.compat.for_torchmetrics.values import placed
from assay.devices.placement import can_read
from assay.errors import InputError, NoDataWarning, ShapeError, StateError, describe, taken_warnings
from assay.integrations.ignite import IgniteMetric
from assay.integrations.optional_packages import import_package
from assay.meter import Meter
from assay.metrics import Mean

NotComputableError: Any = import_package("ignite.exceptions", "metrics of its names").NotComputableError

_distributed: Any = import_package("ignite.distributed", "metrics of its names")


class CompatibleIgniteMetric(IgniteMetric):
    """A metric with the arguments of a class of Ignite, whose constructor checks them.

    Attributes:
        original: the class of Ignite.
        sized: whether the size of data, such as the number of classes, is taken from the first batch of any process.
    """

    original: ClassVar[Any]
    sized: ClassVar[bool] = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._given = args, kwargs
        bound = inspect.signature(self.original).bind(*args, **kwargs)
        bound.apply_defaults()
        self._arguments = dict(bound.arguments)
        self._multilabel = self._arguments.pop("is_multilabel", False)
        self._arguments.pop("skip_unrolling", False)
        self.meter, self._alone = Meter(value=Mean()), True
        self._construct(*args, **kwargs)

    def _construct(self, *args: Any, **kwargs: Any) -> None:
        """Check the arguments, and keep them under the names that Ignite has for them."""
        self.original.__init__(self, *args, **kwargs)

    @property
    def name(self) -> str:
        """That of the class of Ignite."""
        name: str = self.original.__name__
        return name

    @abstractmethod
    def _meter_of(self, size: int, flag: int) -> Meter:
        """An empty meter of data of this size; the class says what size and flag mean."""

    @abstractmethod
    def _count(self, output: Any) -> None:
        """Count a batch with the arguments of `update` of Ignite."""

    @abstractmethod
    def _value(self, meter: Meter) -> Any:
        """The value of at least one row, as Ignite has it; on any device."""

    def reset(self) -> None:
        """Forget everything that was counted, and the size of the data."""
        self._forget()
        super().reset()
        self._layout: tuple[int, int] | None = None
        if not self.sized:
            self._begin(0, 0)

    def _forget(self) -> None:
        """Reset what the class of Ignite has."""
        self.original.reset(self)

    def update(self, output: Any) -> None:
        """Count a batch.

        Raises:
            InputError: of metadata; also of the class that Ignite raises, and with its text.
        """
        try:
            self._count(self._real(output))
        except InputError as error:
            args, kwargs = self._given
            call = lambda: self.original(*args, **kwargs).update(output)  # noqa: E731
            raise error_as_there(error, call, "Ignite") from error

    def _check_binary_multilabel_cases(self, output: Any) -> None:
        """Refuse labels other than 0 and 1 as Ignite does, where no device must be waited for; else `compute` does."""
        if all(can_read(each) for each in output):
            self.original._check_binary_multilabel_cases(self, output)

    def _real(self, output: Any) -> Any:
        """The output without the samples at its end that are repeated by the sampler."""
        left = self._left
        if left is None:
            return output
        if isinstance(output, Tensor) and output.ndim:
            self._left = left - len(output[:left])
            return output[:left]
        if not isinstance(output, Sequence) or not output or not isinstance(output[0], Tensor | list):
            return output
        self._left = left - len(output[0][:left])
        return tuple(each[:left] if isinstance(each, Tensor | list) else each for each in output)

    def _begin(self, size: int, flag: int) -> None:
        """Count data of this size, where nothing says yet which size data has."""
        if self._layout is None:
            self._layout = size, flag
            self.meter = self._meter_of(size, flag)

    def _agree(self) -> None:
        """Learn from the other processes which size data has, without a batch of one's own."""
        if self.sized and _distributed.get_world_size() > 1:
            size, flag = self._layout or (0, 0)
            largest = int(_distributed.all_reduce(2 * size + flag, "MAX"))
            if largest:
                self._begin(largest // 2, largest % 2)

    def compute(self) -> Any:
        """The value over all processes, as Ignite gives it."""
        self._agree()
        meter = self.meter.sync()
        if self._layout is None or not meter.rows:
            return self._without_data()
        return placed(self._value(meter), self._double_dtype, self._device)

    def _without_data(self) -> Any:
        """The value that Ignite has without a sample; most raise."""
        args, kwargs = self._given
        return self.original(*args, **kwargs).compute()

    def completed(self, engine: Any, name: str) -> None:
        """Put the value into `engine.state.metrics`, as Ignite does."""
        self.original.completed(self, engine, name)

    def _state_dict_per_rank(self) -> OrderedDict[str, Any]:
        state: OrderedDict[str, Any] = super()._state_dict_per_rank()
        return OrderedDict(state, layout=self._layout) if self._layout else OrderedDict()

    def _load_state_dict_per_rank(self, state_dict: Mapping[str, Any]) -> None:
        self.reset()
        if "layout" in state_dict:
            if len(state_dict["layout"]) != 2:
                do = "Count the data again: rows were counted in another way there"
                raise StateError(describe("state_dict", "a state of an older release", "one of this release", do))
            self._begin(*state_dict["layout"])
            super()._load_state_dict_per_rank({name: value for name, value in state_dict.items() if name != "layout"})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.meter!r})"


def pair(output: Any) -> tuple[Any, Any]:
    """The two parts of a batch `(y_pred, y)`; more are left out.

    Raises:
        ShapeError: there are fewer.
    """
    if not isinstance(output, Sequence) or len(output) < 2:
        got = f"{len(output)} parts" if isinstance(output, Sequence) else type(output).__name__
        raise ShapeError(describe("output of the engine", got, "(y_pred, y)", "Pass output_transform= that gives them"))
    return output[0], output[1]


def check_classes(target: Tensor, classes: int) -> None:
    """Refuse labels of no class, where no device must be waited for; else `compute` does.

    Raises:
        InputError: a label is too large.
    """
    if can_read(target) and target.numel() and (largest := int(target.max())) >= classes:
        do = "Correct the labels, or predict scores of all classes"
        raise InputError(describe("y", f"a label of {largest}", f"labels of the {classes} classes of y_pred", do))


def check_divisor(target: Tensor) -> None:
    """Refuse a target of 0, where no device must be waited for; else `compute` does.

    Raises:
        NotComputableError: there is one.
    """
    if can_read(target) and not target.all():
        raise NotComputableError("The ground truth has 0.")


def counts(meter: Meter) -> Any:
    """What was counted, where nothing of it is invalid.

    Raises:
        InvalidValuesError: something is.
    """
    quietly(meter)
    return meter.counts_of("value")


def quietly(meter: Meter, name: str = "value") -> Any:
    """A value of a meter, without a warning where there is no data for it."""
    with taken_warnings(NoDataWarning):
        return meter.compute([name])[name]
