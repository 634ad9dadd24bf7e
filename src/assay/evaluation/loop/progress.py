"""The progress of an evaluation: throughput and running values, which are computed at most twice a second."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable

from torch import Tensor

from assay.errors import AssayError
from assay.meter import Meter
from assay.progress import ProgressBar

READ_S = 0.5
MOST_OF_THE_TIME = 0.02


class EvaluationProgress(ProgressBar):
    """The bar of this process, drawn by rank 0 only.

    Computing running values synchronizes with the device: so it happens at most twice a second, and less often where it
    takes more than a fiftieth of the time.

    Args:
        meter: what is counted.
        total: how many batches there are; None where that is not known.
        shown: draw the bar; None: where there is a terminal.
        rank: this process.
        count: how many processes there are.
        metrics: the names of the running values; all by default.
    """

    def __init__(
        self,
        meter: Meter,
        total: int | None,
        shown: bool | None,
        rank: int,
        count: int,
        metrics: Iterable[str] | None = None,
    ) -> None:
        super().__init__("Evaluating", total, shown, rank=rank)
        self._meter, self._metrics = meter, metrics
        self._of_ranks = f" on rank 0 of {count}" if count > 1 else ""
        self._rows = self._batches = 0
        self._start = self._next_read = time.monotonic()
        self._values = ""

    def step(self, rows: int) -> None:
        """Note a batch; draw when it is time."""
        self._rows += rows
        self._batches += 1
        if not self.due:
            return
        now = time.monotonic()
        if now >= self._next_read and self._rows:
            self._values = self._read()
            took = time.monotonic() - now
            self._next_read = now + max(READ_S, took / MOST_OF_THE_TIME)
        rate = f"{self._rows / max(now - self._start, 1e-9):,.0f} samples/s{self._of_ranks}"
        self.update(completed=self._batches, text=f"{rate}  {self._values}")

    def _read(self) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                values = self._meter.compute(only=self._metrics)
            except AssayError:
                return ""  # raised at the end
        numbers = {name: value for name, value in values.items() if isinstance(value, Tensor) and not value.ndim}
        return "  ".join(f"{name} {float(value):.4f}" for name, value in numbers.items())

    @property
    def watcher(self) -> EvaluationProgress | None:
        """This bar where it is drawn; so that a loop without one does nothing for it."""
        return self if self.shown else None
