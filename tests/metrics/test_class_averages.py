"""Averages over classes: slopes in the cells of the confusion matrix, the interval that follows, and replicates."""

import math

import numpy as np
import pytest
import torch

import assay.meter.resampling.replicates as replicates
from assay import Meter
from assay.meter.resampling.intervals import closed_forms
from assay.meter.resampling.replicates import drawn_values
from assay.metrics import (
    AUROC,
    BalancedAccuracy,
    CohenKappa,
    F1Score,
    FBetaScore,
    JaccardIndex,
    MatthewsCorrCoef,
    Precision,
    Recall,
    Specificity,
)
from assay.stats.intervals import clopper_pearson, wilson
from assay.tally.labels.confusion import Counts

MATRIX = np.random.default_rng(0).integers(50, 2000, (4, 4))
METRICS = [
    *(kind(num_classes=4, average="macro") for kind in (F1Score, Precision, Recall, JaccardIndex, Specificity)),
    F1Score(num_classes=4, average="weighted"),
    Precision(num_classes=4, average="weighted"),
    FBetaScore(num_classes=4, average="macro", beta=2.0),
]


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_slopes_are_those_of_one_sample_more_and_one_less(metric):
    value, slopes = metric._slopes(MATRIX.astype(float))
    assert value == pytest.approx(float(metric.compute(Counts(MATRIX[None]))), rel=1e-12)
    for i, j in np.ndindex(4, 4):
        values = []
        for step in (1, -1):
            other = MATRIX.copy()
            other[i, j] += step
            values.append(float(metric.compute(Counts(other[None]))))
        assert slopes[i, j] == pytest.approx((values[0] - values[1]) / 2, rel=1e-4, abs=1e-9)


AGREEMENT = [
    MatthewsCorrCoef(num_classes=4),
    *(CohenKappa(num_classes=4, weights=w) for w in (None, "linear", "quadratic")),
]


@pytest.mark.parametrize("metric", AGREEMENT, ids=repr)
def test_slopes_of_agreement_are_those_of_one_sample_more_and_one_less(metric):
    value, slopes = metric.slopes(MATRIX.astype(float))
    assert value == pytest.approx(float(metric.compute(Counts(MATRIX[None]))), rel=1e-12)
    for i, j in np.ndindex(4, 4):
        values = [float(metric.compute(Counts((MATRIX + step * cell(i, j))[None]))) for step in (1, -1)]
        assert slopes[i, j] == pytest.approx((values[0] - values[1]) / 2, rel=1e-4, abs=1e-9)


def cell(i, j):
    return np.eye(16, dtype=int)[4 * i + j].reshape(4, 4)


@pytest.mark.parametrize("metric", [METRICS[0], *AGREEMENT, BalancedAccuracy(num_classes=4)], ids=repr)
def test_the_interval_is_that_of_the_multinomial(metric):
    lower, upper = metric.interval(Counts(MATRIX[None]), 0.95, int(MATRIX.sum()))
    random = np.random.default_rng(1)
    draws = random.multinomial(MATRIX.sum(), (MATRIX / MATRIX.sum()).ravel(), 2000).reshape(-1, 1, 4, 4)
    spread = np.std([float(metric.compute(Counts(each))) for each in draws])
    assert (upper - lower) / (2 * 1.96 * spread) == pytest.approx(1, abs=0.06)


def test_few_samples_of_a_class_have_no_interval_from_the_matrix():
    matrix = MATRIX.copy()
    matrix[2] = [1, 2, 5, 1]
    assert METRICS[0].interval(Counts(matrix[None]), 0.95, int(matrix.sum())) is None
    assert METRICS[0].interval(Counts(MATRIX[None]), 0.95, 100) is None  # rows of several samples


def test_agreement_has_an_interval_where_each_class_has_some_samples():
    right = np.diag([50, 60, 70, 80])
    for metric in AGREEMENT:
        lower, upper = metric.interval(Counts(right[None]), 0.95, 260)
        assert 0.9 < lower < upper == 1
        few = right.copy()
        few[3] = [3, 3, 2, 1]
        assert metric.interval(Counts(few[None]), 0.95, 260) is None
        assert metric.interval(Counts(right[None]), 0.95, 200) is None  # rows of several samples
    assert CohenKappa().closed_form
    assert not MatthewsCorrCoef(num_labels=3).closed_form


def test_balanced_accuracy_joins_the_intervals_of_recalls():
    metric = BalancedAccuracy(num_classes=2)
    counts = Counts(np.array([[[18, 2], [30, 70]]]))
    for found, of in ((metric.interval, wilson), (metric.safe_interval, clopper_pearson)):
        (l1, u1), (l2, u2) = of(18, 20), of(70, 100)
        lower, upper = found(counts, 0.95, 120)
        assert lower == pytest.approx(0.8 - np.hypot(0.9 - l1, 0.7 - l2) / 2)
        assert upper == pytest.approx(0.8 + np.hypot(u1 - 0.9, u2 - 0.7) / 2)
    assert metric.interval(Counts(np.array([[[20, 0], [2, 7]]])), 0.95, 29) is None
    assert not BalancedAccuracy(num_labels=2).closed_form


def test_classes_without_a_mistake_have_an_interval():
    lower, upper = METRICS[0].interval(Counts(np.diag([50, 60, 70, 80])[None]), 0.95, 260)
    assert 0.9 < lower < upper == 1


@pytest.mark.parametrize("classes", [None, 3])
def test_replicates_to_first_order_are_nearly_the_exact_ones(classes, monkeypatch):
    random = np.random.default_rng(0)
    y = random.integers(0, classes or 2, 3000)
    scores = random.random((3000, classes or 1)) + 0.3 * (
        y[:, None] == np.arange(1 if classes is None else 0, classes or 2)
    )
    scores = scores / (1.3 if classes is None else scores.sum(1, keepdims=True))
    scores = torch.tensor(scores if classes else scores[:, 0], dtype=torch.float32)
    metrics = {"auc": AUROC(num_classes=classes)}
    if classes:
        metrics |= {"f1": F1Score(num_classes=3), "w": AUROC(num_classes=3, average="weighted")}
    groups = [Meter(**metrics) for _ in range(64)]
    for k, group in enumerate(groups):
        group.update(scores[k::64], torch.tensor(y[k::64]))
    exact = drawn_values(groups, 100)
    monkeypatch.setattr(replicates, "FROM_ROWS", 100)
    for name, values in drawn_values(groups, 100).items():
        assert values[0] == exact[name][0]
        assert not np.array_equal(values[1:], exact[name][1:])
        assert np.corrcoef(values[1:], exact[name][1:])[0, 1] > 0.98
        assert np.std(values[1:]) == pytest.approx(np.std(exact[name][1:]), rel=0.03)


def test_macro_f1_of_a_meter_has_the_interval_of_its_matrix():
    meter = Meter(f1=F1Score(num_classes=4))
    target = torch.arange(400) % 4
    meter.update(torch.where(torch.arange(400) % 7 < 5, target, (target + 1) % 4), target)
    found = closed_forms(meter)["f1"]
    assert found.method == "logit interval of the confusion matrix"
    assert math.isfinite(found.lower)
    assert found.lower < 5 / 7 < found.upper
