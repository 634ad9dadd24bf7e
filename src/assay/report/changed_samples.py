"""The samples that changed most between two runs by a metric that is a mean over samples."""

from __future__ import annotations

from collections.abc import Set

import numpy as np

from assay._records import CellValue
from assay.render.pictures import Picture
from assay.report.comparison import ChangedSample, Changes, Delta
from assay.report.flips import entry
from assay.report.packed_array import Array
from assay.report.samples import Samples
from assay.report.section import Section
from assay.report.value import Value
from assay.report.worst import class_names


def changed_samples(delta: Delta, a: Section, b: Section, position: Array, limit: int) -> Changes:
    """The samples that got worse and those that got better, those that changed most first.

    Among samples that changed as much, as all do whose answer was right and is wrong, those come first of which a
    report has a picture or the strings.

    Args:
        delta: the difference of a metric that is a mean over samples, or the quotient of two.
        a: the section of the baseline.
        b: that of the run.
        position: which samples of `b` are those of `a`.
        limit: how many to list of each kind.
    """
    before, now = _Side(a, delta.metric, np.arange(len(position))), _Side(b, delta.metric, position)
    with np.errstate(all="ignore"):
        gain = (now.scores - before.scores) * (1 if delta.higher_is_better else -1)
    gain = np.where(np.isfinite(gain), gain, 0)
    ids, known = before.samples.ids.values, before.known | now.known
    is_pictured = _among(ids, before.pictures.keys() | now.pictures.keys())
    groups = []
    for sign, first, second in ((-1, now, before), (1, before, now)):
        listed = _largest(gain * sign, ids, known, limit)
        pictured = _largest(gain * sign * is_pictured, ids, known, limit)
        pictures = (first.pictures, second.pictures)  # of the run that is wrong, where it has one
        shown = [tuple(_sample(row, before, now, pictures) for row in rows) for rows in (listed, pictured)]
        groups.append((int((gain * sign > 0).sum()), shown[0], shown[1]))
    (worse, worst, worst_pictured), (better, best, best_pictured) = groups
    is_count = before.value.denominator and not delta.higher_is_better
    terms = before.value.numerator if is_count else delta.metric
    samples = (worst, best, worst_pictured, best_pictured)
    return Changes(delta.run, delta.section, delta.metric, terms, worse, better, *samples)


def _among(ids: Array, names: Set[str]) -> Array:
    """Which ids are among some names."""
    if not names:
        return np.zeros(len(ids), bool)
    if ids.dtype.kind == "i":
        return np.isin(ids, np.array(sorted(names)).astype(np.int64))
    return np.fromiter((str(each) in names for each in ids.tolist()), bool, len(ids))


def _largest(sizes: Array, ids: Array, known: Set[str], limit: int) -> list[int]:
    """Where the largest sizes above 0 stand; equal ones by whether their ids are known, then by id."""
    rows = np.flatnonzero(sizes > 0)
    if len(rows) > limit:  # looking at ids costs more than all else
        least = np.partition(sizes[rows], len(rows) - limit)[len(rows) - limit]
        rows = rows[sizes[rows] >= least]
    is_known = np.array([str(each) in known for each in ids[rows]], dtype=bool)
    rank = np.argsort(np.argsort(ids[rows], kind="stable"), kind="stable")
    found: list[int] = rows[np.lexsort((rank, ~is_known, -sizes[rows]))][:limit].tolist()
    return found


class _Side:
    """What one run has of the samples that both have, in the order of the baseline."""

    def __init__(self, section: Section, metric: str, rows: Array) -> None:
        assert section.samples is not None, section.name
        self.value = next(each for each in section.values if each.name == metric)
        self.samples, self.rows, self.classes = section.samples, rows, class_names(section)
        self.scores = _scores(section.samples, self.value)[rows]
        self.strings = {each.id: each for each in section.samples.raw}
        self.pictures = {each.id: each for each in section.samples.pictures}
        self.known = self.strings.keys() | self.pictures.keys()

    def prediction(self, row: int, name: str) -> CellValue:
        """What the run predicted for a sample: its strings where they were kept, else the decision."""
        return self.strings[name].prediction if name in self.strings else self._entry(self.samples.decision, row)

    def target(self, row: int, name: str) -> CellValue:
        """What would have been right; likewise."""
        return self.strings[name].target if name in self.strings else self._entry(self.samples.target, row)

    def _entry(self, packed: object, row: int) -> CellValue:
        values = getattr(packed, "values", None)
        return None if values is None else entry(values, int(self.rows[row]), self.classes)


def _scores(samples: Samples, value: Value) -> Array:
    """A number for each sample: its share of a score, or how many errors it has."""
    scores = samples.column(value.numerator).astype(np.float64)
    if value.denominator and value.higher_is_better:
        with np.errstate(all="ignore"):
            return np.asarray(scores / samples.column(value.denominator))
    return scores


def _sample(row: int, before: _Side, now: _Side, pictures: tuple[dict[str, Picture], ...]) -> ChangedSample:
    identity = before.samples.ids.values[row]
    name = str(identity)
    target = before.target(row, name)
    return ChangedSample(
        str(int(identity)) if before.samples.ids.values.dtype.kind in "bi" else name,
        now.target(row, name) if target is None or name in now.strings else target,
        before.prediction(row, name),
        now.prediction(row, name),
        float(before.scores[row]),
        float(now.scores[row]),
        next((each[name] for each in pictures if name in each), None),
    )
