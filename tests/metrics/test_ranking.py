"""Ranking metrics against scikit-learn and exact arithmetic; histograms against what they stand for."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

from assay.errors import InvalidValuesError
from assay.meter import Meter
from assay.metrics.classification.operating_points import (
    PrecisionAtFixedRecall,
    RecallAtFixedPrecision,
    SensitivityAtSpecificity,
    SpecificityAtSensitivity,
)
from assay.metrics.classification.ranking import AUROC, ROC, AveragePrecision, PrecisionRecallCurve
from laws import bits
from metrics.ranked_samples import AREAS, classes, gaussians
from thinning import every_third


@pytest.mark.parametrize(("metric", "oracle"), AREAS)
def test_binary_areas_are_those_of_scikit_learn(metric, oracle):
    logits, target = gaussians(3000)
    weights = torch.rand(3000)
    assert metric(logits=True)(logits, target).item() == pytest.approx(oracle(target, logits), rel=1e-13)
    assert metric(logits=True)(logits, target, weights=weights).item() == pytest.approx(
        oracle(target, logits, sample_weight=weights), rel=1e-13
    )


@pytest.mark.parametrize(("metric", "oracle"), AREAS)
@pytest.mark.parametrize("average", ["macro", "weighted", None])
def test_multiclass_areas_are_those_of_scikit_learn(metric, oracle, average):
    preds, target = classes(500, 4)
    one_hot = torch.nn.functional.one_hot(target, 4)
    expected = oracle(one_hot, preds, average=average)
    got = metric(num_classes=4, average=average)(preds, target)
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-13)
    assert got.dtype == torch.float64


@pytest.mark.parametrize(("metric", "oracle"), AREAS)
@pytest.mark.parametrize("average", ["micro", "macro", "weighted", None])
def test_multilabel_areas_are_those_of_scikit_learn(metric, oracle, average):
    preds, target = torch.rand(300, 3), torch.randint(0, 2, (300, 3))
    got = metric(num_labels=3, average=average)(preds, target)
    np.testing.assert_allclose(got.numpy(), oracle(target, preds, average=average), rtol=1e-13)


def test_images_are_their_pixels():
    preds, target = classes(600, 3)
    images, labels = preds.view(100, 2, 3, 3).movedim(-1, 1), target.view(100, 2, 3)
    for limit in (0, 1 << 20):
        metric = AUROC(num_classes=3, exact_up_to=limit, average=None)
        assert torch.equal(metric(images, labels), metric(preds, target))


def test_ignored_rows_are_left_out_whatever_their_scores():
    preds, target = torch.rand(50), torch.randint(0, 2, (50,))
    more = torch.cat([preds, torch.tensor([math.nan, 7.0])]), torch.cat([target, torch.tensor([-1, -1])])
    for limit in (0, 1 << 20):
        metric = AUROC(ignore_index=-1, exact_up_to=limit)
        assert torch.equal(metric(*more), AUROC(exact_up_to=limit)(preds, target))


# --- histograms ----------------------------------------------------------------------------------------------------

INFINITY = math.inf
SHAPES = {
    "gaussian": lambda x: x,
    "far": lambda x: x + 40,
    "confident": lambda x: x * 30,
    "tiny": lambda x: x * 1e-42,
    "huge": lambda x: x * 1e37,
    "constant": lambda x: x * 0 + 3,
    "ties": lambda x: (x * 2).round(),
    "a few neighbours": lambda x: 1 + (x * 3).round() * 2.0**-23,
    "infinities": lambda x: torch.where(x > 1, INFINITY, torch.where(x < -1, -INFINITY, x)),
    "two ends": lambda x: x.sign() * 20 + x * 1e-3,
}


@every_third
@pytest.mark.parametrize("metric", [AUROC, AveragePrecision])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("positives", [0.5, 0.01])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bounds_contain_the_exact_value(metric, shape, positives, dtype):
    logits, target = gaussians(3000, positives=positives)
    logits = SHAPES[shape](logits.to(dtype))
    for scores, is_logit in ((logits, True), (torch.sigmoid(logits), False)):
        exact = metric(logits=is_logit)(scores, target)
        value, lower, upper = metric(logits=is_logit, exact_up_to=0, bounds=True)(scores, target)
        assert lower <= exact <= upper
        assert lower <= value <= upper


@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_bounds_of_averages_contain_the_exact_value(average):
    preds, target = classes(4000, 20)
    for metric in (AUROC, AveragePrecision):
        exact = metric(num_classes=20, average=average)(preds, target)
        value, lower, upper = metric(num_classes=20, average=average, exact_up_to=0, bounds=True)(preds, target)
        assert lower < exact < upper
        assert value.item() == pytest.approx(exact.item(), abs=1e-4)


@every_third
@pytest.mark.parametrize("positives", [0.5, 0.001])
@pytest.mark.parametrize("scale", [1, 5])
def test_bounds_are_narrow(positives, scale):
    logits, target = gaussians(1_000_000, positives=positives, scale=scale)
    preds = torch.sigmoid(logits - scale / 2)
    meter = Meter(auroc=AUROC(exact_up_to=0, bounds=True), ap=AveragePrecision(exact_up_to=0, bounds=True))
    meter.update(preds, target)
    found = meter.compute()
    exact = roc_auc_score(target, preds)
    assert found["auroc"].upper - found["auroc"].lower <= 2e-5
    assert found["auroc"].value.item() == pytest.approx(exact, abs=1e-6)
    assert found["ap"].upper - found["ap"].lower <= 6e-5
    assert found["ap"].value.item() == pytest.approx(average_precision_score(target, preds), abs=2e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("logit", [False, True])
@pytest.mark.parametrize("metric", [AUROC, AveragePrecision, ROC, PrecisionRecallCurve])
def test_half_precision_is_exact_in_a_histogram(metric, dtype, logit):
    logits, target = gaussians(5000, scale=4)
    scores = (logits if logit else torch.sigmoid(logits)).to(dtype)
    exact, counted = (metric(logits=logit, exact_up_to=limit)(scores, target) for limit in (1 << 20, 0))
    if metric in (AUROC, AveragePrecision):
        assert torch.equal(exact, counted)
        bounds = metric(logits=logit, exact_up_to=0, bounds=True)(scores.float(), target)
        assert bounds.value == bounds.lower == bounds.upper == exact
    else:
        assert all(torch.equal(a, b) for a, b in zip(exact, counted, strict=True))


def test_logits_that_a_sigmoid_would_make_equal_are_told_apart():
    logits, target = gaussians(10_000)
    for shift in (20, 40, 1000):
        far = (logits.double() + shift).float()
        expected = roc_auc_score(target, far)
        for limit in (0, 1 << 20):
            assert AUROC(logits=True, exact_up_to=limit)(far, target).item() == pytest.approx(expected, abs=1e-4)


def test_only_the_number_of_scores_decides_whether_they_are_kept():
    preds, target = 0.4 + torch.rand(101) * 1e-4, torch.randint(0, 2, (101,))  # several to a bin
    for rows, kept in ((100, True), (101, False)):
        for size in (1, 33, 101):
            meters = [Meter(AUROC(exact_up_to=100, bounds=True), stage_bytes=0) for _ in range(2)]
            for k, start in enumerate(range(0, rows, size)):
                batch = slice(start, min(rows, start + size))
                meters[k % 2].update(preds[batch], target[batch])
            value, lower, upper = (meters[0] + meters[1]).compute()["AUROC"]
            assert (lower == upper) == kept
            if kept:
                assert value.item() == pytest.approx(roc_auc_score(target[:rows], preds[:rows]), rel=1e-13)


def test_a_store_that_is_full_gives_its_memory_back():
    meter = Meter(AUROC(exact_up_to=1000))
    for _ in range(5):
        meter.update(torch.rand(600), torch.randint(0, 2, (600,)))
    (state,), rows = meter.states(), meter.rows
    assert rows == 3000
    assert state["samples"].rows == 0
    assert state["histogram"].sum() == 3000
    assert state["histogram"].nbytes < 17e6


# --- curves --------------------------------------------------------------------------------------------------------


def test_curves_are_those_of_scikit_learn():
    logits, target = gaussians(400)
    logits = (logits * 8).round()
    for ours, oracle, options in (
        (ROC(logits=True), roc_curve, {"drop_intermediate": False}),
        (PrecisionRecallCurve(logits=True), precision_recall_curve, {}),
    ):
        for got, expected in zip(ours(logits, target), oracle(target, logits, **options), strict=True):
            assert got.dtype == torch.float64
            np.testing.assert_allclose(got.numpy(), expected, rtol=1e-15)


def test_points_of_a_histogram_are_points_of_the_exact_curve():
    logits, target = gaussians(5000)
    preds = torch.sigmoid(logits)
    fpr, tpr, thresholds = ROC(exact_up_to=0)(preds, target)
    above = preds.double()[None, :] >= thresholds[:, None]
    assert torch.equal(tpr, (above & (target == 1)).sum(1) / (target == 1).sum().double())
    assert torch.equal(fpr, (above & (target == 0)).sum(1) / (target == 0).sum().double())
    assert fpr[-1] == tpr[-1] == 1


def test_curves_of_classes_come_in_tuples():
    preds, target = classes(100, 3)
    curve = ROC(num_classes=3)(preds, target)
    assert [len(part) for part in curve] == [3, 3, 3]
    for k in range(3):
        expected = roc_curve(target == k, preds[:, k], drop_intermediate=False)
        np.testing.assert_allclose(curve.tpr[k].numpy(), expected[1], rtol=1e-15)


# --- multiclass logits -----------------------------------------------------------------------------------------------


def shifted_logits(count, num_classes, seed=0):
    """Logits in steps of 1/4096 with a constant of its own in each row, the same without it, and labels."""
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(0, num_classes, (count,), generator=generator)
    logits = torch.randn(count, num_classes, generator=generator)
    logits[torch.arange(count), target] += 1
    logits = (logits * 4096).round() / 4096
    return logits + torch.randint(-300, 300, (count, 1), generator=generator) / 32, logits, target


@pytest.mark.parametrize(("metric", "oracle"), AREAS)
@pytest.mark.parametrize("num_classes", [2, 3, 40])
@pytest.mark.parametrize("average", ["macro", "weighted", None])
def test_multiclass_logits_are_ranked_as_their_softmax(metric, oracle, num_classes, average):
    shifted, logits, target = shifted_logits(1000, num_classes)
    one_hot = torch.nn.functional.one_hot(target, num_classes)
    expected = oracle(one_hot, logits.double().softmax(1), average=average)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        got = metric(num_classes=num_classes, logits=True, average=average)(shifted.to(dtype), target)
        np.testing.assert_allclose(got.numpy(), expected, rtol=tolerance)


@pytest.mark.parametrize("limit", [0, 1 << 20])
@pytest.mark.parametrize(
    "kind",
    [
        AUROC,
        AveragePrecision,
        ROC,
        PrecisionRecallCurve,
        lambda **how: RecallAtFixedPrecision(min_precision=0.6, **how),
        lambda **how: PrecisionAtFixedRecall(min_recall=0.6, **how),
        lambda **how: SensitivityAtSpecificity(min_specificity=0.6, **how),
        lambda **how: SpecificityAtSensitivity(min_sensitivity=0.6, **how),
    ],
)
def test_a_constant_per_row_of_logits_changes_no_bit(kind, limit):
    shifted, logits, target = shifted_logits(300, 4)
    metric = kind(num_classes=4, logits=True, exact_up_to=limit)
    assert bits(metric(shifted, target)) == bits(metric(logits, target))


def test_logits_that_a_softmax_would_make_equal_are_told_apart():
    logits = torch.tensor([[40.0, 0, 0], [50, 0, 0], [60, 0, 0], [70, 0, 0], [0, 200, 0], [0, 0, 300]])
    target = torch.tensor([1, 0, 0, 0, 1, 2])
    assert logits.softmax(1)[:4, 0].unique().tolist() == [1]
    assert AUROC(num_classes=3, logits=True, average=None)(logits, target).tolist() == [1, 1, 1]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_logits_are_ranked_in_float32(dtype):
    logits = shifted_logits(500, 4)[1].to(dtype)
    target = shifted_logits(500, 4)[2]
    metric = AUROC(num_classes=4, logits=True)
    assert torch.equal(metric(logits, target), metric(logits.float(), target))


def test_float64_logits_are_ranked_in_float64():
    near = torch.tensor([[1.0, 0.0], [1 + 1e-12, 0.0], [0.0, 1.0]], dtype=torch.float64)
    target = torch.tensor([1, 0, 1])
    metric = AUROC(num_classes=2, logits=True)
    assert metric(near, target) == 1
    assert metric(near.float(), target) == 0.75


def test_impossible_classes_are_ranked_last_and_other_infinite_logits_are_counted():
    metric = AUROC(num_classes=3, logits=True)
    masked = torch.tensor([[1.0, 0, -math.inf], [0, 1, -math.inf], [0, 0, 1], [-math.inf, -math.inf, 0]])
    assert metric(masked, torch.tensor([0, 1, 2, 2])) == 1
    bad = torch.tensor([[math.inf, 0, 0], [0, math.nan, 0], [-math.inf] * 3, [math.inf, math.inf, 0]])
    with pytest.raises(InvalidValuesError, match="4 of the scores are NaN, or infinite so that they have no value"):
        metric(torch.cat([masked, bad]), torch.tensor([0, 1, 2, 2, 0, 1, 2, 0]))
    ignoring = AUROC(num_classes=3, logits=True, ignore_index=-1)
    assert ignoring(torch.cat([masked, bad]), torch.tensor([0, 1, 2, 2, -1, -1, -1, -1])) == 1


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_thresholds_of_multiclass_logits_are_log_odds(limit):
    logits, _, target = shifted_logits(400, 3)
    probabilities = logits.double().softmax(1)
    log_odds = probabilities.log() - torch.log1p(-probabilities)
    curve = ROC(num_classes=3, logits=True, exact_up_to=limit)(logits.double(), target)
    for k in range(3):
        reached = log_odds[:, k] >= curve.thresholds[k][1:, None] - 1e-6
        positive = target == k
        np.testing.assert_allclose(curve.tpr[k][1:], (reached & positive).sum(1) / positive.sum().double())
        np.testing.assert_allclose(curve.fpr[k][1:], (reached & ~positive).sum(1) / (~positive).sum().double())
    value, threshold = RecallAtFixedPrecision(min_precision=0.6, num_classes=3, logits=True)(logits.double(), target)
    for k in range(3):
        chosen = probabilities[:, k] >= torch.sigmoid(threshold[k]) - 1e-9
        assert (target[chosen] == k).double().mean() >= 0.6
        assert (chosen & (target == k)).sum() / (target == k).sum().double() == value[k]
