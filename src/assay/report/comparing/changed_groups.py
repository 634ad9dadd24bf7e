"""The groups of a column of many values (users, shops) that differ most between two reports."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from assay.report.comparing.comparison import Unmatched
from assay.report.comparing.group_changes import ChangedGroup, GroupChanges
from assay.report.grouped import GroupedMetric, GroupedValues
from assay.report.per_sample.packed_array import Array
from assay.report.section import Section
from assay.stats.group_differences import GroupDifferences, mean_differences, share_differences
from assay.stats.hypothesis_tests import correct

MOST = 100
"""Groups that are kept on each side; all are counted."""
UNPAIRED = "as of other samples, since a table does not say which samples a group has"
DEPENDENT = "samples in clusters, a run that ended early, or no intervals: the error in a group is not known"
_METHODS = {"share": "Fisher's exact test, Newcombe's interval", "mean": "Welch's test and interval"}


def changed_groups(
    run: str, a: Section, b: Section, confidence_level: float, correction: str
) -> Iterator[GroupChanges | Unmatched]:
    """What becomes of the groups of each column that both sections have a table by."""
    firsts, seconds = ({table.name: table for table in section.by} for section in (a, b))
    dependent = any(each.stopped or (each.samples and each.samples.clusters is not None) for each in (a, b))
    for name in dict.fromkeys([*firsts, *seconds]):
        if name not in firsts or name not in seconds:
            yield Unmatched(run, a.name, f"by {name}", f"missing in the {'run' if name in firsts else 'baseline'}")
        elif dependent:
            yield Unmatched(run, a.name, f"by {name}", DEPENDENT)
        else:
            yield from _of_tables(run, a.name, firsts[name], seconds[name], confidence_level, correction)


def _of_tables(
    run: str, section: str, a: GroupedValues, b: GroupedValues, confidence_level: float, correction: str
) -> Iterator[GroupChanges | Unmatched]:
    groups, first, second = np.intersect1d(
        a.groups.values.astype(str), b.groups.values.astype(str), assume_unique=True, return_indices=True
    )
    there = {metric.name: metric for metric in b.metrics}
    pairs = [(metric, there[metric.name]) for metric in a.metrics if metric.name in there]
    for name in dict.fromkeys([*(each.name for each in a.metrics), *there]):
        if name not in {metric.name for metric, _ in pairs}:
            where = "run" if name not in there else "baseline"
            yield Unmatched(run, section, f"{name} by {a.name}", f"missing in the {where}")
    matched = []
    for one, two in pairs:
        if why := _why_not(one, two):
            yield Unmatched(run, section, f"{one.name} by {a.name}", why)
        else:
            matched.append(_Matched(one, two, first, second))
    found = [each.differences(confidence_level) for each in matched]
    corrected = correct(np.concatenate([each.p for each in found]).tolist() if found else [], correction)
    absent = len(a.groups) - len(groups), len(b.groups) - len(groups)
    for k, (pair, differences) in enumerate(zip(matched, found, strict=True)):
        own = np.array(corrected[k * len(groups) : (k + 1) * len(groups)])
        yield pair.changes(run, section, a.name, groups, absent, differences, own, confidence_level)


def _why_not(a: GroupedMetric, b: GroupedMetric) -> str:
    """Why two metrics of one name are not compared group by group; empty where they are."""
    if (a.kind, a.scale) != (b.kind, b.scale) or (
        None not in (a.higher_is_better, b.higher_is_better) and (a.higher_is_better != b.higher_is_better)
    ):
        return "another metric of the same name"
    if a.kind == "ratio":
        return "a quotient of two means, or weighted: its error in a group is not known"
    if a.confidence_level is None or b.confidence_level is None:
        return DEPENDENT
    return ""


@dataclass(frozen=True, eq=False)
class _Matched:
    """A metric of both tables, and where the groups that both have are in each."""

    a: GroupedMetric
    b: GroupedMetric
    first: Array
    second: Array

    @property
    def means(self) -> tuple[Array, Array]:
        return self.a.means.values[self.first], self.b.means.values[self.second]

    @property
    def sizes(self) -> tuple[Array, Array]:
        return self.a.sizes.values[self.first], self.b.sizes.values[self.second]

    def differences(self, confidence_level: float) -> GroupDifferences:
        """Of the means that the values are, or that they are a function of."""
        if self.a.kind == "share":
            successes = self.a.successes[self.first], self.b.successes[self.second]
            return share_differences(successes, self.sizes, confidence_level)
        assert self.a.deviations is not None
        assert self.b.deviations is not None
        deviations = self.a.deviations.values[self.first], self.b.deviations.values[self.second]
        return mean_differences(self.means, deviations, self.sizes, confidence_level)

    def changes(
        self,
        run: str,
        section: str,
        column: str,
        groups: Array,
        absent: tuple[int, int],
        found: GroupDifferences,
        corrected: Array,
        confidence_level: float,
    ) -> GroupChanges:
        better = self.a.higher_is_better if self.b.higher_is_better is None else self.b.higher_is_better
        before, now = self.a.values[self.first], self.b.values[self.second]
        rose = now > before if better is not False else now < before
        is_found = corrected < 1 - confidence_level
        fell, sides = ~rose & (now != before), []
        for side in (fell, rose):
            order = np.flatnonzero(side & ~np.isnan(found.p))
            order = order[np.lexsort((order, -np.abs(now - before)[order], found.p[order]))][:MOST]
            sides.append(tuple(self._group(k, groups, before, now, found, corrected) for k in order.tolist()))
        return GroupChanges(
            run,
            section,
            column,
            self.a.name,
            len(groups),
            absent[0],
            absent[1],
            int((~np.isnan(found.p)).sum()),
            int((is_found & fell).sum()),
            int((is_found & rose).sum()),
            better,
            f"{_METHODS[self.a.kind]}, {UNPAIRED}",
            *sides,
        )

    def _group(
        self, k: int, groups: Array, before: Array, now: Array, found: GroupDifferences, corrected: Array
    ) -> ChangedGroup:
        ends = (float(found.lower[k]), float(found.upper[k]))
        is_of_value = not self.a.scale and not any(map(math.isnan, ends))  # no interval of a function of a mean
        lower, upper = ends if is_of_value else (None, None)
        counts = tuple(int(each[k]) for each in self.sizes)
        numbers = float(before[k]), float(now[k]), float(now[k] - before[k])
        return ChangedGroup(str(groups[k]), counts, *numbers, lower, upper, float(found.p[k]), float(corrected[k]))
