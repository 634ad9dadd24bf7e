"""Values over epochs: which was best and when, the extremes, and whether the last one is an improvement."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay._atomic import Location, location, write_text
from assay._records import read_sealed, seal
from assay.errors import ConfigError, InputError, StateError, describe

if TYPE_CHECKING:
    from assay.meter import Meter

SCHEMA = "assay.tracker/2"


@dataclass(frozen=True)
class Best:
    """A value and the step that it is of."""

    value: float
    step: int


class Tracker:
    """Keeps the values of every epoch, or of every other kind of step.

    Whether higher values are better is known from the metrics (`Metric.higher_is_better`) or passed here. Of equal
    values the first is the best. NaN is never best. Tables, curves and values per class without names are not tracked.

    Args:
        meter: knows the directions of its metrics; without one, all are to be passed.
        higher_is_better: by name of a value: True, False, or None where neither is better.

    Raises:
        ConfigError: another direction, or something that is no meter.

    Example:
        >>> tracker = Tracker(higher_is_better={"accuracy": True, "loss": False})
        >>> for accuracy, loss in ((0.5, 1.0), (0.7, 0.8), (0.6, 0.7)):
        ...     tracker.record({"accuracy": accuracy, "loss": loss})
        >>> tracker.best("accuracy"), tracker.improved("accuracy"), tracker.improved("loss")
        (Best(value=0.7, step=1), False, True)
        >>> print(tracker.table())
        step  accuracy  loss
           0  0.5       1
           1  0.7 *     0.8
           2  0.6       0.7 *
    """

    def __init__(self, meter: Meter | None = None, higher_is_better: Mapping[str, bool | None] | None = None) -> None:
        metrics = getattr(meter, "metrics", None)
        if meter is not None and not isinstance(metrics, Mapping):
            do = "Pass directions by name, as higher_is_better={'loss': False}"
            raise ConfigError(describe("meter", type(meter).__name__, "a meter", do))
        of_metrics = {name: metric.higher_is_better for name, metric in (metrics or {}).items()}
        directions: dict[str, Any] = {**of_metrics, **(higher_is_better or {})}
        for name, direction in directions.items():
            if direction is not None and not isinstance(direction, bool):
                do = "Pass True where higher values are better, False where lower ones are"
                raise ConfigError(describe(f"higher_is_better of {name}", repr(direction), "True, False or None", do))
        self._directions: dict[str, bool | None] = directions
        self.steps: list[int] = []
        self._values: list[dict[str, float]] = []

    def record(self, values: Mapping[str, Any] | Meter, step: int | None = None) -> None:
        """Add the values of a step.

        Args:
            values: what `Meter.compute` gave, or numbers by name; or a meter, which is read.
            step: its number, above those before; the next one by default.

        Raises:
            InputError: nothing in it is a single number.
            ConfigError: the step is not above those before; `rewind` forgets steps.
        """
        following = self.steps[-1] + 1 if self.steps else 0
        number = following if step is None else step
        if isinstance(number, bool) or not isinstance(number, int) or (number < following and self.steps):
            do = "Call rewind(step) first, to record a step again"
            raise ConfigError(describe("step", repr(step), f"an integer of {following} or more", do))
        numbers = _single_numbers(values if isinstance(values, Mapping) else values.compute())
        if not numbers:
            do = "Pass what Meter.compute gave, or numbers by name"
            raise InputError(describe("values", "no single number", "one or more", do))
        self.steps.append(number)
        self._values.append(numbers)

    def rewind(self, step: int) -> None:
        """Forget this step and those after it, as when training resumes from an older checkpoint."""
        first = sum(each < step for each in self.steps)
        del self.steps[first:], self._values[first:]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all values."""
        return tuple(dict.fromkeys(name for values in self._values for name in values))

    def higher_is_better(self, name: str) -> bool | None:
        """Whether higher values are better; of a part of a metric's value, as `"recall cat"`, as of the metric."""
        if name in self._directions:
            return self._directions[name]
        whole = max((each for each in self._directions if name.startswith(f"{each} ")), key=len, default=None)
        return self._directions[whole] if whole is not None else None

    def values(self, name: str) -> list[float]:
        """The values of each step; NaN for a step without one.

        Raises:
            ConfigError: there is no value of the name.
        """
        if name not in self.names:
            names = ", ".join(self.names) or "none, as nothing was recorded"
            raise ConfigError(describe("name", repr(name), f"one of {names}", "Correct the name"))
        return [values.get(name, math.nan) for values in self._values]

    def best(self, name: str) -> Best | None:
        """The best value, and the first step that had it; None where all are NaN.

        Raises:
            ConfigError: there is no such value, or it is not known which of them are better.
        """
        return self.highest(name) if self._direction(name) else self.lowest(name)

    def highest(self, name: str) -> Best | None:
        """The highest value, and the first step that had it."""
        return self._extreme(name, 1)

    def lowest(self, name: str) -> Best | None:
        """The lowest value, and the first step that had it."""
        return self._extreme(name, -1)

    def _extreme(self, name: str, sign: int) -> Best | None:
        known = [Best(value, step) for step, value in zip(self.steps, self.values(name), strict=True) if value == value]
        return max(known, key=lambda each: (sign * each.value, -each.step), default=None)

    def improvement(self, name: str) -> float:
        """By how much the last value is better than the best before it: above 0 if it is; NaN where there are not both.

        Raises:
            ConfigError: as `best`.
        """
        sign = 1 if self._direction(name) else -1
        *before, last = (sign * value for value in self.values(name))
        return last - max((value for value in before if not math.isnan(value)), default=math.nan)

    def improved(self, name: str) -> bool:
        """Whether the last value is the best so far, so that a model is worth saving.

        Raises:
            ConfigError: as `best`.
        """
        best = self.best(name)
        return best is not None and best.step == self.steps[-1]

    def _direction(self, name: str) -> bool:
        self.values(name)
        direction = self.higher_is_better(name)
        if direction is None:
            do = f"Pass Tracker(..., higher_is_better={{{name!r}: True}}), or call highest or lowest"
            raise ConfigError(describe(name, "a value of unknown direction", "higher_is_better: True or False", do))
        return direction

    def table(self) -> str:
        """The values as text, with a star at the best ones."""
        best = {name: self.best(name) for name in self.names if self.higher_is_better(name) is not None}
        rows = [["step", *self.names]]
        for step, values in zip(self.steps, self._values, strict=True):
            stars = {name for name, each in best.items() if each is not None and each.step == step}
            cells = (f"{values[n]:.6g}" + " *" * (n in stars) if n in values else "-" for n in self.names)
            rows.append([str(step), *cells])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = (
            "  ".join([row[0].rjust(widths[0]), *(c.ljust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
            for row in rows
        )
        return "\n".join(line.rstrip() for line in lines)

    def to_json(self) -> str:
        """Everything as JSON with a digest; numbers that are not finite as texts."""
        values = [
            {name: value if math.isfinite(value) else str(value) for name, value in each.items()}
            for each in self._values
        ]
        data = {"schema": SCHEMA, "higher_is_better": self._directions, "steps": self.steps, "values": values}
        return json.dumps(seal(data), ensure_ascii=False, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Tracker:
        """What `to_json` gave.

        Raises:
            StateError: it is something else, was changed, or is of another version.
        """
        data = read_sealed(text, "tracker", SCHEMA)
        try:
            tracker = cls(higher_is_better=data["higher_is_better"])
            for step, values in zip(data["steps"], data["values"], strict=True):
                tracker.record({name: float(value) for name, value in values.items()}, step)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            do = "Pass what Tracker.to_json gave, unchanged"
            raise StateError(
                describe("tracker", f"what cannot be read ({error})", "the JSON of a tracker", do)
            ) from error
        return tracker

    def to_file(self, path: str | os.PathLike[str]) -> Location:
        """Write it as JSON; a crash leaves the old file or the new one, never a part."""
        return write_text(path, self.to_json())

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Tracker:
        """What `to_file` wrote, to go on with.

        Raises:
            StateError: the file holds something else.
        """
        return cls.from_json(location("path", path).read_text("utf-8", errors="replace"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tracker) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return f"Tracker({len(self.steps)} steps of {', '.join(self.names) or 'nothing'})"


def _single_numbers(values: Mapping[str, Any]) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for name, value in values.items():
        if isinstance(value, int | float):
            numbers[name] = float(value)
            continue
        from assay.metrics.base import named_numbers  # numbers that come from elsewhere need no torch

        numbers.update(named_numbers(name, value))
    return numbers
