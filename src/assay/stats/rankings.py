"""The area under the ROC curve and the average precision: their intervals, and how far each sample moves them."""

from __future__ import annotations

import math

import numpy as np

from assay.stats.distributions import student_quantile
from assay.stats.intervals import Array, Ends, clopper_pearson_of, first_where, on_logit_scale, two_sided_z


def delong_error(positives: Array, negatives: Array) -> float:
    """DeLong's standard error of the area under the ROC curve, from counts at the distinct scores.

    A positive's placement is the share of negatives below it, ties by half, and a negative's that of positives above
    it. The square of the error is ``var(placements of positives) / P + var(placements of negatives) / N``, with
    variances over ``P - 1`` and ``N - 1``. From counts this takes no pairs, and ties are exact.

    Args:
        positives: how many, from the highest score down; integers.
        negatives: how many, likewise.

    Returns:
        The error; NaN for fewer than two positives or negatives.

    Example:
        >>> round(delong_error(np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1])), 4)
        0.3536

    Source:
        DeLong, DeLong & Clarke-Pearson 1988, Biometrics 44:837; in rank form, Sun & Xu 2014, IEEE Signal Processing
        Letters 21:1389.
    """
    return math.sqrt(sum(_placement_variances(positives, negatives)[1:]))


def _placement_variances(positives: Array, negatives: Array) -> tuple[float, float, float]:
    """The area under the ROC curve, and the variances of the mean placements of positives and of negatives."""
    p, n = positives.astype(np.float64), negatives.astype(np.float64)
    if p.sum() < 2 or n.sum() < 2:
        return math.nan, math.nan, math.nan
    below = (n.sum() - np.cumsum(n) + n / 2) / n.sum()
    above = (np.cumsum(p) - p / 2) / p.sum()
    return float(p @ below / p.sum()), _variance_of_mean(below, p), _variance_of_mean(above, n)


def area_interval(positives: Array, negatives: Array, confidence_level: float = 0.95, *, safe: bool = False) -> Ends:
    """The interval of the area A under the ROC curve, from counts at the distinct scores: the widest of two or three.

    - DeLong's, see `delong_error`, on the logit scale, with the quantile of Student's distribution whose degrees of
      freedom are Welch's. It is too short for few positives, and does not exist at 0 and 1.
    - Newcombe's fifth: the areas θ with ``|A - θ| <= z sqrt(V(θ))`` and the variance of Hanley and McNeil, in which
      both counts are their mean.
    - ``safe``: Clopper and Pearson's of A among so many samples as the error says, ``A (1 - A) / error²``, but at most
      twice the smaller of both counts (Korn and Graubard). Where some positives are found surely and others not at all,
      a few of them show no spread, and only this holds.

    Args:
        positives: how many, from the highest score down; integers.
        negatives: how many, likewise.
        confidence_level: between 0 and 1.
        safe: whether neither end may miss more often than its level says; where there are fewer than some 50 positives
            or negatives the interval is then wider than most scores need.

    Returns:
        Both ends; two NaN for fewer than two positives or negatives.

    Example:
        >>> counts = np.array([3, 2, 0, 1, 0]), np.array([0, 2, 3, 4, 6])
        >>> [tuple(round(end, 3) for end in area_interval(*counts, safe=safe)) for safe in (False, True)]
        [(0.517, 0.987), (0.517, 0.996)]

    Source:
        Newcombe 2006, Statistics in Medicine 25:559, method 5; Korn & Graubard 1998, Survey Methodology 24:193.
    """
    area, a, b = _placement_variances(positives, negatives)
    if math.isnan(area):
        return math.nan, math.nan
    p, n, variance = float(positives.sum()), float(negatives.sum()), a + b
    ends = [newcombe_area(area, p, n, two_sided_z(confidence_level))]
    if variance > 0:
        freedom = variance**2 / (a**2 / (p - 1) + b**2 / (n - 1))
        t = student_quantile((1 + confidence_level) / 2, freedom)
        scaled = on_logit_scale(area, math.sqrt(variance) * t / two_sided_z(confidence_level), confidence_level)
        ends += [scaled] if scaled else []
    if safe:
        count = min(area * (1 - area) / variance if variance > 0 else math.inf, 2 * min(p, n))
        ends.append(clopper_pearson_of(area * count, count, confidence_level))
    return min(lower for lower, _ in ends), max(upper for _, upper in ends)


