"""Classification metrics against scikit-learn and exact fractions, for every task, average and kind of weights."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
import sklearn.metrics as sk
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from assay.errors import ConfigError, DtypeError, InputError, InvalidValuesError, ShapeError
from assay.meter import Meter
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
from assay.tally.confusion import FEW_CLASSES, ClassCounts, Confusion

CLASSES, LABELS = 5, 3
TASKS = {"binary": {}, "multiclass": {"num_classes": CLASSES}, "multilabel": {"num_labels": LABELS}}
AVERAGES = ("micro", "macro", "weighted", None)
every_task = pytest.mark.parametrize("task", TASKS)
every_average = pytest.mark.parametrize("average", AVERAGES)
weighted_or_not = pytest.mark.parametrize("weighted", [False, True])


class Sample(NamedTuple):
    """What assay gets (scores, target, weights) and what the oracle gets (labels, target, weights)."""

    scores: Tensor
    target: Tensor
    weights: Tensor | None
    predicted: np.ndarray

    @property
    def oracle(self) -> tuple[np.ndarray, np.ndarray]:
        return self.target.numpy(), self.predicted

    @property
    def sample_weight(self) -> np.ndarray | None:
        return None if self.weights is None else self.weights.double().numpy()

    def measured_by(self, metric):
        return metric(self.scores, self.target, weights=self.weights)


def sample(task: str, weighted: bool = False, rows: int = 60, seed: int = 0) -> Sample:
    """Random data; in multiclass data the last class neither occurs nor is predicted, the one before only predicted."""
    generator = torch.Generator().manual_seed(seed)
    shape = {"binary": (rows,), "multiclass": (rows, CLASSES), "multilabel": (rows, LABELS)}[task]
    scores = torch.rand(shape, generator=generator)
    weights = torch.rand(rows, generator=generator) + 0.1 if weighted else None
    if task != "multiclass":
        target = torch.randint(0, 2, shape, generator=generator)
        return Sample(scores, target, weights, (scores > 0.5).long().numpy())
    scores[:, -1] = 0
    target = torch.randint(0, CLASSES - 2, (rows,), generator=generator)
    return Sample(scores, target, weights, scores.numpy().argmax(1))


def close(value: Tensor, expected) -> None:
    assert value.dtype == torch.float64
    np.testing.assert_allclose(value.numpy(), expected, rtol=1e-12, atol=1e-15)


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


@every_task
@every_average
@weighted_or_not
@pytest.mark.parametrize("name", OF_SKLEARN, ids=lambda name: getattr(name, "__name__", name))
def test_ratios_are_those_of_scikit_learn(name, task, average, weighted):
    make, function, options = OF_SKLEARN[name]
    data = sample(task, weighted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = averaged_by_sklearn(function, data, task, average, **options)
    close(data.measured_by(make(**TASKS[task], average=average)), expected)


def outcomes_of_sklearn(data: Sample, task: str) -> np.ndarray:
    """tn, fp, fn, tp of each class, or of the positive class."""
    labels = range(CLASSES) if task == "multiclass" else None
    table = sk.multilabel_confusion_matrix(*data.oracle, sample_weight=data.sample_weight, labels=labels)
    return (table[1:] if task == "binary" else table).reshape(-1, 4).T


@every_task
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
    close(data.measured_by(metric(**TASKS[task], average=average)), expected)


@weighted_or_not
@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_accuracy_and_hamming_are_those_of_scikit_learn(task, weighted):
    data = sample(task, weighted)
    options = {"sample_weight": data.sample_weight}
    close(data.measured_by(Accuracy(**TASKS[task])), sk.accuracy_score(*data.oracle, **options))
    hamming = HammingDistance(**TASKS[task], average="micro")
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


@every_task
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
    value = data.measured_by(StatScores(**TASKS[task], average=average))
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


# --- what is left out ----------------------------------------------------------------------------------------------

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


# --- errors --------------------------------------------------------------------------------------------------------

UNKNOWN = "got 'mean', expected 'micro', 'macro', 'weighted' or None"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: F1Score(num_classes=3, average="mean"), f"average: {UNKNOWN}"),
        (lambda: StatScores(average="mean"), f"average: {UNKNOWN}"),
        (
            lambda: Accuracy(num_classes=1),
            "num_classes: got 1, expected 2 or more. For binary data leave num_classes out",
        ),
        (lambda: Accuracy(num_labels=0), "num_labels: got 0, expected 1 or more. Give the number of labels."),
        (
            lambda: Recall(num_classes=3, num_labels=2),
            "Recall: got num_classes=3 and num_labels=2, expected one of them",
        ),
        (
            lambda: Recall(top_k=2),
            "top_k: got 2, expected 1 for data that is not multiclass. Give num_classes, or leave",
        ),
        (lambda: Recall(num_classes=3, top_k=4), "top_k: got 4, expected at most num_classes=3. Give a smaller k."),
        (lambda: Recall(num_classes=3, top_k=0), "top_k: got 0, expected an integer of 1 or more. Give the k of"),
        (lambda: Recall(threshold=1.5), "threshold: got 1.5, expected a probability in [0, 1]. Give a probability;"),
        (lambda: FBetaScore(beta=-1.0), "beta: got -1.0, expected 0 or more. Give how much recall counts against"),
        (lambda: FBetaScore(beta=math.nan), "beta: got nan, expected 0 or more."),
        (lambda: ConfusionMatrix(normalize="rows"), "normalize: got 'rows', expected 'true', 'pred', 'all' or None."),
        (
            lambda: CohenKappa(weights="cubic"),
            "weights: got 'cubic', expected 'linear', 'quadratic' or None",
        ),
        (lambda: CohenKappa(num_labels=3), "num_labels: got 3, expected None: kappa is of two raters of one item."),
        (
            lambda: ConfusionMatrix(num_classes=50_000),
            "num_classes: got 50000, whose Confusion takes 18.6 GiB, expected at most 2 GiB. Use metrics that need no",
        ),
        (
            lambda: Meter(value=ConfusionMatrix(num_classes=3_000), weighted=True),
            "num_classes: got 3000, whose Confusion takes",
        ),
    ],
)
def test_descriptions_that_cannot_be(make, message):
    with pytest.raises(ConfigError) as error:
        make()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("metric", "preds", "target", "kind", "message"),
    [
        (Accuracy(num_classes=3), torch.rand(4), torch.zeros(4).long(), ShapeError, "preds: got shape (N,) and dtype"),
        (Accuracy(num_classes=3), torch.rand(4, 2), torch.zeros(4).long(), ShapeError, "expected shape (N, 3) (scores"),
        (
            Accuracy(),
            torch.rand(4, 2),
            torch.zeros(4).long(),
            ShapeError,
            "expected shape (N,). Pass num_classes=2, as preds has 2 scores for each target.",
        ),
        (
            Accuracy(num_labels=3),
            torch.rand(4, 2),
            torch.zeros(4, 2).long(),
            ShapeError,
            "target: got shape (N, 2), exp",
        ),
        (
            Accuracy(),
            torch.rand(4),
            torch.rand(4),
            DtypeError,
            "target: got torch.float32, expected an integer or bool",
        ),
        (
            Accuracy(),
            torch.rand(4),
            None,
            ShapeError,
            "target: got nothing, expected one label per row. Pass preds and",
        ),
        (
            Accuracy(num_classes=3, top_k=2),
            torch.zeros(4).long(),
            torch.zeros(4).long(),
            DtypeError,
            "preds: got torch.int64, expected scores, for top_k=2. Pass one float score per class.",
        ),
    ],
)
def test_metadata_that_cannot_be(metric, preds, target, kind, message):
    with pytest.raises(kind) as error:
        metric(preds, target)
    assert message in str(error.value)


@every_task
@pytest.mark.parametrize("metric", [Accuracy, ExactMatch])
def test_values_that_cannot_be_raise_when_read(task, metric):
    data = sample(task)
    last = CLASSES - 1 if task == "multiclass" else 1
    target = data.target.clone()
    target.view(-1)[:3] = 77
    target.view(-1)[5] = -2
    message = f"4 of the targets are outside 0 ... {last} and are not ignore_index=-1, expected none"
    with pytest.raises(InvalidValuesError, match=message.replace(".", r"\.")):
        metric(**TASKS[task], ignore_index=-1)(data.scores, target)
    scores = data.scores.clone()
    scores[2:4] = math.nan
    count = 2 * LABELS if task == "multilabel" else 2
    with pytest.raises(InvalidValuesError, match=f"{count} of the predictions are NaN or outside 0"):
        metric(**TASKS[task])(scores, data.target)
    weights = torch.ones(len(scores))
    weights[:2] = torch.tensor([math.inf, math.nan])
    with pytest.raises(InvalidValuesError, match="of the weights are negative, infinite or NaN, expected none"):
        metric(**TASKS[task])(data.scores, data.target, weights=weights)


def test_exact_match_takes_one_weight_per_sample():
    ones = torch.ones(2, 3)
    with pytest.raises(InputError, match=r"weights: got shape \(N, 3\), expected shape \(N,\)\. Give one weight per"):
        ExactMatch()(ones.long(), ones.long(), weights=ones)


@pytest.mark.parametrize("shape", [(2,), (3, 2), (5,)])
def test_scores_that_are_no_probabilities_are_counted_and_not_decided(shape):
    labels = {} if len(shape) == 1 else {"num_labels": shape[1]}
    scores, target = torch.full(shape, 0.75), torch.ones(shape, dtype=torch.int64)
    assert F1Score(**labels)(scores, target) == 1
    scores.view(-1)[0], scores.view(-1)[-1] = -0.25, 1.25
    with pytest.raises(
        InvalidValuesError, match=r"got 2 of the predictions are .* outside \[0, 1\] \(scores of any size are"
    ):
        F1Score(**labels)(scores, target)
    assert F1Score(logits=True, **labels)(scores, target) < 1
