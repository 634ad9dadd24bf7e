"""The interval of an average over rankings of the same samples: of classes against the rest, or of labels.

The values of the rankings depend on each other, as all are of the same samples: so what each sample moves the average
by is added up over the rankings first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from assay.stats.distributions import student_quantile
from assay.stats.intervals import Array, Ends, clopper_pearson_of, on_logit_scale, two_sided_z
from assay.stats.rankings import (
    area_moves,
    binomial_variance,
    newcombe_area,
    precision_bias_of_samples,
    precision_moves,
)

Samples: TypeAlias = tuple[Array, ...]
"""Scores, labels, and what else `RankedValue.moves` takes where it is known."""
Average: TypeAlias = Literal["macro", "weighted", "micro"]

FEWEST = 10
"""Positives and negatives of each class, below which there is no interval."""
FEW = 100
"""Positives or negatives below which an area's placements show too little of their spread."""


@dataclass(frozen=True)
class RankedValue:
    """What is read from a ranking.

    Attributes:
        moves: the value, and how far each sample moves it, from scores and labels, and more of `Samples`.
        least_variance: the least that its variance is, by the value and the number of positives.
        most_samples: of how many samples it is a share at most, by the numbers of positives and negatives.
        bias: how much too high it is, from scores and labels.
        of_few: the interval of a value of few positives or negatives, from it, both numbers and z; None if it has none.
    """

    moves: Callable[..., tuple[float, Array]]
    least_variance: Callable[[float, float], float]
    most_samples: Callable[[float, float], float]
    bias: Callable[[Array, Array], float]
    of_few: Callable[[float, float, float, float], Ends] | None = None


AREA = RankedValue(
    moves=area_moves,
    least_variance=lambda value, positives: 0.0,
    most_samples=lambda positives, negatives: 2 * min(positives, negatives),
    bias=lambda scores, labels: 0.0,
    of_few=newcombe_area,
)
PRECISION = RankedValue(
    moves=precision_moves,
    least_variance=binomial_variance,
    most_samples=lambda positives, negatives: positives,
    bias=precision_bias_of_samples,
)


def averaged_interval(
    rankings: Iterable[Samples],
    of: RankedValue,
    confidence_level: float = 0.95,
    *,
    average: Average = "macro",
    safe: bool = False,
) -> Ends | None:
    """One of the two intervals that `averaged_intervals` gives: that for gates if `safe`."""
    found = averaged_intervals(rankings, of, confidence_level, average=average)
    return None if found is None else found[safe]


def averaged_intervals(
    rankings: Iterable[Samples], of: RankedValue, confidence_level: float = 0.95, *, average: Average = "macro"
) -> tuple[Ends, Ends] | None:
    """The intervals of an average over rankings of the same samples.

    The variance is the sum of the squares of what each sample moves the average by, so that it has the covariances of
    the rankings. The interval is symmetric on the logit scale, with Student's quantile of the degrees of freedom of
    Satterthwaite. Rankings that say the same count as fewer: what bounds the variance from below grows by the design
    effect, the variance of the average over that of independent rankings, where it is above 1 (Kish 1965). The average
    is of ``1 / sum(w² / P)`` positives with the weight w of each ranking, divided by the design effect, and of as many
    negatives. Where these are fewer than `FEW`, the ends are the outer ones of this and of `RankedValue.of_few`.

    Args:
        rankings: the scores and the labels (1, 0, or -1 for left out) of the samples, for each ranking, in one order.
        of: `AREA` or `PRECISION`.
        confidence_level: between 0 and 1.
        average: ``"macro"``, the mean; ``"weighted"``, by positives; ``"micro"``, all labels in one ranking, in which
            those of a sample move the value together.

    Returns:
        Both ends, and those for gates: at least Clopper and Pearson's of as many samples as the error says, and no more
        than ``1 / sum(w² / m)`` with the weight w and the most samples m of each ranking, divided by the design effect
        (Korn & Graubard 1998), and the lower end lower by what the average is too high. None where a ranking has fewer
        than `FEWEST` samples with positives or negatives, and where all values are 0 or 1.

    Example:
        >>> scores = np.random.default_rng(0).normal(size=(60, 3))
        >>> labels = np.arange(60)[:, None] % 3 == np.arange(3)
        >>> found, _ = averaged_intervals(zip((scores + labels).T, labels.T.astype(int)), AREA)
        >>> tuple(round(end, 3) for end in found)
        (0.623, 0.781)
    """
    ranked = list(rankings)
    found = _pooled(ranked, of) if average == "micro" else _mean(ranked, of, average == "weighted")
    if found is None:
        return None
    t = student_quantile((1 + confidence_level) / 2, found.freedom) / two_sided_z(confidence_level)
    ends = on_logit_scale(found.value, max(found.error * t, found.least_error), confidence_level)
    if ends is None:
        return None
    if of.of_few is not None and min(found.positives, found.negatives) < FEW:
        least, most = of.of_few(found.value, found.positives, found.negatives, two_sided_z(confidence_level))
        ends = min(ends[0], least), max(ends[1], most)
    count = min(found.value * (1 - found.value) / found.error**2, found.most_samples)
    others = clopper_pearson_of(found.value * count, count, confidence_level)
    safe = max(0.0, min(ends[0], others[0]) - max(0.0, found.bias)), max(ends[1], others[1])
    return ends, safe


