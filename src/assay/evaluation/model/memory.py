"""Batches that do not fit: how many samples are predicted at once, after memory ran out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Limit:
    """How many samples a batch may have; learnt when memory runs out, and kept.

    Attributes:
        rows: the most that is tried; None while all batches fitted.
        failures: how many rows did not fit, the last time.
        times: how often memory ran out.
    """

    rows: int | None = None
    failures: int = 0
    times: int = 0

    def halve(self, rows: int) -> bool:
        """Note that so many rows did not fit; whether fewer can be tried."""
        self.times += 1
        self.failures = rows
        self.rows = max(1, rows // 2)
        return rows > 1

    def __str__(self) -> str:
        if self.rows is None:
            return "batches were predicted as they came"
        return (
            f"memory ran out {self.times} time{'s' * (self.times > 1)}, last with {self.failures} samples: "
            f"at most {self.rows} are predicted at once"
        )
