"""Metrics by the names of TorchMetrics, of labels together and single ones: TorchMetrics, and `assay.compat`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from benchmarks.collection import torchmetrics_collection
from benchmarks.harness import Candidate, Table, measure, microseconds, save, titled
from benchmarks.update_cost import Batch, classes, library_candidate

SIZES = ((10, 32), (10, 1_024), (1_000, 32), (1_000, 1_024))
PACKAGES = {"torchmetrics": "torchmetrics", "assay": "assay.compat.torchmetrics"}
UPDATES = 30
ALONE = {
    **dict.fromkeys(("MeanMetric", "SumMetric", "MaxMetric", "MinMetric"), "number"),
    **dict.fromkeys(
        ("MeanSquaredError", "MeanAbsoluteError", "MeanAbsolutePercentageError", "LogCoshError"), "numbers"
    ),
    "R2Score": "numbers",
    "PearsonCorrCoef": "numbers",
    "KLDivergence": "distributions",
    **dict.fromkeys(("classification.BinaryAccuracy", "classification.BinaryHingeLoss"), "scores"),
    **dict.fromkeys(("classification.MulticlassAccuracy", "classification.MulticlassF1Score"), "classes"),
    "classification.MulticlassConfusionMatrix": "classes",
}
"""Single metrics, and what each takes."""


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


def batch_of(kind: str, rows: int) -> tuple[torch.Tensor, ...]:
    """A batch for a single metric."""
    if kind == "number":
        return (torch.rand(()),)
    if kind == "classes":
        return classes(rows, 10)
    if kind == "distributions":
        return torch.rand(rows, 10).softmax(1), torch.rand(rows, 10).softmax(1)
    return torch.rand(rows) + 0.1, torch.randint(2, (rows,)) if kind == "scores" else torch.rand(rows) + 0.1


def alone(raw: dict[str, Any]) -> Table:
    """`forward` of single metrics for batches of several sizes, and `compute`."""
    sizes = (32, 256, 4_096)
    header = ["metric", *(f"forward, batch {rows:,}" for rows in sizes), "compute"]
    table = Table(titled("Single metrics by the names of TorchMetrics: assay.compat / TorchMetrics"), header)
    for name, kind in ALONE.items():
        place, _, last = f".{name}".rpartition(".")
        homes = {each: import_module(f"{package}{place}") for each, package in PACKAGES.items()}
        options = {"num_classes": 10} if kind == "classes" else {}
        ratios = []
        for rows in (*sizes[:1], *(sizes[1:] if kind != "number" else ())):
            torch.manual_seed(0)
            batches = [batch_of(kind, rows) for _ in range(4)]
            made = {each: getattr(home, last)(**options) for each, home in homes.items()}
            costs = measure({each: single_forward(metric, batches) for each, metric in made.items()})
            raw[f"{name}, forward @ {rows}"] = {each: cost.rounds for each, cost in costs.items()}
            ratios.append(f"{costs['assay'].over(costs['torchmetrics']):.2f}")
        costs = measure({each: single_compute(metric) for each, metric in made.items()})
        raw[f"{name}, compute"] = {each: cost.rounds for each, cost in costs.items()}
        ratios += ["-"] * (len(sizes) - len(ratios))
        table.rows.append([f"`{last}`", *ratios, f"{costs['assay'].over(costs['torchmetrics']):.2f}"])
        print(*table.rows[-1], sep=" | ", flush=True)
    table.notes.append(
        "Aggregates take one number. `compute` follows `forward`; nothing is counted between two of them."
    )
    return table


def single_forward(metric: Any, batches: list[Any]) -> Candidate:
    """The value of one batch after the other, each of which is counted."""
    return Candidate(lambda k: metric(*batches[k % len(batches)]))


def single_compute(metric: Any) -> Candidate:
    """The value of what was counted."""

    def step(_: int) -> None:
        metric.__dict__["_computed"] = None  # as an update leaves it
        metric.compute()

    return Candidate(step)


FOUR = ("MulticlassAccuracy", "MulticlassF1Score", "MulticlassPrecision", "MulticlassConfusionMatrix")
EPOCH = 10
"""Updates of an epoch."""


def epochs(raw: dict[str, Any]) -> Table:
    """Ten updates of a new epoch and the values of four label metrics together."""
    sizes, of_classes = (32, 256, 4_096), (10, 1_000)
    title = titled(f"An epoch of {EPOCH} updates of four label metrics with compute: assay.compat / TorchMetrics")
    table = Table(title, ["classes", *(f"batch {rows:,}" for rows in sizes)])
    for num_classes in of_classes:
        ratios = []
        for rows in sizes:
            torch.manual_seed(0)
            batches = [classes(rows, num_classes) for _ in range(4)]
            made = {each: epoch(package, num_classes, batches) for each, package in PACKAGES.items()}
            costs = measure(made)
            raw[f"epoch, {num_classes} classes @ {rows}"] = {each: cost.rounds for each, cost in costs.items()}
            ratios.append(f"{costs['assay'].over(costs['torchmetrics']):.2f}")
        table.rows.append([f"{num_classes:,}", *ratios])
        print(*table.rows[-1], sep=" | ", flush=True)
    table.notes.append(f"{', '.join(FOUR)}; with the default options of both.")
    return table


def epoch(package: str, num_classes: int, batches: list[Batch]) -> Candidate:
    """An epoch with the metrics of a package."""
    home, kinds = import_module(f"{package}.classification"), import_module(package)
    collection = kinds.MetricCollection([getattr(home, each)(num_classes=num_classes) for each in FOUR])

    def step(_: int) -> None:
        collection.reset()
        for k in range(EPOCH):
            collection.update(*batches[k % len(batches)])
        collection.compute()

    return Candidate(step)


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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save("compat_collection", [table, alone(raw), epochs(raw)], raw)


if __name__ == "__main__":
    main()
