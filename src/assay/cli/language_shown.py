"""What models said, side by side; and while they say it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from assay.language import Generation
from assay.render.terminal import print_plainly
from assay.render.text import clean

_SIDE_BY_SIDE = 100  # columns of a terminal from which on two texts stand beside each other


class Screen:
    """Shows text as it comes, where there is a terminal."""

    def __init__(self, live: Live | None) -> None:
        self._live = live

    def watcher(self, name: str, prompt: str) -> Callable[[str], None] | None:
        """A function that is called with the text so far; None where nobody looks."""
        live = self._live
        if live is None:
            return None
        return lambda text: live.update(_panel(name, prompt, text, ""))

    def show(self, generations: Mapping[str, Generation]) -> None:
        """Print all texts, with what they cost, and where they begin to differ."""
        console = Console()
        panels = [_panel(name, each.prompt, each.text, _cost(each)) for name, each in generations.items()]
        grid = Table.grid(expand=True, padding=(0, 1, 0, 0))
        if console.width >= _SIDE_BY_SIDE and len(panels) > 1:
            for _ in panels:
                grid.add_column(ratio=1)
            grid.add_row(*panels)
        else:
            for panel in panels:
                grid.add_row(panel)
        print_plainly(grid, console)
        first, *others = generations.items()
        for name, each in others:
            print_plainly(Text(clean(f"{name}: {_same(first[1], each)}")), console)


@contextmanager
def beside() -> Iterator[Screen]:
    """A screen on the error stream while models run."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Screen(None)
        return
    with Live(console=console, transient=True, refresh_per_second=10) as live:
        yield Screen(live)


def to_json(generations: Mapping[str, Generation]) -> str:
    """All of it for programs; numbers that are not finite are null."""

    def plain(each: Generation) -> dict[str, Any]:
        rate = each.tokens_per_second
        return {**asdict(each), "tokens_per_second": rate if math.isfinite(rate) else None}

    return json.dumps({name: plain(each) for name, each in generations.items()}, ensure_ascii=False, indent=2)


def _panel(name: str, prompt: str, text: str, cost: str) -> Panel:
    content = Text(readable(prompt), "dim").append(readable(text), "not dim")
    parts = [content] if not cost else [content, Text(), Text(cost, "dim")]
    return Panel(Group(*parts), title=Text(clean(name)), title_align="left")


def readable(text: str) -> str:
    """Text with its lines, and a visible mark for what would steer the terminal."""
    return "\n".join(clean(line) for line in text.split("\n"))


def _cost(each: Generation) -> str:
    parts = [f"{len(each.ids)} tokens"]
    if math.isfinite(each.tokens_per_second):
        parts.append(f"{each.tokens_per_second:,.1f} a second")
    parts.append(f"the first after {each.first_s * 1e3:,.0f} ms")
    if each.peak_bytes is not None:
        parts.append(f"at most {each.peak_bytes / 2**20:,.0f} MiB {each.memory}")
    return ", ".join(parts)


def _same(first: Generation, other: Generation) -> str:
    pairs = list(zip(first.ids, other.ids, strict=False))
    same = next((k for k, (a, b) in enumerate(pairs) if a != b), len(pairs))
    if same == len(first.ids) == len(other.ids):
        return f"the same {same} tokens"
    return f"the first {same} tokens are the same, then it goes on in another way"
