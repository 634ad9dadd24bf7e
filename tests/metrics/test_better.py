"""Every metric with one value says whether higher or lower is better, or has none."""

from __future__ import annotations

import assay.metrics
from assay.metrics import Metric

NEITHER = {
    "Arithmetic",  # says it for each expression
    "Classwise",  # as the metric in it
    "CalibrationCurve",
    "ClassReport",
    "ConfusionMatrix",
    "Max",
    "Mean",
    "Min",
    "PerOutput",  # as the metric in it
    "PrecisionRecallCurve",
    "Quantile",
    "ROC",
    "StatScores",
    "Sum",
    "Variance",
}
LOWER = {
    "BrierScore",
    "CalibrationError",
    "HammingDistance",
    "HingeLoss",
    "KLDivergence",
    "LogCoshError",
    "LogLoss",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogError",
    "MinkowskiDistance",
    "Perplexity",
    "RelativeSquaredError",
    "SymmetricMeanAbsolutePercentageError",
    "TweedieDevianceScore",
    "WeightedMeanAbsolutePercentageError",
}


def test_every_metric_says_which_values_are_better():
    found = {name: getattr(assay.metrics, name).better for name in assay.metrics.__all__ if name != Metric.__name__}
    assert {name for name, better in found.items() if better == ""} == NEITHER
    assert {name for name, better in found.items() if better == "lower"} == LOWER
    assert {name for name, better in found.items() if better == "higher"} == found.keys() - NEITHER - LOWER
