"""Exact metrics for PyTorch models: the same number in any batch size, any order and on any number of processes.

The names below and the packages are imported when they are first used, so that ``import assay`` and ``assay --help``
cost nothing. The metrics here are the commonest ones; all are in ``assay.metrics``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

__version__ = "0.1.0"

if TYPE_CHECKING:
    from assay.evaluation import evaluate as evaluate
    from assay.meter import Meter as Meter
    from assay.metrics import AUROC as AUROC
    from assay.metrics import Accuracy as Accuracy
    from assay.metrics import AveragePrecision as AveragePrecision
    from assay.metrics import BalancedAccuracy as BalancedAccuracy
    from assay.metrics import BLEUScore as BLEUScore
    from assay.metrics import BrierScore as BrierScore
    from assay.metrics import CalibrationError as CalibrationError
    from assay.metrics import CohenKappa as CohenKappa
    from assay.metrics import ConcordanceCorrCoef as ConcordanceCorrCoef
    from assay.metrics import ConfusionMatrix as ConfusionMatrix
    from assay.metrics import CosineSimilarity as CosineSimilarity
    from assay.metrics import F1Score as F1Score
    from assay.metrics import JaccardIndex as JaccardIndex
    from assay.metrics import KLDivergence as KLDivergence
    from assay.metrics import LogLoss as LogLoss
    from assay.metrics import MatthewsCorrCoef as MatthewsCorrCoef
    from assay.metrics import Mean as Mean
    from assay.metrics import MeanAbsoluteError as MeanAbsoluteError
    from assay.metrics import MeanAbsolutePercentageError as MeanAbsolutePercentageError
    from assay.metrics import MeanAveragePrecision as MeanAveragePrecision
    from assay.metrics import MeanSquaredError as MeanSquaredError
    from assay.metrics import PeakSignalNoiseRatio as PeakSignalNoiseRatio
    from assay.metrics import PearsonCorrCoef as PearsonCorrCoef
    from assay.metrics import Perplexity as Perplexity
    from assay.metrics import Precision as Precision
    from assay.metrics import R2Score as R2Score
    from assay.metrics import Recall as Recall
    from assay.metrics import RetrievalNormalizedDCG as RetrievalNormalizedDCG
    from assay.metrics import ROUGEScore as ROUGEScore
    from assay.metrics import SpearmanCorrCoef as SpearmanCorrCoef
    from assay.metrics import Specificity as Specificity
    from assay.metrics import StructuralSimilarityIndexMeasure as StructuralSimilarityIndexMeasure
    from assay.metrics import Sum as Sum
    from assay.metrics import WordErrorRate as WordErrorRate
    from assay.report import Report as Report
    from assay.report import compare as compare
    from assay.report import gate as gate
    from assay.report import history as history
    from assay.scoring import score as score

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

__all__, __getattr__, __dir__ = attach(__name__, _PACKAGES, "assay.migrate.suggestions")
