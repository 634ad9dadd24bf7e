"""The samples that a yes-or-no metric sees otherwise in a run than in the baseline."""

from __future__ import annotations

import numpy as np

from assay._records import CellValue
from assay.report.comparing.comparison import Delta, Flips
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.pairing import pair
from assay.report.per_sample.aligned_chunks import aligned_chunks, reordered
from assay.report.per_sample.packed_array import Array
from assay.report.per_sample.samples import Samples


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
    first, second = a.terms(), reordered(b.terms(), position)
    ups, downs = (np.flatnonzero(change) for change in (~first & second, first & ~second))
    places = None if a.members is None else np.flatnonzero(a.members)
    others = position if b.members is None else np.flatnonzero(b.members)[position]
    listed = [_rows_of(a.samples, b.samples, _among(places, which), others[which], limit) for which in (ups, downs)]
    return Flips(
        delta.run,
        delta.section,
        delta.metric,
        delta.higher_is_better,
        len(ups),
        len(downs),
        int((first & second).sum()),
        int((~first & ~second).sum()),
        _changed_decisions(a.samples, b.samples, places, others),
        listed[0],
        listed[1],
        delta.slice,
    )


def _among(places: Array | None, which: Array) -> Array:
    """Where some of the terms stand among all samples."""
    return which if places is None else places[which]


def _changed_decisions(a: Samples, b: Samples, places: Array | None, others: Array) -> int | None:
    """How many decisions differ; None where a side has none.

    Args:
        a: the samples of the baseline.
        b: those of the run.
        places: where the terms stand among those of the baseline; None for all of them.
        others: where they stand among those of the run.
    """
    if a.decision is None or b.decision is None:
        return None
    if places is not None:
        return int(np.sum(np.asarray(a.decision.values[places] != b.decision.values[others])))
    return sum(int(np.sum(np.asarray(x != y))) for x, y in aligned_chunks(a.decision, b.decision, others))


def _rows_of(a: Samples, b: Samples, rows: Array, others: Array, limit: int) -> tuple[tuple[CellValue, ...], ...]:
    """The first by id: id, target, decision of the baseline, decision of the run."""
    first = np.argsort(a.ids.take(rows), kind="stable")[: max(0, limit)]
    rows, others = rows[first], others[first]
    ids = a.ids.take(rows)
    has_decisions = a.decision is not None and b.decision is not None
    columns = [
        None if packed is None else packed.take(places)
        for packed, places in (
            (a.target, rows),
            (a.decision if has_decisions else None, rows),
            (b.decision if has_decisions else None, others),
        )
    ]
    return tuple((entry(ids, i), *(entry(each, i, a.classes) for each in columns)) for i in range(len(rows)))


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
