"""Arguments of scikit-learn's metrics: pairs of classes, values over those of guesses, some of the classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from sklearn import metrics as sklearn

from assay import Meter
from assay.errors import ConfigError, NoDataWarning
from assay.metrics import AUROC, BalancedAccuracy, F1Score, JaccardIndex, Precision, Recall

AVERAGES = {
    F1Score: sklearn.f1_score,
    JaccardIndex: sklearn.jaccard_score,
    Precision: sklearn.precision_score,
    Recall: sklearn.recall_score,
}


def drawn(seed: int, rows: int, classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities in steps of 1/8, so with ties, that sum to 1, and targets of every class."""
    draw = np.random.default_rng(seed)
    counts = draw.multinomial(8, np.full(classes, 1 / classes), rows)
    target = np.r_[np.arange(classes), draw.integers(0, classes, rows - classes)]
    return torch.from_numpy(counts / 8).float(), torch.from_numpy(target)


@pytest.mark.parametrize("average", ["macro", "weighted"])
@pytest.mark.parametrize(("rows", "classes"), [(20, 3), (70, 4), (40, 6)])
def test_the_area_of_pairs_of_classes_is_that_of_scikit_learn(rows, classes, average):
    scores, target = drawn(rows, rows, classes)
    found = AUROC(num_classes=classes, multi_class="ovo", average=average)(scores, target)
    expected = sklearn.roc_auc_score(target, scores, multi_class="ovo", average=average)
    assert found.item() == pytest.approx(expected, abs=1e-12)


def test_the_area_of_pairs_is_the_same_in_any_parts_and_of_logits():
    scores, target = drawn(5, 60, 4)
    metric = AUROC(num_classes=4, multi_class="ovo")
    whole = metric(scores, target)
    meter, other = Meter(area=metric), Meter(area=metric)
    meter.update(scores[40:], target[40:])
    other.update(scores[:40], target[:40])
    meter.merge(other)
    assert torch.equal(meter.compute()["area"], whole)
    logits = torch.randn(60, 4, generator=torch.Generator().manual_seed(1))
    of_logits = AUROC(num_classes=4, multi_class="ovo", logits=True)(logits, target)
    assert of_logits.item() == pytest.approx(metric(logits.double().softmax(1), target).item(), abs=1e-12)


def test_a_class_without_samples_has_no_pairs():
    scores, target = drawn(1, 40, 3)
    metric, some = AUROC(num_classes=3, multi_class="ovo"), target != 1
    with pytest.warns(NoDataWarning, match="no sample of class 1"):
        found = metric(scores[some], target[some])
    binary = [AUROC()(scores[some, k], (target[some] == k).long()).item() for k in (0, 2)]
    assert found.item() == pytest.approx(sum(binary) / 2)
    with pytest.warns(NoDataWarning, match="class 1, 2"):
        assert metric(scores[target == 0], target[target == 0]).isnan()


@pytest.mark.parametrize("options", [{}, {"average": None}, {"thresholds": 5}, {"bounds": True}])
def test_pairs_of_classes_need_classes_a_mean_and_all_scores(options):
    classes = {"num_classes": 3} if options else {"num_labels": 3}
    with pytest.raises(ConfigError, match="multi_class='ovo'"):
        AUROC(**classes, **options, multi_class="ovo")


def test_pairs_of_classes_have_no_weights_and_no_interval_in_closed_form():
    metric = AUROC(num_classes=3, multi_class="ovo")
    with pytest.raises(ConfigError, match="weights"):
        Meter(weighted=True, area=metric)
    assert not metric.closed_form
    assert not metric.is_smooth


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_the_adjusted_balanced_accuracy_is_that_of_scikit_learn(classes):
    draw = np.random.default_rng(classes)
    metric = BalancedAccuracy(adjusted=True, **({} if classes == 2 else {"num_classes": classes}))
    for rows in (10, 50):
        target, preds = draw.integers(0, classes, rows), draw.integers(0, classes, rows)
        expected = sklearn.balanced_accuracy_score(target, preds, adjusted=True)
        found = metric(torch.from_numpy(preds), torch.from_numpy(target)).item()
        assert found == pytest.approx(expected, abs=1e-12)
        assert metric.value_range[0] <= found <= metric.value_range[1]


