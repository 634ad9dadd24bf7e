"""Classification metrics against scikit-learn and exact fractions, for every task, average and kind of weights."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import sklearn.metrics as sk
import torch

from assay.errors import ConfigError
from assay.metrics.classification.agreement import CohenKappa, MatthewsCorrCoef
from assay.metrics.classification.confusion import ClassReport, ConfusionMatrix, ExactMatch, StatScores
from assay.metrics.classification.rates import (
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
from metrics.labelled_samples import (
    CLASSES,
    LABELS,
    TASKS,
    Sample,
    arguments,
    close,
    every_average,
    every_task,
    sample,
    weighted_or_not,
)


def averaged_by_sklearn(function, data: Sample, task: str, average: str | None, **options):
    """What scikit-learn says; without average, NaN for the class that does not occur."""
    options |= {"sample_weight": data.sample_weight, "zero_division": 0}
    if task == "binary":
        return function(*data.oracle, **options)
    if task == "multiclass" and average is None:
        return [*function(*data.oracle, average=None, labels=range(CLASSES - 1), **options), math.nan]
    return function(*data.oracle, average=average, **options)


OF_SKLEARN = {
    Precision: (Precision, sk.precision_score, {}),
    Recall: (Recall, sk.recall_score, {}),
    F1Score: (F1Score, sk.f1_score, {}),
    DiceScore: (DiceScore, sk.f1_score, {}),
    JaccardIndex: (JaccardIndex, sk.jaccard_score, {}),
    "F0.5": (lambda **named: FBetaScore(beta=0.5, **named), sk.fbeta_score, {"beta": 0.5}),
    "F3": (lambda **named: FBetaScore(beta=3, **named), sk.fbeta_score, {"beta": 3}),
}


@every_average
@weighted_or_not
@pytest.mark.parametrize("name", OF_SKLEARN, ids=lambda name: getattr(name, "__name__", name))
def test_ratios_are_those_of_scikit_learn(name, task, average, weighted):
    make, function, options = OF_SKLEARN[name]
    data = sample(task, weighted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = averaged_by_sklearn(function, data, task, average, **options)
    close(data.measured_by(make(**arguments(task, average))), expected)


def outcomes_of_sklearn(data: Sample, task: str) -> np.ndarray:
    """tn, fp, fn, tp of each class, or of the positive class."""
    labels = range(CLASSES) if task == "multiclass" else None
    table = sk.multilabel_confusion_matrix(*data.oracle, sample_weight=data.sample_weight, labels=labels)
    return (table[1:] if task == "binary" else table).reshape(-1, 4).T


@every_average
@weighted_or_not
@pytest.mark.parametrize("metric", [Specificity, NegativePredictiveValue, Accuracy, HammingDistance])
def test_other_ratios_follow_from_outcomes(metric, task, average, weighted):
    data = sample(task, weighted)
    outcomes = outcomes_of_sklearn(data, task)
    chosen = outcomes.sum(1, keepdims=True) if average == "micro" else outcomes
    tn, fp, fn, tp = chosen
    right, all_ = (tp, tp + fn) if task == "multiclass" else (tp + tn, tp + tn + fp + fn)
    above, below = {
        Specificity: (tn, tn + fp),
        NegativePredictiveValue: (tn, tn + fn),
        Accuracy: (right, all_),
        HammingDistance: (all_ - right, all_),
    }[metric]
    absent = tp + fp + fn == 0 if task == "multiclass" else np.zeros(len(tp), dtype=bool)
    undefined = np.where(absent, math.nan, 1.0 if metric is HammingDistance else 0.0)
    values = np.divide(above, below, out=undefined, where=below != 0)
    if average in ("macro", "weighted"):
        weights = (~absent).astype(float) if average == "macro" else tp + fn
        expected = np.average(np.nan_to_num(values), weights=weights)
    else:
        expected = values
    if task == "binary" or average == "micro":
        expected = np.asarray(expected).reshape(())
    close(data.measured_by(metric(**arguments(task, average))), expected)


@weighted_or_not
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_accuracy_and_hamming_are_those_of_scikit_learn(task, weighted):
    data = sample(task, weighted)
    options = {"sample_weight": data.sample_weight}
    close(data.measured_by(Accuracy(**TASKS[task])), sk.accuracy_score(*data.oracle, **options))
    hamming = HammingDistance(**arguments(task, "micro"))
    close(data.measured_by(hamming), sk.hamming_loss(*data.oracle, **options))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = sk.balanced_accuracy_score(*data.oracle, **options)
    close(data.measured_by(BalancedAccuracy(**TASKS[task])), expected)


@weighted_or_not
def test_multilabel_means_are_those_of_single_labels(weighted):
    data = sample("multilabel", weighted)
    options = {"sample_weight": data.sample_weight}
    columns = [(data.target[:, k].numpy(), data.predicted[:, k]) for k in range(LABELS)]
    balanced = np.mean([sk.balanced_accuracy_score(*column, **options) for column in columns])
    close(data.measured_by(BalancedAccuracy(num_labels=LABELS)), balanced)
    accuracy = [sk.accuracy_score(*column, **options) for column in columns]
    close(data.measured_by(Accuracy(num_labels=LABELS, average=None)), accuracy)
    close(data.measured_by(ExactMatch(num_labels=LABELS)), sk.accuracy_score(*data.oracle, **options))
    pooled = data.target.numpy().ravel(), data.predicted.ravel()
    each = {} if not weighted else {"sample_weight": np.repeat(data.sample_weight, LABELS)}
    close(data.measured_by(MatthewsCorrCoef(num_labels=LABELS)), sk.matthews_corrcoef(*pooled, **each))


@weighted_or_not
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_agreement_is_that_of_scikit_learn(task, weighted):
    data = sample(task, weighted)
    options = {"sample_weight": data.sample_weight}
    close(data.measured_by(MatthewsCorrCoef(**TASKS[task])), sk.matthews_corrcoef(*data.oracle, **options))
    labels = range(CLASSES if task == "multiclass" else 2)
    for weights in (None, "linear", "quadratic"):
        expected = sk.cohen_kappa_score(*data.oracle, weights=weights, labels=labels, **options)
        close(data.measured_by(CohenKappa(**TASKS[task], weights=weights)), expected)


@every_task
@weighted_or_not
@pytest.mark.parametrize("normalize", [None, "true", "pred", "all"])
def test_the_confusion_matrix_is_that_of_scikit_learn(task, weighted, normalize):
    data = sample(task, weighted)
    value = data.measured_by(ConfusionMatrix(**TASKS[task], normalize=normalize))
    labels = range(CLASSES if task == "multiclass" else 2)
    options = {"labels": labels, "sample_weight": data.sample_weight, "normalize": normalize}
    if task == "multilabel":
        columns = zip(data.target.numpy().T, data.predicted.T, strict=True)
        expected = np.stack([sk.confusion_matrix(*column, **options) for column in columns])
    else:
        expected = sk.confusion_matrix(*data.oracle, **options)
    assert value.dtype == (torch.float64 if weighted or normalize else torch.int64)
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-12)


@every_average
@weighted_or_not
def test_stat_scores_are_the_outcomes(task, average, weighted):
    data = sample(task, weighted)
    tn, fp, fn, tp = outcomes_of_sklearn(data, task)
    expected = np.stack([tp, fp, tn, fn, tp + fn])
    if task == "binary":
        expected = expected[:, 0]
    elif average == "micro":
        expected = expected.sum(1)
    elif average is not None:
        expected = np.average(expected, axis=1, weights=tp + fn if average == "weighted" else None)
    value = data.measured_by(StatScores(**arguments(task, average)))
    assert value._fields == ("tp", "fp", "tn", "fn", "support")
    exact = not weighted and (task == "binary" or average in ("micro", None))
    assert value.tp.dtype == (torch.int64 if exact else torch.float64)
    np.testing.assert_allclose(torch.stack(value).numpy(), expected, rtol=1e-12)


@every_task
@weighted_or_not
def test_the_report_has_the_numbers_of_scikit_learn(task, weighted):
    data = sample(task, weighted)
    table = data.measured_by(ClassReport(**TASKS[task]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = sk.classification_report(
            *data.oracle, sample_weight=data.sample_weight, output_dict=True, zero_division=0
        )
    rows = {row[0]: row[1:] for row in table.rows()}
    assert list(rows)[-3:] == ["micro", "macro", "weighted"]
    for name, numbers in expected.items():
        if name in ("accuracy", "samples avg"):
            continue
        np.testing.assert_allclose(rows[name.removesuffix(" avg")], list(numbers.values()), rtol=1e-12, err_msg=name)
    if task == "multiclass":
        assert all(math.isnan(number) for number in rows[str(CLASSES - 1)][:3])
    assert str(table).splitlines()[0].split() == ["precision", "recall", "f1", "support"]
    assert len(str(table).splitlines()) == 1 + len(rows)


def test_the_report_takes_names():
    table = ClassReport(num_classes=2)(torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert [row[0] for row in table.rows(["cat", "dog"])][:2] == ["cat", "dog"]
    with pytest.raises(ConfigError, match=r"names: got 1 names, expected 2\. Give one name for each class\."):
        table.rows(["cat"])


# --- top-k ---------------------------------------------------------------------------------------------------------


def test_top_k_accuracy_is_that_of_scikit_learn():
    data = sample("multiclass")
    for k in range(1, CLASSES):
        expected = sk.top_k_accuracy_score(data.target.numpy(), data.scores.numpy(), k=k, labels=range(CLASSES))
        close(data.measured_by(Accuracy(num_classes=CLASSES, top_k=k)), expected)


def test_top_k_precision_counts_a_miss_as_the_best_class():
    scores = torch.tensor([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.1, 0.2, 0.7], [0.1, 0.2, 0.7]])
    target = torch.tensor([1, 2, 0, 2])
    # Within the top 2: rows 0 and 3. Row 1 counts as class 0 and row 2 as class 2.
    predicted = [1, 0, 2, 2]
    close(
        Precision(num_classes=3, top_k=2, average=None)(scores, target),
        sk.precision_score(target, predicted, average=None, zero_division=0),
    )
