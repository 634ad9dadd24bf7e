"""Replicates of values, from resampled tallies, and the confidence intervals that they give."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from assay.errors import AssayWarning, ConfigError, InvalidValuesError, StateError, describe
from assay.meter.counting.tally_plan import TallySource
from assay.meter.meter import Meter
from assay.meter.resampling.resample import GroupReadings, GroupStates, KnownSums
from assay.metrics.base import named_numbers
from assay.stats.bootstrap import (
    BIAS,
    LEAST,
    Floats,
    Whole,
    expanded_tail,
    poisson_draws,
    replicate_error,
    replicate_skewness,
)
from assay.stats.distributions import student_quantile
from assay.stats.intervals import Ends, caution_of_end, risky_end_of_skewness, skewed_ends
from assay.stats.linear import FROM_ROWS
from assay.stats.scales import SCALES, Scale
from assay.tally.base import InvalidValues, State
from assay.tally.late_items import LateItems

FEWEST_GROUPS = 10
"""Groups with samples, below which nothing is drawn."""
FEW_DRAWS = 200
BIASED_UPWARDS = "few samples give higher values: the lower end may miss more often"
FEWEST_BEYOND = 4
"""Replicates beyond an end: with fewer of them, or fewer than `FEW_DRAWS`, percentiles are too uncertain."""


@dataclass(frozen=True)
class ConfidenceInterval:
    """A confidence interval.

    Attributes:
        lower: its lower end.
        upper: its upper end.
        confidence_level: how often such intervals have the true value between their ends.
        method: how it was found.
        safe: the ends by which a gate decides, where those shown may miss more often than their level says; infinite
            where no number is known that does not.
        caution: why it may hold the true value less often than its level says; empty where nothing shows that.
    """

    lower: float
    upper: float
    confidence_level: float
    method: str
    safe: Ends | None = None
    caution: str = ""

    def within(self, value_range: tuple[float, float]) -> ConfidenceInterval:
        """The interval without what no value can be.

        Example:
            >>> ConfidenceInterval(0.79, 1.02, 0.95, "Student's t").within((0.0, 1.0)).upper
            1.0
        """
        lower, upper = max(self.lower, value_range[0]), min(self.upper, value_range[1])
        safe = None if self.safe is None else (max(self.safe[0], value_range[0]), min(self.safe[1], value_range[1]))
        return replace(self, lower=lower, upper=upper, safe=safe) if lower <= upper else self


def drawn_values(
    groups: Sequence[Meter],
    n_resamples: int = 400,
    seed: int = 0,
    names: Collection[str] | None = None,
    elements: int | None = None,
) -> dict[str, list[float]]:
    """The values themselves that `bootstrap` makes intervals of.

    Args:
        groups: meters of equal metrics; their sum is what was measured.
        n_resamples: how often is drawn.
        seed: where the draws start.
        names: of which metrics; all by default.
        elements: how many kept samples, or cells of large tables, the replicates of one tally may read in all.

    Returns:
        By name, first the value that was measured, and then that of each replicate. Nothing where fewer than ten groups
        have samples.

    Raises:
        ConfigError, StateError, InvalidValuesError: as `bootstrap`.
    """
    _check_draws(n_resamples)
    if not groups:
        return {}
    filled = _alike([group for group in groups if group.rows], groups)
    return CountedGroups.of(groups[0], filled).drawn_values(
        n_resamples, seed, groups[0].metrics if names is None else names, elements
    )


@dataclass(frozen=True, eq=False)
class CountedGroups:
    """What was counted of groups of samples, as equal meters count them.

    Args:
        like: one of these meters.
        states: of each group, in the order of the tallies; they may be added any number of times.
        rows: how many samples each group has.
        sums: what was counted of the groups together, where that is known without the state of each.
    """

    like: Meter
    states: Sequence[Sequence[State]]
    rows: Whole
    sums: KnownSums | None = None

    @staticmethod
    def of(like: Meter, groups: Sequence[Meter]) -> CountedGroups:
        """What meters counted that are equal."""
        states = [group.counts.to_add()[0] for group in groups]
        return CountedGroups(like, states, np.array([group.rows for group in groups], np.int64))

    @property
    def filled(self) -> int:
        """How many groups there are."""
        return len(self.states)

    def drawn_values(
        self, n_resamples: int, seed: int, names: Collection[str], elements: int | None
    ) -> dict[str, list[float]]:
        """See `drawn_values`."""
        _check_draws(n_resamples)
        if self.filled < FEWEST_GROUPS:
            return {}
        draws = _draws(n_resamples, self.filled, seed)
        return dict(sorted(values_of_draws(self, draws, names, elements).items()))


@lru_cache(maxsize=2)
def _draws(n_resamples: int, groups: int, seed: int) -> Whole:
    """Each group once, and then how often it counts in each replicate: the same in each epoch of a training run."""
    draws = np.concatenate([np.ones((1, groups), np.int64), poisson_draws(n_resamples, groups, seed)])
    draws.flags.writeable = False
    return draws


def replicate_interval(
    value: float,
    others: Sequence[float],
    confidence_level: float,
    groups: int,
    scale: str = "",
    *,
    biased_upwards: bool = False,
) -> ConfidenceInterval | str:
    """The interval of a value from its replicates, see `bootstrap`; where they say nothing, why not.

    Args:
        value: what was measured.
        others: the replicates of it.
        confidence_level: between 0 and 1.
        groups: how many groups have samples.
        scale: the function of a mean that the values are, see `assay.stats.scales`: the interval is that of the mean.
        biased_upwards: few samples give higher values, so a gate takes a lower end that is `BIAS` standard errors
            further out. docs/coverage.md shows how often the one that is shown misses.
    """
    if scale:
        values = np.array([value, *others], np.float64)
        with np.errstate(all="ignore"):
            means = SCALES[scale].mean(values)
            is_of_means = np.allclose(SCALES[scale].of(means), values, equal_nan=True)  # not a root below 0
        if is_of_means:
            found = replicate_interval(means[0], means[1:].tolist(), confidence_level, groups)
            return found if isinstance(found, str) else _on_scale(found, SCALES[scale])
    numbers = np.array(others, np.float64)
    known = np.sort(numbers[~np.isnan(numbers)])
    undefined = len(numbers) - len(known)
    if undefined > len(known):
        return f"{undefined} of {len(others)} replicates of the bootstrap are undefined"
    if len(known) < LEAST:
        return f"fewer than {LEAST} replicates of the bootstrap are defined"
    beyond = math.floor((len(known) + 1) * expanded_tail(confidence_level, groups))
    if len(known) < FEW_DRAWS or beyond < FEWEST_BEYOND:
        method, (lower, upper) = "bootstrap standard error", _spread(value, known, confidence_level, groups)
    else:
        method, lower, upper = "bootstrap", float(known[beyond - 1]), float(known[-beyond])
    if reason := refusal(value, lower, upper):
        return reason
    least, most = _skewed(value, known, confidence_level, groups)
    lower, upper = min(lower, least), max(upper, most)
    method += f": {len(others)} draws of {groups} groups"
    method = f"{method}, {undefined} undefined" if undefined else method
    risky = risky_end_of_skewness(replicate_skewness(known), groups)
    safe, caution = _safe(lower, upper, risky), caution_of_end(risky)
    if biased_upwards:
        ends = safe or (lower, upper)
        safe = ends[0] - BIAS * replicate_error(known, groups)[0], ends[1]
        caution = caution or BIASED_UPWARDS
    return ConfidenceInterval(lower, upper, confidence_level, method, safe, caution)


def _safe(lower: float, upper: float, risky: str) -> Ends | None:
    """The ends that hold, of replicates that are skewed for so few groups; None where both do."""
    if not risky:
        return None
    return lower if risky == "upper" else -math.inf, upper if risky == "lower" else math.inf


def _on_scale(found: ConfidenceInterval, scale: Scale) -> ConfidenceInterval:
    """The interval of a function of a mean, from that of the mean."""
    lower, upper = scale.ends(found.lower, found.upper)
    return replace(found, lower=lower, upper=upper, safe=None if found.safe is None else scale.ends(*found.safe))


def refusal(value: float, lower: float, upper: float) -> str:
    """Why the ends of replicates are no interval; empty where they are one."""
    if lower == upper:
        return "the replicates of the bootstrap are equal"
    if math.isnan(lower) or math.isnan(upper):
        return "replicates of the bootstrap are infinite"
    if not lower <= value <= upper:
        return "the replicates of the bootstrap are biased: the value is not between their percentiles"
    return ""


def check_confidence_level(confidence_level: float) -> None:
    if not 0 < confidence_level < 1:
        raise ConfigError(
            describe("confidence_level", repr(confidence_level), "a number between 0 and 1", "Pass 0.95 for 95 %")
        )


def _check_draws(n_resamples: int) -> None:
    if n_resamples < LEAST:
        raise ConfigError(describe("n_resamples", n_resamples, f"{LEAST} or more", "Draw more often; 400 is usual"))


def _alike(filled: Sequence[Meter], groups: Sequence[Meter]) -> Sequence[Meter]:
    for group in groups[1:]:
        if group.metrics != groups[0].metrics or group.weighted != groups[0].weighted:
            do = "Make the meters of all groups with equal metrics"
            raise StateError(describe("groups", repr(group), f"a meter as {groups[0]!r}", do))
    return filled


def _spread(value: float, known: Floats, confidence_level: float, groups: int) -> tuple[float, float]:
    error, freedom = replicate_error(known, groups)
    half = error * student_quantile((1 + confidence_level) / 2, freedom)
    return value - half, value + half


def _skewed(value: float, known: Floats, confidence_level: float, groups: int) -> tuple[float, float]:
    """The ends that allow for the skewness of the replicates, if it exceeds that of so many normal numbers.

    None are further out where replicates are infinite.
    """
    if not np.isfinite(known).all():
        return math.inf, -math.inf
    return skewed_ends(value, replicate_error(known, groups)[0], replicate_skewness(known), groups, confidence_level)


def values_of_draws(
    groups: CountedGroups, draws: Whole, only: Collection[str], elements: int | None
) -> dict[str, list[float]]:
    """By name, the numbers that metrics read of each row of draws; `drawn_values` draws them by chance."""
    plan, metrics, rows = groups.like.plan, groups.like.metrics, groups.rows
    replicates: dict[str, list[float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssayWarning)
        for source, wanted, names in plan.readings(name for name in only if metrics[name].estimates):
            stacked = None if groups.sums is None else groups.sums.tables(source.tally)
            counted = GroupStates(source.tally, _states_of(source, groups.states), rows, stacked)
            readings = GroupReadings(counted, wanted, groups.sums if rows.sum() >= FROM_ROWS else None)
            _refuse(readings.invalid_values, names)
            if not groups.like.weighted:
                for name in list(names):
                    values = metrics[name].replicates(readings, draws, to_first_order=rows.sum() >= FROM_ROWS)
                    if values is not None:
                        replicates[name] = values.tolist()
                        names = [each for each in names if each != name]
            chosen = draws[: 1 + counted.affordable(len(draws) - 1, elements)] if names else draws
            for name in list(names):
                drawn = metrics[name].values_of_draws(readings, chosen)
                if drawn is not None:
                    for part, number in (each for value in drawn for each in named_numbers(name, value)):
                        replicates.setdefault(part, []).append(number)
                    names = [each for each in names if each != name]
            if not names:
                continue
            for reading in counted.readings(chosen, wanted):
                numbers = [each for name in names for each in named_numbers(name, metrics[name].compute(reading))]
                if not numbers:
                    break  # curves and tables have no intervals
                for part, number in numbers:
                    replicates.setdefault(part, []).append(number)
    return replicates


def _states_of(source: TallySource, groups: Sequence[Sequence[State]]) -> Sequence[State]:
    """The states of a tally in groups, made when they are asked for: some have many samples."""
    return LateItems(len(groups), lambda k: source.state(groups[k]))


def _refuse(problems: Sequence[InvalidValues], names: Sequence[str]) -> None:
    """Raise if invalid values were counted."""
    for problem in problems:
        if problem.fatal:
            do = "Correct or leave out those samples"
            raise InvalidValuesError(describe(", ".join(names), f"{problem.count} of the {problem.what}", "none", do))
