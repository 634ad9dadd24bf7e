"""Whether the tables that a device has counted for many cells satisfy conservation laws and have their fingerprints."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from assay.meter.checks.law_checks import check_fingerprints, check_laws, elements_of_row, no_fingerprints, of_rows
from assay.meter.inputs.arguments import Arguments
from assay.tally.base import Batch, State, Tally


class CellChecks:
    """What the host knows of the rows that one device counts into cells, and the fingerprints of all of them.

    Args:
        tallies: those that have tables.
        device: where they count; not the CPU.
        fingerprints: whether batches have fingerprints.
    """

    def __init__(self, tallies: Sequence[Tally], device: torch.device, fingerprints: bool) -> None:
        self._tallies, self._where = tallies, f"cells of device {device}"
        self._fingerprints = no_fingerprints(tallies, device if fingerprints else None)
        self._rows = np.zeros(0, np.int64)
        self._of_row: tuple[int | None, int | None] | None = None

    def note(self, batch: Arguments, rows: NDArray[np.int64]) -> None:
        """Note a batch with so many rows for each cell."""
        of_row = elements_of_row(batch)
        self._of_row = of_row if self._of_row in (None, of_row) else (None, None)
        before, self._rows = self._rows, rows.copy()
        self._rows[: len(before)] += before

    def add(self, rows: Batch) -> None:
        """Add the fingerprints of rows that are counted."""
        for tally, fingerprint in zip(self._tallies, self._fingerprints, strict=True):
            if fingerprint is not None:
                fingerprint.add(tally.fingerprint(rows))

    def check(self, tables: Sequence[State]) -> None:
        """Check the tables of all cells, on the CPU: laws for each cell, and fingerprints for the sum of all.

        Raises:
            DeviceFaultError: they were counted or copied wrongly.
        """
        of_row = self._of_row or (None, None)
        for cell, rows in enumerate(self._rows.tolist()):
            states = [{name: table[cell] for name, table in state.items()} for state in tables]
            check_laws(self._tallies, states, of_rows(rows, of_row), self._where)
        total = [{name: table.sum(0) for name, table in state.items()} for state in tables]
        check_fingerprints(self._tallies, total, self._fingerprints, self._where, skips_special=False)
