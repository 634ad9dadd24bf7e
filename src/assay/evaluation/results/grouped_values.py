"""Tables of the values of metrics for each value of a column, from sums of per-sample values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from assay.evaluation.observe.grouped_terms import GroupedSums, GroupedTerms, TermsOfColumn
from assay.evaluation.observe.observers import Array
from assay.evaluation.observe.slice_values import MISSING
from assay.metrics.base import Metric
from assay.report.grouped import GroupedMetric, GroupedValues, GroupSpread
from assay.report.per_sample.packed_array import PackedArray
from assay.report.value import CLOSE, Value
from assay.stats.heterogeneity import central_moments, heterogeneity
from assay.stats.scales import SCALES
from assay.tally.sums import exact


def grouped_values(
    counted: GroupedTerms, values: Sequence[Value], metrics: Mapping[str, Metric], confidence_level: float | None
) -> tuple[GroupedValues, ...]:
    """The tables, one a column.

    Args:
        counted: what was counted.
        values: those of all samples.
        metrics: the metrics, by name.
        confidence_level: of the intervals; None for none, as where samples depend on each other.
    """
    tables = []
    for name, column in counted.columns.items():
        order = _order(column.coding.texts, column.rows)
        found = []
        for value in values:
            if value.name not in counted.terms:
                continue
            means = _means(column, *counted.terms[value.name], is_part=value.name not in counted.crossed)
            scale = metrics[value.name].scale
            if not _fits(means, value.value, scale):
                continue  # such as of a metric that leaves samples out
            metric = _metric(value, means, order, scale)
            if confidence_level is not None:
                metric = replace(metric, confidence_level=confidence_level, spread=_spread(means, order))
            found.append(metric)
        names = {each.name for each in found}
        groups = PackedArray.of(np.array(column.coding.texts, object)[order])
        left_out = tuple(each for each in metrics if each not in names)
        tables.append(GroupedValues(name, groups, PackedArray.of(column.rows[order]), tuple(found), left_out))
    return tuple(tables)


def notes_of(tables: Sequence[GroupedValues], *, clustered: bool) -> list[str]:
    """What a reader must know of tables."""
    notes = []
    for table in tables:
        if table.left_out:
            names = ", ".join(table.left_out)
            notes.append(f"No values by {table.name} of {names}: only means over samples are counted for each value.")
        if clustered:
            notes.append(f"No intervals by {table.name}, as samples of a cluster may depend on each other.")
    return notes


def _order(texts: Sequence[str], rows: Array) -> Array:
    """The positions of values that rows have, in their order: integers by size, all else as strings; missing last."""
    names = np.array(texts, object)
    filled = rows > 0  # not where all rows were left out
    known = np.flatnonzero(filled & (names != MISSING))
    try:
        order = known[np.argsort(names[known].astype(np.int64), kind="stable")]
    except (ValueError, OverflowError):
        order = np.array(sorted(known.tolist(), key=texts.__getitem__), np.int64)
    return np.concatenate([order, np.flatnonzero(filled & (names == MISSING))])


@dataclass(frozen=True)
class _Means:
    """The means of groups.

    Attributes:
        means: of each group; NaN without samples.
        sizes: how many samples each is of.
        of_all: the mean of all samples.
        kind: see `GroupedMetric`.
        sums: of means of numbers, what was counted.
    """

    means: Array
    sizes: Array
    of_all: float
    kind: str
    sums: GroupedSums | None = None


def _means(column: TermsOfColumn, numerator: str, denominator: str, *, is_part: bool) -> _Means:
    """The means of a metric by the values of a column.

    Args:
        column: what was counted.
        numerator: the per-sample value whose mean the metric is.
        denominator: that by whose mean it is divided; empty for none.
        is_part: samples in the numerator are in the denominator.
    """
    above, below = column.sums(numerator), column.sums(denominator) if denominator else None
    divisor = column.rows if below is None else below.counts
    if above.counts is not None and divisor is not None and is_part:
        return _Means(_quotients(above.counts, divisor), divisor, _total_share(above.counts, divisor), "share")
    groups = len(column.rows)
    top, bottom = _integers(above, groups), (column.rows.tolist(), 0) if below is None else _integers(below, groups)
    means = np.array(exact.quotients(top, bottom))
    special = above.special if below is None else above.special + below.special
    means = np.where(special == 0, means, special)
    of_all = exact.quotients(*(([sum(values)], unit) for values, unit in (top, bottom)))[0]
    of_all = float(special.sum()) or of_all
    is_mean = below is None and above.counts is None
    return _Means(means, column.rows, of_all, "mean" if is_mean else "ratio", above if is_mean else None)


def _quotients(above: Array, below: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(above / below)  # correctly rounded: both are below 2 ** 53


def _total_share(above: Array, below: Array) -> float:
    total = int(below.sum())
    return int(above.sum()) / total if total else math.nan


def _integers(sums: GroupedSums, groups: int) -> tuple[list[int], int]:
    """Exact sums as integers, and the power of two that is their unit."""
    return (sums.counts.tolist(), 0) if sums.counts is not None else sums.sums.integers(groups)


def _fits(found: _Means, value: float, scale: str) -> bool:
    """Whether a value is the mean of what was counted."""
    with np.errstate(all="ignore"):
        own = float(SCALES[scale].of(np.float64(found.of_all)))
    if math.isnan(own) or math.isnan(value):
        return math.isnan(own) and math.isnan(value)
    return own == value or abs(own - value) <= CLOSE * max(abs(own), abs(value))


def _metric(value: Value, found: _Means, order: Array, scale: str) -> GroupedMetric:
    deviations = None if found.sums is None else PackedArray.of(_deviations(found.sums, found.sizes)[order])
    means, sizes = PackedArray.of(found.means[order]), PackedArray.of(found.sizes[order])
    better = value.higher_is_better
    return GroupedMetric(value.name, value.value, means, sizes, found.kind, deviations, None, better, scale)


def _deviations(sums: GroupedSums, sizes: Array) -> Array:
    """The standard deviation of the samples of each group, NaN of fewer than two."""
    groups = len(sizes)
    (ones, of_ones), (twos, of_twos) = sums.sums.integers(groups), sums.squares.integers(groups)
    unit = min(2 * of_ones, of_twos)
    up, square_up = of_twos - unit, 2 * of_ones - unit
    n = sizes.tolist()
    above = [max(0, k * (two << up) - (one * one << square_up)) for k, one, two in zip(n, ones, twos, strict=True)]
    variances = np.array(exact.quotients((above, unit), ([k * (k - 1) for k in n], 0)))
    return np.sqrt(np.where(sums.special == 0, variances, np.nan))


def _spread(found: _Means, order: Array) -> GroupSpread | None:
    """How much groups differ, added up in the order of the report."""
    filled = order[found.sizes[order] > 0]
    sizes, means = found.sizes[filled], found.means[filled]
    rows = int(sizes.sum())
    if found.kind == "share" and rows:
        share = found.of_all * (1 - found.of_all)
        squares, fourths = rows * share, rows * share * (1 - 3 * share)
    elif found.sums is not None and np.isfinite(means).all():
        sums = found.sums
        one, two = (_total(*part.integers(len(found.sizes))) for part in (sums.sums, sums.squares))
        (cubes, fourth_powers), unit = sums.powers.integers(2)
        moments = one, two, exact.fraction(cubes, unit), exact.fraction(fourth_powers, unit)
        try:
            squares, fourths = central_moments(rows, moments)
        except OverflowError:
            return None
    else:
        return None
    result = heterogeneity(sizes, means, squares, fourths)
    return None if result is None else GroupSpread(result.groups, result.q, result.p, result.i2, result.deviation)


def _total(values: Sequence[int], unit: int) -> Fraction:
    return exact.fraction(sum(values), unit)
