"""The best thresholds under a condition."""

from __future__ import annotations

import math

import pytest
import torch
from sklearn.metrics import precision_recall_curve, roc_curve

from assay.metrics.classification.operating_points import (
    PrecisionAtFixedRecall,
    RecallAtFixedPrecision,
    SensitivityAtSpecificity,
    SpecificityAtSensitivity,
)
from metrics.ranked_samples import gaussians


@pytest.mark.parametrize("least", [0.0, 0.3, 0.75, 0.9, 1.0])
def test_operating_points_are_the_best_of_all_thresholds(least):
    logits, target = gaussians(300)
    preds = (torch.sigmoid(logits) * 64).round() / 64
    precision, recall, _ = precision_recall_curve(target, preds)
    fpr, tpr, _ = roc_curve(target, preds, drop_intermediate=False)
    expected = {
        RecallAtFixedPrecision(min_precision=least): recall[:-1][precision[:-1] >= least],
        PrecisionAtFixedRecall(min_recall=least): precision[:-1][recall[:-1] >= least],
        SensitivityAtSpecificity(min_specificity=least): tpr[1 - fpr >= least],
        SpecificityAtSensitivity(min_sensitivity=least): (1 - fpr)[tpr >= least],
    }
    for metric, reached in expected.items():
        value, threshold = metric(preds, target)
        assert value.item() == pytest.approx(max(reached, default=0), rel=1e-14)
        assert threshold.dtype == torch.float64


def test_the_threshold_of_an_operating_point_gives_its_value():
    logits, target = gaussians(3000)
    for limit in (0, 1 << 20):
        value, threshold = RecallAtFixedPrecision(min_precision=0.8, logits=True, exact_up_to=limit)(logits, target)
        decided = logits.double() >= threshold
        assert (decided & (target == 1)).sum() / (target == 1).sum().double() == value
        assert (target[decided] == 1).double().mean() >= 0.8


def test_a_precision_that_is_never_reached_predicts_nothing():
    value, threshold = RecallAtFixedPrecision(min_precision=0.9)(torch.tensor([0.1, 0.9]), torch.tensor([1, 0]))
    assert (value, threshold) == (0, math.inf)
