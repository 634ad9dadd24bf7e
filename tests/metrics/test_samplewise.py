"""The mean over samples of what metrics of labels give for each sample, `multidim_average="samplewise"`."""

from __future__ import annotations

import random
import warnings
from fractions import Fraction
from math import isnan, nan

import pytest
import torch
import torchmetrics.classification as torchmetrics_classes
from sklearn.metrics import f1_score, jaccard_score, precision_score, recall_score

from assay import Meter
from assay.errors import ConfigError, InvalidValuesError, ShapeError
from assay.metrics import (
    Accuracy,
    DiceScore,
    ExactMatch,
    F1Score,
    FBetaScore,
    HammingDistance,
    JaccardIndex,
    NegativePredictiveValue,
    Precision,
    Recall,
    Specificity,
    StatScores,
)
from assay.metrics.per_sample import per_sample_values
from thinning import draws, one_of_each

CLASSES = 4
AVERAGES = ("micro", "macro", "weighted", None)
# What is divided of tp, fp, fn and tn, for one label or class.
SHARES = {
    DiceScore: lambda tp, fp, fn, tn: (2 * tp, 2 * tp + fp + fn),
    FBetaScore: lambda tp, fp, fn, tn: (101 * tp, 101 * tp + 100 * fp + fn),
    JaccardIndex: lambda tp, fp, fn, tn: (tp, tp + fp + fn),
    NegativePredictiveValue: lambda tp, fp, fn, tn: (tn, tn + fn),
    Precision: lambda tp, fp, fn, tn: (tp, tp + fp),
    Recall: lambda tp, fp, fn, tn: (tp, tp + fn),
    Specificity: lambda tp, fp, fn, tn: (tn, tn + fp),
}
OF_ALL = {  # of labels; of classes the right ones are among those that are the target
    Accuracy: lambda tp, fp, fn, tn: (tp + tn, tp + fp + fn + tn),
    HammingDistance: lambda tp, fp, fn, tn: (fp + fn, tp + fp + fn + tn),
}
OF_CLASS = {
    Accuracy: lambda tp, fp, fn, tn: (tp, tp + fn),
    HammingDistance: lambda tp, fp, fn, tn: (fn, tp + fn),
}
KINDS = [*SHARES, *OF_ALL]


