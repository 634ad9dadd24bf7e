"""What is read from tallies: every metric, imported when first used.

One file per family. A metric is a frozen description of the tally it needs and of how its value is read from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.metrics.aggregation import Max, Mean, Min, Sum, Variance
    from assay.metrics.agreement import CohenKappa, MatthewsCorrCoef
    from assay.metrics.arithmetic import Arithmetic
    from assay.metrics.base import Metric
    from assay.metrics.calibration import (
        BrierScore,
        CalibrationCurve,
        CalibrationError,
        HingeLoss,
        KLDivergence,
        LogLoss,
    )
    from assay.metrics.classification import (
        Accuracy,
        BalancedAccuracy,
        DiceScore,
        F1Score,
        FBetaScore,
        HammingDistance,
        JaccardIndex,
        NegativePredictiveValue,
        Precision,
        Recall,
        Specificity,
    )
    from assay.metrics.classwise import Classwise
    from assay.metrics.confusion import ClassReport, ConfusionMatrix, ExactMatch, StatScores
    from assay.metrics.correlation import ConcordanceCorrCoef, CosineSimilarity, PearsonCorrCoef
    from assay.metrics.explained import ExplainedVariance, R2Score, RelativeSquaredError
    from assay.metrics.per_output import PerOutput
    from assay.metrics.quantile import Quantile
    from assay.metrics.rank_correlation import KendallRankCorrCoef, SpearmanCorrCoef
    from assay.metrics.ranking import (
        AUROC,
        ROC,
        AveragePrecision,
        PrecisionAtFixedRecall,
        PrecisionRecallCurve,
        RecallAtFixedPrecision,
        SensitivityAtSpecificity,
        SpecificityAtSensitivity,
    )
    from assay.metrics.regression import (
        CriticalSuccessIndex,
        LogCoshError,
        MeanAbsoluteError,
        MeanAbsolutePercentageError,
        MeanSquaredError,
        MeanSquaredLogError,
        MinkowskiDistance,
        SymmetricMeanAbsolutePercentageError,
        TweedieDevianceScore,
        WeightedMeanAbsolutePercentageError,
    )
    from assay.metrics.text import Perplexity

__all__ = [
    "AUROC",
    "ROC",
    "Accuracy",
    "Arithmetic",
    "AveragePrecision",
    "BalancedAccuracy",
    "BrierScore",
    "CalibrationCurve",
    "CalibrationError",
    "ClassReport",
    "Classwise",
    "CohenKappa",
    "ConcordanceCorrCoef",
    "ConfusionMatrix",
    "CosineSimilarity",
    "CriticalSuccessIndex",
    "DiceScore",
    "ExactMatch",
    "ExplainedVariance",
    "F1Score",
    "FBetaScore",
    "HammingDistance",
    "HingeLoss",
    "JaccardIndex",
    "KLDivergence",
    "KendallRankCorrCoef",
    "LogCoshError",
    "LogLoss",
    "MatthewsCorrCoef",
    "Max",
    "Mean",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogError",
    "Metric",
    "Min",
    "MinkowskiDistance",
    "NegativePredictiveValue",
    "PearsonCorrCoef",
    "PerOutput",
    "Perplexity",
    "Precision",
    "PrecisionAtFixedRecall",
    "PrecisionRecallCurve",
    "Quantile",
    "R2Score",
    "Recall",
    "RecallAtFixedPrecision",
    "RelativeSquaredError",
    "SensitivityAtSpecificity",
    "SpearmanCorrCoef",
    "Specificity",
    "SpecificityAtSensitivity",
    "StatScores",
    "Sum",
    "SymmetricMeanAbsolutePercentageError",
    "TweedieDevianceScore",
    "Variance",
    "WeightedMeanAbsolutePercentageError",
]

_HOMES = {
    "aggregation": (
        "Max",
        "Mean",
        "Min",
        "Sum",
        "Variance",
    ),
    "agreement": (
        "CohenKappa",
        "MatthewsCorrCoef",
    ),
    "arithmetic": ("Arithmetic",),
    "base": ("Metric",),
    "classwise": ("Classwise",),
    "calibration": (
        "BrierScore",
        "CalibrationCurve",
        "CalibrationError",
        "HingeLoss",
        "KLDivergence",
        "LogLoss",
    ),
    "classification": (
        "Accuracy",
        "BalancedAccuracy",
        "DiceScore",
        "F1Score",
        "FBetaScore",
        "HammingDistance",
        "JaccardIndex",
        "NegativePredictiveValue",
        "Precision",
        "Recall",
        "Specificity",
    ),
    "confusion": (
        "ClassReport",
        "ConfusionMatrix",
        "ExactMatch",
        "StatScores",
    ),
    "correlation": (
        "ConcordanceCorrCoef",
        "CosineSimilarity",
        "PearsonCorrCoef",
    ),
    "explained": ("ExplainedVariance", "R2Score", "RelativeSquaredError"),
    "per_output": ("PerOutput",),
    "quantile": ("Quantile",),
    "rank_correlation": (
        "KendallRankCorrCoef",
        "SpearmanCorrCoef",
    ),
    "ranking": (
        "AUROC",
        "AveragePrecision",
        "PrecisionAtFixedRecall",
        "PrecisionRecallCurve",
        "ROC",
        "RecallAtFixedPrecision",
        "SensitivityAtSpecificity",
        "SpecificityAtSensitivity",
    ),
    "regression": (
        "CriticalSuccessIndex",
        "LogCoshError",
        "MeanAbsoluteError",
        "MeanAbsolutePercentageError",
        "MeanSquaredError",
        "MeanSquaredLogError",
        "MinkowskiDistance",
        "SymmetricMeanAbsolutePercentageError",
        "TweedieDevianceScore",
        "WeightedMeanAbsolutePercentageError",
    ),
    "text": ("Perplexity",),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
