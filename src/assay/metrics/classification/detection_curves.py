"""Rankings where few false positives are allowed: the detection error tradeoff, and the area on a logarithmic scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, NamedTuple

import numpy as np
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.classification.ranking import roc_points
from assay.metrics.classification.ranking_metric import AveragedRankingMetric, RankingMetric, Rankings
from assay.metrics.field_values import plain
from assay.tally.scores import curves
from assay.tally.scores.curves import Array, BoundedEstimate, Ranking

_SLACK = 1e-12  # of a sum of areas in floating point


class ErrorTradeoff(NamedTuple):
    """Points of detection error tradeoff curves: tensors, or tuples with one per class or label."""

    fpr: Tensor | tuple[Tensor, ...]
    fnr: Tensor | tuple[Tensor, ...]
    thresholds: Tensor | tuple[Tensor, ...]


@dataclass(frozen=True, kw_only=True)
class DETCurve(RankingMetric):
    """The detection error tradeoff: false positive rate and false negative rate at every threshold.

        fpr(t) = #{s >= t, y = 0} / #{y = 0},  fnr(t) = #{s < t, y = 1} / #{y = 1}

    Points are those of scikit-learn with `drop_intermediate=False`: thresholds rise, from the highest at which no
    positive is missed to the lowest without a false positive. With `thresholds` there is a point for each of these.

    Returns:
        `ErrorTradeoff(fpr, fnr, thresholds)`: float64 tensors of one length; tuples of them for several classes or
        labels. With `thresholds`, rates of several classes have the shape `(classes, thresholds)`. A rate is NaN, with
        a `NoDataWarning`, without negatives (fpr) or positives (fnr).

    Example:
        >>> import torch
        >>> curve = DETCurve()(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        >>> curve.fpr.tolist(), curve.fnr.tolist()
        ([0.5, 0.5, 0.0], [0.0, 0.5, 0.5])

    Source: A. Martin et al., The DET curve in assessment of detection task performance, Eurospeech 1997.
    """

    picture = "det"

    def compute(self, counts: Rankings) -> ErrorTradeoff:
        missing = [k for k, of in enumerate(counts) if not of.num_positives or not of.num_negatives]
        self._warn_of_missing(missing, "positives and negatives")
        return ErrorTradeoff(*self._columns([_tradeoff(ranking) for ranking in counts]))


def _tradeoff(ranking: Ranking) -> tuple[Array, Array, Array]:
    """False positive rates, false negative rates, and rising thresholds."""
    fpr, tpr, thresholds = roc_points(ranking)
    missed = ranking.num_positives - ranking.hits[ranking.points]
    fnr = curves.ratios(missed, ranking.num_positives)
    if not ranking.at_thresholds:
        fnr = np.append(1.0 if ranking.num_positives else math.nan, fnr)
        if not np.isnan(fpr).any() and not np.isnan(tpr).any():
            inner = slice(int(np.searchsorted(fpr, 0.0, "right")) - 1, int(np.searchsorted(tpr, tpr[-1])) + 1)
            fpr, fnr, thresholds = fpr[inner], fnr[inner], thresholds[inner]
    return fpr[::-1].copy(), fnr[::-1].copy(), thresholds[::-1].copy()


@dataclass(frozen=True, kw_only=True)
class LogAUC(AveragedRankingMetric):
    r"""The area under the ROC curve over a range of low false positive rates, on a logarithmic scale.

    $$ \frac{1}{\log b - \log a} \int_{\log a}^{\log b} \mathrm{TPR} \; d \log \mathrm{FPR} $$

    between 0 and 1. The points of the curve are joined by straight lines over the logarithm; those at both ends of the
    range lie on straight lines over the rate itself, as in TorchMetrics.

    Rounding: computed in float64 from the exact counts.

    Raises:
        ConfigError: an argument that is out of range or unknown, or both `num_classes` and `num_labels`.
        InvalidValuesError: by `compute`, for NaN, a target out of range, a score outside [0, 1] without `logits=True`;
            a row of multiclass logits that has no softmax, because one is +inf or all are -inf.

    Example:
        >>> import torch
        >>> metric = LogAUC(fpr_range=(0.25, 1.0))
        >>> metric(torch.tensor([0.1, 0.4, 0.35, 0.8]), torch.tensor([0, 0, 1, 1]))
        tensor(0.7500, dtype=torch.float64)

    Source: M. M. Mysinger and B. K. Shoichet, Rapid context-dependent ligand desolvation in molecular docking, Journal
    of Chemical Information and Modeling 50 (2010).
    """

    needs = "positives and negatives"

    fpr_range: Annotated[tuple[float, float], "the range of false positive rates, above 0 and at most 1."] = (
        0.001,
        0.1,
    )

    def __post_init__(self) -> None:
        limits = self.fpr_range
        if not isinstance(limits, tuple | list) or len(limits) != 2:
            raise ConfigError(describe("fpr_range", repr(limits), "two numbers", "Give (0.001, 0.1)"))
        low, high = (plain("fpr_range", limit, "float") for limit in limits)
        if not 0 < low < high <= 1:
            raise ConfigError(describe("fpr_range", limits, "rising rates above 0, at most 1", "Give (0.001, 0.1)"))
        object.__setattr__(self, "fpr_range", (low, high))
        super().__post_init__()

    def bounded_value(self, ranking: Ranking) -> BoundedEstimate:
        if not ranking.num_positives or not ranking.num_negatives:
            return curves.NOTHING
        low, high = map(Fraction, self.fpr_range)
        lines = curves.possible_curves(ranking, high, low)
        value, lower, upper = (self._area(alarms, hits, ranking) for alarms, hits in lines)
        if ranking.single.all():
            return BoundedEstimate(value, value, value)
        return BoundedEstimate(value, max(lower - _SLACK, 0.0), min(upper + _SLACK, 1.0))

    def _area(self, alarms: Array, hits: Array, ranking: Ranking) -> float:
        low, high = self.fpr_range
        fpr = curves.ratios(alarms, ranking.num_negatives)
        tpr = curves.ratios(hits, ranking.num_positives)
        inside = (fpr > low) & (fpr < high)
        ends = [_at(fpr, tpr, low, "right"), _at(fpr, tpr, high, "left")]
        rates = np.concatenate([[low], fpr[inside], [high]])
        heights = np.concatenate([ends[:1], tpr[inside], ends[1:]])
        logs = np.log(rates)
        area = math.fsum(np.diff(logs) * (heights[1:] + heights[:-1]) / 2)
        return area / (math.log(high) - math.log(low))


def _at(fpr: Array, tpr: Array, rate: float, side: str) -> float:
    """The height of a curve at a rate: the end of a vertical line on the side that is said."""
    k = int(np.searchsorted(fpr, rate, "right" if side == "right" else "left"))
    if side == "right":
        if fpr[k - 1] == rate:
            return float(tpr[k - 1])
    elif k < len(fpr) and fpr[k] == rate:
        return float(tpr[k])
    if k == len(fpr):
        return float(tpr[-1])
    share = (rate - fpr[k - 1]) / (fpr[k] - fpr[k - 1])
    return float(tpr[k - 1] + share * (tpr[k] - tpr[k - 1]))
