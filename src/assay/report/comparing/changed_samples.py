"""The samples that changed most between two runs by a metric that is a mean over samples."""

from __future__ import annotations

from collections.abc import Iterator, Set

import numpy as np

from assay._records import CellValue
from assay.render.pictures import Picture
from assay.report.comparing.comparison import ChangedSample, Changes, Delta
from assay.report.comparing.flips import entry
from assay.report.per_sample.aligned_chunks import aligned_chunks
from assay.report.per_sample.packed_array import Array, PackedArray
from assay.report.section import Section
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
    before, now = _Side(a, delta.metric), _Side(b, delta.metric)
    known, pictured = before.known | now.known, before.pictures.keys() | now.pictures.keys()
    found = {(sign, only): _Largest(limit, known, pictured if only else None) for sign in (-1, 1) for only in (0, 1)}
    counts, start = {-1: 0, 1: 0}, 0
    for ids, first, second in _scores(before, now, position):
        with np.errstate(all="ignore"):
            gain = (second - first) * (1 if delta.higher_is_better else -1)
        gain = np.where(np.isfinite(gain), gain, 0)
        for sign in counts:
            counts[sign] += int((gain * sign > 0).sum())
            for only in (0, 1):
                found[sign, only].add(gain * sign, ids, start)
        start += len(gain)
    groups = []
    for sign, first_side, second_side in ((-1, now, before), (1, before, now)):
        pictures = (first_side.pictures, second_side.pictures)  # of the run that is wrong, where it has one
        shown = [
            tuple(_sample(row, int(position[row]), before, now, pictures) for row in found[sign, only].rows.tolist())
            for only in (0, 1)
        ]
        groups.append((counts[sign], shown[0], shown[1]))
    (worse, worst, worst_pictured), (better, best, best_pictured) = groups
    is_count = before.value.scale or (before.value.denominator and not delta.higher_is_better)
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


class _Largest:
    """Where the largest sizes above 0 stand; equal ones by whether their ids are known, then by id.

    Args:
        limit: how many.
        known: ids.
        only: of which ids; None for all.
    """

    def __init__(self, limit: int, known: Set[str], only: Set[str] | None) -> None:
        self._limit, self._known, self._only = limit, known, only
        self.rows, self._sizes, self._ids = np.empty(0, np.int64), np.empty(0), np.empty(0, np.int64)

    def add(self, sizes: Array, ids: Array, start: int) -> None:
        """Add samples from a position on."""
        rows = np.flatnonzero(sizes > 0)
        if self._only is not None:
            rows = rows[_among(ids[rows], self._only)]
        if not len(rows):
            return
        if len(rows) > self._limit:  # looking at ids costs more than all else
            least = np.partition(sizes[rows], len(rows) - self._limit)[len(rows) - self._limit]
            rows = rows[sizes[rows] >= least]
        kept = len(self.rows)
        all_rows = np.concatenate([self.rows, rows + start])
        all_sizes = np.concatenate([self._sizes, sizes[rows]])
        all_ids = np.concatenate([self._ids, ids[rows]]) if kept else ids[rows]
        is_known = _among(all_ids, self._known)
        rank = np.argsort(np.argsort(all_ids, kind="stable"), kind="stable")
        order = np.lexsort((rank, ~is_known, -all_sizes))[: self._limit]
        self.rows, self._sizes, self._ids = all_rows[order], all_sizes[order], all_ids[order]


class _Side:
    """What one run has of the samples that both have."""

    def __init__(self, section: Section, metric: str) -> None:
        assert section.samples is not None, section.name
        self.value = next(each for each in section.values if each.name == metric)
        self.samples, self.classes = section.samples, class_names(section)
        self.strings = {each.id: each for each in section.samples.raw}
        self.pictures = {each.id: each for each in section.samples.pictures}
        self.known = self.strings.keys() | self.pictures.keys()

    @property
    def numerator(self) -> PackedArray:
        return self.samples.packed(self.value.numerator)

    @property
    def denominator(self) -> PackedArray | None:
        """What scores are shares of; None for errors, which are counted."""
        is_share = self.value.denominator and self.value.higher_is_better
        return self.samples.packed(self.value.denominator) if is_share else None

    def score(self, row: int) -> float:
        """What one sample contributes."""
        rows = np.array([row])
        counts = None if self.denominator is None else self.denominator.take(rows)
        return float(_shares(self.numerator.take(rows), counts)[0])

    def prediction(self, row: int, name: str) -> CellValue:
        """What the run predicted for a sample: its strings where they were kept, else the decision."""
        return self.strings[name].prediction if name in self.strings else self._entry(self.samples.decision, row)

    def target(self, row: int, name: str) -> CellValue:
        """What would have been right; likewise."""
        return self.strings[name].target if name in self.strings else self._entry(self.samples.target, row)

    def _entry(self, packed: PackedArray | None, row: int) -> CellValue:
        return None if packed is None else entry(packed.take(np.array([row])), 0, self.classes)


def _scores(before: _Side, now: _Side, position: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Ids and a number for each sample on both sides: its share of a score, or how many errors it has."""
    numerators = aligned_chunks(before.numerator, now.numerator, position)
    if before.denominator is None or now.denominator is None:
        for ids, (first, second) in zip(before.samples.ids.chunks(), numerators, strict=True):
            yield ids, first.astype(np.float64), second.astype(np.float64)
        return
    counts = aligned_chunks(before.denominator, now.denominator, position)
    for ids, pair, among in zip(before.samples.ids.chunks(), numerators, counts, strict=True):
        yield ids, _shares(pair[0], among[0]), _shares(pair[1], among[1])


def _shares(values: Array, counts: Array | None) -> Array:
    values = values.astype(np.float64)
    if counts is None:
        return values
    with np.errstate(all="ignore"):
        return np.asarray(values / counts)


def _sample(row: int, other: int, before: _Side, now: _Side, pictures: tuple[dict[str, Picture], ...]) -> ChangedSample:
    identity = before.samples.ids.take(np.array([row]))[0]
    name = str(identity)
    target = before.target(row, name)
    return ChangedSample(
        name,
        now.target(other, name) if target is None or name in now.strings else target,
        before.prediction(row, name),
        now.prediction(other, name),
        before.score(row),
        now.score(other),
        next((each[name] for each in pictures if name in each), None),
    )
