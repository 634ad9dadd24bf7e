"""What the demo reports of each data set: headline numbers, tables, plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from assay.cli._demo_models import HeldOut
from assay.cli._demo_samples import samples, values
from assay.meter import Meter
from assay.metrics import (
    AUROC,
    ROC,
    Accuracy,
    AveragePrecision,
    BrierScore,
    CalibrationError,
    ClassReport,
    ConcordanceCorrCoef,
    ConfusionMatrix,
    F1Score,
    LogLoss,
    MatthewsCorrCoef,
    MeanAbsoluteError,
    MeanSquaredError,
    Metric,
    PearsonCorrCoef,
    PrecisionRecallCurve,
    R2Score,
    Recall,
    Specificity,
)
from assay.metrics.calibration import CalibrationCurve
from assay.report import ConfusionMatrix as Matrix
from assay.report import Curve, Curves, Reliability, Residuals, Section, Table

BATCH = 128


def section(held_out: HeldOut) -> Section:
    """Measure what a model predicted, in batches, and lay out what was found."""
    if not held_out.classes:
        return _regression(held_out)
    return _multiclass(held_out) if held_out.preds.ndim == 2 else _binary(held_out)


def measure(held_out: HeldOut, metrics: Mapping[str, Any]) -> dict[str, Any]:
    """One meter for all metrics, fed in batches."""
    meter = Meter(**metrics)
    for preds, target in zip(*(torch.split(each, BATCH) for each in (held_out.preds, held_out.target)), strict=True):
        meter.update(preds, target)
    return meter.compute()


def _multiclass(held_out: HeldOut) -> Section:
    names, n = held_out.classes, len(held_out.classes)
    headline: dict[str, Metric] = {
        "Accuracy": Accuracy(num_classes=n),
        "F1, macro": F1Score(num_classes=n, average="macro"),
        "Matthews correlation": MatthewsCorrCoef(num_classes=n),
        "AUROC, macro": AUROC(num_classes=n),
        "Log loss": LogLoss(num_classes=n),
        "Calibration error": CalibrationError(num_classes=n),
    }
    details: dict[str, Metric] = {
        "report": ClassReport(num_classes=n),
        "matrix": ConfusionMatrix(num_classes=n),
        "bins": CalibrationCurve(num_classes=n),
        "roc": ROC(num_classes=n),
        "auroc": AUROC(num_classes=n, average=None),
        "pr": PrecisionRecallCurve(num_classes=n),
        "ap": AveragePrecision(num_classes=n, average=None),
    }
    found = measure(held_out, {**headline, **details})
    return Section(
        held_out.title,
        values(headline, found),
        (Table("Per class", ("class", "precision", "recall", "F1", "support"), found["report"].rows(names)),),
        (
            Matrix("Confusion matrix", names, found["matrix"]),
            _reliability(found),
            Curves("ROC, each class against the rest", "roc", _roc(names, found["roc"], found["auroc"])),
            Curves("Precision and recall", "pr", _pr(names, found["pr"], found["ap"])),
        ),
        note=f"{n} classes; {len(held_out.target)} samples held out.",
        samples=samples(held_out),
    )


def _binary(held_out: HeldOut) -> Section:
    headline: dict[str, Metric] = {
        "Accuracy": Accuracy(),
        "Sensitivity": Recall(),
        "Specificity": Specificity(),
        "AUROC": AUROC(),
        "Average precision": AveragePrecision(),
        "Brier score": BrierScore(),
        "Calibration error": CalibrationError(),
    }
    details: dict[str, Metric] = {
        "matrix": ConfusionMatrix(),
        "bins": CalibrationCurve(),
        "roc": ROC(),
        "pr": PrecisionRecallCurve(),
    }
    found = measure(held_out, {**headline, **details})
    positive = held_out.classes[1]
    roc, pr = ([[column] for column in found[name]] for name in ("roc", "pr"))
    return Section(
        held_out.title,
        values(headline, found),
        plots=(
            Matrix("Confusion matrix", held_out.classes, found["matrix"]),
            _reliability(found),
            Curves("ROC", "roc", _roc([positive], roc, found["AUROC"][None])),
            Curves("Precision and recall", "pr", _pr([positive], pr, found["Average precision"][None])),
        ),
        note=f"Two classes, {positive!r} is the positive one; {len(held_out.target)} samples held out.",
        samples=samples(held_out),
    )


def _regression(held_out: HeldOut) -> Section:
    headline: dict[str, Metric] = {
        "R²": R2Score(),
        "Root mean squared error": MeanSquaredError(squared=False),
        "Mean absolute error": MeanAbsoluteError(),
        "Pearson correlation": PearsonCorrCoef(),
        "Concordance": ConcordanceCorrCoef(),
    }
    found = measure(held_out, headline)
    plot = Residuals.sampled("Residuals", held_out.preds, held_out.target)
    note = f"Regression; {len(held_out.target)} samples held out."
    return Section(held_out.title, values(headline, found), plots=(plot,), note=note, samples=samples(held_out))


def _reliability(found: Mapping[str, Any]) -> Reliability:
    bins = found["bins"]
    return Reliability(
        "Reliability", bins.edges, bins.confidence, bins.accuracy, bins.counts, found["Calibration error"]
    )


def _roc(names: Sequence[str], curve: Sequence[Sequence[Tensor]], areas: Tensor) -> tuple[Curve, ...]:
    fpr, tpr, _ = curve
    return tuple(Curve.thinned(name, *line) for name, *line in zip(names, fpr, tpr, areas.tolist(), strict=True))


def _pr(names: Sequence[str], curve: Sequence[Sequence[Tensor]], areas: Tensor) -> tuple[Curve, ...]:
    precision, recall, _ = curve
    return tuple(
        Curve.thinned(name, *line) for name, *line in zip(names, recall, precision, areas.tolist(), strict=True)
    )
