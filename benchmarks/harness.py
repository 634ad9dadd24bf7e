"""Measure candidates side by side, so that a busy machine slows all of them equally.

One thread and its CPU time, so that being preempted does not count. In every round the candidates run in a random
order, each for as many calls as fill `seconds`. What is reported is the median over the rounds, and of ratios the
median of the ratios within a round.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

import assay.metrics
from assay.metrics.base import Metric
from assay.native.library import library

RESULTS = Path("build/benchmarks")


@dataclass(frozen=True)
class Candidate:
    """Something to be measured.

    Attributes:
        step: one call, given its number.
        finish: what the calls left to be done later; it is part of their cost.
        reset: forget what was counted, outside of the measurement.
        most_calls: in one round, where calls take memory; 0 for no limit.
    """

    step: Callable[[int], Any]
    finish: Callable[[], Any] = lambda: None
    reset: Callable[[], Any] = lambda: None
    most_calls: int = 0


@dataclass(frozen=True)
class Cost:
    """CPU seconds a call, one for each round."""

    rounds: Sequence[float]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    def over(self, other: Cost) -> float:
        """The median of the ratios to another candidate within a round."""
        return statistics.median(a / b for a, b in zip(self.rounds, other.rounds, strict=True))


def measure(candidates: Mapping[str, Candidate], rounds: int = 7, seconds: float = 0.02) -> dict[str, Cost]:
    """The cost of a call of every candidate."""
    torch.set_num_threads(1)
    calls = {name: _calls(candidate, seconds) for name, candidate in candidates.items()}
    costs: dict[str, list[float]] = {name: [] for name in candidates}
    shuffled = random.Random(0)
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name in shuffled.sample(list(candidates), len(candidates)):
                costs[name].append(_run(candidates[name], calls[name]))
    finally:
        gc.enable()
    return {name: Cost(found) for name, found in costs.items()}


def measure_once(calls: Mapping[str, Callable[[], Any]], rounds: int = 3) -> dict[str, Cost]:
    """The cost of calls that take long: one of each in a round, with all threads, without what is printed.

    Whoever measures calls them once before if what is loaded at first use is no part of the cost.
    """
    torch.set_num_threads(1)
    shuffled = random.Random(0)
    costs: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name in shuffled.sample(list(calls), len(calls)):
            start = time.process_time()
            with contextlib.redirect_stdout(io.StringIO()):
                calls[name]()
            costs[name].append(time.process_time() - start)
    return {name: Cost(found) for name, found in costs.items()}


def _run(candidate: Candidate, calls: int) -> float:
    candidate.reset()
    candidate.step(0)  # states are made by the first call
    candidate.finish()
    start = time.thread_time()
    for k in range(calls):
        candidate.step(k)
    candidate.finish()
    return (time.thread_time() - start) / calls


def _calls(candidate: Candidate, seconds: float) -> int:
    _run(candidate, 1)
    once = max(_run(candidate, 2), 1e-7)
    few = max(3, min(int(seconds / once), 2_000))
    calls = max(3, int(seconds / max(_run(candidate, min(few, candidate.most_calls or few)), 1e-8)))
    return min(calls, candidate.most_calls) if candidate.most_calls else calls


@dataclass
class Table:
    """Rows of a table as a page shows them, with a note below."""

    title: str
    header: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def markdown(self) -> str:
        lines = [f"### {self.title}", "", _line(self.header), _line(["---", *("--:" for _ in self.header[1:])])]
        lines += [_line(row) for row in self.rows]
        return "\n".join([*lines, "", *(f"{note}\n" for note in self.notes)])


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def metric(name: str, **fields: Any) -> Metric:
    """The metric of this name with these fields."""
    found: Metric = getattr(assay.metrics, name)(**fields)
    return found


def titled(title: str) -> str:
    """The title of a table of times, which says when assay ran without its compiled code."""
    return title if library() else f"{title}, assay without its compiled code"


def microseconds(seconds: float) -> str:
    """Three digits of a time in µs."""
    value = seconds * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def save(name: str, tables: Sequence[Table], raw: Any) -> None:
    """Print the tables, and keep them with the raw numbers as JSON."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    name = os.environ.get("BENCHMARK_NAME", name)
    text = "\n".join(table.markdown() for table in tables)
    (RESULTS / f"{name}.md").write_text(text, "utf-8")
    (RESULTS / f"{name}.json").write_text(json.dumps(raw, indent=1), "utf-8")
    print(text, flush=True)