class _Averaged(NamedTuple):
    """An average, its standard error, and what bounds that."""

    value: float
    error: float
    freedom: float
    least_error: float
    most_samples: float
    bias: float
    positives: float
    negatives: float


def _mean(ranked: list[Samples], of: RankedValue, weighted: bool) -> _Averaged | None:
    labels = [each[1] for each in ranked]
    counts = np.array([[(each == 1).sum(), (each == 0).sum()] for each in labels], dtype=np.float64)
    if not ranked or counts.min() < FEWEST:
        return None
    found = [of.moves(*each) for each in ranked]
    values = np.array([value for value, _ in found])
    weights = counts[:, 0] / counts[:, 0].sum() if weighted else np.full(len(values), 1 / len(values))
    average = float(weights @ values)
    moves = sum(weight * each for weight, (_, each) in zip(weights, found, strict=True))
    if weighted:
        apart = sum((value - average) * (each == 1) for value, each in zip(values, labels, strict=True))
        moves = moves + apart / counts[:, 0].sum()
    least = [of.least_variance(value, positives) for value, positives in zip(values, counts[:, 0], strict=True)]
    most = [of.most_samples(*each) for each in counts]
    error = math.sqrt(float(np.sum(np.square(moves))))
    if not error:
        return None
    design = _design_effect(error, weights**2 @ [np.sum(np.square(each)) for _, each in found])
    least_error = math.sqrt(design * float(weights**2 @ least))
    most_samples = 1 / (design * float(np.sum(weights**2 / np.array(most))))
    freedom = _freedom(np.asarray(moves), labels)
    bias = float(weights @ [of.bias(*each[:2]) for each in ranked])
    positives, negatives = (1 / (design * weights**2 @ (1 / counts))).tolist()
    return _Averaged(average, error, freedom, least_error, most_samples, bias, positives, negatives)


def _pooled(ranked: list[Samples], of: RankedValue) -> _Averaged | None:
    """All labels in one ranking; what those of a sample move the value by is added up."""
    if not ranked:
        return None
    labels = np.stack([each[1] for each in ranked])
    positives, negatives = (int((labels == kind).any(0).sum()) for kind in (1, 0))  # samples that have such a label
    if min(positives, negatives) < FEWEST:
        return None
    samples = np.concatenate([each[0] for each in ranked]), labels.ravel()
    value, moves = of.moves(*samples)
    error = math.sqrt(float(np.sum(moves.reshape(labels.shape).sum(0) ** 2)))
    if not error:
        return None
    design = _design_effect(error, np.sum(np.square(moves)))
    pooled = [float((labels == kind).sum()) for kind in (1, 0)]
    least = math.sqrt(design * of.least_variance(value, pooled[0]))
    most = of.most_samples(positives, negatives)
    freedom, bias = min(positives, negatives) - 1, design * of.bias(*samples)
    return _Averaged(value, error, freedom, least, most, bias, *(each / design for each in pooled))


def _design_effect(error: float, independent: float) -> float:
    """The variance over that of independent rankings, of which the squares of the moves are added up; at least 1."""
    return max(1.0, error**2 / float(independent))


def _freedom(moves: Array, labels: list[Array]) -> float:
    """Satterthwaite's degrees of freedom of a sum of squares, over the classes that samples are of.

    Where a sample may have several labels, the samples of the rarest one less one.
    """
    of = np.stack(labels) == 1
    if len(labels) == 1:
        of = np.stack([labels[0] == 1, labels[0] == 0])
    if (of.sum(0) > 1).any() or (len(labels) > 1 and not of.any(0).all()):
        return float(of.sum(1).min()) - 1
    variances, sizes = of @ moves**2, of.sum(1)
    return float(variances.sum() ** 2 / np.sum(variances**2 / (sizes - 1)))
