"""Twelve classification metrics together, against the kernel that counts one confusion matrix and top-5 hits."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch
from torch import Tensor

from assay.metrics.base import Metric
from benchmarks.harness import Candidate, Table, measure, metric, microseconds, save, titled
from benchmarks.update_cost import Batch, assay_candidate, classes, library_candidate

SIZES = ((10, 32), (10, 1_024), (10, 65_536), (1_000, 32), (1_000, 1_024), (1_000, 16_384), (1_000, 65_536))
OTHERS_UP_TO = 1 << 24  # scores: TorchMetrics takes seconds for one update of more


def assay_metrics(num_classes: int) -> dict[str, Metric]:

    of = {"num_classes": num_classes}
    return {
        "accuracy": metric("Accuracy", **of),
        "accuracy_macro": metric("Accuracy", average="macro", **of),
        "top5": metric("Accuracy", top_k=5, **of),
        "precision": metric("Precision", **of),
        "recall": metric("Recall", **of),
        "f1": metric("F1Score", **of),
        "specificity": metric("Specificity", **of),
        "mcc": metric("MatthewsCorrCoef", **of),
        "kappa": metric("CohenKappa", **of),
        "jaccard": metric("JaccardIndex", **of),
        "matrix": metric("ConfusionMatrix", **of),
        "hamming": metric("HammingDistance", **of),
    }


def torchmetrics_collection(num_classes: int, groups: bool, package: str = "torchmetrics") -> Any:
    """The same metrics of TorchMetrics, or under its names in `assay.compat`."""
    tm = import_module(f"{package}.classification")
    of = {"num_classes": num_classes, "validate_args": False}
    return import_module(package).MetricCollection(
        {
            "accuracy": tm.MulticlassAccuracy(average="micro", **of),
            "accuracy_macro": tm.MulticlassAccuracy(average="macro", **of),
            "top5": tm.MulticlassAccuracy(average="micro", top_k=5, **of),
            "precision": tm.MulticlassPrecision(**of),
            "recall": tm.MulticlassRecall(**of),
            "f1": tm.MulticlassF1Score(**of),
            "specificity": tm.MulticlassSpecificity(**of),
            "mcc": tm.MulticlassMatthewsCorrCoef(**of),
            "kappa": tm.MulticlassCohenKappa(**of),
            "jaccard": tm.MulticlassJaccardIndex(**of),
            "matrix": tm.MulticlassConfusionMatrix(**of),
            "hamming": tm.MulticlassHammingDistance(**of),
        },
        compute_groups=groups,
    )


def kernel(num_classes: int) -> Callable[[Tensor, Tensor], None]:
    """One confusion matrix, and how often the target is among the five highest scores."""
    matrix = torch.zeros(num_classes**2, dtype=torch.int64)
    hits = torch.zeros((), dtype=torch.int64)

    def count(preds: Tensor, target: Tensor) -> None:
        cell = target * num_classes + preds.argmax(1)
        matrix.index_add_(0, cell, torch.ones_like(cell))
        hits.add_(((preds > preds.gather(1, target[:, None])).sum(1) < 5).sum())

    return count


def candidates(num_classes: int, batches: list[Batch]) -> dict[str, Candidate]:
    count = kernel(num_classes)
    found = {
        "kernel": Candidate(lambda k: count(*batches[k % len(batches)])),
        "assay": assay_candidate(assay_metrics(num_classes), batches),
        "assay, not staged": assay_candidate(assay_metrics(num_classes), batches, stage_bytes=0),
    }
    if batches[0][0].numel() > OTHERS_UP_TO:
        return found
    return found | {
        "torchmetrics": library_candidate(torchmetrics_collection(num_classes, groups=True), batches),
        "drop-in names": library_candidate(
            torchmetrics_collection(num_classes, groups=True, package="assay.compat.torchmetrics"), batches
        ),
        "torchmetrics, no groups": library_candidate(torchmetrics_collection(num_classes, groups=False), batches),
    }


def main() -> None:
    table, raw, above = None, {}, []
    for num_classes, batch in SIZES:
        torch.manual_seed(0)
        batches = [classes(batch, num_classes) for _ in range(max(1, min(8, (1 << 21) // (batch * num_classes))))]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            costs = measure(candidates(num_classes, batches), rounds=5, seconds=0.04)
        if table is None:
            header = ["classes", "batch", *costs, "assay / kernel", "torchmetrics / kernel"]
            table = Table(titled("Twelve classification metrics, µs of CPU time an update"), header)
        ratios = [costs[name].over(costs["kernel"]) for name in ("assay", "torchmetrics") if name in costs]
        shown = [microseconds(costs[name].median) if name in costs else "-" for name in table.header[2:-2]]
        table.rows.append(
            [
                f"{num_classes:,}",
                f"{batch:,}",
                *shown,
                *(f"{ratio:.2f}" for ratio in ratios),
                *["-"] * (2 - len(ratios)),
            ]
        )
        print(*table.rows[-1], sep=" | ", flush=True)
        raw[f"{num_classes} classes @ {batch}"] = {name: cost.rounds for name, cost in costs.items()}
        if ratios[0] > 1:
            above.append(f"{num_classes:,} classes at {batch:,} ({ratios[0]:.2f})")
    assert table is not None
    table.notes.append(
        "The kernel counts one confusion matrix and top-5 hits, and checks nothing. Counting what assay staged is part "
        "of its cost. TorchMetrics runs with validate_args=False."
    )
    table.notes.append("Above the kernel: " + ("; ".join(above) or "none") + ".")
    save("collection", [table], raw)


if __name__ == "__main__":
    main()