def newcombe_area(area: float, p: float, n: float, z: float) -> Ends:
    """The areas from which this one is at most z standard errors away, from the numbers of positives and negatives.

    Example:
        >>> tuple(round(end, 3) for end in newcombe_area(0.9, 10, 90, 1.96))
        (0.737, 0.963)

    Source:
        Newcombe 2006, Statistics in Medicine 25:559, method 5.
    """
    k = (p + n) / 2 - 1

    def is_near(other: float, area: float) -> bool:
        variance = other * (1 - other) * (1 + k * (1 - other) / (2 - other) + k * other / (1 + other)) / (p * n)
        return area - other <= z * math.sqrt(variance)

    lower = first_where(lambda other: is_near(other, area), 0.0, area) if area else 0.0
    upper = 1 - first_where(lambda other: is_near(other, 1 - area), 0.0, 1 - area) if area < 1 else 1.0
    return lower, upper


def _variance_of_mean(values: Array, counts: Array) -> float:
    total = float(counts.sum())
    mean = float(counts @ values) / total
    return float(counts @ (values - mean) ** 2) / (total * (total - 1))


def area_moves(scores: Array, labels: Array) -> tuple[float, Array]:
    """The area under the ROC curve, and how far each sample moves it.

    A positive moves it by its placement among the negatives (the share of them below it, ties by half) less the area,
    over ``sqrt(P (P - 1))``, and a negative by the share of positives above it. The squares add up to DeLong's
    variance.

    Args:
        scores: of the samples, without NaN.
        labels: 1 for positives, 0 for negatives, -1 for others, which move nothing. Two of each, or more.

    Example:
        >>> area, moves = area_moves(np.array([0.9, 0.8, 0.7, 0.6]), np.array([1, 0, 1, 0]))
        >>> area, round(float(np.sum(moves**2)) ** 0.5, 4)
        (0.75, 0.3536)

    Source:
        DeLong, DeLong & Clarke-Pearson 1988, Biometrics 44:837; Sun & Xu 2014, IEEE Signal Processing Letters 21:1389.
    """
    return area_moves_of(twice_below(scores, labels), labels)


def area_moves_of(twice: Array, labels: Array) -> tuple[float, Array]:
    """`area_moves` from what `twice_below` gives."""
    is_positive = labels == 1
    p, n = int(is_positive.sum()), int((labels == 0).sum())
    below = twice[is_positive] / (2 * n)
    area = float(below.mean())
    moves = np.asarray((1 - twice / (2 * p) - area) / math.sqrt(n * (n - 1)))
    moves[is_positive] = (below - area) / math.sqrt(p * (p - 1))
    if p + n < len(labels):
        moves[labels < 0] = 0
    return area, moves


def twice_below(scores: Array, labels: Array) -> Array:
    """Twice how many negatives have a lower score than a positive, or positives than a negative; equal ones count once.

    Args:
        scores: of the samples, without NaN.
        labels: 1 for positives, 0 for negatives, -1 for others, which get any number.

    Example:
        >>> twice_below(np.array([0.9, 0.5, 0.5, 0.1]), np.array([1, 0, 1, 0])).tolist()
        [4, 1, 3, 0]
    """
    order = np.argsort(scores)
    ordered = scores[order]
    lasts = np.append(np.flatnonzero(ordered[1:] != ordered[:-1]), len(scores) - 1)
    sizes, of_kinds = np.diff(lasts, prepend=-1), []
    for other in (0, 1):
        through = np.cumsum((labels == other)[order])[lasts]
        twice = np.empty(len(scores), np.int64)
        twice[order] = np.repeat(through + np.append(0, through[:-1]), sizes)
        of_kinds.append(twice)
    return np.where(labels == 1, *of_kinds)


