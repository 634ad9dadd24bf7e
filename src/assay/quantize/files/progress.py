"""The bar of a long piece of work that is measured in bytes: rate, remaining time, and the layer at hand."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

DRAW_S = 0.1


class Bar:
    """A bar on the error stream.

    Args:
        total: the bytes of all the work.
        shown: draw it; None: where there is a terminal.
    """

    def __init__(self, total: int, shown: bool | None = None) -> None:
        self.shown = sys.stderr.isatty() if shown is None else shown
        self._total, self._next = total, 0.0

    def __enter__(self) -> Self:
        if self.shown:
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
            from rich.progress import TransferSpeedColumn as Speed
            from rich.table import Column

            columns = (
                TextColumn("{task.description:<10}", table_column=Column(no_wrap=True)),
                BarColumn(bar_width=12),
                DownloadColumn(table_column=Column(no_wrap=True)),
                Speed(table_column=Column(no_wrap=True)),
                TimeRemainingColumn(table_column=Column(no_wrap=True)),
                TextColumn(
                    "{task.fields[at]}",
                    style="dim",
                    markup=False,
                    table_column=Column(no_wrap=True, ratio=1, overflow="ellipsis"),
                ),
            )
            console = Console(stderr=True, highlight=False)
            self._bar = Progress(*columns, console=console, transient=True, auto_refresh=False, expand=True)
            self._task = self._bar.add_task("Quantizing", total=self._total, at="")
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown:
            self._bar.stop()

    def step(self, doing: str, name: str, nbytes: int = 0) -> None:
        """Say what is done now, and what was done since the last step."""
        if not self.shown:
            return
        self._bar.update(self._task, description=doing, at=name, advance=nbytes)
        now = time.monotonic()
        if now >= self._next:
            self._next = now + DRAW_S
            self._bar.refresh()
