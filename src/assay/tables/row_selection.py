"""Which rows of a table are counted: those that match a condition, can be read, and have no id of an earlier row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.tables.arrow import arrow
from assay.tables.bad_rows import BadRows
from assay.tables.rows import RowReader, TableRows, id_numbers
from assay.tables.where import Where


class RowSelection:
    """Selects the rows that are counted, and notes the others.

    Args:
        reader: reads rows.
        where: the condition that rows must match; None for all rows.
        repeated: the numbers of ids that several rows have, of which the first is counted; None for none.

    Attributes:
        bad: the rows that cannot be counted, and why.
        filtered: how many rows do not match the condition.
    """

    def __init__(self, reader: RowReader, where: Where | None, repeated: NDArray[np.int64] | None) -> None:
        self.reader, self.where, self.repeated = reader, where, repeated
        self.bad, self.filtered = BadRows(), 0
        self._again = set[int]()

    def fresh(self) -> RowSelection:
        """One that has seen no rows."""
        return RowSelection(self.reader.fresh(), self.where, self.repeated)

    def rows(self, batch: Any, key: str, places: NDArray[np.int64]) -> TableRows:
        """The rows of a record batch that are counted.

        Args:
            batch: the rows, with the columns that are needed.
            key: the fragment.
            places: their numbers in their file.
        """
        if self.where is not None:
            keep = self.where.keep(batch)
            batch, places = batch.filter(keep), places[keep.to_numpy(zero_copy_only=False)]
            self.filtered += len(keep) - len(places)
        rows, masks = self.reader.read(batch, places)
        for reason, mask in masks.items():
            self.bad.add(reason, key, places[mask])
        if self.repeated is not None and len(later := self._later(rows)):
            self.bad.add(f"the id of an earlier row in {self.reader.columns.ids}", key, rows.places[later])
            first_times = np.setdiff1d(rows.places, rows.places[later])
            batch = batch.take(arrow().array(np.searchsorted(places, first_times)))
            rows, _ = self.reader.read(batch, first_times)
        return rows

    def _later(self, rows: TableRows) -> NDArray[np.int64]:
        """The rows whose id an earlier row has."""
        assert self.repeated is not None
        numbers = id_numbers(rows.ids)
        later = []
        for row in np.flatnonzero(np.isin(numbers, self.repeated)).tolist():
            number = int(numbers[row])
            if number in self._again:
                later.append(row)
            self._again.add(number)
        return np.array(later, np.int64)