def precision_slopes(positives: Array, negatives: Array) -> tuple[float, Array, Array]:
    """The average precision, and how fast it changes with the positives and the negatives at each score.

    With H positives and N negatives at a score and above, p positives there and P in all, the value is
    ``v = sum p H / (H + N) / P``. Its slope is ``(H / (H + N) - v + sum p N / (H + N)²) / P`` in the positives at a
    score, and ``-sum p H / (H + N)² / P`` in the negatives, with sums over that score and those below.

    Args:
        positives: how many, from the highest score down; one or more in all.
        negatives: how many, likewise. Each score has samples.

    Returns:
        The value, and both slopes at each score. Times the counts they add up to 0.

    Example:
        >>> value, of_positives, of_negatives = precision_slopes(np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1]))
        >>> round(value, 3), of_positives.round(3).tolist(), of_negatives.round(3).tolist()
        (0.833, [0.139, -0.111, -0.028, -0.167], [-0.611, -0.111, -0.111, -0.0])

    Source:
        The infinitesimal jackknife: Efron & Tibshirani 1993, An Introduction to the Bootstrap, section 22.
    """
    p, n = positives.astype(np.float64), negatives.astype(np.float64)
    hits, alarms, total = np.cumsum(p), np.cumsum(n), float(p.sum())
    reached = hits + alarms
    value = float(p @ (hits / reached)) / total
    of_positives = (hits / reached - value + _from_here_on(p * alarms / reached**2)) / total
    return value, of_positives, -_from_here_on(p * hits / reached**2) / total


def _from_here_on(terms: Array) -> Array:
    return np.asarray(np.cumsum(terms[::-1])[::-1])


def precision_bias(positives: Array, negatives: Array) -> float:
    """How much too high the average precision of so many samples is, by the jackknife: ``(n - 1) (mean - v)``.

    The mean is that of the average precisions without one of the n samples; they differ from v in the terms at its
    score and below. A positive is in the precision at its own score, so that few of them have a value that is too high.

    Args:
        positives: how many, from the highest score down; two or more in all.
        negatives: how many, likewise. Each score has samples.

    Example:
        >>> round(precision_bias(np.array([3, 2, 0, 1, 0]), np.array([0, 2, 3, 4, 6])), 3)
        0.003

    Source:
        Quenouille 1956, Biometrika 43:353.
    """
    p, n = positives.astype(np.float64), negatives.astype(np.float64)
    hits, reached = np.cumsum(p), np.cumsum(p + n)
    total, others = hits[-1], np.maximum(reached - 1, 1)  # without the one sample at a score that is above all others
    terms, without_positive, without_negative = p * hits / reached, p * (hits - 1) / others, p * hits / others
    above, below = np.cumsum(terms) - terms, _from_here_on(without_positive) - without_positive
    of_positives = (above + (p - 1) * (hits - 1) / others + below) / (total - 1)
    of_negatives = (above + _from_here_on(without_negative)) / total
    mean = float(p @ of_positives + n @ of_negatives) / float(reached[-1])
    return (float(reached[-1]) - 1) * (mean - float(terms.sum()) / float(total))


def binomial_variance(value: float, positives: float) -> float:
    """The variance of an average precision as if it were a share of the positives: ``v (1 - v) / P``.

    Source: Boyd, Eng & Page 2013, Area under the precision-recall curve, ECML-PKDD.
    """
    return value * (1 - value) / positives


