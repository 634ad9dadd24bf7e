"""The cost of one update, for one metric at a time: a hand-written kernel, assay, and other libraries."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from assay.meter import STAGE_BYTES, Meter
from assay.metrics.base import Metric
from benchmarks.harness import Candidate, Cost, Table, measure, metric, microseconds, save, titled

BATCHES = (32, 1_024, 65_536)
MOST_ELEMENTS = 1 << 24
OTHERS = ("torchmetrics", "torcheval", "ignite")
# Why a row may be above the fastest other library.
WHY = {
    "AUROC, exact": "assay checks and copies the samples; other libraries keep the tensors of the caller",
    "calibration error": "TorchMetrics keeps every sample and counts when it is read; assay counts in constant memory",
    "MSE": "the sums are exact, which costs some ns a sample; other libraries sum in float32, for 0.5 ns",
    "R2": "as for MSE",
    "Pearson": "as for MSE",
    "concordance": "as for MSE",
    "perplexity, vocabulary 1,000": "most of it is the log-softmax, which other libraries form too; the sum is exact",
    "mean": "as for MSE",
}
COLUMNS = ("kernel", "assay", *OTHERS)
Batch = tuple[Tensor, ...]


@dataclass(frozen=True)
class Row:
    """A metric as everyone writes it. `kernel` makes a function that counts a batch into a state of its own."""

    name: str
    data: Callable[[int], Batch]
    kernel: Callable[[], Callable[..., Any]]
    assay: Callable[[], Metric]
    torchmetrics: Callable[[], Any] | None = None
    torcheval: Callable[[], Any] | None = None
    ignite: Callable[[], Any] | None = None
    keeps: bool = False


def assay_candidate(metrics: dict[str, Metric], batches: Sequence[Batch], stage_bytes: int = STAGE_BYTES) -> Candidate:
    """Staged updates with the counting of everything that was staged."""
    meter = Meter(stage_bytes=stage_bytes, **metrics)

    return Candidate(lambda k: meter.update(*batches[k % len(batches)]), meter.device_states, meter.reset)


def library_candidate(other: Any, batches: Sequence[Batch], as_tuple: bool = False) -> Candidate:
    """An update of another library; Ignite takes several arguments as one tuple."""
    update = other.update
    if not as_tuple:
        return Candidate(lambda k: update(*batches[k % len(batches)]), reset=other.reset)
    outputs = [batch if len(batch) > 1 else batch[0][:, None] for batch in batches]  # a row is a sample
    return Candidate(lambda k: update(outputs[k % len(outputs)]), reset=other.reset)


def candidates(row: Row, batches: Sequence[Batch]) -> dict[str, Candidate]:
    kernel = row.kernel()
    found = {
        "kernel": Candidate(lambda k: kernel(*batches[k % len(batches)])),
        "assay": assay_candidate({"value": row.assay()}, batches),
    }
    for name in OTHERS:
        make = getattr(row, name)
        if make is not None:
            found[name] = library_candidate(make(), batches, as_tuple=name == "ignite")
    if row.keeps:  # what keeps every sample takes memory with each call
        most = max(3, (1 << 22) // len(batches[0][0]))
        found = {n: Candidate(c.step, c.finish, c.reset, most) for n, c in found.items()}
    return found


# --- samples -------------------------------------------------------------------------------------------------------


def classes(count: int, num_classes: int = 10) -> Batch:
    return torch.rand(count, num_classes), torch.randint(0, num_classes, (count,))


def scores(count: int) -> Batch:
    return torch.rand(count), torch.randint(0, 2, (count,))


def pairs(count: int) -> Batch:
    target = torch.randn(count)
    return target + torch.randn(count) / 4, target


def single(count: int) -> Batch:
    return (torch.randn(count),)


def tokens(count: int) -> Batch:
    return torch.randn(1, count, 1_000), torch.randint(0, 1_000, (1, count))


# --- kernels: what one would write by hand, without checks and without exactness -----------------------------------


def accuracy_kernel() -> Callable[..., Any]:
    hits, total = torch.zeros((), dtype=torch.int64), 0

    def count(preds: Tensor, target: Tensor) -> None:
        nonlocal total
        hits.add_((preds.argmax(1) == target).sum())
        total += len(target)

    return count


def confusion_kernel(num_classes: int = 10) -> Callable[..., Any]:
    matrix = torch.zeros(num_classes**2, dtype=torch.int64)

    def count(preds: Tensor, target: Tensor) -> None:
        matrix.add_(torch.bincount(target * num_classes + preds.argmax(1), minlength=num_classes**2))

    return count


def store_kernel() -> Callable[..., Any]:
    kept: list[Batch] = []

    def keep(preds: Tensor, target: Tensor) -> None:
        kept.append((preds, target))
        if len(kept) > 1_000:
            kept.clear()

    return keep


def threshold_kernel() -> Callable[..., Any]:
    bins = torch.zeros(2 * 201, dtype=torch.int64)

    def count(preds: Tensor, target: Tensor) -> None:
        cell = (preds * 200).to(torch.int64).add_(target, alpha=201)
        bins.add_(torch.bincount(cell, minlength=402))

    return count


def calibration_kernel() -> Callable[..., Any]:
    sums, hits = torch.zeros(16), torch.zeros(16, dtype=torch.int64)

    def count(preds: Tensor, target: Tensor) -> None:
        cell = (preds * 15).to(torch.int64)
        sums.index_add_(0, cell, preds)
        hits.index_add_(0, cell, target)

    return count


def squares_kernel() -> Callable[..., Any]:
    total = torch.zeros(())

    def count(preds: Tensor, target: Tensor) -> None:
        total.add_((preds - target).square_().sum())

    return count


def moments_kernel() -> Callable[..., Any]:
    totals = torch.zeros(5)

    def count(x: Tensor, y: Tensor) -> None:
        totals.add_(torch.stack([x.sum(), y.sum(), x.dot(x), x.dot(y), y.dot(y)]))

    return count


def r2_kernel() -> Callable[..., Any]:
    totals = torch.zeros(3)

    def count(x: Tensor, y: Tensor) -> None:
        error = x - y
        totals.add_(torch.stack([y.sum(), y.dot(y), error.dot(error)]))

    return count


def perplexity_kernel() -> Callable[..., Any]:
    total = torch.zeros(())

    def count(preds: Tensor, target: Tensor) -> None:
        total.add_(F.cross_entropy(preds.view(-1, preds.shape[-1]), target.view(-1), reduction="sum"))

    return count


def mean_kernel() -> Callable[..., Any]:
    total = torch.zeros(())
    return lambda values: total.add_(values.sum())


# --- rows ----------------------------------------------------------------------------------------------------------


def rows() -> list[Row]:
    import ignite.metrics as ig
    import torcheval.metrics as te
    import torchmetrics as tm
    from ignite.metrics import regression as igr
    from torchmetrics import classification as tmc
    from torchmetrics import regression as tmr
    from torchmetrics.text import Perplexity as TmPerplexity

    of = partial
    unchecked = {"num_classes": 10, "validate_args": False}
    return [
        Row(
            "accuracy, 10 classes",
            classes,
            accuracy_kernel,
            of(metric, "Accuracy", num_classes=10),
            of(tmc.MulticlassAccuracy, average="micro", **unchecked),
            of(te.MulticlassAccuracy),
            of(ig.Accuracy),
        ),
        Row(
            "precision macro, 10 classes",
            classes,
            confusion_kernel,
            of(metric, "Precision", num_classes=10, average="macro"),
            of(tmc.MulticlassPrecision, average="macro", **unchecked),
            of(te.MulticlassPrecision, num_classes=10, average="macro"),
            of(ig.Precision, average="macro"),
        ),
        Row(
            "F1 macro, 10 classes",
            classes,
            confusion_kernel,
            of(metric, "F1Score", num_classes=10, average="macro"),
            of(tmc.MulticlassF1Score, average="macro", **unchecked),
            of(te.MulticlassF1Score, num_classes=10, average="macro"),
        ),
        Row(
            "confusion matrix, 10 classes",
            classes,
            confusion_kernel,
            of(metric, "ConfusionMatrix", num_classes=10),
            of(tmc.MulticlassConfusionMatrix, **unchecked),
            of(te.MulticlassConfusionMatrix, num_classes=10),
            of(ig.ConfusionMatrix, num_classes=10),
        ),
        Row(
            "AUROC, exact",
            scores,
            store_kernel,
            of(metric, "AUROC", exact=True),
            of(tmc.BinaryAUROC, validate_args=False),
            of(te.BinaryAUROC),
            of(ig.ROC_AUC),
            keeps=True,
        ),
        Row(
            "AUROC, constant memory",
            scores,
            threshold_kernel,
            of(metric, "AUROC", exact_up_to=0),
            of(tmc.BinaryAUROC, thresholds=200, validate_args=False),
        ),
        Row(
            "calibration error",
            scores,
            calibration_kernel,
            of(metric, "CalibrationError"),
            of(tmc.BinaryCalibrationError, n_bins=15, validate_args=False),
            keeps=True,
        ),
        Row(
            "MSE",
            pairs,
            squares_kernel,
            of(metric, "MeanSquaredError"),
            tm.MeanSquaredError,
            te.MeanSquaredError,
            ig.MeanSquaredError,
        ),
        Row("R2", pairs, r2_kernel, of(metric, "R2Score"), tmr.R2Score, te.R2Score, igr.R2Score),
        Row(
            "Pearson",
            pairs,
            moments_kernel,
            of(metric, "PearsonCorrCoef"),
            tmr.PearsonCorrCoef,
            None,
            igr.PearsonCorrelation,
        ),
        Row("concordance", pairs, moments_kernel, of(metric, "ConcordanceCorrCoef"), tmr.ConcordanceCorrCoef),
        Row(
            "perplexity, vocabulary 1,000",
            tokens,
            perplexity_kernel,
            of(metric, "Perplexity"),
            TmPerplexity,
            te.Perplexity,
        ),
        Row("mean", single, mean_kernel, of(metric, "Mean"), tm.MeanMetric, te.Mean, of(ig.Average)),
    ]


def measured(row: Row, batch: int) -> dict[str, Cost] | None:
    torch.manual_seed(0)
    sample = row.data(2)
    if batch * sample[0].numel() // 2 > MOST_ELEMENTS:
        return None
    batches = [row.data(batch) for _ in range(max(1, min(8, (1 << 21) // (batch * sample[0].numel()))))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measure(candidates(row, batches), seconds=0.04)


def main(*names: str) -> None:
    table = Table(
        titled("One update of one metric, µs of CPU time"), ["metric", "batch", *COLUMNS, "assay / fastest other"]
    )
    raw: dict[str, dict[str, list[float]]] = {}
    above: dict[str, list[str]] = {}
    for row in rows():
        for batch in BATCHES if not names or row.name in names else ():
            costs = measured(row, batch)
            if costs is None:
                continue
            fastest = min((name for name in costs if name in OTHERS), key=lambda name: costs[name].median)
            ratio = costs["assay"].over(costs[fastest])
            shown = [microseconds(costs[name].median) if name in costs else "-" for name in COLUMNS]
            table.rows.append([row.name, f"{batch:,}", *shown, f"{ratio:.2f}"])
            print(*table.rows[-1], sep=" | ", flush=True)
            raw[f"{row.name} @ {batch}"] = {name: cost.rounds for name, cost in costs.items()}
            if ratio > 1:
                above.setdefault(row.name, []).append(f"{ratio:.2f} of {fastest} at {batch:,}")
    table.notes.append(
        "assay is staged; the counting of all that was staged is part of its cost. TorchMetrics runs with "
        "validate_args=False."
    )
    table.notes.append(
        "Rows above the fastest other library:" if above else "No row is above the fastest other library."
    )
    whys = (f"- {name}, {', '.join(ratios)}: {WHY.get(name, 'not explained yet')}." for name, ratios in above.items())
    table.notes.append("\n".join(whys))
    save("update_cost", [table], raw)


if __name__ == "__main__":
    main(*sys.argv[1:])
