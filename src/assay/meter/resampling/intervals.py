"""Confidence intervals of what meters read: closed-form where one is standard, else by a bootstrap of tallies."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import torch

from assay.errors import AssayWarning
from assay.meter.counting.tally_plan import TallyPlan, tally_plan
from assay.meter.meter import Meter
from assay.meter.resampling.replicates import (
    FEWEST_BEYOND,
    ConfidenceInterval,
    check_confidence_level,
    drawn_values,
    refusal,
    replicate_interval,
)
from assay.meter.values import Readings
from assay.metrics.base import ANY_NUMBER, Metric, named_numbers
from assay.metrics.retrieval.base import FEW_QUERIES
from assay.metrics.retrieval.curves import RetrievalRecallAtFixedPrecision
from assay.stats.bootstrap import Floats, expanded_tail, poisson_draws
from assay.stats.intervals import FEWEST

GROUPS = 128
"""Of samples, to resample; with more, intervals hardly get better."""


MOST_QUERY_GROUPS = 1024
"""Of queries that are resampled."""


def closed_forms(meter: Meter, confidence_level: float = 0.95) -> dict[str, ConfidenceInterval]:
    """The intervals of a meter's values that have a closed form.

    They hold for samples without weights that do not depend on each other. So where a row has several (the pixels of an
    image), a value has none.

    Args:
        meter: what was counted.
        confidence_level: between 0 and 1.

    Returns:
        Intervals by the names of the metrics; without those that have no closed form, or to which it says nothing.

    Raises:
        ConfigError: the confidence level is invalid.

    Example:
        >>> from assay.metrics import Accuracy
        >>> meter = Meter(acc=Accuracy(num_classes=2))
        >>> meter.update(torch.tensor([0, 1, 1, 0]), torch.tensor([0, 1, 0, 0]))
        >>> found = closed_forms(meter)["acc"]
        >>> round(found.lower, 4), round(found.upper, 4), found.method
        (0.3006, 0.9544, "Wilson's interval")
    """
    return _intervals_of(_closed_forms(meter, confidence_level))


def readings_of(meter: Meter, *, with_intervals: bool) -> Readings:
    """What the tallies of a meter compute, for its values and, if wanted, for its intervals in closed form."""
    closed = not meter.weighted and any(metric.closed_form for metric in meter.metrics.values())
    return meter.readings(canonical=with_intervals and closed)


def intervals_or_reasons(
    meter: Meter,
    confidence_level: float = 0.95,
    n_resamples: int = 400,
    seed: int = 0,
    readings: Readings | None = None,
) -> dict[str, ConfidenceInterval | str]:
    """What `closed_forms` and `resampled_queries` give, and the reason for each value to which they say nothing.

    Args:
        meter: what was counted.
        confidence_level: between 0 and 1.
        n_resamples: how often queries are drawn.
        seed: where the draws start.
        readings: what `readings_of` gives, where something else computes from it, too.

    Returns:
        Intervals, or why none, by the names of the values; without values that have neither a closed form nor
        queries that can be drawn.

    Raises:
        ConfigError: the confidence level is invalid.

    Example:
        >>> from assay.metrics import RetrievalMRR
        >>> meter = Meter(mrr=RetrievalMRR())
        >>> meter.update(torch.tensor([0.9, 0.2]), torch.tensor([0, 1]), indexes=torch.tensor([0, 0]))
        >>> intervals_or_reasons(meter)
        {'mrr': 'fewer than 12 queries'}
    """
    drawn = _resampled_queries(meter, confidence_level, n_resamples, seed)
    return _closed_forms(meter, confidence_level, readings) | drawn


def _intervals_of(found: Mapping[str, ConfidenceInterval | str]) -> dict[str, ConfidenceInterval]:
    """Without the reasons."""
    return {name: each for name, each in found.items() if isinstance(each, ConfidenceInterval)}


def _closed_forms(
    meter: Meter, confidence_level: float, readings: Readings | None = None
) -> dict[str, ConfidenceInterval | str]:
    """Intervals in closed form, or why a value has none."""
    check_confidence_level(confidence_level)
    names = [name for name, metric in meter.metrics.items() if metric.closed_form]
    if meter.weighted or not names or not meter.rows:
        return {}
    intervals: dict[str, ConfidenceInterval | str] = {}
    readings = readings or Readings(meter.plan, *meter.counts.canonical())
    for name in names:
        metric, (_, counts) = meter.metrics[name], readings.of(name)
        if counts is None:
            continue
        ends, safe = metric.intervals(counts, confidence_level, readings.rows)
        if ends is None or any(map(math.isnan, ends)):
            intervals[name] = metric.without_interval(counts)
        else:
            caution = metric.caution(counts)
            interval = ConfidenceInterval(*ends, confidence_level, metric.closed_form, safe, caution)
            intervals[name] = interval.within(metric.value_range)
    return intervals


def resampled_queries(
    meter: Meter, confidence_level: float = 0.95, n_resamples: int = 400, seed: int = 0
) -> dict[str, ConfidenceInterval]:
    """The intervals of the recall of `RetrievalRecallAtFixedPrecision`, by drawing the queries again.

    Documents that are given with the number of their query depend on those of the same query, queries do not. More than
    1,024 queries are drawn in so many groups. The ends are percentiles, moved outwards for the number of groups as
    Student's t is. Where precision is near `min_precision`, the recall jumps from replicate to replicate, and the
    interval is wide.

    Args:
        meter: what was counted, without weights.
        confidence_level: between 0 and 1.
        n_resamples: how often is drawn.
        seed: where the draws start.

    Returns:
        Intervals by `"name recall"`. A value has none with fewer than 12 queries, or too few replicates beyond
        an end; where all replicates are equal; and where the value is not between the ends.

    Raises:
        ConfigError: the confidence level is invalid.

    Example:
        >>> from assay.metrics import RetrievalRecallAtFixedPrecision
        >>> meter = Meter(r=RetrievalRecallAtFixedPrecision(max_k=3, min_precision=0.2))
        >>> target, scores = (torch.arange(300) % 7 < 2).long(), torch.arange(300) * 37 % 101 / 100
        >>> meter.update(scores, target, indexes=torch.arange(300) // 6)
        >>> found = resampled_queries(meter)["r recall"]
        >>> round(found.lower, 2), round(found.upper, 2), found.method
        (0.38, 0.61, 'bootstrap: 400 draws of 50 queries')
    """
    return _intervals_of(_resampled_queries(meter, confidence_level, n_resamples, seed))


def _resampled_queries(
    meter: Meter, confidence_level: float, n_resamples: int, seed: int
) -> dict[str, ConfidenceInterval | str]:
    """Intervals of resampled queries, or why a value has none."""
    check_confidence_level(confidence_level)
    intervals: dict[str, ConfidenceInterval | str] = {}
    for name, metric in meter.metrics.items():
        if not isinstance(metric, RetrievalRecallAtFixedPrecision) or metric.by_row or metric.aggregation != "mean":
            continue
        blocks = None if meter.weighted or not meter.rows else meter.counts_of(name)
        if blocks is None:
            continue
        metric = metric.of_width(blocks.most_documents)
        found, _ = blocks.values(metric.measure)
        values = found.values[found.counted[:, 0]].numpy()
        if len(values) < FEWEST:
            intervals[f"{name} recall"] = FEW_QUERIES
            continue
        groups, sums = _summed_in_groups(values)
        draws = np.concatenate([np.ones((1, groups), np.int64), poisson_draws(n_resamples, groups, seed)])
        counts = draws @ np.bincount(np.arange(len(values)) % groups)
        value, *others = [_recall(metric, total / count) for total, count in zip(draws @ sums, counts, strict=True)]
        known, beyond = np.sort(others), math.floor((n_resamples + 1) * expanded_tail(confidence_level, groups))
        if beyond < FEWEST_BEYOND:
            intervals[f"{name} recall"] = f"{n_resamples} resamples are too few for this confidence level"
            continue
        if reason := refusal(value, known[beyond - 1], known[-beyond]):
            intervals[f"{name} recall"] = reason
            continue
        method = f"bootstrap: {n_resamples} draws of {len(values):,} queries"
        ends = float(known[beyond - 1]), float(known[-beyond])
        intervals[f"{name} recall"] = ConfidenceInterval(*ends, confidence_level, method)
    return intervals


def _recall(metric: RetrievalRecallAtFixedPrecision, means: Floats) -> float:
    """The recall from the means of precision and recall over queries; 0 where a replicate has no query."""
    return float(np.nan_to_num(float(metric.value(means.tolist()).recall)))


def _summed_in_groups(values: Floats) -> tuple[int, Floats]:
    """Rows added up in at most `MOST_QUERY_GROUPS` groups, and how many these are."""
    groups = min(len(values), MOST_QUERY_GROUPS)
    sums = np.zeros((groups, values.shape[1]))
    np.add.at(sums, np.arange(len(values)) % groups, values)
    return groups, sums


def needing_bootstrap(
    meter: Meter, *, independent: bool = True, without: Collection[str] = (), budget_bytes: int = 64 << 20
) -> Meter | None:
    """A meter that has counted nothing, of the metrics whose intervals have to be drawn.

    Left out are metrics that read no single numbers, that estimate nothing (totals, extremes), that have a closed form,
    and whose counts are too large to be kept for several groups.

    Args:
        meter: the metrics.
        independent: rows are single samples. Those of images and texts are not, and closed forms do not hold for them.
        without: names of metrics whose intervals come from elsewhere.
        budget_bytes: how much the counts of all groups may take; see `group_count`.

    Returns:
        The meter; None where nothing is left.

    Example:
        >>> from assay.metrics import Accuracy, Recall, Sum
        >>> meter = Meter(Accuracy(num_classes=3), Recall(num_classes=3), Sum())
        >>> list(needing_bootstrap(meter).metrics)
        ['Recall']
    """
    closed = independent and not meter.weighted
    plans = {
        name: tally_plan({name: metric}, meter.weighted)
        for name, metric in meter.metrics.items()
        if metric.estimates and not (closed and metric.closed_form and not metric.needs_many) and name not in without
    }
    chosen: dict[str, Metric] = {}
    for name in sorted(plans, key=lambda each: plans[each].state_bytes):
        more = {**chosen, name: meter.metrics[name]}
        plan = tally_plan(more, meter.weighted) if chosen else plans[name]
        if _count_of_size(plan.state_bytes, budget_bytes) and _is_numbers(plans[name], name):
            chosen = more
    return meter.fresh({name: chosen[name] for name in meter.metrics if name in chosen}) if chosen else None


def _is_numbers(plan: TallyPlan, name: str) -> bool:
    """Whether a metric reads single numbers, which is seen without data, and once for all meters of a plan."""
    if name not in plan.are_numbers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AssayWarning)
            states = [tally.zero(torch.device("cpu")) for tally in plan.tallies]
            value = Readings(plan, states, 0).values([name])[name]
        plan.are_numbers[name] = any(True for _ in named_numbers(name, value))
    return plan.are_numbers[name]


def group_count(meter: Meter, budget_bytes: int = 64 << 20, most: int = GROUPS, least: int = 16) -> int:
    """How many groups of samples to count apart, so that their counts fit a budget.

    Samples that metrics keep are not part of it: all groups together keep each of them once.

    Args:
        meter: the metrics to be counted for each group.
        budget_bytes: how much the counts of all groups may take.
        most: with more, intervals hardly get better.
        least: with fewer, their ends are too uncertain.

    Returns:
        A number of groups between `least` and `most`, or 0 where not even `least` fit.

    Example:
        >>> from assay.metrics import CohenKappa
        >>> [group_count(Meter(CohenKappa(num_classes=n, weights="linear"))) for n in (10, 1000)]
        [128, 0]
    """
    return _count_of_size(meter.plan.state_bytes, budget_bytes, most, least)


def _count_of_size(state_bytes: int, budget_bytes: int, most: int = GROUPS, least: int = 16) -> int:
    """See `group_count`, of groups whose counts take so much."""
    count = min(most, budget_bytes // max(1, state_bytes))
    return count if count >= least else 0


def bootstrap(
    groups: Sequence[Meter], confidence_level: float = 0.95, n_resamples: int = 400, seed: int = 0
) -> dict[str, ConfidenceInterval]:
    """Intervals of all values, by drawing groups of samples again.

    Every sample was randomly assigned to a group (by a hash of its id), and counted by the meter of that group. In each
    replicate every group counts as often as a draw from Poisson(1) says; the values of the replicates spread as those
    of other samples would. The ends are percentiles, moved outwards for the number of groups as Student's t is, and for
    the skewness of the replicates (`assay.stats.intervals.skewed_ends`).
    Integers decide everything up to the values, so the intervals do not depend on how a group was counted.

    Metrics that keep samples are read less often, the more samples there are (from 25 times on). With fewer than 200
    replicates, or fewer than four beyond an end, the interval is ``value ± t sd`` with their standard deviation.

    Args:
        groups: meters of equal metrics; their sum is what was measured.
        confidence_level: between 0 and 1.
        n_resamples: how often is drawn; the method says how often it was.
        seed: where the draws start.

    Returns:
        Intervals by the names of the metrics, and for named tuples of numbers by ``"name part"``. A value has none for
        totals and extremes; if fewer than ten groups have samples; if most replicates are undefined or all are equal;
        and if the value itself is not between the ends, as then the bias of resampling exceeds the spread.

    Raises:
        ConfigError: the confidence level is invalid, or there are fewer than 25 replicates.
        StateError: the groups count different things.
        InvalidValuesError: invalid values were counted; see `Meter.compute`.

    Example:
        >>> from assay.metrics import R2Score
        >>> x = torch.arange(600.0)
        >>> groups = [Meter(R2Score()) for _ in range(20)]
        >>> for k, group in enumerate(groups):
        ...     group.update(x[k::20], x[k::20] + 200 * torch.sin(x[k::20] ** 2))
        >>> found = bootstrap(groups)["R2Score"]
        >>> round(found.lower, 2), round(found.upper, 2), found.method
        (0.56, 0.64, 'bootstrap: 400 draws of 20 groups')

    Source: N. Chamandy et al., Estimating uncertainty for massive data streams, Google 2012, for Poisson weights;
    K. Wolter, Introduction to Variance Estimation, chapter 2, for random groups; T. Hesterberg, What teachers should
    know about the bootstrap, The American Statistician 69 (2015), for the percentiles.
    """
    check_confidence_level(confidence_level)
    filled = sum(group.rows > 0 for group in groups)
    intervals = {}
    for name, (value, *others) in drawn_values(groups, n_resamples, seed).items():
        metrics = groups[0].metrics
        interval = replicate_interval(
            value, others, confidence_level, filled, scale_of(name, metrics), biased_upwards=is_biased(name, metrics)
        )
        if isinstance(interval, ConfidenceInterval):
            intervals[name] = interval.within(range_of(name, groups[0].metrics))
    return intervals


def range_of(name: str, metrics: Mapping[str, Metric]) -> tuple[float, float]:
    """The range of a number by its name: that of a metric, or of a part of its value, `"name part"`."""
    if name in metrics:
        return metrics[name].value_range
    whole = _metric_of(name, metrics)
    return ANY_NUMBER if whole is None else whole[1].part_ranges.get(whole[0], whole[1].value_range)


def is_biased(name: str, metrics: Mapping[str, Metric]) -> bool:
    """Whether few samples give higher values of a number on average, by its name."""
    found = (name, metrics[name]) if name in metrics else _metric_of(name, metrics)
    return found is not None and found[1].biased_upwards


def _metric_of(name: str, metrics: Mapping[str, Metric]) -> tuple[str, Metric] | None:
    """The part and the metric of a number `"name part"`."""
    whole = next((each for each in metrics if name.startswith(f"{each} ")), None)
    return None if whole is None else (name.removeprefix(f"{whole} "), metrics[whole])


def scale_of(name: str, metrics: Mapping[str, Metric]) -> str:
    """Which function of a mean a number is by its name; empty for a part of a value."""
    return metrics[name].scale if name in metrics else ""
