"""The interval of a mean of areas under ROC curves, of classes against the rest or of labels, from the same samples.

The areas depend on each other, as all are of the same samples: so what each sample moves the mean by is added up over
the classes first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from assay.stats.distributions import normal_quantile, student_quantile
from assay.stats.intervals import Array, Ends, clopper_pearson_of, on_logit_scale

FEWEST = 10
"""Positives and negatives of each class, below which there is no interval."""


def area_moves(scores: Array, labels: Array) -> tuple[float, Array]:
    """The area under the ROC curve, and how far each sample moves it.

    A positive moves it by its placement among the negatives (the share of them below it, ties by half) less the area,
    over ``sqrt(P (P - 1))``, and a negative by the share of positives above it. The squares add up to DeLong's
    variance.

    Args:
        scores: of the samples, without NaN.
        labels: 1 for positives, 0 for negatives; others move nothing. Two of each, or more.

    Example:
        >>> area, moves = area_moves(np.array([0.9, 0.8, 0.7, 0.6]), np.array([1, 0, 1, 0]))
        >>> area, round(float(np.sum(moves**2)) ** 0.5, 4)
        (0.75, 0.3536)

    Source:
        DeLong, DeLong & Clarke-Pearson 1988, Biometrics 44:837; Sun & Xu 2014, IEEE Signal Processing Letters 21:1389.
    """
    moves, is_positive, is_negative = np.zeros(len(scores)), labels == 1, labels == 0
    positives, negatives = scores[is_positive], scores[is_negative]
    below, above = _share_below(positives, negatives), 1 - _share_below(negatives, positives)
    area, p, n = float(below.mean()), len(positives), len(negatives)
    moves[is_positive] = (below - area) / math.sqrt(p * (p - 1))
    moves[is_negative] = (above - area) / math.sqrt(n * (n - 1))
    return area, moves


def _share_below(scores: Array, others: Array) -> Array:
    ordered = np.sort(others)
    return (np.searchsorted(ordered, scores) + np.searchsorted(ordered, scores, "right")) / (2 * len(others))


def mean_area_interval(
    rankings: Iterable[tuple[Array, Array]],
    confidence_level: float = 0.95,
    *,
    weighted: bool = False,
    safe: bool = False,
) -> Ends | None:
    """The interval of the mean of areas under ROC curves of the same samples.

    The variance is the sum of the squares of what each sample moves the mean by, so that it has DeLong's covariances.
    The interval is symmetric on the logit scale, with Student's quantile of the degrees of freedom of Satterthwaite.

    Args:
        rankings: the scores and the labels (1, 0, or -1 for left out) of the samples, for each area, in one order.
        confidence_level: between 0 and 1.
        weighted: whether areas are weighted by their positives.
        safe: for gates: at least Clopper and Pearson's of as many samples as the error says, and no more than
            ``2 / sum(w² / m)`` with the weight w and the smaller count m of each class (Korn & Graubard 1998).

    Returns:
        Both ends; None where an area has fewer than `FEWEST` positives or negatives, and where all are 0 or 1.

    Example:
        >>> scores = np.random.default_rng(0).normal(size=(60, 3))
        >>> labels = np.arange(60)[:, None] % 3 == np.arange(3)
        >>> found = mean_area_interval(zip((scores + labels).T, labels.T.astype(int)))
        >>> tuple(round(end, 3) for end in found)
        (0.627, 0.78)
    """
    ranked = list(rankings)
    counts = np.array([[(labels == 1).sum(), (labels == 0).sum()] for _, labels in ranked], dtype=np.float64)
    if not len(ranked) or counts.min() < FEWEST:
        return None
    found = [area_moves(*each) for each in ranked]
    areas = np.array([area for area, _ in found])
    weights = counts[:, 0] / counts[:, 0].sum() if weighted else np.full(len(areas), 1 / len(areas))
    value = float(weights @ areas)
    moves = sum(weight * each for weight, (_, each) in zip(weights, found, strict=True))
    if weighted:
        moves = (
            moves
            + sum((area - value) * (labels == 1) for area, (_, labels) in zip(areas, ranked, strict=True))
            / counts[:, 0].sum()
        )
    error = math.sqrt(float(np.sum(moves**2)))
    if not error:
        return None
    t = student_quantile((1 + confidence_level) / 2, _freedom(np.asarray(moves), [labels for _, labels in ranked]))
    ends = on_logit_scale(value, error * t / normal_quantile((1 + confidence_level) / 2), confidence_level)
    if ends is None or not safe:
        return ends
    most = 2 / float(np.sum(weights**2 / counts.min(1)))
    count = min(value * (1 - value) / error**2, most)
    others = clopper_pearson_of(value * count, count, confidence_level)
    return min(ends[0], others[0]), max(ends[1], others[1])


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
