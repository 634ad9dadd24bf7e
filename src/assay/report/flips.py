"""The samples that a yes-or-no metric sees otherwise in a run than in the baseline."""

from __future__ import annotations

import numpy as np

from assay._records import CellValue
from assay.report.comparison import Delta, Flips
from assay.report.measured_value import MeasuredValue
from assay.report.packed_array import Array
from assay.report.pairing import pair
from assay.report.samples import Samples


def flips(delta: Delta, a: MeasuredValue, b: MeasuredValue, whole: Array | str | None, limit: int) -> Flips:
    """Count the samples that changed sides, and list the first of them.

    Args:
        delta: the difference, of paired samples.
        a: the value of the baseline; its terms are booleans.
        b: that of the run.
        whole: what `align` says of all samples of both, where that is known.
        limit: how many to list for each way to flip.
    """
    assert a.samples is not None, a.value.name
    assert b.samples is not None, b.value.name
    position = pair(a, b, whole)
    assert not isinstance(position, str), position
    first, second = a.terms(), b.terms()[position]
    ups, downs = (np.flatnonzero(change) for change in (~first & second, first & ~second))
    rows = _rows(a.samples, a.members), _rows(b.samples, b.members)[position]
    decisions = _decisions(a.samples, b.samples, rows)
    listed = [_rows_of(a.samples, rows[0], which, decisions, limit) for which in (ups, downs)]
    return Flips(
        delta.run,
        delta.section,
        delta.metric,
        delta.higher_is_better,
        len(ups),
        len(downs),
        int((first & second).sum()),
        int((~first & ~second).sum()),
        None if decisions is None else int(np.sum(np.asarray(decisions[0] != decisions[1]))),
        listed[0],
        listed[1],
        delta.slice,
    )


def _rows(samples: Samples, members: Array | None) -> Array:
    """Where the terms stand among all samples."""
    return np.arange(len(samples)) if members is None else np.flatnonzero(members)


def _decisions(a: Samples, b: Samples, rows: tuple[Array, Array]) -> tuple[Array, Array] | None:
    if a.decision is None or b.decision is None:
        return None
    return a.decision.values[rows[0]], b.decision.values[rows[1]]


def _rows_of(
    samples: Samples, rows: Array, which: Array, decisions: tuple[Array, Array] | None, limit: int
) -> tuple[tuple[CellValue, ...], ...]:
    """The first by id: id, target, decision of the baseline, decision of the run."""
    ids = samples.ids.values[rows]
    target = None if samples.target is None else samples.target.values[rows]
    first = which[np.argsort(ids[which], kind="stable")][: max(0, limit)]
    before, after = decisions or (None, None)
    named = samples.classes
    return tuple((entry(ids, i), *(entry(each, i, named) for each in (target, before, after))) for i in first.tolist())


def entry(array: Array | None, i: int, names: tuple[str, ...] = ()) -> CellValue:
    """One entry for a table, in plain Python: a boolean becomes 0 or 1, a class number its name where it has one."""
    if array is None:
        return None
    value = array[i]
    if isinstance(value, str):
        return value
    if array.dtype.kind not in "bi":
        return float(value)
    return names[int(value)] if 0 <= value < len(names) else int(value)
