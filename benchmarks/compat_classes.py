"""All classes that `assay.compat.torchmetrics` counts from labels, scores, numbers and texts, beside TorchMetrics'."""

from __future__ import annotations

import inspect
import statistics
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import torch

from assay.migrate.table import library
from benchmarks.compat_functions import FAMILIES, GIVEN, batch
from benchmarks.harness import Candidate, Cost, Table, measure, save, titled

SIZES = (32, 256, 4_096)
SLOW = ("CHRFScore", "ExtendedEditDistance", "TranslationEditRate", "ROUGEScore")
"""Metrics of texts whose batches of 4,096 take TorchMetrics minutes."""
AGGREGATES = ("MaxMetric", "MeanMetric", "MinMetric", "SumMetric")
GOALS = {"forward": 1.0, "update": 1.3, "compute": 1.5}


def classes() -> Iterator[tuple[str, str, Any, Any]]:
    """The name and the family of each class, TorchMetrics' class, and that in its place."""
    entries = library("torchmetrics").entries
    counted = {name for name, each in entries.items() if not each.function and not each.tasks}
    for family in ("aggregation", *FAMILIES):
        homes = (f"torchmetrics.{family}", f"assay.compat.torchmetrics.{family}")
        there, here = map(import_module, homes)
        for name in sorted(counted & set(dir(there))):
            yield name, family, getattr(there, name), getattr(here, name)


def data_of(name: str, rows: int) -> tuple[Any, ...]:
    """A batch of so many samples; one number for aggregates, as `self.log` has it."""
    if name in AGGREGATES:
        return (torch.rand(()),)
    if name.startswith("Retrieval"):
        return torch.rand(rows), torch.randint(2, (rows,)), torch.arange(rows) // 16
    return batch(name, rows)


def settings(kind: Any) -> dict[str, Any]:
    """What the constructor asks for."""
    parameters = inspect.signature(kind).parameters
    asked = {each for each, at in parameters.items() if at.default is at.empty} | {"num_classes"} & parameters.keys()
    return {each: GIVEN[each] for each in asked if each in GIVEN}


def _forward(metric: Any, data: tuple[Any, ...]) -> Candidate:
    return Candidate(lambda _: metric(*data), reset=metric.reset)


def _update(metric: Any, data: tuple[Any, ...]) -> Candidate:
    def finish() -> None:
        if hasattr(metric, "meter"):
            metric.meter.device_states()  # what is staged is counted

    return Candidate(lambda _: metric.update(*data), finish, metric.reset, most_calls=200)


def _compute(metric: Any, data: tuple[Any, ...]) -> Candidate:
    for _ in range(3):
        metric.update(*data)

    def step(_: int) -> None:
        metric.__dict__["_computed"] = None  # as an update leaves it
        metric.compute()

    return Candidate(step)


WORK: Mapping[str, Callable[[Any, tuple[Any, ...]], Candidate]] = {
    "forward": _forward,
    "update": _update,
    "compute": _compute,
}


def ratios(name: str, kinds: Mapping[str, Any], rows: int, raw: dict[str, Any]) -> dict[str, float] | None:
    """The cost of each work over TorchMetrics'; None where TorchMetrics refuses the batch."""
    torch.manual_seed(0)
    data, found = data_of(name, rows), {}
    for work, candidate in WORK.items():
        try:
            made = {each: kind(**settings(kind)) for each, kind in kinds.items()}
            made["torchmetrics"](*data)
        except (ImportError, OSError, TypeError, ValueError, RuntimeError):
            return None
        made["torchmetrics"].reset()
        candidates = {each: candidate(metric, data) for each, metric in made.items()}
        costs: dict[str, Cost] = measure(candidates, rounds=3, seconds=0.004)
        raw[f"{name}, {work} @ {rows}"] = {each: cost.rounds for each, cost in costs.items()}
        found[work] = costs["assay"].over(costs["torchmetrics"])
    return found


def main() -> None:
    header = ["class", *(f"{work}, {rows:,}" for work in WORK for rows in SIZES)]
    table, raw, left_out = Table(titled("Classes: assay.compat / TorchMetrics"), header), {}, []
    every: dict[tuple[str, int], list[float]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, _, there, here in classes():
            cells = {}
            for rows in SIZES[:1] if name in AGGREGATES else SIZES[:2] if name in SLOW else SIZES:
                found = ratios(name, {"torchmetrics": there, "assay": here}, rows, raw)
                for work, ratio in (found or {}).items():
                    cells[work, rows] = ratio
                    every.setdefault((work, rows), []).append(ratio)
            if not cells:
                left_out.append(name)
                continue
            shown = (cells.get((work, rows)) for work in WORK for rows in SIZES)
            table.rows.append([f"`{name}`", *("-" if each is None else f"{each:.2f}" for each in shown)])
            print(*table.rows[-1], sep=" | ", flush=True)
    for (work, rows), found in sorted(every.items()):
        beyond = sum(each > GOALS[work] for each in found)
        table.notes.append(
            f"{work} of {rows:,}: median {statistics.median(found):.2f}, {beyond} of {len(found)} above {GOALS[work]}."
        )
    print(*table.notes, sep="\n")
    print("left out:", *left_out, file=sys.stderr)
    save("compat_classes", [table], raw)


if __name__ == "__main__":
    main()