def precision_interval(
    positives: Array, negatives: Array, confidence_level: float = 0.95, *, safe: bool = False
) -> Ends:
    """The interval of the average precision, from counts at the distinct scores: the widest of two or three.

    - On the logit scale, with the variance ``sum p a² P / (P - 1) + sum n b² N / (N - 1)`` of the slopes a in the
      positives p and b in the negatives n, see `precision_slopes`, and Student's quantile with Welch's degrees of
      freedom. It is too short for few positives or negatives.
    - On the logit scale, with the variance of a share of the positives, see `binomial_variance`.
    - ``safe``, and where the value is 1: Clopper and Pearson's of the value among so many samples as the first variance
      says, ``v (1 - v) / variance``, but at most the positives (Korn and Graubard). Of a gate, the lower end is
      lowered by what the value is too high, see `precision_bias`.

    Args:
        positives: how many, from the highest score down; integers, one or more in all.
        negatives: how many, likewise.
        confidence_level: between 0 and 1.
        safe: whether it is for a gate, where neither end may miss more often than its level says.

    Example:
        >>> counts = np.array([3, 2, 0, 1, 0]), np.array([0, 2, 3, 4, 6])
        >>> [tuple(round(end, 3) for end in precision_interval(*counts, safe=safe)) for safe in (False, True)]
        [(0.354, 0.969), (0.33, 0.992)]

    Source:
        Boyd, Eng & Page 2013, ECML-PKDD; Korn & Graubard 1998, Survey Methodology 24:193.
    """
    value, of_positives, of_negatives = precision_slopes(positives, negatives)
    total, others = float(positives.sum()), float(negatives.sum())
    variance, error = 0.0, math.sqrt(binomial_variance(value, total))
    if total > 1 and others > 1:
        a = float(positives @ of_positives**2) * total / (total - 1)
        b = float(negatives @ of_negatives**2) * others / (others - 1)
        variance = a + b
    if variance:
        freedom = variance**2 / (a**2 / (total - 1) + b**2 / (others - 1))
        t = student_quantile((1 + confidence_level) / 2, freedom) / two_sided_z(confidence_level)
        error = max(error, math.sqrt(variance) * t)
    scaled = on_logit_scale(value, error, confidence_level)
    if scaled is not None and not safe:
        return scaled
    count = min(value * (1 - value) / variance, total) if variance else total
    ends = clopper_pearson_of(value * count, count, confidence_level)
    lower, upper = ends if scaled is None else (min(scaled[0], ends[0]), max(scaled[1], ends[1]))
    bias = precision_bias(positives, negatives) if safe and total > 1 else 0.0
    return max(0.0, lower - max(0.0, bias)), upper


def counts_by_score(scores: Array, labels: Array) -> tuple[Array, Array, Array]:
    """Positives and negatives at each distinct score, from the highest down, and the place of each known sample."""
    known = (labels == 1) | (labels == 0)
    _, place = np.unique(-scores[known], return_inverse=True)
    return np.bincount(place, labels[known] == 1), np.bincount(place, labels[known] == 0), place


def precision_moves(scores: Array, labels: Array) -> tuple[float, Array]:
    """The average precision, and how far each sample moves it.

    The squares add up to the variance by which `precision_interval` begins.

    Args:
        scores: of the samples, without NaN.
        labels: 1 for positives, 0 for negatives; others move nothing. Two of each, or more.

    Example:
        >>> value, moves = precision_moves(np.array([0.9, 0.8, 0.7, 0.6]), np.array([1, 0, 1, 0]))
        >>> round(value, 3), moves.round(3).tolist()
        (0.833, [0.196, -0.157, -0.039, -0.0])
    """
    positives, negatives, place = counts_by_score(scores, labels)
    value, *slopes = precision_slopes(positives, negatives)
    moves, known = np.zeros(len(scores)), labels[(labels == 1) | (labels == 0)]
    for label, slope, n in zip((1, 0), slopes, (positives.sum(), negatives.sum()), strict=True):
        moves[labels == label] = slope[place[known == label]] * math.sqrt(n / (n - 1))
    return value, moves


def precision_bias_of_samples(scores: Array, labels: Array) -> float:
    """`precision_bias` from scores and labels, as those of `precision_moves`."""
    return precision_bias(*counts_by_score(scores, labels)[:2])
