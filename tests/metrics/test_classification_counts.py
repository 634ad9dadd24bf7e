"""Metrics of labels for ignored targets, other shapes, large counts, many classes, and without data."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import sklearn.metrics as sk
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from assay.meter import Meter
from assay.metrics.classification.agreement import CohenKappa, MatthewsCorrCoef
from assay.metrics.classification.confusion import ClassReport, ConfusionMatrix, ExactMatch, StatScores
from assay.metrics.classification.rates import (
    Accuracy,
    BalancedAccuracy,
    F1Score,
    HammingDistance,
    JaccardIndex,
    NegativePredictiveValue,
    Precision,
    Recall,
    Specificity,
)
from assay.tally.labels.confusion import FEW_CLASSES, ClassCounts, Confusion
from metrics.labelled_samples import (
    CLASSES,
    LABELS,
    TASKS,
    close,
    every_task,
    sample,
    weighted_or_not,
)

EVERYTHING = {
    "accuracy": Accuracy,
    "balanced": BalancedAccuracy,
    "precision": Precision,
    "specificity": Specificity,
    "npv": NegativePredictiveValue,
    "jaccard": JaccardIndex,
    "hamming": HammingDistance,
    "mcc": MatthewsCorrCoef,
    "matrix": ConfusionMatrix,
    "stats": StatScores,
    "report": ClassReport,
    "match": ExactMatch,
}


def same(a, b) -> None:
    if isinstance(a, Tensor):
        torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)
    else:
        for one, other in zip(a, b, strict=True):
            same(one, other)


OUTSIDE = [-100, -1, 255]


@pytest.mark.parametrize(
    ("task", "ignored"), [(task, k) for task in TASKS for k in (OUTSIDE if task == "multilabel" else [*OUTSIDE, 0, 1])]
)
def test_ignored_targets_are_as_if_they_were_not_there(task, ignored):
    data = sample(task)
    target = data.target.clone()
    target[::3] = ignored
    kept = (target != ignored).view(len(target), -1).all(1)
    scores = data.scores.clone()
    scores[~kept] = math.nan  # nor does it matter what was predicted for them
    for metric in EVERYTHING.values():
        if ignored in (0, 1) and of_classes(metric, task):
            continue  # the class itself is left out, too: test_classification_other_libraries.py
        with_rest = metric(**TASKS[task], ignore_index=ignored)(scores, target)
        same(with_rest, metric(**TASKS[task])(data.scores[kept], target[kept]))


def of_classes(metric, task) -> bool:
    """Whether the value has a part for each class, or is an average over them."""
    macro = task == "multiclass" and getattr(metric(**TASKS[task]), "average", "micro") == "macro"
    return macro or metric is ClassReport


def test_single_labels_can_be_ignored():
    data = sample("multilabel")
    target = data.target.clone()
    target[::2, 1] = -1
    kept = target[:, 1] != -1
    value = Precision(num_labels=LABELS, average=None, ignore_index=-1)(data.scores, target)
    expected = sk.precision_score(target[kept, 1], data.predicted[kept.numpy(), 1])
    close(value[1], expected)
    right = (torch.as_tensor(data.predicted) == target) | (target == -1)
    close(ExactMatch(num_labels=LABELS, ignore_index=-1)(data.scores, target), right.all(1).double().mean())


# --- shapes --------------------------------------------------------------------------------------------------------


@every_task
@weighted_or_not
def test_more_dimensions_are_more_rows(task, weighted):
    data = sample(task, weighted, rows=48)
    shape = (4, 2, 6)

    def arranged(x: Tensor, labels: int) -> Tensor:
        return x.view(*shape, *x.shape[1:]) if labels == 0 else x.view(*shape, -1).movedim(-1, 1)

    preds = arranged(data.scores, data.scores.ndim - 1)
    target = arranged(data.target, data.target.ndim - 1)
    weights = None
    if data.weights is not None:
        weights = data.weights.view(shape)
        if task == "multilabel":
            weights = weights[:, None].expand(target.shape)
    for name, metric in EVERYTHING.items():
        if name != "match":
            same(metric(**TASKS[task])(preds, target, weights=weights), data.measured_by(metric(**TASKS[task])))


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
def test_exact_match_takes_samples_whole():
    preds = torch.tensor([[[1, 2], [0, 1]], [[2, 2], [0, 0]], [[0, 0], [0, 0]]])
    target = torch.tensor([[[1, 2], [0, 1]], [[2, 2], [0, 1]], [[9, 9], [9, 9]]])
    metric = ExactMatch(num_classes=3, ignore_index=9)
    close(metric(preds, target), 1 / 2)
    close(metric(preds, target, weights=torch.tensor([1.0, 3.0, 5.0])), 1 / 4)
    binary = ExactMatch()
    close(binary(torch.tensor([[0.9, 0.1], [0.9, 0.9]]), torch.tensor([[1, 0], [1, 0]])), 1 / 2)
    close(ExactMatch(num_labels=2)(torch.rand(5, 2, 0), torch.ones(5, 2, 0, dtype=torch.long)), math.nan)


def test_labels_as_predictions_are_taken_as_they_are():
    data = sample("multiclass")
    labels = torch.as_tensor(data.predicted)
    for metric in EVERYTHING.values():
        same(metric(num_classes=CLASSES)(labels, data.target), metric(num_classes=CLASSES)(data.scores, data.target))


def test_logits_are_compared_as_logits():
    scores = torch.tensor([-30.0, -0.1, 0.1, 2.0, 30.0])
    target = torch.tensor([0, 1, 1, 0, 1])
    close(Accuracy(logits=True)(scores, target), 3 / 5)
    close(Accuracy(logits=True, threshold=0.9)(scores, target), 3 / 5)
    assert ConfusionMatrix(logits=True, threshold=0.9)(scores, target).tolist() == [[2, 0], [2, 1]]


# --- large counts --------------------------------------------------------------------------------------------------


def meter_of_matrix(metric, matrix) -> Meter:
    """A meter that has counted a confusion matrix, by loading its state."""
    meter = Meter(value=metric)
    target = torch.arange(len(matrix))
    meter.update(target, target)
    state = meter.state_dict()
    state["0.counts"].zero_()[0, 1:-2, 1:-1] = torch.tensor(matrix)
    meter.load_state_dict(state)
    return meter


def test_agreement_is_exact_for_any_number_of_samples():
    """MCC of a rare class, and of 8e9 and 8e17 samples, where float32 and int64 products give out."""
    for scale in (1, 10**9):
        meter = meter_of_matrix(MatthewsCorrCoef(num_classes=2), [[3 * scale, scale], [scale, 3 * scale]])
        assert meter.compute()["value"] == 0.5
    rare = [[999_000_000, 990_000], [9_000, 1_000]]
    (tn, fp), (fn, tp) = rare
    square = Fraction((tp * tn - fp * fn) ** 2, (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
    value = meter_of_matrix(MatthewsCorrCoef(num_classes=2), rare).compute()["value"].item()
    root = math.isqrt(square.numerator * 10**80 // square.denominator)
    assert value == float(Fraction(root, 10**40))
    chance = Fraction((tn + fp) * (tn + fn) + (tp + fn) * (tp + fp), sum(map(sum, rare)) ** 2)
    agreed = Fraction(tp + tn, sum(map(sum, rare)))
    for weights in (None, "linear", "quadratic"):  # all the same for two classes
        value = meter_of_matrix(CohenKappa(num_classes=2, weights=weights), rare).compute()["value"].item()
        assert value == float((agreed - chance) / (1 - chance))


def test_quotients_are_rounded_once():
    matrix = [[2**61 + 1, 2**60], [3, 2**59 - 1]]
    assert meter_of_matrix(Accuracy(num_classes=2), matrix).compute()["value"].item() == float(
        Fraction(2**61 + 2**59, 2**61 + 2**60 + 2**59 + 3)
    )
    macro = meter_of_matrix(Recall(num_classes=2), matrix).compute()["value"].item()
    exact = (Fraction(2**61 + 1, 2**61 + 1 + 2**60) + Fraction(2**59 - 1, 2**59 + 2)) / 2
    assert macro == float(exact)
    shares = meter_of_matrix(ConfusionMatrix(num_classes=2, normalize="true"), matrix).compute()["value"]
    assert shares[1, 0].item() == float(Fraction(3, 2**59 + 2))


@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=4, max_size=4))
def test_weighted_kappa_is_that_of_the_definition(matrix):
    table = np.array(matrix, dtype=object)
    size = int(table.sum())
    for weights, power in (("linear", 1), ("quadratic", 2)):
        cost = [[abs(i - j) ** power for j in range(4)] for i in range(4)]
        expected = np.outer(table.sum(1), table.sum(0))
        above, below = int((cost * table).sum()) * size, int((cost * expected).sum())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = meter_of_matrix(CohenKappa(num_classes=4, weights=weights), matrix).compute()["value"].item()
        if below:
            assert value == float(1 - Fraction(above, below))
        else:
            assert math.isnan(value)


@given(seed=st.integers(0, 2**32 - 1), cuts=st.lists(st.integers(0, 30), max_size=3), weighted=st.booleans())
def test_any_split_reads_the_same_bits(seed, cuts, weighted):
    data = sample("multiclass", weighted, rows=30, seed=seed)
    named = {name: metric(num_classes=CLASSES) for name, metric in EVERYTHING.items()}
    whole, split = (Meter(weighted=weighted, stage_bytes=0, **named) for _ in range(2))
    whole.update(data.scores, data.target, weights=data.weights)
    edges = [0, *sorted(cuts), 30]
    for start, end in reversed(list(pairwise(edges))):
        part = slice(start, end)
        weights = None if data.weights is None else data.weights[part]
        split.update(data.scores[part], data.target[part], weights=weights)
    for name, value in whole.compute().items():
        same(value, split.compute()[name])


# --- values without data -------------------------------------------------------------------------------------------


def test_a_class_without_data_is_left_out_and_reads_nan():
    preds, target = torch.tensor([0, 0, 2]), torch.tensor([0, 1, 1])
    assert torch.isnan(Precision(num_classes=4, average=None)(preds, target)).tolist() == [False, False, False, True]
    close(Precision(num_classes=4)(preds, target), (1 / 2 + 0 + 0) / 3)
    close(Recall(num_classes=4, average="weighted")(preds, target), 1 / 3)
    close(HammingDistance(num_classes=4, average=None)(preds, target), [0, 1, 1, math.nan])


def test_labels_that_no_sample_has():
    preds, target = torch.zeros(4, 2, dtype=torch.long), torch.zeros(4, 2, dtype=torch.long)
    close(Recall(num_labels=2, average=None)(preds, target), [0, 0])
    close(Recall(num_labels=2, average="weighted")(preds, target), 0)
    close(Recall()(preds, target), 0)
    ignored = torch.tensor([[0, -1]] * 4)
    close(Accuracy(num_labels=2, average=None, ignore_index=-1)(preds, ignored), [1, math.nan])
    close(BalancedAccuracy(num_labels=2, ignore_index=-1)(preds, ignored), 1)


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
@every_task
def test_everything_ignored_reads_nan(task):
    data = sample(task)
    target = torch.full_like(data.target, -7)
    for metric in EVERYTHING.values():
        value = metric(**TASKS[task], ignore_index=-7)(data.scores, target)
        for leaf in [value] if isinstance(value, Tensor) else value:
            assert leaf.isnan().all() if leaf.is_floating_point() else not leaf.any()


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
def test_agreement_of_constants():
    constant = torch.zeros(4, dtype=torch.long)
    close(MatthewsCorrCoef(num_classes=3)(constant, constant), 0)
    close(CohenKappa(num_classes=3)(constant, constant), math.nan)


# --- many classes --------------------------------------------------------------------------------------------------


def test_many_classes_are_counted_per_class():
    many = FEW_CLASSES + 1
    metric = Accuracy(num_classes=many)
    assert isinstance(metric.tally(False), ClassCounts)
    assert isinstance(Accuracy(num_classes=FEW_CLASSES).tally(False), Confusion)
    state = Accuracy(num_classes=50_000).tally(False).zero(torch.device("cpu"))
    assert sum(tensor.nbytes for tensor in state.values()) < 2_000_000
    generator = torch.Generator().manual_seed(0)
    preds, target = torch.randint(0, many, (2, 3_000), generator=generator)
    preds = torch.where(torch.rand(3_000, generator=generator) < 0.5, preds, target)
    labels = range(many)
    for average in ("micro", "macro", "weighted"):
        value = F1Score(num_classes=many, average=average)(preds, target)
        close(value, sk.f1_score(target, preds, average=average, labels=labels, zero_division=0))
    close(MatthewsCorrCoef(num_classes=many)(preds, target), sk.matthews_corrcoef(target, preds))
    close(CohenKappa(num_classes=many)(preds, target), sk.cohen_kappa_score(target, preds))
    linear = CohenKappa(num_classes=many, weights="linear")
    close(linear(preds, target), sk.cohen_kappa_score(target, preds, weights="linear"))
