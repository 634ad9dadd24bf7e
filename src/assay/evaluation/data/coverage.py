"""Exactly once: which samples were expected, which were counted, and whose they are."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from assay.errors import ConfigError, describe
from assay.evaluation.data.known_ids import KnownIds
from assay.evaluation.processes.ranks import Ranks
from assay.report import Table
from assay.stats.sampling import numbers_of

Lists: TypeAlias = list[NDArray[np.int64]]
Mask: TypeAlias = NDArray[np.bool_]
_LAYOUT = 48  # bits of a mark that are of the values; those above are of the layout


@dataclass(frozen=True)
class SampleAssignment:
    """Who counts which samples.

    Attributes:
        lists: the batches of this rank, as indices.
        expected: which samples of the data set somebody was given.
        repeated: how many more times samples were given, on any rank.
        how: what was decided, in words.
    """

    lists: Lists
    expected: Mask
    repeated: int
    how: str


def assign_samples(lists: Lists, size: int, ranks: Ranks) -> SampleAssignment:
    """Give every sample of a data set to one rank, from the batches that each rank was given.

    Ranks with the same samples take turns with the batches of rank 0. Otherwise the lowest rank keeps a sample that
    several have, and the others drop the row; so a padded `DistributedSampler` counts each sample once.

    Args:
        lists: the batches that this rank was given.
        size: how many samples the data set has.
        ranks: who else is there.
    """
    place = ranks.place
    if len(place.members) > 1 or place.count < ranks.count:
        lists = _of_members(lists, ranks)
    flat = np.concatenate(lists) if lists else np.empty(0, np.int64)
    assigned = np.zeros(size, bool)
    assigned[flat] = True
    digests = ranks.gather(lambda: (len(flat), hashlib.sha256(assigned.tobytes()).hexdigest()))
    if ranks.alone:
        first_times = _first_times(lists, flat, assigned)
        return SampleAssignment(first_times, assigned, len(flat) - int(assigned.sum()), "one process counts all of it")
    if len({digest for _, digest in digests}) == 1 and assigned.any():
        lists = _first_times(lists, flat, assigned)
        first = ranks.from_first(lists)
        repeated = digests[0][0] - int(assigned.sum())
        how = f"all {ranks.count} ranks were given the same samples: rank 0's batches were assigned in turns"
        return SampleAssignment(first[place.own :: place.count], assigned, repeated, how)
    owner = ranks.least(np.where(assigned, place.own, place.count).astype(np.int32))
    mine = owner == place.own
    first_times = [batch[mine[batch]] for batch in _first_times(lists, flat, assigned)]
    expected = owner < place.count
    repeated = sum(count for count, _ in ranks.by_coordinate(digests)) - int(expected.sum())
    how = "each rank counts what its sampler gave it; what several were given, the lowest of them"
    return SampleAssignment([batch for batch in first_times if len(batch)], expected, repeated, how)


def _of_members(lists: Lists, ranks: Ranks) -> Lists:
    """All batches that the processes with the same samples were given, where not all of them were given the same."""
    members = ranks.place.members
    sizes = np.array([len(batch) for batch in lists], np.int64)
    digest = hashlib.sha256(b"".join([sizes.tobytes(), *(batch.tobytes() for batch in lists)])).hexdigest()
    given = ranks.gather(lambda: (members[0], digest))
    if len(set(given)) == ranks.place.count:
        return lists
    everyone = ranks.gather(lambda: lists)
    return [batch for rank in members for batch in everyone[rank]]


def _first_times(lists: Lists, flat: NDArray[np.int64], assigned: Mask) -> Lists:
    """The batches without indices that came before."""
    if int(assigned.sum()) == len(flat):
        return [batch for batch in lists if len(batch)]
    _, where = np.unique(flat, return_index=True)
    is_first = np.zeros(len(flat), bool)
    is_first[where] = True
    ends = np.cumsum([len(batch) for batch in lists])[:-1]
    first_times = [batch[mask] for batch, mask in zip(lists, np.split(is_first, ends), strict=True)]
    return [batch for batch in first_times if len(batch)]


@dataclass(frozen=True)
class Coverage:
    """What became of the samples, on all ranks.

    Attributes:
        expected: how many there were; None where the data did not say.
        counted: how many were counted, each once.
        duplicated: how many of them were counted more than once; None where samples have no ids.
        missed: how many were expected and not counted, without those that were skipped; None where that is not known.
        skipped: how many were left out by choice because their batch failed.
        repeated: how many times a sample was given again and not counted.
        by: what identifies a sample: its index, its id, or nothing.
    """

    expected: int | None
    counted: int
    duplicated: int | None
    missed: int | None
    skipped: int
    repeated: int
    by: str

    def __str__(self) -> str:
        counts = {
            "expected": self.expected,
            "counted": self.counted,
            "duplicated": self.duplicated,
            "missed": self.missed,
            "skipped": self.skipped or None,
        }
        return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count is not None)

    @property
    def whole(self) -> bool:
        """Whether every expected sample was counted once."""
        return not (self.duplicated or self.missed or self.skipped)

    def table(self) -> Table:
        """The proof as a table of a report."""
        again = "given again, and not counted again"
        rows = (
            ("expected", self.expected),
            ("counted", self.counted),
            ("duplicated", self.duplicated),
            ("missed", self.missed),
            ("skipped", self.skipped),
            (again, self.repeated),
        )
        return Table(
            "Every sample once", ("samples", "count"), rows, note=f"{self}; each sample is identified by {self.by}."
        )


class CoverageTracker:
    """What this rank counted: a bit a sample where the data have indices, the ids where they bring some.

    Args:
        expected: which samples of the data set are expected on any rank; None where that is not known.
        repeated_before: how many times samples were given again, on all ranks, as was found before the loop.
        keyed: whether batches bring ids; where samples have an index, ids only name them.

    Attributes:
        failures: of batches that were left out, the error and what their samples are called.
    """

    def __init__(self, expected: Mask | None, repeated_before: int = 0, keyed: bool = False) -> None:
        self.expected, self.repeated_before, self.keyed = expected, repeated_before, keyed
        self.repeated = 0
        self.counts = np.zeros(0 if expected is None else len(expected), np.uint8)
        self.failed = np.zeros(len(self.counts), bool)
        self.ids = KnownIds()
        self.rows = 0
        self.failures: list[tuple[str, str]] = []
        self.skipped_rows = 0

    def count(self, index: NDArray[np.int64] | None, rows: int) -> None:
        """Note that rows were counted."""
        self.rows += rows
        if index is not None:
            self.counts[index] += 1

    def fresh(self, keys: Sequence[Any], marks: Sequence[int]) -> list[int]:
        """Which rows of a batch have ids that were not there before; `know` them once they are counted.

        Args:
            keys: the ids of the rows.
            marks: what else distinguishes rows; see `row_marks`.

        Raises:
            ConfigError: two different samples have one id.
        """
        first: dict[Any, int] = {}
        for row, (key, known) in enumerate(zip(keys, self.ids.marks(numbers_of(keys)), strict=True)):
            if known is None and key in first:
                known = marks[first[key]]
            if known is None:
                first[key] = row
            elif known != marks[row] and known >> _LAYOUT == marks[row] >> _LAYOUT:
                self._refuse(key, len(self.ids) + len(first), self.rows + row + 1)
        return list(first.values())

    def _refuse(self, key: Any, distinct: int, rows: int) -> NoReturn:
        got = f"the id {key!r} for two different samples ({rows:,} rows so far, {distinct:,} distinct ids)"
        do = "Name a part that is unique, or leave ids out to count every row"
        raise ConfigError(describe("ids", got, "one id for each sample", do))

    def know(self, keys: Iterable[Any], marks: Iterable[int]) -> None:
        """Note the ids of rows that were counted, and what tells the rows apart."""
        self.ids.add(numbers_of(keys), marks)

    def skip(self, index: NDArray[np.int64] | None, rows: int, error: str, named: str) -> None:
        """Note that a batch was left out, why, and what its samples are called."""
        if index is not None:
            self.failed[index] = True
        self.skipped_rows += rows
        self.failures.append((error, named))

    def summary(self, ranks: Ranks, rows: int) -> Coverage:
        """What became of all samples, from what every rank counted.

        Args:
            ranks: who counted.
            rows: how many rows the meters of all ranks hold.
        """
        own = CoverageTracker(self.expected) if not ranks.place.counts else self
        digests = ranks.gather(lambda: (own.repeated, own.skipped_rows, own._hashes()))
        skipped = sum(each[1] for each in digests)
        if self.expected is None:
            keys = np.concatenate([each[2] for each in digests])
            again = len(keys) - len(np.unique(keys)) if self.keyed else None
            by = "its id" if self.keyed else "nothing, so duplicates cannot be detected"
            repeated = sum(each[0] for each in digests)
            return Coverage(None, rows, again, None, skipped, repeated, by)
        counts = ranks.total(own.counts.astype(np.int32))
        left_out = ranks.total(own.failed.astype(np.int32)) > 0
        counted, duplicated = int((counts > 0).sum()), int((counts > 1).sum())
        missed = int((self.expected & (counts == 0) & ~left_out).sum())
        expected = int(self.expected.sum())
        return Coverage(
            expected, counted, duplicated, missed, skipped, self.repeated_before, "its index in the data set"
        )

    def _hashes(self) -> NDArray[np.int64]:
        """Ids as integers that are the same on every rank."""
        if self.expected is not None:
            return np.empty(0, np.int64)
        return self.ids.arrays()[0]