def counts_of(task, predicted, target, ignored):
    """The outcomes of each class or label of one sample, and whether it has data."""
    pairs = [(p, t) for p, t in zip(predicted, target, strict=True)]
    if task == "multilabel":
        groups = [pairs[k * len(pairs) // 3 : (k + 1) * len(pairs) // 3] for k in range(3)]
        positive = [1, 1, 1]
    else:
        positive = [1] if task == "binary" else range(CLASSES)
        groups = [pairs] * len(positive)
    for one, group in zip(positive, groups, strict=True):
        shown = [(p == one, t == one) for p, t in group if t != ignored]
        tp, fp, fn, tn = (shown.count(each) for each in ((True, True), (True, False), (False, True), (False, False)))
        data = bool(tp + fp + fn) and one != ignored if task == "multiclass" else bool(shown)
        yield tp, fp, fn, tn, data


def of_sample(kind, task, average, undefined, predicted, target, ignored):
    """The values of one sample, None where it has none."""
    share = (SHARES | (OF_CLASS if task == "multiclass" else OF_ALL))[kind]
    outcomes = list(counts_of(task, predicted, target, ignored))
    if kind is JaccardIndex and task == "multiclass":
        outcomes = [(tp, fp * data, fn, tn, data) for tp, fp, fn, tn, data in outcomes]
    if average == "micro" and task != "binary":
        outcomes = [tuple(map(sum, list(zip(*outcomes, strict=True))))]
    none = None if isnan(undefined) else Fraction(undefined)
    values = []
    for tp, fp, fn, tn, data in outcomes:
        above, below = share(tp, fp, fn, tn)
        values.append((Fraction(above, below) if below else none) if data else None)
    if task == "binary" or average in (None, "micro"):
        return values
    weights = [tp + fn if average == "weighted" else 1 for tp, _, fn, _, _ in outcomes]
    if average == "weighted" and not any(weights) and any(each[4] for each in outcomes):
        return [Fraction(0) if kind in (Accuracy, Specificity, HammingDistance) else none]
    pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    total = sum(weight for _, weight in pairs)
    return [sum(value * weight for value, weight in pairs) / total if total else None]


def mean_of_samples(values, weights):
    """The means over the samples that have a value."""
    means = []
    for column in zip(*values, strict=True):
        pairs = [(value, weight) for value, weight in zip(column, weights, strict=True) if value is not None]
        total = sum(weight for _, weight in pairs)
        means.append(float(sum(value * weight for value, weight in pairs) / total) if total else nan)
    return means


def rows_of(labels):
    return labels.reshape(len(labels), -1).tolist()


def drawn(task, rng):
    """A task's arguments, and labels with constants, absent classes and few positions."""
    samples, positions = rng.randint(1, 6), rng.choice([(), (1,), (3,), (2, 4)])
    shape = (samples, *([3] if task == "multilabel" else []), *positions)
    high = rng.randint(1, CLASSES) if task == "multiclass" else rng.randint(1, 2)
    preds, target = (torch.tensor(rng.choices(range(high), k=torch.Size(shape).numel())).view(shape) for _ in range(2))
    return {"binary": {}, "multiclass": {"num_classes": CLASSES}, "multilabel": {"num_labels": 3}}[task], preds, target


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
@one_of_each(lambda kind, **_: kind)
def test_the_value_is_the_mean_of_fractions(kind, task):
    rng = random.Random(f"{kind.__name__} {task}")
    for _ in draws(200):
        arguments, preds, target = drawn(task, rng)
        average, ignored = rng.choice(AVERAGES), rng.choice([None, None, 0, -1])
        if ignored == -1:
            target = target.masked_fill(
                torch.tensor(rng.choices([False, False, True], k=target.numel())).view(target.shape), -1
            )
        options = {} if task == "binary" else {"average": average}
        undefined = 1.0 if kind is HammingDistance else 0.0
        if "zero_division" in kind.arguments:
            options["zero_division"] = undefined = rng.choice([0.0, 1.0, nan])
        options |= {"beta": 0.1} if kind is FBetaScore else {}
        metric = kind(multidim_average="samplewise", ignore_index=ignored, **arguments, **options)
        weights = rng.choice([None, [rng.choice([0, 1, 2.5]) for _ in preds]])
        rows = zip(rows_of(preds), rows_of(target), strict=True)
        values = [of_sample(kind, task, average, undefined, *row, ignored) for row in rows]
        expected = mean_of_samples(values, [1] * len(preds) if weights is None else list(map(Fraction, weights)))
        meter = Meter(metric, weighted=weights is not None)
        meter.update(preds, target, weights=None if weights is None else torch.tensor(weights))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (value,) = meter.compute().values()
        torch.testing.assert_close(
            value.view(-1), torch.tensor(expected, dtype=torch.float64), rtol=1e-15, atol=1e-16, equal_nan=True
        )


@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in (DiceScore, JaccardIndex)])
def test_it_is_the_mean_of_what_torchmetrics_gives(kind, average):
    generator = torch.Generator().manual_seed(3)
    beta = {"beta": 2.0} if kind is FBetaScore else {}
    for task, count, high in (("Binary", {}, 2), ("Multiclass", {"num_classes": 3}, 3), ("Multilabel", {}, 2)):
        count = {"num_labels": 3} if task == "Multilabel" else count
        target = torch.randint(0, high, (9, 3, 2, 5), generator=generator)
        preds = torch.rand(9, 3, 3, 2, 5, generator=generator).softmax(1) if task == "Multiclass" else None
        preds = torch.rand(target.shape, generator=generator) if preds is None else preds
        options = {} if task == "Binary" else {"average": average}
        theirs = getattr(torchmetrics_classes, task + kind.__name__)
        given = theirs(**count, **options, **beta, multidim_average="samplewise")(preds, target)
        ours = kind(**count, **options, **beta, multidim_average="samplewise")(preds, target)
        torch.testing.assert_close(ours, given.double().mean(), rtol=1e-6, atol=1e-6)


