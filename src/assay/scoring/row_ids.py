"""The ids of rows: each is to be there once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from assay.stats.sampling import SampleDigest

MOST_IDS = 1 << 24
"""Rows up to which the numbers of all ids are kept, so that ids that come twice are found."""


@dataclass
class RowIds:
    """The ids of rows: their digest, the same in any order, and the number of each while they are not too many.

    Attributes:
        digest: of all of them.
        numbers: of each row; None where there were too many.
    """

    digest: SampleDigest = field(default_factory=SampleDigest)
    numbers: list[NDArray[np.int64]] | None = field(default_factory=list)

    def add(self, digest: SampleDigest, numbers: Sequence[NDArray[np.int64]] | None) -> None:
        """Add the ids of rows; `numbers` are None where there were too many."""
        self.digest += digest
        known = self.numbers is not None and numbers is not None and self.digest.count <= MOST_IDS
        if not known:
            self.numbers = None
        elif self.numbers is not None:
            self.numbers.extend(numbers or ())

    @property
    def duplicated(self) -> int | None:
        """How many rows have the id of another one; None where that is not known."""
        if self.numbers is None:
            return None
        return len(self._repeated())

    def repeated(self) -> NDArray[np.int64]:
        """The numbers of the ids that several rows have."""
        return np.unique(self._repeated())

    def _repeated(self) -> NDArray[np.int64]:
        every = np.sort(np.concatenate([np.empty(0, np.int64), *(self.numbers or ())]))
        again: NDArray[np.int64] = every[1:][every[1:] == every[:-1]]
        return again
