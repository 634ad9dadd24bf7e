"""The values of metrics from the canonical states of what was counted, with warnings and errors about the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from torch import Tensor

from assay.errors import InvalidValuesError, InvalidValuesWarning, NoDataWarning, describe, plural, warn
from assay.meter.counting.tally_plan import TallyPlan
from assay.metrics.base import Metric
from assay.tally.base import InvalidValues, State


def compute_values(plan: TallyPlan, names: Iterable[str], states: Sequence[State], rows: int) -> dict[str, Any]:
    """The values of the metrics of these names; what a tally computes is computed once for all of them.

    Args:
        plan: which tallies serve which metrics.
        names: of the metrics that are computed.
        states: one canonical state on the CPU for each tally of the plan.
        rows: how many samples were counted.

    Raises:
        InvalidValuesError: invalid labels, scores or weights were counted.
    """
    found: dict[int, tuple[Sequence[InvalidValues], Any]] = {}
    values = {}
    for name in names:
        if not rows:
            do = "Call update before compute, which returns NaN"
            warn(describe(name, "no data", "at least one sample", do), NoDataWarning)
        group = plan.group_of[name]
        if group not in found:
            tally, state = plan.state_of(name, states)
            problems = tally.invalid_values(state)
            counts = None if any(problem.fatal for problem in problems) else tally.compute(state)
            found[group] = problems, counts
        problems, counts = found[group]
        for problem in problems:
            got = f"{problem.count} of the {problem.what}"
            message = describe(name, got, "none", "Correct or leave out those samples")
            if problem.fatal:
                raise InvalidValuesError(message)
            warn(message, InvalidValuesWarning)
        metric = plan.metrics[name]
        values[name] = value = metric.compute(counts)
        if rows and not problems and metric.defined_for and _undefined(metric, value):
            do = "Add samples until that holds; the value is NaN"
            warn(
                describe(name, f"{plural(rows, 'sample')} for which it is undefined", metric.defined_for, do),
                NoDataWarning,
            )
    return values


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
