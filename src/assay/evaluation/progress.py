"""A live bar: throughput, remaining time, and running values that are read at most twice a second."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

import torch

from assay.errors import AssayError
from assay.meter import Meter

DRAW_S = 0.1
READ_S = 0.5
MOST_OF_THE_TIME = 0.02
_SHOWN = 3


class Progress:
    """The bar of this process, on the error stream. Drawn by rank 0 only, and only where there is a terminal.

    Running values are read from the meter, which waits for the device: so at most twice a second, and less often where
    that takes more than a fiftieth of the time.

    Args:
        meter: what is counted.
        total: how many batches there are; None where that is not known.
        shown: draw it; None: where there is a terminal.
        rank: this process.
        count: how many processes there are.
        metrics: the names of what is read from the meter; all unless given.
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
        self.shown = rank == 0 and (sys.stderr.isatty() if shown is None else shown)
        self._meter, self._total, self._count, self._metrics = meter, total, count, metrics
        self._rows = self._batches = self._drawn_batches = 0
        self._start = self._next_draw = self._next_read = time.monotonic()
        self._text = ""

    def __enter__(self) -> Self:
        if self.shown:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar

            columns = (
                TextColumn("Evaluating"),
                BarColumn(),
                TextColumn("{task.completed}/{task.total}" if self._total is not None else "{task.completed}"),
                TimeElapsedColumn(),
                TextColumn("·"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[rate]}  {task.fields[values]}", style="dim", markup=False),
            )
            console = Console(stderr=True, highlight=False)
            self._bar = Bar(*columns, console=console, transient=True, auto_refresh=False)
            self._task = self._bar.add_task("", total=self._total, rate="", values="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown:
            self._bar.stop()

    def step(self, rows: int) -> None:
        """Note a batch; draw when it is time."""
        self._rows += rows
        self._batches += 1
        now = time.monotonic()
        if now >= self._next_draw:
            self._next_draw = now + DRAW_S
            self._draw(now)

    def _draw(self, now: float) -> None:
        if now >= self._next_read and self._rows:
            self._text = self._read()
            took = time.monotonic() - now
            self._next_read = now + max(READ_S, took / MOST_OF_THE_TIME)
        rate = self._rows / max(now - self._start, 1e-9)
        of_ranks = f" on rank 0 of {self._count}" if self._count > 1 else ""
        self._bar.update(
            self._task, completed=self._batches, rate=f"{rate:,.0f} samples/s{of_ranks}", values=self._text
        )
        self._bar.refresh()

    def _read(self) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                values = self._meter.compute(only=self._metrics)
            except AssayError:
                return ""  # told at the end
        return "  ".join(f"{name} {float(value):.4f}" for name, value in list(values.items()) if _is_number(value))

    @property
    def watcher(self) -> Progress | None:
        """This bar where it is drawn; so that a loop without one does nothing for it."""
        return self if self.shown else None


def _is_number(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim == 0
