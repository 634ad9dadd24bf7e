"""What a metric is: a frozen description of which tally it needs and how its value is read from it."""

from __future__ import annotations

import dataclasses
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.contributions import Contributions
from assay.metrics.operators import Operators
from assay.stats.intervals import Ends
from assay.tally.base import Batch, Tally

Direction = Literal["higher", "lower", ""]
"""Which values are better; empty where that is not so, or where a metric gives no single value."""


class Metric(Operators, ABC):
    """A frozen description: nothing in a metric changes, so one can be shared, compared, hashed and written down.

    Subclasses are frozen dataclasses whose fields are plain values: numbers, strings, booleans, other metrics, tuples.
    Arithmetic with metrics gives metrics; see `operators`.

    Attributes:
        better: which values are better; empty where neither is.
        defined_for: which samples define the value, for the warning that it is NaN; empty where `read` itself warns.
    """

    better: ClassVar[Direction] = ""
    defined_for: ClassVar[str] = "enough samples that have weight, are not ignored and differ"

    def __post_init__(self) -> None:
        """Make numbers of NumPy and torch plain ones; raise for what is no number where one is stated."""
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value, stated = getattr(self, field.name), str(field.type)
            kind = stated.removesuffix(" | None")
            if kind in _PLAIN and not (value is None and kind != stated):
                object.__setattr__(self, field.name, plain(field.name, value, kind))

    @abstractmethod
    def tally(self, weighted: bool) -> Tally:
        """The tally that this metric is read from, with or without sample weights."""

    @abstractmethod
    def read(self, counted: Any) -> Any:
        """The value, from what the tally's `read` gives: a tensor, or a tuple or dictionary of them; on the host."""

    def contribute(self, batch: Batch) -> Contributions | None:
        """What each row contributes, where the value is a mean over rows or the quotient of two; see `contributions`.

        No value may be read on the host. Weights are multiplied in afterwards.
        """
        return None

    @property
    def estimates(self) -> bool:
        """Whether the value estimates one of all that the samples stand for, as a mean does.

        Totals, counts and extremes do not: they change with the number of samples. They have no interval.
        """
        return True

    @property
    def closed_form(self) -> str:
        """What the interval is called that `interval` gives; empty where it gives none."""
        return ""

    def interval(self, counted: Any, confidence_level: float, rows: int) -> Ends | None:
        """The interval of the value in closed form, for samples without weights.

        Args:
            counted: what the tally's `read` gives.
            confidence_level: between 0 and 1.
            rows: how many rows were given; where more than that was counted, samples of a row depend on each other, and
                there is no interval.

        Returns:
            Both ends; None where the formula says nothing, as for few samples.
        """
        return None

    def decide(self, batch: Batch) -> Tensor | None:
        """What is decided for each row, of shape `(N,)`; None where that is not one thing."""
        return None

    def __call__(self, preds: Tensor, target: Tensor | None = None, *, weights: Tensor | None = None) -> Any:
        """The value of this metric on one batch.

        Args:
            preds: predictions, on any device.
            target: what they are compared with, of the shape that the metric's description states.
            weights: one weight per sample, shape `(N,)`, or one per target.

        Returns:
            The value on the host; float64 where it is a number.

        Raises:
            InputError: shapes, dtypes or values that cannot be measured.
        """
        from assay.meter import Meter  # the meter knows metrics; a metric meets it only when it is called

        meter = Meter(self, weighted=weights is not None)
        meter.update(preds, target, weights=weights)
        (value,) = meter.compute().values()
        return value


def plain(name: str, value: Any, kind: str) -> Any:
    """A value as a plain `int` (of 64 bits), `float` or `bool`.

    Raises:
        ConfigError: it is of another kind.
    """
    make, expected = _PLAIN[kind]
    try:
        return make(value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ConfigError(describe(name, repr(value), expected, f"Pass {name} as a plain {kind}")) from error


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not -(2**63) <= (whole := operator.index(value)) < 2**63:
        raise TypeError
    return whole


def _real(value: Any) -> float:
    if isinstance(value, bool | str | bytes):
        raise TypeError
    return float(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


_PLAIN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "int": (_whole, "a whole number of at most 64 bits"),
    "float": (_real, "a number"),
    "bool": (_truth, "True or False"),
}


def number(value: float) -> Tensor:
    """A result: a 0-dimensional float64 tensor on the host."""
    return torch.tensor(value, dtype=torch.float64)


def vector(values: Any) -> Tensor:
    """A result per class or output: a float64 tensor on the host."""
    return torch.tensor([float(v) for v in values], dtype=torch.float64)


def named_numbers(name: str, value: Any) -> Iterator[tuple[str, float]]:
    """The single numbers of a value, with their names; none of curves, tables and values per class without names.

    Example:
        >>> list(named_numbers("recall", {"cat": number(0.5), "dog": number(1)}))
        [('recall cat', 0.5), ('recall dog', 1.0)]
    """
    if isinstance(value, Tensor):
        if not value.ndim:
            yield name, float(value)
        return
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, tuple) else (value,)
    if all(isinstance(each, Tensor) and not each.ndim for each in parts):
        names = value if isinstance(value, Mapping) else getattr(value, "_fields", range(len(value)))
        for part, each in zip(names, parts, strict=True):
            yield f"{name} {part}", float(each)
