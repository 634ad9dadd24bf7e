"""All classes that `assay.compat.torchmetrics` counts from labels, scores, numbers and texts, beside TorchMetrics'.

`--family`, `--size` and `--work` measure a part. What was measured before stays in the table, so that it can be filled
part by part; `--new` begins another one.
"""

from __future__ import annotations

import argparse
import inspect
import json
import statistics
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import torch

from assay.migrate.table import library
from benchmarks.compat_functions import FAMILIES, GIVEN, batch
from benchmarks.harness import RESULTS, Candidate, Table, measure, save, titled

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


Batches = list[tuple[Any, ...]]


def _forward(metric: Any, batches: Batches) -> Candidate:
    data = batches[0]
    return Candidate(lambda _: metric(*data), reset=metric.reset)


def _update(metric: Any, batches: Batches) -> Candidate:
    data = batches[0]

    def finish() -> None:
        if hasattr(metric, "meter"):
            metric.meter.device_states()  # what is staged is counted

    return Candidate(lambda _: metric.update(*data), finish, metric.reset, most_calls=200)


def _compute(metric: Any, batches: Batches) -> Candidate:
    for data in batches:  # different ones: of one that comes again, every score is there several times
        metric.update(*data)

    def step(_: int) -> None:
        metric.__dict__["_computed"] = None  # as an update leaves it
        metric.compute()

    return Candidate(step)


WORK: Mapping[str, Callable[[Any, Batches], Candidate]] = {
    "forward": _forward,
    "update": _update,
    "compute": _compute,
}


Raw = dict[str, dict[str, list[float]]]
"""The rounds of both candidates, by class, work and number of samples."""


def ratios(name: str, kinds: Mapping[str, Any], rows: int, chosen: argparse.Namespace, raw: Raw) -> bool:
    """Measure each work of a class; false where there is no batch that TorchMetrics takes."""
    for work in chosen.work:
        torch.manual_seed(0)
        try:
            batches = [data_of(name, rows) for _ in range(3)]
            made = {each: kind(**settings(kind)) for each, kind in kinds.items()}
            made["torchmetrics"](*batches[0])
        except (AttributeError, ImportError, OSError, TypeError, ValueError, RuntimeError):
            return False
        made["torchmetrics"].reset()
        candidates = {each: WORK[work](metric, batches) for each, metric in made.items()}
        costs = measure(candidates, rounds=chosen.rounds, seconds=chosen.seconds)
        raw[_key(name, work, rows)] = {each: list(cost.rounds) for each, cost in costs.items()}
    return True


def _key(name: str, work: str, rows: int) -> str:
    return f"{name}, {work} @ {rows}"


def _ratio(rounds: Mapping[str, list[float]] | None) -> float | None:
    if rounds is None:
        return None
    return statistics.median(a / b for a, b in zip(rounds["assay"], rounds["torchmetrics"], strict=True))


def table(raw: Raw) -> Table:
    """Every class that was measured, and how many are beyond the goals."""
    header = ["class", *(f"{work}, {rows:,}" for work in WORK for rows in SIZES)]
    shown = Table(titled("Classes: assay.compat / TorchMetrics"), header)
    for name in dict.fromkeys(key.partition(", ")[0] for key in raw):
        cells = (_ratio(raw.get(_key(name, work, rows))) for work in WORK for rows in SIZES)
        shown.rows.append([f"`{name}`", *("-" if each is None else f"{each:.2f}" for each in cells)])
    for work in WORK:
        for rows in SIZES:
            found = [
                ratio for key, each in raw.items() if key.endswith(f", {work} @ {rows}") and (ratio := _ratio(each))
            ]
            if found:
                beyond = sum(each > GOALS[work] for each in found)
                median = statistics.median(found)
                note = f"{work} of {rows:,}: median {median:.2f}, {beyond} of {len(found)} above {GOALS[work]}."
                shown.notes.append(note)
    return shown


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    families = ("aggregation", *FAMILIES)
    parser.add_argument("--family", nargs="+", choices=families, default=families)
    parser.add_argument("--size", nargs="+", type=int, choices=SIZES, default=SIZES, help="samples of a batch")
    parser.add_argument("--work", nargs="+", choices=tuple(WORK), default=tuple(WORK))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.004, help="of a candidate in a round")
    parser.add_argument("--new", action="store_true", help="forget what was measured before")
    return parser.parse_args()


def main() -> None:
    chosen, left_out, file = options(), [], RESULTS / "compat_classes.json"
    raw: Raw = {} if chosen.new or not file.exists() else json.loads(file.read_text("utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, family, there, here in classes():
            if family not in chosen.family:
                continue
            sizes = SIZES[:1] if name in AGGREGATES else SIZES[:2] if name in SLOW else SIZES
            kinds = {"torchmetrics": there, "assay": here}
            taken = {ratios(name, kinds, rows, chosen, raw) for rows in sizes if rows in chosen.size}
            left_out += [name] * (False in taken)
            print(name, flush=True)
    print("left out:", *left_out, file=sys.stderr)
    save("compat_classes", [table(raw)], raw)


if __name__ == "__main__":
    main()
