"""What the demo measures of each data set: `assay.evaluate` with the usual metrics, and slices where there are some."""

from __future__ import annotations

from dataclasses import replace

from assay.cli._demo_models import Task
from assay.evaluation import evaluate
from assay.metrics import (
    AUROC,
    Accuracy,
    AveragePrecision,
    BrierScore,
    CalibrationError,
    ConcordanceCorrCoef,
    F1Score,
    LogLoss,
    MatthewsCorrCoef,
    MeanAbsoluteError,
    MeanSquaredError,
    Metric,
    PearsonCorrCoef,
    R2Score,
    Recall,
    Specificity,
)
from assay.report import Report


def measured(task: Task) -> Report:
    """Measure a trained model on the samples that it never saw; the section has the name of the task."""
    report = evaluate(
        task.model,
        task.held_out,
        metrics(task),
        device="cpu",
        inputs=0,
        target=1,
        ids=2,
        slices=task.slices,
        classes=task.classes,
        batch_size=128,
        progress=False,
        title=task.title,
    )
    return replace(report, sections=tuple(replace(section, name=task.title) for section in report.sections))


def metrics(task: Task) -> dict[str, Metric]:
    """The headline numbers."""
    n = len(task.classes)
    if n > 2:
        return {
            "Accuracy": Accuracy(num_classes=n),
            "F1, macro": F1Score(num_classes=n, average="macro"),
            "Matthews correlation": MatthewsCorrCoef(num_classes=n),
            "AUROC, macro": AUROC(num_classes=n),
            "Log loss": LogLoss(num_classes=n),
            "Calibration error": CalibrationError(num_classes=n),
        }
    if n == 2:
        return {
            "Accuracy": Accuracy(),
            "Sensitivity": Recall(),
            "Specificity": Specificity(),
            "AUROC": AUROC(),
            "Average precision": AveragePrecision(),
            "Brier score": BrierScore(),
            "Calibration error": CalibrationError(),
        }
    return {
        "R²": R2Score(),
        "Root mean squared error": MeanSquaredError(squared=False),
        "Mean absolute error": MeanAbsoluteError(),
        "Pearson correlation": PearsonCorrCoef(),
        "Concordance": ConcordanceCorrCoef(),
    }
