"""The progress bar of everything that takes long: one line on the error stream, cleared at the end."""

from __future__ import annotations

import sys
import time
from importlib.util import find_spec
from typing import Any, Literal, Self, TypeAlias

Unit: TypeAlias = Literal["steps", "bytes", "seconds"]
DRAW_S = 0.1


class ProgressBar:
    """A bar that is drawn at most ten times a second, by the first process, and only where there is a terminal.

    Args:
        title: what is done.
        total: how much there is to do; None where that is not known.
        shown: draw it; None: where the error stream is a terminal.
        unit: of the total.
        rank: the number of this process.
    """

    def __init__(
        self, title: str, total: float | None, shown: bool | None = None, *, unit: Unit = "steps", rank: int = 0
    ) -> None:
        wanted = rank == 0 and (sys.stderr.isatty() if shown is None else shown)
        self.shown = wanted and find_spec("rich") is not None  # which the extra "cli" brings
        self._title, self._total, self._unit = title, total, unit
        self._next, self._start = 0.0, time.monotonic()

    @property
    def elapsed_s(self) -> float:
        """How long it has been at work, in seconds; never 0."""
        return max(time.monotonic() - self._start, 1e-9)

    def __enter__(self) -> Self:
        if self.shown:
            from rich.console import Console
            from rich.progress import Progress

            columns, console = _columns(self._unit, self._total), Console(stderr=True, highlight=False)
            self._bar = Progress(*columns, console=console, transient=True, auto_refresh=False, expand=True)
            self._task = self._bar.add_task(self._title, total=self._total, text="")
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.shown:
            self._bar.stop()

    @property
    def due(self) -> bool:
        """Whether the next `update` draws."""
        return self.shown and time.monotonic() >= self._next

    def update(self, **changes: Any) -> None:
        """Note what was done, and draw when it is time.

        Args:
            changes: `completed` or `advance` (amounts), `description` (the title), `text` (what comes last).
        """
        if self.shown:
            self._bar.update(self._task, **changes)
        if self.due:
            self._next = time.monotonic() + DRAW_S
            self._bar.refresh()


def _columns(unit: Unit, total: float | None) -> tuple[Any, ...]:
    from rich import progress
    from rich.table import Column

    one_line = Column(no_wrap=True)
    amounts: dict[Unit, tuple[progress.ProgressColumn, ...]] = {
        "steps": (
            progress.TextColumn("{task.completed}/{task.total}" if total is not None else "{task.completed}"),
            progress.TimeElapsedColumn(),
        ),
        "bytes": (progress.DownloadColumn(table_column=one_line), progress.TransferSpeedColumn(table_column=one_line)),
        "seconds": (progress.TimeElapsedColumn(), progress.TextColumn("of {task.total:.0f} s")),
    }
    text = Column(no_wrap=True, ratio=1, overflow="ellipsis")
    return (
        progress.TextColumn("{task.description:<10}", table_column=one_line),
        progress.BarColumn(bar_width=12),
        *amounts[unit],
        progress.TimeRemainingColumn(table_column=one_line),
        progress.TextColumn("{task.fields[text]}", style="dim", markup=False, table_column=text),
    )
