"""A collection of twelve metrics of labels by the names of TorchMetrics: TorchMetrics itself, and `assay.compat`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.collection import torchmetrics_collection
from benchmarks.harness import Candidate, Table, measure, microseconds, save, titled
from benchmarks.update_cost import Batch, classes, library_candidate

SIZES = ((10, 32), (10, 1_024), (1_000, 32), (1_000, 1_024))
PACKAGES = {"torchmetrics": "torchmetrics", "assay": "assay.compat.torchmetrics"}
UPDATES = 30


def update(collection: Any, batches: list[Batch]) -> Candidate:
    """Updates, with the counting of everything that was staged."""

    def finish() -> None:
        for meter in {id(each.meter): each.meter for each in members(collection) if hasattr(each, "meter")}.values():
            meter.device_states()

    return Candidate(library_candidate(collection, batches).step, finish, collection.reset)


def forward(collection: Any, batches: list[Batch]) -> Candidate:
    """Steps of a loop, each of which returns the values of its batch."""
    return Candidate(lambda k: collection(*batches[k % len(batches)]), reset=collection.reset)


def compute(collection: Any, batches: list[Batch]) -> Candidate:
    """The values of what some updates counted."""
    for k in range(UPDATES):
        collection.update(*batches[k % len(batches)])
    collection.compute()
    caches = [each.__dict__ for each in members(collection)]

    def step(_: int) -> None:
        for cache in caches:
            cache["_computed"] = None  # as an update leaves it
        collection.compute()

    return Candidate(step)


def members(collection: Any) -> list[Any]:
    return list(collection.values(copy_state=False))


WORK: dict[str, Callable[[Any, list[Batch]], Candidate]] = {"update": update, "forward": forward, "compute": compute}


def main() -> None:
    header = ["work", "classes", "batch", "TorchMetrics, µs", "assay.compat, µs", "times as fast"]
    table, raw = Table(titled("Twelve metrics by the names of TorchMetrics"), header), {}
    for name, work in WORK.items():
        for num_classes, rows in SIZES:
            torch.manual_seed(0)
            batches = [classes(rows, num_classes) for _ in range(4)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = {each: torchmetrics_collection(num_classes, True, package) for each, package in PACKAGES.items()}
                costs = measure({each: work(collection, batches) for each, collection in made.items()})
            raw[f"{name}, {num_classes} classes @ {rows}"] = {each: cost.rounds for each, cost in costs.items()}
            times = costs["torchmetrics"].over(costs["assay"])
            shown = [microseconds(costs[each].median) for each in PACKAGES]
            table.rows.append([name, f"{num_classes:,}", f"{rows:,}", *shown, f"{times:.2f}"])
            print(*table.rows[-1], sep=" | ", flush=True)
    table.notes.append(
        f"TorchMetrics has its compute groups and validate_args=False. `compute` follows {UPDATES} updates; counting "
        "what assay staged is part of its updates."
    )
    save("compat_collection", [table], raw)


if __name__ == "__main__":
    main()
