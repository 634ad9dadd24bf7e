"""Intervals of what is read from counts of labels; the counts are drawn, not the samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

import numpy as np

import assay.metrics as m
from assay.metrics.classification.agreement import AgreementMetric
from assay.metrics.classification.label_metrics import LabelMetric
from assay.stats.intervals import Array
from assay.tally.labels.confusion import Counts
from benchmarks.coverage.rows import Found, Random, Row

SHARES = {
    kind.__name__: kind()
    for kind in (
        m.Accuracy,
        m.DiceScore,
        m.F1Score,
        m.HammingDistance,
        m.JaccardIndex,
        m.NegativePredictiveValue,
        m.Precision,
        m.Recall,
        m.SelectionRate,
        m.Specificity,
    )
}


def of_counts(metrics: Mapping[str, LabelMetric], chances: Array, random: Random, size: int) -> Found:
    counts = Counts(random.multinomial(size, chances.ravel()).reshape(1, *chances.shape))
    found = {name: metric.interval(counts, 0.95, size) for name, metric in metrics.items()}
    return {name: None if ends == (0.0, 1.0) else ends for name, ends in found.items()}  # of nothing


def binary(prevalence: float, recall: float, specificity: float) -> Array:
    return np.array(
        [
            [(1 - prevalence) * specificity, (1 - prevalence) * (1 - specificity)],
            [prevalence * (1 - recall), prevalence * recall],
        ]
    )


def value_of(metric: LabelMetric, chances: Array) -> float:
    """The value of chances in the place of counts."""
    if isinstance(metric, AgreementMetric):
        return metric.slopes(chances)[0]
    return float(metric.compute(Counts(np.rint(chances * 1e9).astype(np.int64)[None])))


PRIORS = {
    "3 even classes": np.full(3, 1 / 3),
    "classes of 0.9, 0.07, 0.03": np.array([0.9, 0.07, 0.03]),
    "10 classes of 0.4 to 0.005": np.array([0.4, 0.2, 0.1, 0.1, 0.06, 0.05, 0.04, 0.03, 0.015, 0.005]),
}


def matrix(priors: Array, right: float) -> Array:
    """The chances of a confusion matrix; a class is taken for another as often as that one is there."""
    wrong = np.where(np.eye(len(priors), dtype=bool), 0, priors)
    return priors[:, None] * (right * np.eye(len(priors)) + (1 - right) * wrong / wrong.sum(1, keepdims=True))


def averages(classes: int) -> dict[str, LabelMetric]:
    of = {"num_classes": classes}
    macro = {kind.__name__: kind(average="macro", **of) for kind in (m.F1Score, m.Precision, m.Recall, m.JaccardIndex)}
    return {
        **{f"{name}, macro": metric for name, metric in macro.items()},
        "Specificity, macro": m.Specificity(average="macro", **of),
        "F1Score, weighted": m.F1Score(average="weighted", **of),
        "JaccardIndex, micro": m.JaccardIndex(average="micro", **of),
        "Specificity, micro": m.Specificity(average="micro", **of),
        "FBetaScore, macro, beta = 2": m.FBetaScore(beta=2, average="macro", **of),
        "BalancedAccuracy": m.BalancedAccuracy(**of),
        "CohenKappa": m.CohenKappa(**of),
        "CohenKappa, quadratic": m.CohenKappa(weights="quadratic", **of),
        "MatthewsCorrCoef": m.MatthewsCorrCoef(**of),
    }


FEW_POSITIVES = "few positives (or predicted ones): a share of so few samples takes few values"
FEW_ERRORS = "few errors of a class: their share takes few values"


def rows() -> Iterator[Row]:
    for prevalence, recall, specificity in ((0.5, 0.8, 0.9), (0.05, 0.7, 0.97), (0.005, 0.6, 0.995)):
        chances = binary(prevalence, recall, specificity)
        truth = {name: value_of(metric, chances) for name, metric in SHARES.items()}
        about = f"prevalence {prevalence:g}, recall {recall:g}"
        yield Row(about, partial(of_counts, SHARES, chances), truth, cost=0.5, reason=FEW_POSITIVES)
    for name, priors in PRIORS.items():
        for right in (0.7, 0.95):
            metrics, chances = averages(len(priors)), matrix(priors, right)
            truth = {title: value_of(metric, chances) for title, metric in metrics.items()}
            about = f"{name}, {right:g} right"
            yield Row(about, partial(of_counts, metrics, chances), truth, cost=0.5, reason=FEW_ERRORS)
