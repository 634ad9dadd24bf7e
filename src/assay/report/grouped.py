"""The values of metrics for each value of a column that has many: users, shops, queries."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from assay._records import Record
from assay.errors import ConfigError, ShapeError, describe
from assay.report.data_frames import data_frame
from assay.report.per_sample.packed_array import Array, PackedArray
from assay.report.value import check_confidence_level
from assay.stats.group_intervals import mean_tails, share_tails, student_ends, wilson_ends
from assay.stats.scales import SCALES


class GroupSpread(Record):
    """How much the means of groups differ, and whether by more than chance; `assay.stats.heterogeneity` has formulas.

    Args:
        groups: how many groups have samples.
        q: the statistic, `groups - 1` on average where groups do not differ.
        p: how probable so large a `q` is, were all groups equal.
        i2: the share of the spread of the means that is more than chance.
        deviation: the standard deviation of the groups' true means; NaN where no group has two samples.
    """

    groups: int
    q: float
    p: float
    i2: float
    deviation: float


class GroupedMetric(Record):
    """One metric for each group.

    Args:
        name: of the metric.
        value: of all samples.
        means: of each group the mean that the value is, or that it is a function of; NaN where it is undefined.
        sizes: how many samples each mean is of.
        kind: ``"share"`` of samples that are yes, ``"mean"`` of numbers, or ``"ratio"`` of two means, which has no
            intervals.
        deviations: of a mean, the standard deviation of the samples of each group.
        confidence_level: of the intervals; None for none.
        higher_is_better: whether higher values are better; None where that is not known.
        scale: the function of the mean that the value is, as in `Value`.
        spread: how much the groups differ; None where that is not known.
    """

    name: str
    value: float
    means: PackedArray
    sizes: PackedArray
    kind: str = "ratio"
    deviations: PackedArray | None = None
    confidence_level: float | None = None
    higher_is_better: bool | None = None
    scale: str = ""
    spread: GroupSpread | None = None

    def _check(self) -> None:
        if self.kind not in ("share", "mean", "ratio"):
            raise ConfigError(describe("GroupedMetric.kind", repr(self.kind), "share, mean or ratio", 'Pass "ratio"'))
        if self.confidence_level is not None:
            check_confidence_level("GroupedMetric.confidence_level", self.confidence_level)
        others = [len(each) for each in (self.sizes, self.deviations) if each is not None]
        if any(each != len(self.means) for each in others):
            got = f"{len(self.means)} means and {others[0]} sizes"
            raise ShapeError(describe(f"GroupedMetric {self.name!r}", got, "one of each a group", "Pass equal lengths"))

    @property
    def values(self) -> Array:
        """The value of each group."""
        with np.errstate(all="ignore"):
            return np.asarray(SCALES[self.scale].of(self.means.values))

    @cached_property
    def ends(self) -> tuple[Array, Array] | None:
        """The ends of the intervals of the values; None where there are none."""
        level = self.confidence_level
        if level is None or self.kind == "ratio":
            return None
        n = self.sizes.values
        if self.kind == "share":
            return wilson_ends(self.successes, n, level)
        assert self.deviations is not None
        scale = SCALES[self.scale]
        with np.errstate(all="ignore"):
            first, second = map(scale.of, student_ends(self.means.values, self.deviations.values, n, level))
        return (second, first) if scale.falls else (first, second)

    @cached_property
    def tails(self) -> Array:
        """How probable so bad a value of each group is, were its samples like all; NaN where that is not known."""
        if self.higher_is_better is None or self.kind == "ratio" or self.confidence_level is None:
            return np.full(len(self.means), math.nan)
        upper, n = not self.higher_is_better, self.sizes.values
        if self.kind == "share":
            return share_tails(self.successes, n, self.value, upper=upper)
        assert self.deviations is not None
        scale = SCALES[self.scale]
        mean = float(scale.mean(np.float64(self.value)))
        upper ^= scale.falls  # a larger mean is then a smaller value
        return mean_tails(self.means.values, self.deviations.values, n, mean, upper=upper)

    @property
    def is_worse(self) -> Array:
        """Which groups are worse than all samples beyond chance, by Bonferroni's correction for all groups."""
        tails = self.tails
        if self.confidence_level is None:
            return np.zeros(len(tails), bool)
        compared = int((~np.isnan(tails)).sum())
        return np.asarray(tails < (1 - self.confidence_level) / 2 / max(1, compared))

    @property
    def successes(self) -> Array:
        """Of a share, how many samples of each group are yes."""
        sizes = self.sizes.values
        return np.where(sizes > 0, np.rint(np.nan_to_num(self.means.values) * sizes), 0).astype(np.int64)


class GroupedValues(Record):
    """The metrics of samples that have the same value of a column, for each value.

    Args:
        name: the column.
        groups: the values.
        counts: how many samples have each.
        metrics: the metrics of each.
        left_out: metrics that have no value for a group, as they are no mean over samples.

    Raises:
        ShapeError: a metric has more or fewer values than there are groups.

    Example:
        >>> means, sizes = PackedArray.of([0.5, 1.0]), PackedArray.of([2, 4])
        >>> accuracy = GroupedMetric("accuracy", 5 / 6, means, sizes, "share", None, 0.95, True)
        >>> table = GroupedValues("user", PackedArray.of(["ann", "bob"]), sizes, [accuracy])
        >>> table, table.worst("accuracy", 1)
        (<GroupedValues by user: 2 groups, accuracy>, ['ann'])
    """

    name: str
    groups: PackedArray
    counts: PackedArray
    metrics: tuple[GroupedMetric, ...]
    left_out: tuple[str, ...] = ()

    def _check(self) -> None:
        for each in (self.counts, *(metric.means for metric in self.metrics)):
            if len(each) != len(self.groups):
                got = f"{len(each)} numbers for {len(self.groups)} groups"
                raise ShapeError(describe(f"GroupedValues {self.name!r}", got, "one a group", "Pass equal lengths"))

    def __repr__(self) -> str:
        names = ", ".join(each.name for each in self.metrics)
        return f"<GroupedValues by {self.name}: {len(self.groups):,} groups, {names}>"

    def __len__(self) -> int:
        return len(self.groups)

    def metric(self, name: str) -> GroupedMetric:
        """One of the metrics.

        Raises:
            ConfigError: no metric has this name.
        """
        for each in self.metrics:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.metrics)
        raise ConfigError(describe(f"by {self.name}", repr(name), f"one of {known}", "Name one of them"))

    def order(self, name: str) -> Array:
        """The positions of the groups, the worst by a metric first: those that chance explains least.

        Groups of few samples have extreme values by chance, so the lowest value is rarely the worst. Where nothing is
        known of chance, the order is that of the values.
        """
        metric = self.metric(name)
        values = metric.values if metric.higher_is_better is not False else -metric.values
        tails = metric.tails
        return np.lexsort((np.arange(len(self)), np.nan_to_num(values, nan=math.inf), np.nan_to_num(tails, nan=2.0)))

    def worst(self, name: str, most: int = 20) -> list[str]:
        """The worst groups by a metric, see `order`."""
        return [str(each) for each in self.groups.values[self.order(name)[:most]]]

    def to_dataframe(self) -> Any:
        """A row a group, as a DataFrame of pandas: the value, count, and each metric with the ends of its interval.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        columns: dict[str, Array] = {self.name: self.groups.values, "count": self.counts.values}
        for each in self.metrics:
            columns[each.name] = each.values
            for end, values in zip(("lower", "upper"), each.ends or (), strict=False):
                columns[f"{each.name} {end}"] = values
        return data_frame(columns, list(columns), "GroupedValues.to_dataframe")
