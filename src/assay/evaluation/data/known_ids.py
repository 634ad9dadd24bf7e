"""The ids of samples that were counted, in 16 bytes a sample."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

RECENT = 1 << 12
"""Ids in a dictionary, at least, before they are merged into the arrays."""
RECENT_SHARE = 16


class KnownIds:
    """Hashes of ids, each with a mark that tells rows apart, in sorted arrays; the latest ones in a dictionary.

    Two ids of one hash (one in 10^19 pairs) count as one id: their marks differ, so that is an error and not a sample
    that is left out.
    """

    def __init__(self) -> None:
        self._hashes, self._marks = np.empty(0, np.int64), np.empty(0, np.int64)
        self._recent: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._hashes) + len(self._recent)

    def marks(self, hashes: NDArray[np.int64]) -> list[int | None]:
        """The mark of each id; None where it is new."""
        if not len(self._hashes):
            return [self._recent.get(each) for each in hashes.tolist()]
        place = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        known = (self._hashes[place] == hashes).tolist()
        marks = self._marks[place].tolist()
        return [
            mark if is_known else self._recent.get(each)
            for each, is_known, mark in zip(hashes.tolist(), known, marks, strict=True)
        ]

    def add(self, hashes: NDArray[np.int64], marks: Iterable[int]) -> None:
        """Add ids that are new, with their marks."""
        self._recent.update(zip(hashes.tolist(), marks, strict=True))
        if len(self._recent) > max(RECENT, len(self._hashes) // RECENT_SHARE):
            self._merge()

    def _merge(self) -> None:
        count = len(self._recent)
        hashes = np.fromiter(self._recent.keys(), np.int64, count)
        marks = np.fromiter(self._recent.values(), np.int64, count)
        self._recent = {}
        order = np.argsort(hashes)
        places = np.searchsorted(self._hashes, hashes[order])
        self._hashes = np.insert(self._hashes, places, hashes[order])
        self._marks = np.insert(self._marks, places, marks[order])

    def arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All hashes, rising, and their marks."""
        if self._recent:
            self._merge()
        return self._hashes, self._marks
