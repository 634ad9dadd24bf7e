"""Metrics of how good scores are as probabilities, and losses of scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from assay.decide import first_largest
from assay.errors import ConfigError, describe
from assay.metrics.base import NOT_NEGATIVE, SHARE, Metric, number, vector
from assay.metrics.exact_arithmetic import means, quotient, result, root, rounded
from assay.metrics.per_sample import SampleTerms
from assay.stats.intervals import Ends, calibration_interval
from assay.tally.base import Batch, Tally
from assay.tally.scores.histogram import BinTotals, Confidence
from assay.tally.scores.labelled_scores import ScoreSpec, probabilities, score_spec
from assay.tally.scores.losses import Hinge, NegativeLogLikelihood, SquaredProbabilities
from assay.tally.sums.polynomials import MEAN_OF_ROWS, QuotientOfSums
from assay.tally.sums.row_sums import RowSums, RowTotals

Norm = Literal["l1", "l2", "max"]
MulticlassMode = Literal["crammer-singer", "one-vs-all"]


@dataclass(frozen=True, kw_only=True)
class ScoreMetric(Metric):
    """A metric of scores, and of the targets that they are for.

    Shapes: binary (without `num_classes`): `preds` are scores of any shape, `target` is 0 or 1. With
    `num_classes=C`: `preds (N, C, ...)`, `target (N, ...)`.

    Returns:
        float64 of shape `()`; NaN without data.

    Raises:
        InvalidValuesError: by `compute`, for NaN, a target out of range, or a score outside [0, 1] without
            `logits=True`.
    """

    family = "probabilities"
    higher_is_better: ClassVar[bool | None] = False
    inputs = "labels"

    num_classes: Annotated[int | None, "for multiclass data; without, data is binary."] = None
    ignore_index: Annotated[int | None, "rows with this target are left out."] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.tally(weighted=False)  # raises for what the tally does not take

    @property
    def data(self) -> ScoreSpec:
        """How batches become rows of scores."""
        return score_spec(self.num_classes, None, self.ignore_index, getattr(self, "logits", True))


@dataclass(frozen=True, kw_only=True)
class ConfidenceMetric(ScoreMetric):
    """A metric that is computed from bins of confidence."""

    n_bins: Annotated[
        int, "bins of equal width; bin k holds the confidences c with `floor(c * n_bins) == k`, the last one also 1."
    ] = 15
    logits: Annotated[
        bool, "scores go through a sigmoid or softmax in float32 first; otherwise they are probabilities."
    ] = False

    def __post_init__(self) -> None:
        if self.n_bins < 1:
            raise ConfigError(describe("n_bins", self.n_bins, "1 or more", "Give the number of bins; 15 is usual"))
        super().__post_init__()

    def tally(self, weighted: bool) -> Tally:
        return Confidence(self.data, self.n_bins, weighted)

    def predicted(self, batch: Batch) -> Tensor | None:
        if self.num_classes is None or batch.needed_target.ndim > 1:
            return None
        return first_largest(score_spec(self.num_classes).rows(batch).scores)


@dataclass(frozen=True, kw_only=True)
class CalibrationError(ConfidenceMetric):
    r"""How far confidence is from accuracy, over bins of confidence.

    $$ \sum_b \frac{n_b}{n} |\mathrm{acc}_b - \mathrm{conf}_b| $$

    for the norm `"l1"` (the expected calibration error); the root of the mean square for `"l2"`; the largest difference
    for `"max"`. With `num_classes` the highest score is the confidence; else the score is compared with how often the
    target is 1.

    Raises:
        ConfigError: an unknown norm, or less than one bin.
        InvalidValuesError: by `compute`, for NaN, a target out of range, or a score outside [0, 1] without
            `logits=True`.

    Example:
        >>> import torch
        >>> CalibrationError(n_bins=2)(torch.tensor([0.25, 0.25, 0.75, 1.0]), torch.tensor([0, 1, 1, 1]))
        tensor(0.1875, dtype=torch.float64)

    Source: C. Guo et al., On calibration of modern neural networks, ICML 2017.
    """

    value_range = SHARE

    norm: Annotated[Norm, '"l1", "l2" or "max".'] = "l1"

    examples = ({}, {"logits": True}, {"norm": "l2"}, {"norm": "max"})

    @property
    def estimates(self) -> bool:
        return self.norm != "max"

    @property
    def without_estimate(self) -> str:
        return "" if self.estimates else "the largest of several differences is above 0 by chance, by an unknown amount"

    @property
    def closed_form(self) -> str:
        return "interval of the bins, less what chance adds" if self.estimates else ""

    def interval(self, counts: BinTotals, confidence_level: float, rows: int) -> Ends | None:
        sizes, right, confidence = (
            np.array([float(each) for each in bins]) for bins in (counts.weight, counts.right, counts.confidence)
        )
        if not self.closed_form or not 0 < sizes.sum() <= rows:
            return None
        return calibration_interval(right, confidence, sizes, confidence_level, squared=self.norm == "l2")

    def compute(self, counts: BinTotals) -> Tensor:
        weights, rights, confidences = counts.integers()
        total = sum(weights)
        if not total:
            return number(math.nan)
        bins = zip(weights, rights, confidences, strict=True)
        gaps = [(weight, abs(right - confidence)) for weight, right, confidence in bins if weight]
        if self.norm == "max":
            return number(rounded(max(Fraction(gap, weight) for weight, gap in gaps)))
        if self.norm == "l1":
            return number(sum(gap for _, gap in gaps) / total)
        return number(root(sum((Fraction(gap * gap, weight) for weight, gap in gaps), Fraction(0)) / total))


class ReliabilityDiagram(NamedTuple):
    """What a reliability diagram shows: a value for each bin, and the edges of the bins."""

    confidence: Tensor
    accuracy: Tensor
    counts: Tensor
    edges: Tensor


@dataclass(frozen=True, kw_only=True)
class CalibrationCurve(ConfidenceMetric):
    """The data of a reliability diagram: the mean confidence and the accuracy in bins of confidence.

        conf_b = sum of the confidences in bin b / n_b,  acc_b = right predictions in bin b / n_b

    Returns:
        `ReliabilityDiagram(confidence, accuracy, counts, edges)`: float64 of shape `(n_bins,)`, NaN for empty bins;
        int64 of shape `(n_bins,)`, the number of samples whose weight is not 0; float64 of shape `(n_bins + 1,)`.

    Example:
        >>> import torch
        >>> diagram = CalibrationCurve(n_bins=2)(torch.tensor([0.25, 0.25, 0.75, 1.0]), torch.tensor([0, 1, 1, 1]))
        >>> diagram.confidence.tolist(), diagram.accuracy.tolist(), diagram.counts.tolist()
        ([0.25, 0.875], [0.5, 1.0], [2, 2])

    Source: M. H. DeGroot, S. E. Fienberg, The comparison and evaluation of forecasters, The Statistician 32 (1983).
    """

    higher_is_better = None
    examples = ({}, {"logits": True})
    picture = "reliability"

    def compute(self, counts: BinTotals) -> ReliabilityDiagram:
        def means(sums: Sequence[Fraction | int]) -> Tensor:
            return vector(quotient(value, weight) for value, weight in zip(sums, counts.weight, strict=True))

        edges = vector(Fraction(k, self.n_bins) for k in range(self.n_bins + 1))
        return ReliabilityDiagram(
            means(counts.confidence), means(counts.right), torch.tensor(counts.count, device="cpu"), edges
        )


@dataclass(frozen=True, kw_only=True)
class BrierScore(ScoreMetric):
    r"""The mean squared difference of probabilities and outcomes.

    $$ \frac{1}{n} \sum_i (p_i - y_i)^2 \qquad \frac{1}{n} \sum_i \sum_c (p_{ic} - [y_i = c])^2 $$

    for binary data (in [0, 1]) and for classes (in [0, 2]).

    Example:
        >>> import torch
        >>> BrierScore()(torch.tensor([0.25, 0.5, 1.0]), torch.tensor([0, 1, 1]))
        tensor(0.1042, dtype=torch.float64)

    Source: G. W. Brier, Verification of forecasts expressed in terms of probability, Monthly Weather Review 78 (1950).
    """

    value_range = (0.0, 2.0)

    logits: Annotated[
        bool, "scores go through a sigmoid or softmax in float32 first; otherwise they are probabilities."
    ] = False

    examples = ({}, {"logits": True})

    def tally(self, weighted: bool) -> Tally:
        return RowSums(SquaredProbabilities(self.data), weighted)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return _per_row("squared distance", self.data, batch, self._distances)

    def _distances(self, scores: Tensor, classes: Tensor) -> tuple[Tensor]:
        """The squared distances of probabilities and outcomes."""
        if self.logits:
            scores = probabilities(scores, self.num_classes is not None)
        outcome = classes if self.num_classes is None else torch.zeros_like(scores).scatter_(1, classes, 1)
        return ((scores - outcome).square().sum(1, keepdim=True),)

    def compute(self, counts: RowTotals) -> Tensor:
        (squares,), (own,), (ones,) = counts.sums
        return result([quotient(squares - 2 * own + ones, counts.weight)])


@dataclass(frozen=True, kw_only=True)
class LogLoss(ScoreMetric):
    r"""The mean negative logarithm of the probability of the target (cross-entropy), in nats.

    $$ -\frac{1}{n} \sum_i \log p_i(y_i) $$

    From logits no probability is formed that could round to 0 or 1. Infinite only when a target has probability 0.

    Example:
        >>> import torch
        >>> LogLoss(num_classes=2)(torch.tensor([[0.5, 0.5], [0.25, 0.75]]), torch.tensor([0, 1]))
        tensor(0.4904, dtype=torch.float64)
        >>> LogLoss(logits=True)(torch.tensor([-200.0]), torch.tensor([1]))
        tensor(200., dtype=torch.float64)

    Source: I. J. Good, Rational decisions, J. Royal Statistical Society B 14 (1952).
    """

    value_range = NOT_NEGATIVE

    exact_terms = False
    examples = ({}, {"logits": True})

    logits: Annotated[bool, "scores are logits; otherwise they are probabilities, and taken as they are."] = False

    def tally(self, weighted: bool) -> Tally:
        return RowSums(NegativeLogLikelihood(self.data), weighted)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return _per_row("log loss", self.data, batch, NegativeLogLikelihood(self.data).values)

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return MEAN_OF_ROWS

    def compute(self, counts: RowTotals) -> Tensor:
        return result(means(counts))


@dataclass(frozen=True, kw_only=True)
class HingeLoss(ScoreMetric):
    r"""The mean hinge loss of decision values.

    $$ \frac{1}{n} \sum_i \max(0, 1 - m_i) $$

    with the margin `m = s` for binary targets of 1 and `-s` for 0; for classes, the score of the target minus the
    highest other one (`"crammer-singer"`), or each class against the rest (`"one-vs-all"`, one value per class). Scores
    are used as they are.

    Returns:
        float64 of shape `()`, or `(C,)` for `"one-vs-all"`; NaN without data.

    Raises:
        ConfigError: an unknown mode.
        InvalidValuesError: by `compute`, for NaN, or a target out of range.

    Example:
        >>> import torch
        >>> HingeLoss()(torch.tensor([2.0, 0.5, -1.0]), torch.tensor([1, 1, 1]))
        tensor(0.8333, dtype=torch.float64)

    Source: K. Crammer, Y. Singer, On the algorithmic implementation of multiclass kernel-based vector machines, JMLR 2
    (2001).
    """

    value_range = NOT_NEGATIVE

    exact_terms = False
    examples = ({}, {"squared": True}, {"num_classes": 4, "multiclass_mode": "one-vs-all"})

    squared: Annotated[bool, "the square of each term."] = False
    multiclass_mode: Annotated[MulticlassMode, '"crammer-singer" or "one-vs-all".'] = "crammer-singer"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_classes is None:
            self._refuse_without_effect("multiclass_mode", "binary data", "Pass num_classes, too")

    @property
    def _each(self) -> bool:
        return self.num_classes is not None and self.multiclass_mode == "one-vs-all"

    def tally(self, weighted: bool) -> Tally:
        return RowSums(Hinge(self.data, self.squared, self._each), weighted)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if self._each:
            return None
        name = "squared hinge loss" if self.squared else "hinge loss"
        return _per_row(name, self.data, batch, Hinge(self.data, self.squared).values)

    @property
    def quotient_of_sums(self) -> QuotientOfSums | None:
        return None if self._each else MEAN_OF_ROWS

    def compute(self, counts: RowTotals) -> Tensor:
        return result(means(counts))


def _per_row(
    name: str, data: ScoreSpec, batch: Batch, losses: Callable[[Tensor, Tensor], tuple[Tensor, ...]]
) -> SampleTerms | None:
    """The loss of each sample, `(N, 1)` from scores and classes; None where rows have several samples."""
    if batch.needed_target.ndim > 1:
        return None
    rows = data.rows(batch)
    classes = data.known(rows)
    values = losses(rows.scores, classes.clamp(min=0))[0][:, 0]
    ignored = data.labels.ignore_index
    if ignored is None:
        return SampleTerms.of(name, values)
    counts = classes[:, 0] >= 0
    without = f", without {ignored}"
    return SampleTerms.of(name + without, torch.where(counts, values, 0), "counted" + without, counts)
