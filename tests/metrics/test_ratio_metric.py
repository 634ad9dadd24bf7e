"""Ratios of outcomes that a user states: values against fractions, and that nothing is claimed which is not stated."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import pytest
import torch

from assay.errors import ConfigError, ShapeError
from assay.meter import Meter
from assay.meter.resampling.intervals import closed_forms
from assay.metrics import BalancedAccuracy, F1Score, HammingDistance, Recall
from assay.metrics.classification.ratio import OutcomeWeights, Ratio
from assay.metrics.classification.ratio_metric import RatioMetric
from assay.metrics.per_sample import per_sample_values
from assay.stats.intervals import wilson

CLASSES = 3
TASKS = {"binary": {}, "multiclass": {"num_classes": CLASSES}, "multilabel": {"num_labels": CLASSES}}
KINDS = ((1, 1), (1, 0), (0, 1), (0, 0))
AVERAGES = [
    ("binary", "macro"),
    *((task, each) for task in list(TASKS)[1:] for each in ("micro", "macro", "weighted", None)),
]


@dataclass(frozen=True, kw_only=True)
class TverskyIndex(RatioMetric):
    """True positives among them and the errors, each kind of which has a weight."""

    ratio = Ratio("tp", "tp + alpha fp + beta fn")
    alpha: float = 0.5
    beta: float = 0.5


def sample(task):
    """Labels `(20, ...)` of which some classes are rare, and weights that are sums of powers of 2."""
    generator = torch.Generator().manual_seed(3)
    shape = (20, CLASSES, 4) if task == "multilabel" else (20, 4)
    most = CLASSES if task == "multiclass" else 2
    preds, target = (torch.randint(0, most, shape, generator=generator) for _ in range(2))
    if task == "multilabel":
        target[:, 2] = preds[:, 2] = 0
    weights = torch.randint(1, 9, (20,), generator=generator) / 8
    return preds, target, weights


def outcomes(preds, target, weights, task):
    """Fractions `tp, fp, fn, tn` of each class, or of the positive class of each label; and whether it has data."""
    counts = Counter()
    for row, weight in enumerate(weights):
        labels = [0] if preds[row].ndim == 1 else range(CLASSES)
        for label in labels:
            p, t = (each[row].view(len(labels), -1)[label].tolist() for each in (preds, target))
            for pair in zip(p, t, strict=True):
                counts[label, *pair] += Fraction(float(weight))
    if task == "multiclass":
        every = [[of_class(counts, k, *kind) for kind in KINDS] for k in range(CLASSES)]
        return every, [any(each[:3]) for each in every]
    every = [[counts[label, *kind] for kind in KINDS] for label in labels]
    return every, [any(each) for each in every]


def of_class(counts, k, predicted, true):
    return sum(n for (_, p, t), n in counts.items() if ((p == k), (t == k)) == (predicted, true))


def tversky(of, metric):
    alpha, beta = Fraction(metric.alpha), Fraction(metric.beta)
    below = of[0] + alpha * of[1] + beta * of[2]
    return of[0] / below if below else None


def expected(every, present, metric):
    """The values in fractions, with None for one that is undefined; a list of one value for an average."""
    zero = None if math.isnan(metric.zero_division) else Fraction(metric.zero_division)
    average = metric.average if metric.num_classes or metric.num_labels else None
    if average == "micro":
        every, present = [[sum(each) for each in zip(*every, strict=True)]], [any(present)]
    values = [zero if (value := tversky(of, metric)) is None else value for of in every]
    values = [value if has else None for value, has in zip(values, present, strict=True)]
    if average in (None, "micro"):
        return values
    weights = [1] * len(every) if average == "macro" else [of[0] + of[2] for of in every]
    pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if value is not None]
    total = sum(weight for _, weight in pairs)
    if average == "weighted" and not total and any(present) and zero is not None:
        return [zero]
    return [sum(value * weight for value, weight in pairs) / total if total else None]


def floats(values):
    return [math.nan if value is None else float(value) for value in values]


@pytest.mark.parametrize("zero_division", [0.0, 1.0, math.nan])
@pytest.mark.parametrize(("task", "average"), AVERAGES)
def test_a_ratio_of_ones_own_is_that_of_fractions(task, average, zero_division):
    preds, target, weights = sample(task)
    options = {**TASKS[task], "average": average, "zero_division": zero_division, "alpha": 0.3, "beta": 2.0}
    metric = TverskyIndex(**options)
    for each in (torch.ones(20), weights):
        counts = outcomes(preds, target, each, task)
        given = None if bool((each == 1).all()) else each
        found = metric(preds, target, weights=given).view(-1).tolist()
        assert found == pytest.approx(floats(expected(*counts, metric)), abs=0, nan_ok=True)
        rows = [outcomes(preds[k : k + 1], target[k : k + 1], [1], task) for k in range(20)]
        parts = [expected(*row, metric) for row in rows]
        means = []
        for column in zip(*parts, strict=True):
            of = [(Fraction(float(w)), value) for w, value in zip(each, column, strict=True) if value is not None]
            means.append(sum(w * value for w, value in of) / sum(w for w, _ in of) if of else None)
        samplewise = TverskyIndex(**options, multidim_average="samplewise")
        found = samplewise(preds, target, weights=given).view(-1).tolist()
        assert found == pytest.approx(floats(means), abs=1e-15, nan_ok=True)


def test_the_best_of_several_scores_count_for_it_too():
    scores, target = torch.tensor([[0.1, 0.5, 0.4], [0.6, 0.3, 0.1]]), torch.tensor([2, 2])
    ends = TverskyIndex(num_classes=3, top_k=2, average="micro", alpha=1.0, beta=1.0)(scores, target)
    assert ends == 1 / 3


@pytest.mark.parametrize("task", TASKS)
def test_nothing_is_claimed_that_is_not_stated(task):
    metric = TverskyIndex(**TASKS[task], **({} if task == "binary" else {"average": "micro"}))
    preds, target = (each[..., 0] for each in sample(task)[:2])
    meter = Meter(value=metric)
    meter.update(preds, target)
    assert (metric.closed_form, closed_forms(meter), metric.higher_is_better) == ("", {}, None)
    assert per_sample_values(metric, preds, target) is None
    assert metric.exact_terms  # as its weights are integers and fractions


@dataclass(frozen=True, kw_only=True)
class ThreatScore(RatioMetric):
    """The Jaccard index by the name that it has in meteorology."""

    ratio = Ratio("tp", "tp + fp + fn")
    share_of_samples = ratio
    samples_of_class = ("true positives", "positives or predicted positives")


def test_what_is_stated_is_given():
    preds, target = torch.tensor([1, 1, 0, 1, 0]), torch.tensor([1, 0, 0, 1, 1])
    meter = Meter(value=ThreatScore())
    meter.update(preds, target)
    interval = closed_forms(meter)["value"]
    assert (interval.method, (interval.lower, interval.upper)) == ("Wilson's interval", wilson(2, 4, 0.95))
    terms = per_sample_values(ThreatScore(), preds, target)
    assert [terms.terms[name].tolist() for name in (terms.numerator, terms.denominator)] == [
        [True, False, False, True, False],
        [True, True, False, True, True],
    ]


@pytest.mark.parametrize(
    ("ratio", "share", "target", "successes", "function"),
    [
        (Ratio("tp", "tp + 2 fp + 2 fn"), Ratio("tp", "tp + fp + fn"), [1, 0, 0, 1, 1], 2, lambda end: end / (2 - end)),
        (Ratio("tp", "fp"), Ratio("tp", "tp + fp"), [1, 0, 0, 1, 1], 2, lambda end: end / (1 - end)),
        (
            Ratio("tp", "fp"),
            Ratio("tp", "tp + fp"),
            [1, 1, 0, 1, 1],
            3,
            lambda end: end / (1 - end) if end < 1 else math.inf,
        ),
    ],
)
def test_an_increasing_function_of_a_share_has_the_interval_of_that(ratio, share, target, successes, function):
    meter = Meter(value=make(ratio, share_of_samples=share)())
    meter.update(torch.tensor([1, 1, 0, 1, 0]), torch.tensor(target))
    interval = closed_forms(meter)["value"]
    among = 4 if "fn" in share.below else 3
    assert (interval.lower, interval.upper) == pytest.approx([function(end) for end in wilson(successes, among, 0.95)])


def test_of_one_class_a_share_of_all_samples_may_be_stated():
    correct = make(Ratio("tp + tn", "tp + fp + fn + tn"), samples_of_class=("correct", ""))
    assert correct.samples_of_class == ("correct", "")
    with pytest.raises(ConfigError, match="samples_of_class"):
        make(Ratio("tp", "tp + fp"), samples_of_class=("correct", ""))


def make(ratio, **stated):
    return dataclass(frozen=True, kw_only=True)(type("Own", (RatioMetric,), {"ratio": ratio, **stated}))


@pytest.mark.parametrize(
    ("ratio", "stated", "message"),
    [
        (Ratio("tp", "tp + 2 fp"), {"share_of_samples": Ratio("tp", "tp + 2 fp")}, "share_of_samples"),
        (Ratio("tp", "tp + 2 fp + fn"), {"share_of_samples": Ratio("tp", "tp + fp + fn")}, "share_of_samples"),
        (Ratio("tp", "tp + fp"), {"share_of_samples": Ratio("tp", "tp + fn")}, "share_of_samples"),
        (Ratio("fp", "tp + fp"), {"share_of_samples": Ratio("tp", "tp + fp")}, "share_of_samples"),
        (Ratio("tp", "tp + 2 fp"), {"samples_of_class": ("true positives", "positives")}, "samples_of_class"),
        (Ratio("tp", "tp + fp"), {"samples_of_class": ("hits", "")}, "samples_of_class"),
        (Ratio("tp", "tp + fp + fn"), {"pooled": "correct"}, "pooled"),
        (Ratio("tn", "tn + fp"), {"pooled": "correct"}, "pooled"),
        (lambda self, of: (of.tp, of.tp + of.fp), {}, "a Ratio"),
        (Ratio("tp", "tp + gamma fp"), {}, "gamma"),
        (Ratio("tp", "fp - fn"), {}, "0 or more"),
    ],
)
def test_what_is_not_true_of_a_ratio_raises_when_the_class_is_made(ratio, stated, message):
    with pytest.raises(ConfigError, match=message):
        make(ratio, **stated)


@pytest.mark.parametrize("text", ["tp + 0.5 fp", "tp + 1/0 fp", "tp + 1e2 fp", "tp + alpha * (fp + fn)", "1", "", 0.5])
def test_a_sum_has_no_floats(text):
    with pytest.raises(ConfigError, match=r"Ratio.*1/2 fp"):
        Ratio("tp", text)


@dataclass(frozen=True, kw_only=True)
class PooledTversky(RatioMetric):
    """A Tversky index that says what it is of pooled classes, which holds for some arguments."""

    ratio = Ratio("tp", "tp + alpha fp + beta fn")
    pooled = "correct"
    alpha: float = 0.25
    beta: float = 0.75


def test_a_statement_about_fields_is_checked_for_each_metric():
    assert PooledTversky(num_classes=3, average="micro").closed_form == "Wilson's interval"
    with pytest.raises(ConfigError, match="pooled"):
        PooledTversky(num_classes=3, average="micro", alpha=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": -0.5}, "alpha fp"),
        ({"alpha": math.inf}, "alpha: got inf, expected a finite number"),
        ({"beta": math.nan}, "beta"),
        ({"zero_division": 0.5}, "zero_division"),
        ({"average": "micro"}, "average"),
    ],
)
def test_arguments_of_ones_own_are_checked(options, message):
    with pytest.raises(ConfigError, match=message):
        TverskyIndex(**options)


def test_a_metric_with_a_ratio_is_final():
    with pytest.raises(ConfigError, match="a subclass of Recall"):
        type("Own", (Recall,), {})


def test_what_is_no_share_has_another_range_and_is_not_divided_in_each_sample():
    odds, benefit = make(Ratio("tp", "fp")), make(Ratio("tp - 1/2 fp", "tp + fp + fn + tn"))
    assert [each().value_range for each in (odds, benefit)] == [(0.0, math.inf), (-math.inf, math.inf)]
    preds, target = torch.tensor([1, 1, 1, 0]), torch.tensor([1, 0, 1, 1])
    assert (odds()(preds, target), benefit()(preds, target)) == (2.0, 0.375)
    for kind in (odds, benefit):
        with pytest.raises(ConfigError, match="samplewise"):
            kind(multidim_average="samplewise")


def test_a_field_that_is_a_class_variable_is_no_argument():
    assert "zero_division" not in HammingDistance.arguments
    with pytest.raises(TypeError, match="zero_division"):
        HammingDistance(zero_division=0.0)


@pytest.mark.parametrize(
    ("ratio", "classes", "largest"),
    [("2 tp + fn + fp", 1, 2), ("tn + fp", 5, 6), ("tp + 3 fp + 4 fn", 5, 7), ("tp + 1/2 fp", 1, 2)],
)
def test_the_largest_denominator_follows_from_the_weights(ratio, classes, largest):
    assert Ratio("tp", ratio).weights().largest(classes) == largest


def test_samples_with_too_many_labels_for_the_weights_are_refused():
    metric = TverskyIndex(alpha=2.0**40, beta=1.0, multidim_average="samplewise")
    with pytest.raises(ShapeError, match="at most 1"):
        metric(torch.ones(2, 3, dtype=torch.int64), torch.ones(2, 3, dtype=torch.int64))


def test_weights_are_integers_of_one_unit():
    assert Ratio("tp", "tp + 1/2 fp + 1/3*fn").weights() == OutcomeWeights((6, 0, 0, 0), (6, 3, 2, 0))
    assert F1Score.ratio.weights() == OutcomeWeights((2, 0, 0, 0), (2, 1, 1, 0))
    assert Ratio("tp - fp + tp", "tp").weights().above == (2, -1, 0, 0)


def test_averages_of_weights_far_apart_keep_their_digits():
    preds, target = torch.tensor([0, 1, 1, 0]), torch.tensor([0, 0, 1, 1])
    weights = [3e-20, 7e20, 1e-25, 5e10]
    first, second, third, fourth = map(Fraction, weights)
    expected = (first / (first + second) + third / (third + fourth)) / 2
    for metric in (Recall(num_classes=2), BalancedAccuracy(num_classes=2)):
        value = metric(preds, target, weights=torch.tensor(weights, dtype=torch.float64))
        assert float(value) == float(expected)
