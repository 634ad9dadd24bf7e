"""Rankings on the CPU, and what is read from them: areas with certified bounds, and points of curves.

A ranking lists, from the highest score down, how many positives and negatives there are at each distinct score; or in
each bin of scores, and then the order within a bin is unknown, which is what the bounds account for. Counts are whole
numbers: int64, or Python integers where weights need more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

_LARGEST = 1 << 62
_ROUNDING = 2.0**-48  # relative; covers the roundings of one term of an average precision (a dozen, of 2 ** -53 each)


class BoundedEstimate(NamedTuple):
    """An estimate and two numbers between which the exact value lies; all NaN where there is no value."""

    value: Fraction | float
    lower: Fraction | float
    upper: Fraction | float


NOTHING = BoundedEstimate(math.nan, math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class Ranking:
    """Counts from the highest score to the lowest.

    Args:
        levels: the thresholds, or what gives them, as an area needs none.
        positives, negatives: how many, or how much weight in some unit.
        single: booleans: everything here has the same score, which is the threshold.
        at_thresholds: there is an entry for each of some thresholds that were stated, and a last one for what reaches
            none of them, which is no point of a curve.
        samples: the scores and the labels (1, 0, or -1 for left out) of the samples, in one order for all rankings of
            a tally; None where they are not kept, or have weights.
        twice_below: what `assay.stats.rankings.twice_below` gives of these samples; None where it is not known.
        pairs: what `pairs_of` gives, where it is known and all entries are single; else None.
        cumulated: `hits` and `alarms`, where they are known.
    """

    levels: Array | Callable[[], Array]
    positives: Array
    negatives: Array
    single: Array
    at_thresholds: bool = False
    samples: Callable[[], tuple[Array, Array]] | None = None
    twice_below: Callable[[], Array] | None = None
    pairs: tuple[int, int, int] | None = None
    cumulated: tuple[Array, Array] | None = None

    def with_samples(self, samples: Callable[[], tuple[Array, Array]]) -> Ranking:
        """The same, with its samples; `dataclasses.replace` takes four times as long."""
        known = self.levels, self.positives, self.negatives, self.single, self.at_thresholds
        return Ranking(*known, samples, self.twice_below, self.pairs, self.cumulated)

    @cached_property
    def thresholds(self) -> Array:
        """Falling, float64: the score itself, or the lowest one that falls into the bin."""
        return self.levels() if callable(self.levels) else self.levels

    @cached_property
    def hits(self) -> Array:
        """Positives at this threshold and above."""
        return np.cumsum(self.positives) if self.cumulated is None else self.cumulated[0]

    @cached_property
    def alarms(self) -> Array:
        """Negatives at this threshold and above."""
        return np.cumsum(self.negatives) if self.cumulated is None else self.cumulated[1]

    @property
    def points(self) -> slice:
        """The entries that are points of a curve."""
        return slice(None, -1 if self.at_thresholds else None)

    @cached_property
    def num_positives(self) -> int:
        return int(self.positives.sum()) if self.pairs is None else self.pairs[1]

    @cached_property
    def num_negatives(self) -> int:
        return int(self.negatives.sum()) if self.pairs is None else self.pairs[2]


def of_samples(scores: Array, positive: Array, weights: Array | None = None) -> Ranking:
    """A ranking of samples: `scores` without NaN, `positive` as booleans, `weights` as `integer_weights` gives them.

    Rankings that are pooled or averaged need weights of one unit: call `integer_weights` once for all of them. Scores
    that only samples of weight 0 have are left out.
    """
    if weights is None:
        return sort_samples(scores, positive).ranking(np.ones(len(scores), np.int64))
    return sort_samples(scores, positive).ranking(weights, drop_empty=True)


@dataclass(frozen=True, eq=False)
class SortedSamples:
    """Samples from the highest score to the lowest.

    Args:
        order: which sample each is.
        positive: whether it is positive.
        starts: where each distinct score begins.
        thresholds: the distinct scores, float64.
    """

    order: Array
    positive: Array
    starts: Array
    thresholds: Array

    def ranking(self, counts: Array, *, drop_empty: bool = False) -> Ranking:
        """The ranking of samples that count so much each; without scores that no sample has, if those are dropped."""
        falling = counts[self.order]
        if not len(self.starts):
            return Ranking(self.thresholds, falling, falling, np.empty(0, bool))
        both = falling, np.where(self.positive, falling, 0)
        if len(self.starts) < len(falling):
            both = np.add.reduceat(both[0], self.starts), np.add.reduceat(both[1], self.starts)
        filled = np.flatnonzero(both[0]) if drop_empty else slice(None)
        (every, positives), thresholds = (each[filled] for each in both), self.thresholds[filled]
        return Ranking(thresholds, positives, every - positives, np.ones(len(thresholds), bool))


def sort_samples(scores: Array, positive: Array) -> SortedSamples:
    """Samples in the order of their scores, which are without NaN."""
    order = np.argsort(scores)[::-1]
    falling = scores[order]
    starts = np.flatnonzero(np.concatenate([np.ones(min(1, len(falling)), bool), falling[1:] != falling[:-1]]))
    distinct = falling[starts].astype(np.float64) + 0.0  # the zero of both signs is one score
    return SortedSamples(order, positive[order], starts, distinct)


def pooled(rankings: Sequence[Ranking]) -> Ranking:
    """One ranking of everything, from rankings of one unit and one kind."""
    thresholds = np.concatenate([r.thresholds for r in rankings])
    if not len(thresholds):
        return rankings[0]
    order = np.argsort(-thresholds, kind="stable")
    falling = thresholds[order]
    starts = np.flatnonzero(np.concatenate([[True], falling[1:] != falling[:-1]]))

    def merged(how: np.ufunc, name: str) -> Array:
        return np.asarray(how.reduceat(np.concatenate([getattr(r, name) for r in rankings])[order], starts))

    add, both = np.add, np.logical_and
    counts = merged(add, "positives"), merged(add, "negatives"), merged(both, "single")
    return Ranking(falling[starts], *counts, rankings[0].at_thresholds)


def auroc(ranking: Ranking) -> BoundedEstimate:
    r"""The area under the ROC curve: the share of pairs of a positive and a negative that are in the right order.

    Pairs with equal scores count one half. Pairs within a bin of several scores may be in any order: none of them right
    is the lower bound, all of them right the upper one, and half of them the estimate. All three are exact rationals.
    At stated thresholds it is the area under the lines between their points, from the first to the last.
    """
    if ranking.pairs is not None:
        return area_of_pairs(*ranking.pairs)
    pairs = ranking.num_positives * ranking.num_negatives
    if pairs and ranking.at_thresholds:
        hits, alarms = ranking.hits[ranking.points], ranking.alarms[ranking.points]
        area = Fraction(dot(np.diff(alarms), hits[1:] + hits[:-1]), 2 * pairs)
        return BoundedEstimate(area, area, area)
    right, positives, negatives = pairs_of(ranking)
    if not pairs or ranking.single.all():
        return area_of_pairs(right, positives, negatives)
    unclear = dot(ranking.positives, np.where(ranking.single, 0, ranking.negatives))
    return BoundedEstimate(*(Fraction(right + step * unclear, 2 * pairs) for step in (0, -1, 1)))


def pairs_of(ranking: Ranking) -> tuple[int, int, int]:
    """Twice the pairs whose positive is above the negative, once those of equal scores; positives; negatives."""
    if ranking.pairs is not None:
        return ranking.pairs
    lower_negatives = ranking.num_negatives - ranking.alarms
    right = dot(ranking.positives, 2 * lower_negatives + ranking.negatives)
    return right, ranking.num_positives, ranking.num_negatives


def area_of_pairs(right: int, positives: int, negatives: int) -> BoundedEstimate:
    """The area under the ROC curve that `pairs_of` give where no bin has several scores."""
    if not positives or not negatives:
        return NOTHING
    area = Fraction(right, 2 * positives * negatives)
    return BoundedEstimate(area, area, area)


def partial_auroc(ranking: Ranking, max_fpr: Fraction) -> BoundedEstimate:
    """The area under the ROC curve up to a false positive rate, scaled so that chance gives 1/2 and perfection 1.

    The point at `max_fpr` is on the line between its neighbours. The bounds are the areas with the negatives, or the
    positives, first in each bin of several scores.
    """
    if not ranking.num_positives or not ranking.num_negatives:
        return NOTHING
    chance = max_fpr**2 / 2
    areas = [_area_up_to(alarms, hits, max_fpr) for alarms, hits in possible_curves(ranking, max_fpr)]
    return BoundedEstimate(*((1 + (area - chance) / (max_fpr - chance)) / 2 for area in areas))


def possible_curves(ranking: Ranking, max_fpr: Fraction, min_fpr: Fraction | None = None) -> list[tuple[Array, Array]]:
    """False and true positives at the points of the curve that is estimated, the lowest and the highest that may be.

    Curves at stated thresholds are continued to both rates; the lower one is `max_fpr` where it is not given.
    """
    alarms, hits = ranking.alarms, ranking.hits
    if ranking.at_thresholds:
        alarms, hits = alarms[ranking.points], hits[ranking.points]
        first = max_fpr if min_fpr is None else min_fpr
        if not len(alarms) or alarms[0] > first * ranking.num_negatives:
            alarms, hits = np.append(0, alarms), np.append(0, hits)
        if alarms[-1] <= max_fpr * ranking.num_negatives:
            alarms, hits = np.append(alarms, ranking.num_negatives), np.append(hits, ranking.num_positives)
        return [(alarms, hits)] * 3
    middle = np.append(0, alarms), np.append(0, hits)
    unclear = ~ranking.single
    if not unclear.any():
        return [middle] * 3
    before = np.flatnonzero(unclear)
    low = np.insert(middle[0], before + 1, alarms[before]), np.insert(middle[1], before + 1, middle[1][before])
    high = np.insert(middle[0], before + 1, middle[0][before]), np.insert(middle[1], before + 1, hits[before])
    return [middle, low, high]


def _area_up_to(alarms: Array, hits: Array, max_fpr: Fraction) -> Fraction:
    """The area under the lines between points, in which both arrays rise, up to a share of the last false positives."""
    negatives, positives = int(alarms[-1]), int(hits[-1])
    limit = max_fpr * negatives
    stop = int(np.searchsorted(alarms, math.floor(limit), side="right"))
    twice = Fraction(dot(np.diff(alarms[:stop]), hits[1:stop] + hits[: stop - 1]))
    if stop < len(alarms):
        x, y, next_x, next_y = (int(each) for each in (alarms[stop - 1], hits[stop - 1], alarms[stop], hits[stop]))
        width = limit - x
        twice += width * (2 * y + (next_y - y) * width / (next_x - x))
    return twice / (2 * negatives * positives)


def dot(a: Array, b: Array) -> int:
    """The exact sum of products of integers of 0 or more."""
    if a.dtype != object and b.dtype != object and int(a.sum()) * int(b.max(initial=0)) < _LARGEST:
        return int(np.dot(a, b))
    return sum(x * y for x, y in zip(a.tolist(), b.tolist(), strict=True))


def average_precision(ranking: Ranking) -> BoundedEstimate:
    r"""The average precision: the precision at every threshold, weighted by the recall it adds; no interpolation.

    Each term is rounded, and the terms are summed exactly. Within a bin of p positives and n negatives, with TP and FP
    above it and TP' and FP' including it, the most that the p positives can add is `p TP' / (TP' + FP)` (they share one
    score, which is above those of the negatives) and the least is the sum over j = 1 ... p of
    `(TP + j) / (TP + j + FP')`, for which `p - FP' log1p(p / (TP + FP' + 1/2))` is a lower bound, as 1 / x is convex.
    The estimate is the mean over all orders of the bin. The bounds are widened by what rounding can have done to them.
    """
    total = ranking.num_positives
    if not total:
        return NOTHING
    some = np.flatnonzero(ranking.positives[ranking.points])
    single = ranking.single[some]
    unit = _unit(ranking)
    hits, alarms, p, n = (
        _floats(a[some], unit) for a in (ranking.hits, ranking.alarms, ranking.positives, ranking.negatives)
    )
    positives = total / unit
    tied = p * (hits / (hits + alarms))
    if single.all():
        value = math.fsum(tied) / positives
        return BoundedEstimate(value, value, value)
    alone = p == 1
    least = np.where(single | alone, tied, p - alarms * np.log1p(p / (hits - p + alarms + 0.5)))
    most = np.where(single, tied, p * (hits / (hits + (alarms - n))))
    middle = np.where(single, tied, np.clip(_mean_over_orders(hits, alarms, p, n), least, most))
    # The lower bound is a difference of two numbers of up to p, so its rounding is measured by p.
    slack = math.fsum(p) * _ROUNDING
    lower = max(0.0, (math.fsum(least) - slack) / positives)
    upper = min(1.0, (math.fsum(most) + slack) / positives)
    return BoundedEstimate(min(max(math.fsum(middle) / positives, lower), upper), lower, upper)


def _mean_over_orders(hits: Array, alarms: Array, p: Array, n: Array) -> Array:
    """The sum of the precisions at the positives of a bin: the mean over all orders of its samples."""
    size = p + n
    above = hits + alarms - size
    slope = np.where(size > 1, (p - 1) / np.maximum(size - 1, 1), 0.0)  # positives to expect at each step
    start = hits - p + 1 - slope * (above + 1)
    low, high = above + 0.5, above + size + 0.5
    harmonic = np.log1p(size / low) + (high**-2 - low**-2) / 24  # the sum of 1 / (above + i) for i = 1 ... size
    return np.asarray(p / size * (size * slope + start * harmonic))


def _floats(whole: Array, unit: int = 1) -> Array:
    """Integers in a unit as float64, each rounded once."""
    if whole.dtype != object:
        return whole.astype(np.float64)
    return np.array([w / unit for w in whole.tolist()], dtype=np.float64)


def _unit(ranking: Ranking) -> int:
    """A unit in which no count is beyond float64: 1, unless weights are near its largest."""
    total = int(ranking.hits[-1] + ranking.alarms[-1]) if len(ranking.hits) else 0
    return 1 << max(0, total.bit_length() - 1000)


def ratios(counts: Array, total: int) -> Array:
    """Each count over a total, as float64; NaN where the total is 0."""
    if not total:
        return np.full(len(counts), math.nan)
    if counts.dtype == object:
        return np.array([float(Fraction(c, total)) for c in counts.tolist()], dtype=np.float64)
    return np.asarray(counts / float(total))


def precisions(ranking: Ranking) -> Array:
    """The precision at every threshold; NaN where no score reaches it."""
    if ranking.hits.dtype != object and len(reaching := ranking.hits + ranking.alarms) and reaching[0]:
        return np.asarray(ranking.hits / reaching)
    unit = _unit(ranking)
    hits, everything = _floats(ranking.hits, unit), _floats(ranking.hits + ranking.alarms, unit)
    return np.asarray(np.divide(hits, everything, out=np.full(len(hits), math.nan), where=everything > 0))
