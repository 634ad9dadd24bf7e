"""Rows that cannot be counted: how many, why, and where the first of them are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.errors import InvalidValuesError, describe
from assay.report import Report, Table

MOST_PLACES = 5


class BadRowsError(InvalidValuesError):
    """A table has rows that cannot be counted.

    Attributes:
        report: that of all other rows, with a table of the bad ones.
    """

    def __init__(self, message: str, report: Report | None = None) -> None:
        super().__init__(message)
        self.report = report


@dataclass
class BadRows:
    """Bad rows by reason.

    Attributes:
        counts: by reason, how many.
        places: by reason, the fragment and the row in its file of the first ones.
    """

    counts: dict[str, int] = field(default_factory=dict)
    places: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def add(self, reason: str, fragment: str, rows: NDArray[np.int64]) -> None:
        """Note rows, by their numbers in the file of a fragment."""
        self._add(reason, len(rows), [(fragment, int(row)) for row in np.sort(rows)[:MOST_PLACES]])

    def merge(self, other: BadRows) -> None:
        """Add what was noted elsewhere."""
        for reason, count in other.counts.items():
            self._add(reason, count, other.places[reason])

    def _add(self, reason: str, count: int, places: Sequence[tuple[str, int]]) -> None:
        if not count:
            return
        self.counts[reason] = self.counts.get(reason, 0) + count
        self.places[reason] = sorted([*self.places.get(reason, []), *map(_place, places)])[:MOST_PLACES]

    def to_json(self) -> Any:
        """Plain values for JSON, in one order."""
        return [[reason, self.counts[reason], self.places[reason]] for reason in sorted(self.counts)]

    @classmethod
    def from_json(cls, plain: Sequence[Any]) -> BadRows:
        """What `to_json` gave."""
        bad = cls()
        for reason, count, places in plain:
            bad._add(reason, count, places)
        return bad

    def table(self) -> Table:
        """The bad rows as a table of a report."""
        rows = [(reason, self.counts[reason], self.where(reason)) for reason in sorted(self.counts)]
        return Table("Rows left out", ("why", "rows", "where"), tuple(rows), note="Rows of a file are counted from 0.")

    def where(self, reason: str) -> str:
        """Where the first rows of a reason are."""
        by_fragment: dict[str, list[str]] = {}
        for fragment, row in self.places[reason]:
            by_fragment.setdefault(fragment, []).append(str(row))
        more = ", ..." if self.counts[reason] > len(self.places[reason]) else ""
        parts = [f"{_shown(name)} row {', '.join(rows)}" for name, rows in by_fragment.items()]
        return "; ".join(parts) + more

    def error(self, rows: int, report: Report | None = None) -> BadRowsError:
        """The error that says all of it in one line.

        Args:
            rows: how many there are with those that are not bad.
            report: that of the other rows, where there are any.
        """
        got = "; ".join(f"{self.counts[each]:,} with {each} ({self.where(each)})" for each in sorted(self.counts))
        do = 'Correct them, or leave them out with on_bad="skip" (--on-bad skip)'
        if max(self.counts.values()) == rows:
            do = "Check which columns preds= (--preds) and target= (--target) name, as no row is right"
        return BadRowsError(describe("table", f"bad rows among {rows:,}: {got}", "none", do), report)


def _place(place: Sequence[Any]) -> tuple[str, int]:
    fragment, row = place
    return str(fragment), int(row)


def _shown(fragment: str) -> str:
    file, mark, group = fragment.rpartition("#")
    return f"{file} row group {group}" if mark else fragment


def combined(masks: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
    """Which rows are bad for any reason; each is noted for the first one only."""
    bad = np.zeros(rows, bool)
    for mask in masks.values():
        mask &= ~bad
        bad |= mask
    return bad