def test_the_adjusted_balanced_accuracy_of_guesses_is_0_and_of_one_class_undefined():
    metric, target = BalancedAccuracy(num_classes=3, adjusted=True), torch.tensor([0, 1, 2, 2])
    assert metric(torch.zeros_like(target), target).item() == 0
    assert metric(target, target).item() == 1
    assert BalancedAccuracy(adjusted=True)(torch.tensor([1, 0]), torch.tensor([0, 1])).item() == -1
    with pytest.warns(NoDataWarning):
        assert math.isnan(metric(target * 0, target * 0).item())
    assert not metric.closed_form


@pytest.mark.parametrize("options", [{"num_labels": 3}, {"num_classes": 3, "top_k": 2}])
def test_what_guesses_give_is_known_of_one_class_a_sample(options):
    with pytest.raises(ConfigError, match="adjusted"):
        BalancedAccuracy(adjusted=True, **options)


@pytest.mark.parametrize("kind", AVERAGES)
@pytest.mark.parametrize("average", ["macro", "weighted", "micro", None])
@pytest.mark.parametrize("is_multilabel", [False, True])
def test_some_of_the_classes_in_any_order_are_labels_of_scikit_learn(kind, average, is_multilabel):
    draw, size = np.random.default_rng(7), (60, 4) if is_multilabel else (60,)
    high = 2 if is_multilabel else 4
    target, preds = draw.integers(0, high, size), draw.integers(0, high, size)
    for classes in ((2, 0), (3, 1, 0), [1], (0, 1, 2, 3)):
        expected = AVERAGES[kind](target, preds, labels=list(classes), average=average)
        metric = kind(**{"num_labels" if is_multilabel else "num_classes": 4}, average=average, only_classes=classes)
        found = metric(torch.from_numpy(preds), torch.from_numpy(target))
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)
        assert not metric.closed_form
        assert isinstance(hash(metric), int)


def test_a_class_that_is_ignored_has_no_value_at_its_place():
    target, preds = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 2, 1])
    found = Recall(num_classes=3, average=None, only_classes=(2, 1), ignore_index=1)(preds, target)
    torch.testing.assert_close(found, torch.tensor([0.5, torch.nan], dtype=torch.float64), equal_nan=True)


@pytest.mark.parametrize(
    "options",
    [
        {"only_classes": (0,)},
        {"only_classes": (), "num_classes": 3},
        {"only_classes": (1, 1), "num_classes": 3},
        {"only_classes": (3,), "num_classes": 3},
        {"only_classes": 2, "num_classes": 3},
        {"only_classes": ("a",), "num_classes": 3},
        {"only_classes": (-1,), "num_labels": 3},
        {"only_classes": (0,), "num_labels": 3, "multidim_average": "samplewise"},
    ],
)
def test_classes_that_are_none_are_refused(options):
    with pytest.raises(ConfigError, match="only_classes"):
        F1Score(**options)


def test_the_average_over_samples_says_how_it_is_written():
    with pytest.raises(ConfigError, match="multidim_average='samplewise'"):
        F1Score(num_labels=3, average="samples")
    draw = np.random.default_rng(3)
    target, preds = draw.integers(0, 2, (50, 3)), draw.integers(0, 2, (50, 3))
    metric = F1Score(num_labels=3, average="micro", multidim_average="samplewise")
    expected = sklearn.f1_score(target, preds, average="samples", zero_division=0)
    found = metric(torch.from_numpy(preds), torch.from_numpy(target))
    assert found.item() == pytest.approx(expected, abs=1e-12)