def drawn_labels(task, rng):
    """Arguments and labels of a task, most of them right, some ignored."""
    arguments, preds, target = drawn(task, rng)
    preds = torch.where(torch.tensor(rng.choices([0, 1], k=target.numel())).view(target.shape) == 0, preds, target)
    hidden = torch.tensor(rng.choices([0, 0, 0, 1], k=target.numel())).view(target.shape) == 1
    hidden.view(len(target), -1)[:, 0] = False  # TorchMetrics counts samples of ignored labels only
    return arguments, preds, target.masked_fill(hidden, -1) if rng.random() < 0.5 else target


@pytest.mark.parametrize("task", ["binary", "multiclass", "multilabel"])
def test_counts_are_the_means_of_those_of_torchmetrics(task):
    rng = random.Random(task)
    theirs = getattr(torchmetrics_classes, f"{task.title()}StatScores")
    for _ in draws(40):
        arguments, preds, target = drawn_labels(task, rng)
        if target.ndim < 2 + (task == "multilabel") or len(target) == 1:
            continue  # TorchMetrics wants positions, and drops the dimension of a single sample
        average = rng.choice(("micro", "macro", None) if task == "multilabel" else AVERAGES)
        options = arguments | ({} if task == "binary" else {"average": average})
        options |= {"multidim_average": "samplewise", "ignore_index": -1}
        value = torch.stack(StatScores(**options)(preds, target), -1)
        wanted = theirs(**options)(preds, target).double().mean(0)
        torch.testing.assert_close(value, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_counts_weighted_by_support_are_means_of_fractions(task):
    rng = random.Random(f"{task} by support")
    for _ in draws(40):
        arguments, preds, target = drawn_labels(task, rng)
        weights = [rng.choice([0, 1, 2.5]) for _ in preds]
        values = []
        for row in zip(rows_of(preds), rows_of(target), strict=True):
            of = [(tp, fp, tn, fn, tp + fn) for tp, fp, fn, tn, _ in counts_of(task, *row, -1)]
            total = sum(each[4] for each in of)
            values.append([Fraction(sum(each[k] * each[4] for each in of), total) if total else None for k in range(5)])
        expected = mean_of_samples(values, list(map(Fraction, weights)))
        metric = StatScores(**arguments, average="weighted", multidim_average="samplewise", ignore_index=-1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = torch.stack(metric(preds, target, weights=torch.tensor(weights)))
        wanted = torch.tensor(expected, dtype=torch.float64)
        torch.testing.assert_close(value, wanted, rtol=1e-15, atol=1e-16, equal_nan=True)


def test_long_samples_have_exact_counts_weighted_by_support():
    target = torch.zeros(1, 3_000_001, dtype=torch.int64)
    target[:, -1] = 1
    value = StatScores(num_classes=3, average="weighted", multidim_average="samplewise")(target, target)
    assert value.tp == float(Fraction(3_000_000**2 + 1, 3_000_001))


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_exact_match_is_the_mean_of_those_of_torchmetrics(task):
    rng = random.Random(task)
    theirs = getattr(torchmetrics_classes, f"{task.title()}ExactMatch")
    for _ in draws(40):
        arguments, preds, target = drawn_labels(task, rng)
        if target.ndim != 2 + (task == "multilabel"):
            continue
        target = target.clamp(min=0)
        options = arguments | {"multidim_average": "samplewise"}
        value = ExactMatch(**options)(preds, target)
        assert float(value) == pytest.approx(float(theirs(**options)(preds, target).double().mean()))


def test_exact_match_is_of_the_positions_that_are_not_ignored():
    target = torch.tensor([[[1, 0, -1], [1, -1, -1]], [[-1, -1, -1], [-1, -1, -1]], [[0, 0, 0], [0, 0, 0]]])
    preds = torch.tensor([[[1, 1, 0], [1, 1, 0]], [[0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]])
    metric = ExactMatch(num_labels=2, multidim_average="samplewise", ignore_index=-1)
    assert metric(preds, target) == (1 / 2 + 1) / 2
    each = per_sample_values(metric, preds, target)
    assert each.terms[each.numerator].tolist() == [0.5, 0, 1]
    assert each.terms[each.denominator].tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("kind", "theirs"),
    [(F1Score, f1_score), (JaccardIndex, jaccard_score), (Precision, precision_score), (Recall, recall_score)],
)
def test_the_labels_of_a_sample_are_scikit_learns_average_over_samples(kind, theirs):
    generator = torch.Generator().manual_seed(4)
    for undefined in (0.0, 1.0):
        preds, target = (torch.randint(0, 2, (40, 3), generator=generator) for _ in range(2))
        metric = kind(num_labels=3, average="micro", multidim_average="samplewise", zero_division=undefined)
        expected = theirs(target, preds, average="samples", zero_division=undefined)
        assert float(metric(preds, target)) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_any_split_gives_the_same_bits(average):
    generator = torch.Generator().manual_seed(5)
    preds, target = (torch.randint(0, 5, (97, 7, 3), generator=generator) for _ in range(2))
    metric = F1Score(num_classes=5, average=average, multidim_average="samplewise")
    for size in (1, 2, 13, 96):
        meter = Meter(metric)
        for at in reversed(range(0, 97, size)):
            meter.update(preds[at : at + size], target[at : at + size])
        (value,) = meter.compute().values()
        assert torch.equal(value, metric(preds, target))


def test_samples_may_differ_in_their_number_of_labels():
    long, short = torch.ones(1, 99, dtype=torch.int64), torch.zeros(1, 1, dtype=torch.int64)
    meter = Meter(Accuracy(multidim_average="samplewise"))
    meter.update(long, long)
    meter.update(short, 1 - short)
    (value,) = meter.compute().values()
    assert value == 0.5


@pytest.mark.parametrize("ignored", [None, 2])
def test_each_sample_has_its_value(ignored):
    generator = torch.Generator().manual_seed(6)
    preds, target = (torch.randint(0, 3, (20, 4), generator=generator) for _ in range(2))
    target[3] = 2
    metric = Recall(num_classes=3, multidim_average="samplewise", ignore_index=ignored)
    weights = torch.rand(20, generator=generator)
    each = per_sample_values(metric, preds, target)
    numerator, denominator = each.terms[each.numerator], each.terms[each.denominator]
    assert denominator[3] == (ignored is None)
    torch.testing.assert_close((numerator.sum() / denominator.sum()).double(), metric(preds, target), rtol=1e-6, atol=0)
    each = per_sample_values(metric, preds, target, weights=weights)
    value = each.terms[each.numerator].sum() / each.terms[each.denominator].sum()
    torch.testing.assert_close(value.double(), metric(preds, target, weights=weights), rtol=1e-6, atol=0)
    assert not metric.closed_form
    assert per_sample_values(Recall(num_classes=3, multidim_average="samplewise", average=None), preds, target) is None


def test_bad_input_raises():
    with pytest.raises(ConfigError, match=r"multidim_average.*'samples'"):
        F1Score(multidim_average="samples")
    metric = F1Score(num_classes=3, multidim_average="samplewise")
    labels = torch.zeros(4, 5, dtype=torch.int64)
    with pytest.raises(ShapeError, match="weights"):
        metric(labels, labels, weights=torch.ones(4, 5))
    with pytest.raises(InvalidValuesError, match=r"2 of the targets are outside 0 \.\.\. 2"):
        metric(labels[:2], labels.index_fill(1, torch.tensor(1), 3)[:2])
    with pytest.raises(InvalidValuesError, match=r"4 of the predictions are NaN or outside 0 \.\.\. 2"):
        metric(labels.index_fill(1, torch.tensor(1), -1), labels)
    huge = FBetaScore(beta=3e6, multidim_average="samplewise")
    with pytest.raises(ShapeError, match="labels a sample"):
        huge(labels, labels)
    endless = torch.zeros(1, dtype=torch.int64).expand(1, 1 << 31)
    with pytest.raises(ShapeError, match="labels a sample"):
        StatScores(num_classes=3, multidim_average="samplewise")(endless, endless)
