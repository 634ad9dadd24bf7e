"""Scores, weights, layouts and descriptions that ranking metrics refuse, and values that are undefined."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from assay.errors import ConfigError, DtypeError, InvalidValuesError, NoDataWarning, ShapeError
from assay.metrics.classification.operating_points import (
    RecallAtFixedPrecision,
    SensitivityAtSpecificity,
)
from assay.metrics.classification.ranking import AUROC, ROC, AveragePrecision, PrecisionRecallCurve
from metrics.ranked_samples import AREAS, classes


@pytest.mark.parametrize("limit", [0, 1 << 20])
@pytest.mark.parametrize(
    ("preds", "target", "message"),
    [
        ([0.1, math.nan], [0, 1], "1 of the scores are NaN"),
        ([0.1, 1.5], [0, 1], r"1 of the scores are outside \[0, 1\] \(.*divide percentages by 100"),
        ([0.1, 0.2], [0, 7], r"1 of the targets are outside 0 ... 1 \(more classes need num_classes=\)"),
    ],
)
def test_bad_values_are_named_when_read(limit, preds, target, message):
    with pytest.raises(InvalidValuesError, match=message):
        AUROC(exact_up_to=limit)(torch.tensor(preds), torch.tensor(target))


def test_bad_weights_are_named_when_read():
    with pytest.raises(InvalidValuesError, match="2 of the weights are negative, infinite or NaN"):
        AUROC()(torch.rand(3), torch.tensor([0, 1, 1]), weights=torch.tensor([-1.0, math.inf, 1.0]))


def test_a_bad_score_of_any_class_counts_its_row_once():
    preds, target = classes(10, 3)
    preds[4] = math.nan
    preds[5, 1] = 2
    with pytest.raises(InvalidValuesError, match="1 of the scores are NaN"):
        AUROC(num_classes=3)(preds, target)


@pytest.mark.parametrize("metric", [AUROC(), AveragePrecision(), SensitivityAtSpecificity(min_specificity=0.5)])
@pytest.mark.parametrize("label", [0, 1])
def test_one_class_only_reads_nan_and_says_so(metric, label):
    arguments = torch.rand(5), torch.full((5,), label)
    if isinstance(metric, AveragePrecision) and label == 1:
        assert metric(*arguments) == 1
        return
    with pytest.warns(NoDataWarning, match="positives"):
        found = metric(*arguments)
    assert math.isnan(found[0] if isinstance(found, tuple) else found)


def test_averages_leave_out_classes_that_have_no_value_and_name_them():
    preds, target = classes(50, 3)
    target[target == 2] = 0
    for metric, oracle in AREAS:
        each = [oracle(target == k, preds[:, k]) for k in range(2)]
        with pytest.warns(NoDataWarning, match=r"got no positives.* of class 2, .* leaves them out"):
            assert metric(num_classes=3)(preds, target).item() == pytest.approx(np.mean(each), rel=1e-14)
        with pytest.warns(NoDataWarning, match="of class 2"):
            got = metric(num_classes=3, average=None)(preds, target)
        assert got.isnan().tolist() == [False, False, True]
        shares = [float((target == k).double().mean()) for k in range(2)]
        weighted = metric(num_classes=3, average="weighted")(preds, target)  # class 2 has no weight
        assert weighted.item() == pytest.approx(np.dot(each, shares), rel=1e-14)


def test_labels_without_negatives_are_named_in_weighted_averages_too():
    preds, target = torch.rand(20, 3), torch.arange(60).view(20, 3) % 2
    target[:, 1] = 1
    with pytest.warns(NoDataWarning, match=r"no positives or no negatives of label 1, "):
        got = AUROC(num_labels=3, average="weighted")(preds, target)
    each = [roc_auc_score(target[:, k], preds[:, k]) for k in (0, 2)]
    assert got.item() == pytest.approx(np.mean(each), rel=1e-14)


def test_curves_of_classes_without_positives_say_so():
    preds, target = classes(50, 3)
    target[target == 2] = 0
    for metric in (ROC(num_classes=3), PrecisionRecallCurve(num_classes=3)):
        with pytest.warns(NoDataWarning, match="of class 2"):
            metric(preds, target)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: AUROC(num_classes=3, average="micro"),
            r"average: got 'micro', expected one of 'macro', 'weighted', None",
        ),
        (lambda: AUROC(num_labels=3, average="samples"), "average: got 'samples'"),
        (lambda: AUROC(num_classes=3, num_labels=3), "num_classes: got 3, next to num_labels=3"),
        (lambda: ROC(num_classes=1), "num_classes: got 1, expected 2 or more"),
        (lambda: ROC(exact_up_to=-1), "exact_up_to: got -1"),
        (lambda: RecallAtFixedPrecision(min_precision=90), "min_precision: got 90.0, expected a rate in"),
    ],
)
def test_descriptions_that_cannot_be(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_layouts_that_cannot_be():
    with pytest.raises(DtypeError, match=r"preds: got torch.int64, expected scores as floats. Pass scores, such as"):
        AUROC()(torch.tensor([0, 1]), torch.tensor([0, 1]))
    with pytest.raises(ShapeError, match=r"expected shape \(N, 3\)"):
        AUROC(num_classes=3)(torch.rand(5, 4), torch.zeros(5, dtype=torch.long))
