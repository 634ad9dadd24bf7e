"""Values of the labels of all samples together, or of each sample's own labels, averaged over samples.

The quotients of single samples are divided on the device, in integers, to 60 binary digits. So the mean over samples
is that of exact quotients, rounded once, and has the same bits on every device and for every split of the samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, prod
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import torch
from torch import Tensor

from assay.errors import ShapeError, describe
from assay.metrics.base import vector
from assay.metrics.classification.label_metrics import Average, LabelMetric, Outcomes
from assay.metrics.exact_arithmetic import means, quotient, rounded
from assay.tally.base import Batch, BatchLayout
from assay.tally.labels.labels import Labels
from assay.tally.labels.sample_hits import RIGHT, WRONG, sample_results
from assay.tally.layout_checks import check_weights
from assay.tally.sums.row_sums import RowTerm, RowTotals, RowValues, SumShape

if TYPE_CHECKING:
    from assay.metrics.classification.ratio_metric import RatioMetric

MultidimField: TypeAlias = Annotated[
    Literal["global", "samplewise"],
    '"global" counts the labels of all samples together. "samplewise" is the mean over samples, the rows of '
    "dimension 0, of the value of each sample's own labels, as of an image or a sequence; samples without a value "
    "are left out, and weights are `(N,)`.",
]

DIGIT = 20  # bits of a digit of a share: float32 gives a digit of a quotient to within 1
ONE = 1 << 3 * DIGIT
LARGEST = 1 << 61 - DIGIT  # so much in a denominator leaves room for a digit in int64


@dataclass(frozen=True)
class SampleTerm(RowTerm):
    """Numbers of the labels of each sample."""

    metric: LabelMetric

    chunk_scale = 8

    @property
    def classes(self) -> int:
        """How many classes or labels there are; 1 for binary data."""
        return self.metric.num_classes or self.metric.num_labels or 1

    @property
    def most(self) -> int:
        """How many labels a sample may have."""
        return LARGEST

    @property
    def invalid(self) -> tuple[str, ...]:
        return self.metric.labels.invalid

    def check(self, layout: BatchLayout) -> None:
        self.metric.labels.check(layout)
        check_weights(layout.weights)
        assert layout.target is not None, "the labels were checked"
        size = prod(layout.target.tail)
        if size > self.most:
            raise ShapeError(describe("target", f"{size} labels a sample", f"at most {self.most}", "Split the samples"))


@dataclass(frozen=True)
class SampleShares(SampleTerm):
    """The value of a metric for the labels of each sample, in units of `1 / ONE`, and whether it has one."""

    metric: RatioMetric

    @property
    def width(self) -> int:
        """How many values a sample has."""
        return self.classes if self.metric.class_average is None else 1

    @property
    def sums(self) -> tuple[SumShape, ...]:
        return SumShape(self.width), SumShape(self.width)

    @property
    def most(self) -> int:
        return LARGEST // self.metric.outcome_weights.largest(self.metric.num_classes or 1)

    def __call__(self, batch: Batch) -> RowValues:
        metric = self.metric
        of, invalid = sample_outcomes(metric.labels, batch)
        of = metric.divided(of)
        average = metric.class_average
        of = of.pooled() if average == "micro" else of
        above, below = metric.outcome_weights(of)
        undefined = metric.zero_division
        values = torch.where(below != 0, _divided((above << DIGIT, 0, 0), below), _units(undefined))
        defined = of.present & (below != 0) if isnan(undefined) else of.present
        if average is None or average == "micro":
            return RowValues(values * defined, defined.to(torch.int8), invalid=invalid)
        weights = (of.support if average == "weighted" else 1) * defined
        total = weights.sum(1, keepdim=True)
        digits = [(digit * weights).sum(1, keepdim=True) for digit in _digits(values)]
        values, defined = _divided(digits, total), total != 0
        if average == "weighted" and not isnan(metric.unweighted):
            none = of.present.any(1, keepdim=True) & ~defined
            values, defined = torch.where(none, _units(metric.unweighted), values), defined | none
        return RowValues(values * defined, defined.to(torch.int8), invalid=invalid)


@dataclass(frozen=True)
class SampleOutcomes(SampleTerm):
    """True and false positives, true and false negatives and support in each sample.

    For each class, or summed over them. Means weighted by support have an integer part and one in units of `1 / ONE`.
    """

    average: Average | None
    most = 1 << 30  # its square has three digits

    @property
    def sums(self) -> tuple[SumShape, ...]:
        width = self.classes if self.average is None else 1
        return (SumShape(5 * width),) * (1 + (self.average == "weighted"))

    def __call__(self, batch: Batch) -> RowValues:
        of, invalid = sample_outcomes(self.metric.labels, batch)
        outcomes = torch.stack([of.tp, of.fp, of.tn, of.fn, of.support], 1)
        if self.average != "weighted":
            outcomes = outcomes.flatten(1) if self.average is None else outcomes.sum(2)
            return RowValues(outcomes, counted=of.total.any(1), invalid=invalid)
        total = of.support.sum(1, keepdim=True)
        digits = _digits((outcomes * of.support[:, None]).sum(2))
        whole, rest = _divmod(digits, total.clamp(min=1))
        fraction = _divided((rest << DIGIT, 0, 0), total)
        return RowValues(whole, fraction, counted=total[:, 0] != 0, invalid=invalid)

    def means(self, totals: RowTotals) -> Tensor:
        """The means over samples: `(5, classes)` without an average, else `(5,)`."""
        classes = self.classes if self.average == "macro" else 1
        parts = [means(totals, k) for k in range(len(totals.sums))]
        sums = [whole + sum(each / ONE for each in fractions) for whole, *fractions in zip(*parts, strict=True)]
        values = vector(rounded(quotient(each, classes)) for each in sums)
        return values.view(5, -1) if self.average is None else values


@dataclass(frozen=True)
class SampleMatches(SampleTerm):
    """The share of the positions of each sample whose labels are all right, in units of `1 / ONE`."""

    def __call__(self, batch: Batch) -> RowValues:
        results, invalid = sample_results(self.metric.labels, batch)
        right, wrong = ((results == kind)[:, None].flatten(1).sum(1) for kind in (RIGHT, WRONG))
        share = _divided((right << DIGIT, 0, 0), right + wrong)
        return RowValues(share, counted=right + wrong != 0, invalid=invalid)


def _digits(x: Tensor) -> list[Tensor]:
    """The three digits of integers from 0 to `ONE`, the first of which may be one bit longer."""
    mask = (1 << DIGIT) - 1
    return [x >> 2 * DIGIT, (x >> DIGIT) & mask, x & mask]


def sample_means(totals: RowTotals) -> list[float]:
    """The means over samples of shares."""
    return [rounded(quotient(total, samples) / ONE) for total, samples in zip(*totals.sums, strict=True)]


def _units(value: float) -> int:
    return 0 if isnan(value) else int(value) * ONE


def _divided(digits: Sequence[Tensor | int], below: Tensor) -> Tensor:
    """What is given in digits divided by integers and rounded down; by 1 for 0."""
    return _divmod(digits, below.clamp(min=1))[0]


def _divmod(digits: Sequence[Tensor | int], below: Tensor) -> tuple[Tensor, Tensor]:
    """What is given in digits divided by positive integers, rounded down, and the rest.

    No digit of a quotient is above `1 << DIGIT`. Float32 estimates each digit, which leaves a rest of -0.5 to 1.5 times
    the divisor for the next; the last is corrected.
    """
    scale = below.float()
    rest = quotients = torch.zeros_like(below)
    for digit in digits:
        rest = (rest << DIGIT) + digit
        estimate = (rest.float() / scale).floor_().to(torch.int64)
        rest = rest - estimate * below
        quotients = (quotients << DIGIT) + estimate
    last = (rest >= below).to(torch.int64) - (rest < 0).to(torch.int64)
    return quotients + last, rest - last * below


def sample_outcomes(labels: Labels, batch: Batch) -> tuple[Outcomes, tuple[Tensor, Tensor]]:
    """The outcomes `(N, K)` of each class or label in each sample, and which targets and predictions are invalid."""
    shape = batch.needed_target.shape
    target, predicted = (labels.rows(batch) - 1).view(shape), labels.predicted(batch).view(shape)
    counted = (target >= 0) & (target < labels.num_classes)
    bad_target = (target < 0) | (target == labels.num_classes)
    bad_prediction = counted & ((predicted < 0) | (predicted >= labels.num_classes))
    by_class = _of_classes if labels.multiclass else _of_labels
    return by_class(labels, target, predicted, counted), (bad_target, bad_prediction)


def _of_labels(labels: Labels, target: Tensor, predicted: Tensor, counted: Tensor) -> Outcomes:
    """Of the positive class of each label."""
    shape = (len(target), labels.groups, prod(target.shape[1:]) // labels.groups)
    target, predicted, counted = (each.reshape(shape) for each in (target == 1, predicted == 1, counted))
    tp = (target & predicted & counted).sum(2)
    fp = (~target & predicted & counted).sum(2)
    fn = (target & ~predicted & counted).sum(2)
    total = counted.sum(2)
    return Outcomes(tp, fp, fn, total - tp - fp - fn, total != 0)


def _of_classes(labels: Labels, target: Tensor, predicted: Tensor, counted: Tensor) -> Outcomes:
    """Of each class."""
    samples, classes = len(target), labels.num_classes
    shape = (samples, prod(target.shape[1:]))
    target, predicted, counted = (each.reshape(shape) for each in (target, predicted, counted))
    start = torch.arange(0, samples * classes, classes, device=target.device)[:, None]

    def count(of: Tensor, where: Tensor) -> Tensor:
        table = torch.zeros(samples * classes, dtype=torch.int64, device=of.device)
        cell = (of.clamp(0, classes - 1) + start).view(-1)
        return table.scatter_add_(0, cell, where.to(torch.int64).view(-1)).view(samples, classes)

    tp = count(target, counted & (target == predicted))
    fn, fp = count(target, counted) - tp, count(predicted, counted) - tp
    tn = counted.sum(1, keepdim=True) - tp - fp - fn
    present = (tp + fp + fn) != 0
    ignored = labels.ignore_index
    if ignored is not None and 0 <= ignored < classes:
        present = present & (torch.arange(classes, device=present.device) != ignored)
    return Outcomes(tp, fp, fn, tn, present)
