"""Metrics of how well scores rank the positives above the negatives."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import GroupCounts, number
from assay.metrics.classification.class_pairs import check_pairs, mean_area_of_pairs, warn_of_classes
from assay.metrics.classification.ranking_metric import (
    AveragedRankingMetric,
    Bounded,
    RankingMetric,
    Rankings,
)
from assay.native import rankings as native
from assay.native.library import library
from assay.stats.averaged_rankings import AREA, PRECISION
from assay.stats.intervals import Ends
from assay.stats.linear import FEWEST_OF_CLASS, AreaPlaces, area_replicates
from assay.stats.rankings import area_interval, area_moves, area_moves_of, precision_interval
from assay.tally.base import Tally
from assay.tally.scores import curves
from assay.tally.scores.curves import Array, BoundedEstimate, Ranking
from assay.tally.scores.labelled_scores import score_spec
from assay.tally.scores.scores import ScoreTally


class ROCCurve(NamedTuple):
    """Points of ROC curves: tensors, or tuples with one per class or label."""

    fpr: Tensor | tuple[Tensor, ...]
    tpr: Tensor | tuple[Tensor, ...]
    thresholds: Tensor | tuple[Tensor, ...]


class PRCurve(NamedTuple):
    """Points of precision-recall curves: tensors, or tuples with one per class or label."""

    precision: Tensor | tuple[Tensor, ...]
    recall: Tensor | tuple[Tensor, ...]
    thresholds: Tensor | tuple[Tensor, ...]


def _area_moves(scores: Array, labels: Array, twice: Array | None = None) -> tuple[float, Array]:
    """`area_moves`, in compiled code where that takes the scores; what `twice_below` gives may be known."""
    if twice is None and (library() is None or scores.dtype != np.float32):
        return area_moves(scores, labels)
    if twice is None:
        classes = torch.from_numpy(labels.astype(np.int8, copy=False))
        twice = native.twice_below(native.order_scores(torch.from_numpy(scores), classes, 1), len(scores))
    return area_moves_of(twice, labels)


@dataclass(frozen=True, kw_only=True)
class AUROC(AveragedRankingMetric):
    r"""The area under the receiver operating characteristic curve.

    $$ \frac{1}{P N} \sum_{i: y_i = 1} \sum_{j: y_j = 0} [s_i > s_j] + \tfrac12 [s_i = s_j] $$

    with s the scores and y the targets of P positives and N negatives.

    Example:
        >>> import torch
        >>> AUROC()(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        tensor(0.7500, dtype=torch.float64)

    Source: J. A. Hanley, B. J. McNeil, The meaning and use of the area under a ROC curve, Radiology 143 (1982); for
    `max_fpr`: D. K. McClish, Analyzing a portion of the ROC curve, Medical Decision Making 9 (1989); for
    `multi_class="ovo"`: D. J. Hand, R. J. Till, A simple generalisation of the area under the ROC curve for multiple
    class classification problems, Machine Learning 45 (2001).
    """

    needs = "positives and negatives"
    ranked_value = replace(AREA, moves=_area_moves)

    max_fpr: Annotated[
        float | None,
        "binary: only the part of the curve up to this false positive rate, scaled so that chance gives 1/2 and a "
        "perfect ranking 1.",
    ] = None
    multi_class: Annotated[
        Literal["ovr", "ovo"],
        '"ovr" ranks each class against the rest. "ovo" is the mean over the pairs of classes that have samples of the '
        "area of the samples of these two, ranked by the scores of the one and of the other; with "
        'average="weighted" a pair weighs as many as its samples. All scores are then kept, as with `exact=True`.',
    ] = "ovr"

    examples = (*AveragedRankingMetric.examples, {"max_fpr": 0.3}, {"max_fpr": 0.3, "exact_up_to": 0, "bounds": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_fpr is not None and not 0 < self.max_fpr <= 1:
            raise ConfigError(describe("max_fpr", self.max_fpr, "above 0 and at most 1", "Give a rate, as 0.1"))
        if self.max_fpr is not None and not self._single:
            do = "Leave max_fpr out for several classes or labels"
            raise ConfigError(describe("max_fpr", self.max_fpr, "None where data is not binary", do))
        if self._of_class_pairs:
            check_pairs(self)

    @property
    def _of_class_pairs(self) -> bool:
        return self.multi_class == "ovo"

    def tally(self, weighted: bool) -> Tally:
        if not self._of_class_pairs:
            return super().tally(weighted)
        if weighted:
            do = "Leave weights out, or pass multi_class='ovr'"
            raise ConfigError(describe("weights", "weights of samples", "none with multi_class='ovo'", do))
        return ScoreTally(score_spec(self.num_classes, self.num_labels, self.ignore_index, self.logits), None)

    def compute(self, counts: Rankings) -> Tensor | Bounded:
        if not self._of_class_pairs:
            return super().compute(counts)
        missing = [k for k, ranking in enumerate(counts) if not ranking.num_positives]
        value = mean_area_of_pairs(counts, self.average == "weighted")
        if missing:
            warn_of_classes(self, self._of(missing), math.isnan(value))
        return number(value)

    def ranked_samples(self, ranking: Ranking) -> tuple[Array, ...]:
        samples = super().ranked_samples(ranking)
        if ranking.twice_below is None or self.average == "micro":  # which ranks all labels together
            return samples
        return *samples, ranking.twice_below()

    @property
    def closed_form(self) -> str:
        whole = self.max_fpr in (None, 1) and self.thresholds is None and not self._of_class_pairs
        if not whole or self.bounds or (not self._single and self.average is None):
            return ""
        return "wider of DeLong's and Newcombe's intervals" if self._single else "logit interval, DeLong's covariances"

    def interval_of_one(self, ranking: Ranking, confidence_level: float, safe: bool) -> Ends:
        return area_interval(ranking.positives, ranking.negatives, confidence_level, safe=safe)

    @property
    def is_smooth(self) -> bool:
        whole = self.max_fpr in (None, 1) and self.thresholds is None and not self._of_class_pairs
        return whole and not self.bounds and self.average != "micro"

    def replicates(
        self, groups: GroupCounts, draws: NDArray[np.int64], *, to_first_order: bool
    ) -> NDArray[np.float64] | None:
        if not self.is_smooth or (self.average is None and not self._single):
            return None
        if not to_first_order:
            return self._exact_replicates(groups, draws)
        sums = groups.area_sums
        if sums is None:
            sums = self._area_sums(groups.whole, groups)
        if int(sums[:, :, 2:].sum(1).min()) < FEWEST_OF_CLASS:
            return None
        areas = np.array([area_replicates(each, draws[1:]) for each in sums])
        of_all = self._of_pairs(sums[:, :, [0, 2, 3]].sum(1))
        return np.append(of_all, self._averages(areas, sums[:, :, 2] @ draws[1:].T))

    def _exact_replicates(self, groups: GroupCounts, draws: NDArray[np.int64]) -> NDArray[np.float64] | None:
        pairs = groups.pairs_of_draws(draws)
        if pairs is None:
            return None
        right, positives, negatives = pairs[:, :, 1:].transpose(1, 0, 2)
        with np.errstate(all="ignore"):  # of a replicate without positives
            areas = right / (2 * positives * negatives)
        return np.append(self._of_pairs(pairs[:, :, 0].astype(np.int64)), self._averages(areas, positives))

    def _of_pairs(self, pairs: NDArray[np.int64]) -> float:
        """The value of samples whose classes or labels have these `curves.pairs_of`, `(classes, 3)`."""
        areas = [curves.area_of_pairs(*each) for each in pairs.tolist()]
        found = self._value(areas, [1 if self.average == "macro" else positives for _, positives, _ in pairs.tolist()])
        assert isinstance(found, Tensor)  # without bounds
        return float(found)

    def _averages(self, areas: NDArray[np.float64], positives: NDArray[Any]) -> NDArray[np.float64]:
        """The averages over the classes that have an area; both arguments are `(classes, replicates)`."""
        weights = np.where(np.isnan(areas), 0, positives if self.average == "weighted" else 1)
        weights, areas = (np.ascontiguousarray(each) for each in (weights, np.nan_to_num(areas)))  # one order of sums
        with np.errstate(all="ignore"):
            return np.asarray((areas * weights).sum(0) / weights.sum(0))

    @staticmethod
    def _area_sums(counts: Rankings, groups: GroupCounts) -> NDArray[np.int64]:
        places = [AreaPlaces.of(each.thresholds, each.positives, each.negatives) for each in counts]
        sums = [
            [whole.sums(r.thresholds, r.positives, r.negatives) for whole, r in zip(places, each, strict=True)]
            for each in groups
        ]
        return np.array(sums).transpose(1, 0, 2)

    def bounded_value(self, ranking: Ranking) -> BoundedEstimate:
        if self.max_fpr in (None, 1):
            return curves.auroc(ranking)
        return curves.partial_auroc(ranking, Fraction(self.max_fpr))


@dataclass(frozen=True, kw_only=True)
class AveragePrecision(AveragedRankingMetric):
    r"""The average precision, which summarises a precision-recall curve by steps, without interpolation.

    $$ \sum_k (R_k - R_{k-1}) P_k $$

    over the distinct scores from the highest down, with precision P and recall R of the rows that reach each.

    Rounding: the terms are rounded to float64 and summed exactly. Beyond `exact_up_to` scores there are certified
    bounds, as for `AUROC`.

    Returns:
        float64 of shape `()`, or `(classes,)` with `average=None`. NaN, with a `NoDataWarning`, without positives.

    Example:
        >>> import torch
        >>> AveragePrecision()(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        tensor(0.8333, dtype=torch.float64)

    Source: `sklearn.metrics.average_precision_score`, whose definition this is.
    """

    needs = "positives"
    ranked_value = PRECISION

    @property
    def closed_form(self) -> str:
        single = self._single or self.average is not None
        return "logit interval, influence values" if single and not self.bounds and self.thresholds is None else ""

    def interval_of_one(self, ranking: Ranking, confidence_level: float, safe: bool) -> Ends | None:
        if not ranking.num_positives:
            return None
        return precision_interval(ranking.positives, ranking.negatives, confidence_level, safe=safe)

    def without_interval(self, counts: Rankings) -> str:
        return "no positives" if self._single else super().without_interval(counts)

    def bounded_value(self, ranking: Ranking) -> BoundedEstimate:
        return curves.average_precision(ranking)


@dataclass(frozen=True, kw_only=True)
class EqualErrorRate(AveragedRankingMetric):
    """The equal error rate: the false positive rate where it is as high as the false negative rate.

    It is the point of the ROC curve on the line `fpr = 1 - tpr`. The curve is the one whose area `AUROC` is: straight
    from each distinct score to the next, so there is one such point, also where no threshold has equal rates. (That is
    the value of guessing between the two nearest thresholds. TorchMetrics gives the mean of both rates at the threshold
    where they are nearest.)

    Example:
        >>> import torch
        >>> EqualErrorRate()(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        tensor(0.5000, dtype=torch.float64)

    Source: T. Fawcett, An introduction to ROC analysis, Pattern Recognition Letters 27 (2006), for the curve; A. Martin
    et al., The DET curve in assessment of detection task performance, Eurospeech 1997, for the rate.
    """

    higher_is_better = False

    needs = "positives and negatives"

    def bounded_value(self, ranking: Ranking) -> BoundedEstimate:
        positives, negatives = ranking.num_positives, ranking.num_negatives
        if not positives or not negatives:
            return curves.NOTHING

        def rates(k: int) -> tuple[Fraction, Fraction]:
            """False positive and false negative rate at threshold k; below 0, where nothing is predicted positive."""
            alarms, hits = (int(ranking.alarms[k]), int(ranking.hits[k])) if k >= 0 else (0, 0)
            return Fraction(alarms, negatives), 1 - Fraction(hits, positives)

        def gap(k: int) -> Fraction:
            fpr, fnr = rates(k)
            return fpr - fnr

        k = bisect_left(range(len(ranking.alarms)), Fraction(0), key=gap)
        (fpr, fnr), (next_fpr, next_fnr) = rates(k - 1), rates(k)
        value = fpr + (next_fpr - fpr) * gap(k - 1) / (gap(k - 1) - gap(k))
        if ranking.single[k]:
            return BoundedEstimate(value, value, value)
        lower, upper = max(fpr, next_fnr), min(next_fpr, fnr)  # positives first in the bin, or negatives
        return BoundedEstimate(value, lower, upper)


@dataclass(frozen=True, kw_only=True)
class ROC(RankingMetric):
    """The receiver operating characteristic: false positive rate and true positive rate at every threshold.

        fpr(t) = #{s >= t, y = 0} / #{y = 0},  tpr(t) = #{s >= t, y = 1} / #{y = 1}

    Points are those of scikit-learn with `drop_intermediate=False`: from (0, 0) at threshold inf up to (1, 1), at every
    distinct score, falling. From a histogram there is a point for every bin that is not empty; each is exact. With
    `thresholds` there is one for each of these.

    Returns:
        `ROCCurve(fpr, tpr, thresholds)`: float64 tensors of one length; tuples of them for several classes or labels.
        With `thresholds`, rates of several classes have the shape `(classes, thresholds)`.
        A rate is NaN, with a `NoDataWarning`, without negatives (fpr) or positives (tpr).

    Example:
        >>> import torch
        >>> curve = ROC()(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        >>> curve.fpr.tolist(), curve.tpr.tolist()
        ([0.0, 0.0, 0.5, 0.5, 1.0], [0.0, 0.5, 0.5, 1.0, 1.0])

    Source: T. Fawcett, An introduction to ROC analysis, Pattern Recognition Letters 27 (2006).
    """

    picture = "roc"

    def compute(self, counts: Rankings) -> ROCCurve:
        missing = [k for k, of in enumerate(counts) if not of.num_positives or not of.num_negatives]
        self._warn_of_missing(missing, "positives and negatives")
        return ROCCurve(*self._columns([roc_points(ranking) for ranking in counts]))


@dataclass(frozen=True, kw_only=True)
class PrecisionRecallCurve(RankingMetric):
    """Precision and recall at every threshold.

        precision(t) = #{s >= t, y = 1} / #{s >= t},  recall(t) = #{s >= t, y = 1} / #{y = 1}

    Order and end are scikit-learn's: thresholds rise, and behind the last one there is the point precision 1, recall 0,
    so precision and recall are one longer. From a histogram there is a point for every bin that is not empty; each is
    exact. With `thresholds` there is one for each of these, and the precision is NaN where no score reaches it.

    Returns:
        `PRCurve(precision, recall, thresholds)`: float64 tensors; tuples of them for several classes or labels. With
        `thresholds`, those of several classes have the shape `(classes, thresholds + 1)`. The recall is NaN, with a
        `NoDataWarning`, without positives.

    Example:
        >>> import torch
        >>> curve = PrecisionRecallCurve()(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        >>> curve.precision.tolist(), curve.recall.tolist()
        ([0.5, 0.6666666666666666, 0.5, 1.0, 1.0], [1.0, 1.0, 0.5, 0.5, 0.0])

    Source: `sklearn.metrics.precision_recall_curve`, whose definition this is.
    """

    picture = "pr"

    def compute(self, counts: Rankings) -> PRCurve:
        self._warn_of_missing([k for k, of in enumerate(counts) if not of.num_positives], "positives")
        return PRCurve(*self._columns([_precision_recall(ranking) for ranking in counts]))


def roc_points(ranking: Ranking) -> tuple[Array, Array, Array]:
    """False and true positive rates, rising, from no positive prediction on."""
    points = ranking.points
    fpr = curves.ratios(ranking.alarms[points], ranking.num_negatives)
    tpr = curves.ratios(ranking.hits[points], ranking.num_positives)
    if ranking.at_thresholds:
        return fpr, tpr, ranking.thresholds[points]
    first_fpr = 0.0 if ranking.num_negatives else math.nan
    first_tpr = 0.0 if ranking.num_positives else math.nan
    return _behind(first_fpr, fpr), _behind(first_tpr, tpr), _behind(math.inf, ranking.thresholds)


def _behind(first: float, values: Array) -> Array:
    """Numbers behind a first one; `np.append` takes several times as long."""
    found = np.empty(len(values) + 1)
    found[0], found[1:] = first, values
    return found


def _precision_recall(ranking: Ranking) -> tuple[Array, Array, Array]:
    points = ranking.points
    recall = curves.ratios(ranking.hits[points], ranking.num_positives)
    last = 0.0 if ranking.num_positives else math.nan
    precision = curves.precisions(ranking)[points]
    curve = _behind(1.0, precision), _behind(last, recall), ranking.thresholds[points]
    first, second, thresholds = (each[::-1].copy() for each in curve)
    return first, second, thresholds
