"""Which rows of a table are counted: those that match a condition, can be read, and have no id of an earlier row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.data.tables.arrow import arrow
from assay.errors import describe
from assay.scoring.bad_rows import BadRows, BadRowsError
from assay.scoring.row_trials import RowTrial
from assay.scoring.rows import RowReader, TableRows, id_numbers
from assay.scoring.where import Where


class RowSelection:
    """Selects the rows that are counted, and notes the others.

    Args:
        reader: reads rows.
        where: the condition that rows must match; None for all rows.
        repeated: the numbers of ids that several rows have, of which the first is counted; None for none.
        trial: finds rows that metrics refuse, and is asked about all rows; None where rows are not tried.

    Attributes:
        bad: the rows that cannot be counted, and why.
        filtered: how many rows do not match the condition.
    """

    def __init__(
        self,
        reader: RowReader,
        where: Where | None,
        repeated: NDArray[np.int64] | None,
        trial: RowTrial | None = None,
    ) -> None:
        self.reader, self.where, self.repeated, self._trial = reader, where, repeated, trial
        self.bad, self.filtered = BadRows(), 0
        self._again = set[int]()

    def fresh(self) -> RowSelection:
        """One that has seen no rows."""
        return RowSelection(self.reader.fresh(), self.where, self.repeated, self._trial and self._trial.fresh())

    def add(self, bad: BadRows, filtered: int, has_hashed_queries: bool) -> None:
        """Add what was noted of other rows."""
        self.bad.merge(bad)
        self.filtered += filtered
        self.reader.has_hashed_queries |= has_hashed_queries

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
            is_later = np.zeros(len(rows.places), bool)
            is_later[later] = True
            rows = self._others(rows, is_later)
        return rows if self._trial is None else self.not_refused(rows, key, self._trial)

    def not_refused(self, rows: TableRows, key: str, trial: RowTrial) -> TableRows:
        """The rows that metrics do not refuse; the others are noted.

        Raises:
            BadRowsError: metrics refuse too many rows.
        """
        while len(rows.places) and (masks := trial.refused(rows)):
            for reason, mask in masks.items():
                self.bad.add(reason, key, rows.places[mask])
            if not trial.left:
                places = "; ".join(f"{each} ({self.bad.where(each)})" for each in masks)
                do = "Check that the columns hold what the metrics take, or leave the rows out with where="
                raise BadRowsError(describe("table", f"many rows with {places}", "few that metrics refuse", do))
            rows = self._others(rows, np.logical_or.reduce(list(masks.values())))
        return rows

    def _others(self, rows: TableRows, left_out: NDArray[np.bool_]) -> TableRows:
        """The rows without some of them."""
        kept = np.flatnonzero(~left_out)
        return self.reader.read(rows.batch.take(arrow().array(kept)), rows.places[kept])[0]

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
