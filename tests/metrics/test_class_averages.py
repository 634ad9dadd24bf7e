"""Averages over classes: slopes in the cells of the confusion matrix, the interval that follows, and replicates."""

import math

import numpy as np
import pytest
import torch

import assay.meter.replicates as replicates
from assay import Meter
from assay.meter.intervals import closed_forms
from assay.meter.replicates import drawn_values
from assay.metrics import AUROC, F1Score, FBetaScore, JaccardIndex, Precision, Recall, Specificity
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


def test_the_interval_is_that_of_the_multinomial():
    metric = METRICS[0]
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
