"""What is checked of tables by a column of many values: their sums against the values, and a second count of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from assay._records import encode
from assay.report import Section
from assay.report.grouped import GroupedMetric, GroupedValues
from assay.report.per_sample.packed_array import Array, PackedArray
from assay.stats.scales import SCALES

ROUNDED = 1e-6
"""How near means of floats are: per-sample values are float32 numbers."""


def sum_faults(section: Section, rows: int | None) -> Iterator[str]:
    """Tables whose groups do not add up to the samples, or to the values of the section.

    Args:
        section: the section with its tables.
        rows: how many samples were counted; None where that is not known.
    """
    for table in section.by:
        total = int(table.counts.values.sum())
        if rows is not None and total != rows:
            yield f"by {table.name}: {total:,} samples, but {rows:,} were counted"
        for metric in table.metrics:
            values = [each.value for each in section.values if each.name == metric.name]
            if len(values) != 1 or not _is_same(values[0], metric.value):
                yield f"{metric.name} by {table.name}: {metric.value!r} is not the value of all samples"
            elif fault := _of_means(metric):
                yield f"{metric.name} by {table.name}: {fault}"


def _of_means(metric: GroupedMetric) -> str:
    """What is wrong with the means of the groups, which add up to that of all; of quotients nothing is known."""
    sizes, means = metric.sizes.values, metric.means.values
    filled = sizes > 0
    if metric.kind == "ratio" or not filled.any() or not np.isfinite(means[filled]).all():
        return ""
    total = int(sizes.sum())
    if metric.kind == "share" and not metric.scale:
        mean = int(metric.successes.sum()) / total
        return "" if mean == metric.value else f"the groups add up to {mean!r}, not to {metric.value!r}"
    mean = math.fsum(sizes[filled] * means[filled]) / total
    size = math.fsum(sizes[filled] * np.abs(means[filled])) / total
    number = float(SCALES[metric.scale].mean(np.float64(metric.value)))
    return "" if abs(mean - number) <= ROUNDED * size else f"the groups add up to {mean!r}, not to {number!r}"


def differences(mine: Sequence[GroupedValues], other: Sequence[GroupedValues]) -> tuple[list[str], bool]:
    """How tables differ from those that were counted again, and whether all differences are near."""
    own, theirs = ({table.name: table for table in tables} for tables in (mine, other))
    faults = [f"by {name}: not counted again" for name in own.keys() - theirs.keys()]
    faults += [f"by {name}: missing" for name in theirs.keys() - own.keys()]
    is_near = not faults
    for name in own.keys() & theirs.keys():
        if encode(own[name]) == encode(theirs[name]):
            continue
        found, near = _of_table(own[name], theirs[name])
        faults += found
        is_near &= near
    return faults, is_near


def _of_table(one: GroupedValues, two: GroupedValues) -> tuple[list[str], bool]:
    groups = one.groups.values
    same = len(one) == len(two) and bool((groups == two.groups.values).all())
    if not same or [each.name for each in one.metrics] != [each.name for each in two.metrics]:
        return [f"by {one.name}: other groups or metrics"], False
    series = [("count", one.counts, two.counts)]
    for a, b in zip(one.metrics, two.metrics, strict=True):
        series += [(a.name, a.means, b.means), (f"{a.name}, samples", a.sizes, b.sizes)]
        series += [(f"{a.name}, deviation", x, y) for x, y in [(a.deviations, b.deviations)] if x and y]
    faults, is_near = [], True
    for what, x, y in series:
        differs = np.flatnonzero(~_equal(x.values, y.values))
        faults += [f"{one.name} {groups[k]}: {what} {x.values[k]}, now {y.values[k]}" for k in differs.tolist()]
        is_near &= _are_near(x, y, differs)
    return (faults, is_near) if faults else ([f"by {one.name}: values of all samples, or the spread"], True)


def _equal(x: Array, y: Array) -> Array:
    return np.asarray((x == y) | ((x != x) & (y != y)))


def _are_near(x: PackedArray, y: PackedArray, places: Array) -> bool:
    if x.values.dtype.kind != "f":
        return not len(places)
    return bool(np.isclose(x.values[places], y.values[places], rtol=ROUNDED, atol=ROUNDED).all())


def _is_same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))
