"""Exact metrics for PyTorch models: the same number in any batch size, any order and on any number of processes.

The names below are imported when they are first used, so that ``import assay`` and ``assay --help`` cost nothing. All
metrics are in ``assay.metrics``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

__version__ = "0.1.0"

if TYPE_CHECKING:
    from assay.evaluation import evaluate
    from assay.meter import Meter
    from assay.metrics import (
        AUROC,
        Accuracy,
        AveragePrecision,
        CalibrationError,
        ConcordanceCorrCoef,
        ConfusionMatrix,
        F1Score,
        Mean,
        MeanSquaredError,
        PearsonCorrCoef,
        Perplexity,
        Precision,
        R2Score,
        Recall,
        SpearmanCorrCoef,
    )
    from assay.scoring import score

__all__ = [
    "AUROC",
    "Accuracy",
    "AveragePrecision",
    "CalibrationError",
    "ConcordanceCorrCoef",
    "ConfusionMatrix",
    "F1Score",
    "Mean",
    "MeanSquaredError",
    "Meter",
    "PearsonCorrCoef",
    "Perplexity",
    "Precision",
    "R2Score",
    "Recall",
    "SpearmanCorrCoef",
    "evaluate",
    "score",
]

_HOMES = {
    "evaluation": ("evaluate",),
    "meter": ("Meter",),
    "metrics": (
        "AUROC",
        "Accuracy",
        "AveragePrecision",
        "CalibrationError",
        "ConcordanceCorrCoef",
        "ConfusionMatrix",
        "F1Score",
        "Mean",
        "MeanSquaredError",
        "PearsonCorrCoef",
        "Perplexity",
        "Precision",
        "R2Score",
        "Recall",
        "SpearmanCorrCoef",
    ),
    "scoring": ("score",),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
