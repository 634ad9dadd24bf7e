"""Updates of AUROC for many classes: assay counts in constant memory what TorchMetrics keeps."""

from __future__ import annotations

import sys
from typing import Any

import torch
from assay.compat.torchmetrics.classification import MulticlassAUROC as DropIn
from torchmetrics.classification import MulticlassAUROC

from assay.meter import Meter
from benchmarks.harness import Candidate, Table, measure, metric, microseconds, save, titled

SIZES = ((10, 4_096), (1_000, 4_096))
"""Classes, and samples of a batch."""
OWN, OTHER, COMPAT = "assay", "torchmetrics", "drop-in name"
MOST_CALLS = 4  # TorchMetrics keeps every batch


def candidates(classes: int, rows: int) -> dict[str, Candidate]:
    """An update with probabilities; that of assay with the counting of what is staged."""
    scores = [torch.softmax(2 * torch.randn(rows, classes), 1) for _ in range(2)]
    target = [torch.randint(classes, (rows,)) for _ in range(2)]
    meter = Meter(value=metric("AUROC", num_classes=classes))
    others: dict[str, Any] = {OTHER: MulticlassAUROC(num_classes=classes), COMPAT: DropIn(num_classes=classes)}

    def updating(kept: Any) -> Candidate:
        return Candidate(lambda k: kept.update(scores[k % 2], target[k % 2]), reset=kept.reset, most_calls=MOST_CALLS)

    own = Candidate(updating(meter).step, meter.device_states, meter.reset, MOST_CALLS)
    return {OWN: own, **{name: updating(each) for name, each in others.items()}}


def main(small: bool = False) -> None:
    header = ("classes", "batch", "assay, µs", "by TorchMetrics' name, µs", "TorchMetrics, µs", "assay / TorchMetrics")
    table, raw = Table(titled("One update of AUROC of many classes"), header), {}
    for classes, rows in ((20, 64),) if small else SIZES:
        costs = measure(candidates(classes, rows), rounds=2 if small else 9)
        times = [microseconds(costs[name].median) for name in (OWN, COMPAT, OTHER)]
        table.rows.append([f"{classes:,}", f"{rows:,}", *times, f"{costs[OWN].over(costs[OTHER]):.2f}"])
        raw[f"{classes} @ {rows}"] = {name: cost.rounds for name, cost in costs.items()}
    table.notes.append(
        "Both with their default options. TorchMetrics checks the scores and keeps them; assay counts them into "
        "histograms of 16.7 MB in all, for any number of samples."
    )
    save("many_classes", [table], raw)


if __name__ == "__main__":
    main("--small" in sys.argv)
