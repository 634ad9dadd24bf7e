"""The values of metrics from the canonical states of what was counted, with warnings and errors about the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from torch import Tensor

from assay.devices.subnormals import keeps_subnormals
from assay.errors import InvalidValuesError, InvalidValuesWarning, NoDataWarning, describe, plural, warn
from assay.meter.counting.counts import MeterCounts
from assay.meter.counting.tally_plan import StateReading, TallyPlan
from assay.metrics.base import Metric
from assay.tally.base import InvalidValues, State

if TYPE_CHECKING:
    from assay.meter.meter import Meter


class Readings:
    """What tallies compute from the states of a meter, once for all who ask: values, intervals and what they lack.

    Args:
        plan: which tallies serve which metrics.
        states: one state on the CPU for each tally of the plan, canonical or settled; or, with `settled`, as counted.
        rows: how many samples were counted.
        settled: makes such states of those that were counted, once they are needed.
        whole: whether the states have all fields, so that values can be read from them in one step.
    """

    def __init__(
        self,
        plan: TallyPlan,
        states: Sequence[State],
        rows: int,
        settled: Callable[[Sequence[State], int], list[State]] | None = None,
        whole: bool = True,
    ) -> None:
        self.plan, self.rows = plan, rows
        self._counted, self._settled, self._is_read = states, settled, whole and settled is not None and rows > 0
        self._states = states if settled is None else None
        self._found: dict[int, tuple[Sequence[InvalidValues], Any]] = {}

    @property
    def states(self) -> Sequence[State]:
        """One state for each tally of the plan, canonical or settled."""
        if self._states is None:
            assert self._settled is not None, "it makes what is missing"
            self._states = self._settled(self._counted, self.rows)
        return self._states

    def of(self, name: str) -> tuple[Sequence[InvalidValues], Any]:
        """The invalid values of a metric, and what its `compute` takes; None where some of them are fatal."""
        group = self.plan.group_of[name]
        if group not in self._found:
            tally, state = self.plan.state_of(name, self.states)
            problems = tally.invalid_values(state)
            is_bad = bool(problems) and any(problem.fatal for problem in problems)
            counts = None if is_bad else tally.compute(state)
            self._found[group] = problems, counts
        return self._found[group]

    def values(self, names: Iterable[str]) -> dict[str, Any]:
        """The values of the metrics of these names.

        Raises:
            InvalidValuesError: invalid labels, scores or weights were counted.
        """
        return {name: self._value(name) for name in names}

    def _value(self, name: str) -> Any:
        if self._is_read and (reading := self.plan.reading_of(name)) is not None:
            value = reading.read(self._counted[reading.place])
            if value is not None:  # there is nothing to report of it
                return value
        if not self.rows:
            do = "Call update before compute, which returns NaN"
            warn(describe(name, "no data", "at least one sample", do), NoDataWarning)
        problems, counts = self.of(name)
        for problem in problems:
            got = f"{problem.count} of the {problem.what}"
            message = describe(name, got, "none", "Correct or leave out those samples")
            if problem.fatal:
                raise InvalidValuesError(message)
            warn(message, InvalidValuesWarning)
        metric = self.plan.metrics[name]
        value = metric.compute(counts)
        if self.rows and not problems and metric.defined_for and _undefined(metric, value):
            do = "Add samples until that holds; the value is NaN"
            got = f"{plural(self.rows, 'sample')} for which it is undefined"
            warn(describe(name, got, metric.defined_for, do), NoDataWarning)
        return value


def plain_value(meter: Meter, name: str) -> Any:
    """The value of a metric as `Meter.compute` gives it, in one step; None where that must be asked.

    That is where its value takes more, no sample was counted, or there is something to report of the samples.

    Args:
        meter: what was counted.
        name: that of the metric.

    Raises:
        StateError: another thread is updating or reading the meter.
    """
    reading = meter.plan.reading_of(name)
    return None if reading is None or len(meter.shared_by) > 1 else _read(meter.counts, reading)


@keeps_subnormals
def _read(counts: MeterCounts, reading: StateReading) -> Any:
    states, rows = counts.as_counted()
    return reading.read(states[reading.place]) if rows else None


def fatal_problems(plan: TallyPlan, states: Sequence[State]) -> tuple[tuple[str, InvalidValues], ...]:
    """The metrics that cannot be computed, each with what was counted that it refuses."""
    found: dict[int, tuple[str, list[InvalidValues]]] = {}
    for name in plan.metrics:
        if plan.group_of[name] not in found:
            tally, state = plan.state_of(name, states)
            found[plan.group_of[name]] = name, [each for each in tally.invalid_values(state) if each.fatal]
    return tuple((name, each) for name, problems in found.values() for each in problems)


def _undefined(metric: Metric, value: Any) -> bool:
    """Whether a value is NaN, all numbers of a tuple are, or that of an output; single classes may well have none."""
    if isinstance(value, tuple):
        numbers = [each for each in value if isinstance(each, Tensor) and each.is_floating_point()]
        return bool(numbers) and all(bool(each.isnan().all()) for each in numbers)
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return False
    if not value.ndim:
        return math.isnan(value)
    nan = value.isnan()
    return bool(nan.any() if hasattr(metric, "num_outputs") else nan.all())
