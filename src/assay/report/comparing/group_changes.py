"""The groups of a column of many values that changed most, as plain values."""

from __future__ import annotations

from assay._records import Record


class ChangedGroup(Record):
    """A group (a user, a shop) that a run treats otherwise than the baseline.

    Args:
        group: the value of the column.
        counts: how many of its samples the metric is of, in the baseline and in the run.
        baseline: the value of the baseline.
        value: the value of the run.
        difference: the value of the run minus that of the baseline.
        lower: the lower end of the interval of the difference, or None.
        upper: the upper end.
        p: how likely a difference at least as large is, were there none.
        corrected: p corrected for all groups and metrics of the table.
    """

    group: str
    counts: tuple[int, ...]
    baseline: float
    value: float
    difference: float
    lower: float | None
    upper: float | None
    p: float
    corrected: float


class GroupChanges(Record):
    """The groups of a column of many values that changed most by a metric: those that chance explains least.

    Args:
        run: the name of the run.
        section: where the table stands in both reports.
        column: what the groups have in common, such as the user.
        metric: the metric.
        groups: how many groups both have.
        missing: how many only the baseline has.
        new: how many only the run has.
        tested: how many were tested; of means of numbers, those with 12 samples or more on both sides.
        worse: how many got worse beyond chance, after the correction.
        better: how many got better beyond chance.
        higher_is_better: whether higher values are better; None where that is not known: lower ones count as worse.
        method: how p and intervals were found.
        worst: those that got worse most surely.
        best: those that got better most surely.
    """

    run: str
    section: str
    column: str
    metric: str
    groups: int
    missing: int
    new: int
    tested: int
    worse: int
    better: int
    higher_is_better: bool | None
    method: str
    worst: tuple[ChangedGroup, ...] = ()
    best: tuple[ChangedGroup, ...] = ()
