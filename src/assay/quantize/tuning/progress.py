"""The bar while kernels are measured: the time that was given, and what is measured now."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self


class Countdown:
    """A bar on the error stream that runs as the time does.

    Args:
        seconds: how long the work may take.
        shown: draw it; None: where there is a terminal.
    """

    def __init__(self, seconds: float, shown: bool | None = None) -> None:
        self._seconds, self._begin = seconds, time.monotonic()
        self.shown = sys.stderr.isatty() if shown is None else shown

    def left(self) -> float:
        """The seconds that are left."""
        return max(0.0, self._seconds - (time.monotonic() - self._begin))

    def __enter__(self) -> Self:
        if self.shown:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            text = TextColumn("Measuring {task.fields[at]}", markup=False)
            columns = (BarColumn(), TimeElapsedColumn(), TextColumn(f"of {self._seconds:.0f} s"), text)
            self._bar = Progress(*columns, console=Console(stderr=True, highlight=False), transient=True)
            self._task = self._bar.add_task("", total=self._seconds, at="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown:
            self._bar.stop()

    def say(self, what: str) -> None:
        """Show what is measured now."""
        if self.shown:
            self._bar.update(self._task, completed=self._seconds - self.left(), at=what)
