"""Exact metrics for PyTorch models: the same number in any batch size, any order and on any number of processes.

The names below and the packages are imported when they are first used, so that ``import assay`` and ``assay --help``
cost nothing. The metrics here are the commonest ones; all are in ``assay.metrics``.
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
        BalancedAccuracy,
        BLEUScore,
        BrierScore,
        CalibrationError,
        CohenKappa,
        ConcordanceCorrCoef,
        ConfusionMatrix,
        CosineSimilarity,
        F1Score,
        JaccardIndex,
        KLDivergence,
        LogLoss,
        MatthewsCorrCoef,
        Mean,
        MeanAbsoluteError,
        MeanAbsolutePercentageError,
        MeanAveragePrecision,
        MeanSquaredError,
        PeakSignalNoiseRatio,
        PearsonCorrCoef,
        Perplexity,
        Precision,
        R2Score,
        Recall,
        RetrievalNormalizedDCG,
        ROUGEScore,
        SpearmanCorrCoef,
        Specificity,
        StructuralSimilarityIndexMeasure,
        Sum,
        WordErrorRate,
    )
    from assay.report import Report, compare, gate, history
    from assay.scoring import score

__all__ = [
    "AUROC",
    "Accuracy",
    "AveragePrecision",
    "BLEUScore",
    "BalancedAccuracy",
    "BrierScore",
    "CalibrationError",
    "CohenKappa",
    "ConcordanceCorrCoef",
    "ConfusionMatrix",
    "CosineSimilarity",
    "F1Score",
    "JaccardIndex",
    "KLDivergence",
    "LogLoss",
    "MatthewsCorrCoef",
    "Mean",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanAveragePrecision",
    "MeanSquaredError",
    "Meter",
    "PeakSignalNoiseRatio",
    "PearsonCorrCoef",
    "Perplexity",
    "Precision",
    "R2Score",
    "ROUGEScore",
    "Recall",
    "Report",
    "RetrievalNormalizedDCG",
    "SpearmanCorrCoef",
    "Specificity",
    "StructuralSimilarityIndexMeasure",
    "Sum",
    "WordErrorRate",
    "compare",
    "evaluate",
    "gate",
    "history",
    "score",
]

_HOMES = {
    "evaluation": ("evaluate",),
    "meter": ("Meter",),
    "metrics": (
        "AUROC",
        "Accuracy",
        "AveragePrecision",
        "BLEUScore",
        "BalancedAccuracy",
        "BrierScore",
        "CalibrationError",
        "CohenKappa",
        "ConcordanceCorrCoef",
        "ConfusionMatrix",
        "CosineSimilarity",
        "F1Score",
        "JaccardIndex",
        "KLDivergence",
        "LogLoss",
        "MatthewsCorrCoef",
        "Mean",
        "MeanAbsoluteError",
        "MeanAbsolutePercentageError",
        "MeanAveragePrecision",
        "MeanSquaredError",
        "PeakSignalNoiseRatio",
        "PearsonCorrCoef",
        "Perplexity",
        "Precision",
        "R2Score",
        "ROUGEScore",
        "Recall",
        "RetrievalNormalizedDCG",
        "SpearmanCorrCoef",
        "Specificity",
        "StructuralSimilarityIndexMeasure",
        "Sum",
        "WordErrorRate",
    ),
    "report": ("Report", "compare", "gate", "history"),
    "scoring": ("score",),
}

_PACKAGES = (
    *(
        "audit",
        "compat",
        "conformance",
        "devices",
        "errors",
        "integrations",
        "language",
        "metrics",
        "pretend",
        "quantize",
    ),
    *("report", "stats", "wrappers"),
)

__getattr__, __dir__ = attach(
    __name__,
    {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names},
    _PACKAGES,
    "assay.migrate.suggestions",
)
