"""Adding up two gloo processes: how many collectives it takes, and how long, next to TorchMetrics' MetricCollection.

The time is that of the wall, because processes wait for each other: from a barrier until every rank has read all
values, of the slower rank, the median of rounds that take turns.
"""

from __future__ import annotations

import statistics
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

from assay.meter import Meter
from benchmarks.harness import Table, metric, save

RANKS = 2
CLASSES = 10
SAMPLES = 10_000
COLLECTIVES = ("all_reduce", "all_gather", "all_gather_object", "barrier", "broadcast", "reduce")
AVERAGES = ("micro", "macro", "weighted", None)
Act = Callable[[], Any]


def classification() -> dict[str, Act]:
    """Twenty metrics of the same predictions."""
    from torchmetrics import MetricCollection
    from torchmetrics import classification as tm

    names = ("Accuracy", "Precision", "Recall", "F1Score", "Specificity")
    data = torch.randn(1_000, CLASSES), torch.randint(CLASSES, (1_000,))
    meter = Meter(**{f"{n}_{a}": metric(n, num_classes=CLASSES, average=a) for n in names for a in AVERAGES})
    meter.update(*data)

    def other(groups: bool) -> Act:
        of = {"num_classes": CLASSES, "validate_args": False}
        metrics = {f"{n}_{a}": getattr(tm, f"Multiclass{n}")(average=a, **of) for n in names for a in AVERAGES}
        collection = MetricCollection(metrics, compute_groups=groups)
        for _ in range(2):  # groups are found after the first update
            collection.update(*data)
        return lambda: _fresh(collection).compute()

    return {
        "assay": lambda: meter.sync().compute(),
        "TorchMetrics, compute groups": other(True),
        "TorchMetrics, no groups": other(False),
    }


def regression() -> dict[str, Act]:
    """Four metrics of sums and one that needs every sample."""
    import torchmetrics.regression as tm
    from torchmetrics import MetricCollection

    names = ("MeanSquaredError", "MeanAbsoluteError", "PearsonCorrCoef", "ExplainedVariance", "SpearmanCorrCoef")
    preds = torch.randn(SAMPLES)
    data = preds, preds + torch.randn(SAMPLES)
    meter = Meter(**{name: metric(name) for name in names})
    meter.update(*data)
    collection = MetricCollection({name: getattr(tm, name)() for name in names})
    for _ in range(2):
        collection.update(*data)
    return {"assay": lambda: meter.sync().compute(), "TorchMetrics": lambda: _fresh(collection).compute()}


def _fresh(collection: Any) -> Any:
    """The collection without the values that it remembers."""
    for each in collection.values(copy_state=False):
        each._computed = None
    return collection


@contextmanager
def counted() -> Iterator[Counter[str]]:
    """Counts the collectives of the block."""
    calls: Counter[str] = Counter()
    real = {name: getattr(dist, name) for name in COLLECTIVES}

    def counting(name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            calls[name] += 1
            return real[name](*arguments, **more)

        return call

    try:
        for name in COLLECTIVES:
            setattr(dist, name, counting(name))
        yield calls
    finally:
        for name in COLLECTIVES:
            setattr(dist, name, real[name])


def on_rank(rank: int, folder: str, rounds: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    torch.manual_seed(rank)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    found = {title: measured(make(), rounds) for title, make in CASES.items()}
    if not rank:
        torch.save(found, f"{folder}/found.pt")
    dist.destroy_process_group()


def measured(acts: dict[str, Act], rounds: int) -> dict[str, dict[str, Any]]:
    """Collectives and milliseconds of each."""
    collectives = {}
    for name, act in acts.items():
        with counted() as calls:
            act()
        collectives[name] = calls.total()
    times: dict[str, list[float]] = {name: [] for name in acts}
    for _ in range(rounds):
        for name, act in acts.items():
            dist.barrier()
            start = time.perf_counter()
            act()
            slowest = torch.tensor(time.perf_counter() - start, dtype=torch.float64)
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
            times[name].append(1_000 * slowest.item())
    return {n: {"collectives": collectives[n], "ms": statistics.median(times[n])} for n in acts}


CASES = {
    "20 classification metrics": classification,
    f"4 regression metrics and Spearman, {SAMPLES:,} samples a rank": regression,
}


def main(rounds: int = 15) -> None:
    """Measure, print and save."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(on_rank, (folder, rounds), nprocs=RANKS)
        found = torch.load(Path(folder, "found.pt"))
    table = Table("Adding up and reading on two gloo ranks", ["what", "by", "collectives", "ms"])
    for title, rows in found.items():
        table.rows += [[title, name, str(row["collectives"]), f"{row['ms']:.3g}"] for name, row in rows.items()]
    table.notes.append("Wall time of the slower rank, from a barrier to the values; medians of rounds that take turns.")
    save("sync", [table], found)


if __name__ == "__main__":
    main()
