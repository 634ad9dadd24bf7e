"""What metrics of labels have in common: the task, the outcomes per class, and how they are averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Annotated, ClassVar, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from assay.decide import Argmax, Decision, Threshold, TopK
from assay.errors import ConfigError, describe
from assay.metrics.base import Metric
from assay.metrics.classification.ratio import Array
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.labels.confusion import ClassTotals, Counts, class_tally
from assay.tally.labels.labels import Labels, true_labels

Average = Literal["micro", "macro", "weighted"]
AverageField: TypeAlias = Annotated[
    Average | None,
    '"micro" pools all classes; "macro" is the mean over classes that occur; "weighted" weighs them by how often '
    "each is the target; None gives one value per class. Binary data has one value, of class 1, and no average.",
]
TopKField: TypeAlias = Annotated[
    int, "multiclass: a target among the `top_k` highest scores counts as predicted; ties go to the lower class."
]

FEWEST_MISTAKES = 10
"""Of all classes, below which the interval of an average over classes has a caution."""
FEW_MISTAKES = f"fewer than {FEWEST_MISTAKES} mistakes: it may hold the true value less often"

BITS = 128  # of the smallest fraction that is averaged


@dataclass(frozen=True, kw_only=True)
class LabelMetric(Metric):
    """A metric of predicted and true labels.

    The task is multiclass with `num_classes`, multilabel with `num_labels`, else binary.

    Shapes:
        Multiclass: `preds` are float scores `(N, C, ...)` or integer labels `(N, ...)`, `target` is `(N, ...)`.
        Multilabel: `preds` are scores or labels of the shape of `target`, `(N, num_labels, ...)`.
        Binary: `preds` are scores or labels of the shape of `target`, `(N, ...)`. Weights are `(N,)` or one per target.

    Returns:
        float64, shape `()`; NaN without data.

    Raises:
        ConfigError: arguments that contradict each other, a class count below 2.
        InvalidValuesError: by `compute`, if there was a NaN, a label out of range, or a score outside [0, 1] without
            `logits=True`.
    """

    family: ClassVar[str] = "classification"
    inputs: ClassVar[str] = "labels"
    top_k = 1  # no field: metrics that have the argument declare one

    num_classes: Annotated[int | None, "for multiclass data."] = None
    num_labels: Annotated[int | None, "for multilabel data. With neither, data is binary."] = None
    threshold: Annotated[float, "binary and multilabel scores above this probability count as 1."] = 0.5
    logits: Annotated[bool, "binary and multilabel scores are logits; the threshold is then compared as a logit."] = (
        False
    )
    ignore_index: Annotated[int | None, "targets of this value are left out, with their predictions."] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_classes is not None and self.num_labels is not None:
            got = f"num_classes={self.num_classes} and num_labels={self.num_labels}"
            do = "Give num_classes for one class per sample, num_labels for several yes-or-no labels"
            raise ConfigError(describe(type(self).__name__, got, "one of them or none", do))
        if self.num_classes is not None:
            do = "Leave threshold out: the class with the highest score is predicted"
            self._refuse_without_effect("threshold", "multiclass data", do)
        self.tally(False)  # raises what the tally has to say
        if self.binary and "average" in self.arguments:
            do = "Leave average out for the value of class 1, or pass num_classes=2 to average over both classes"
            self._refuse_without_effect("average", "binary data", do)
        if self.num_classes is None and self.top_k != 1:
            do = "Give num_classes, or leave top_k out"
            raise ConfigError(describe("top_k", self.top_k, "1 for data that is not multiclass", do))

    @property
    def binary(self) -> bool:
        """Whether samples are of class 0 or 1."""
        return self.num_classes is None and self.num_labels is None

    @property
    def labels(self) -> Labels:
        """How batches become labels."""
        if self.num_classes is not None:
            return Labels(self.num_classes, self._decision(), ignore_index=self.ignore_index)
        threshold = Threshold(self.threshold, self.logits)
        return Labels(2, threshold, self.num_labels, self.ignore_index, multiclass=False)

    def _decision(self) -> Decision:
        return Argmax() if self.top_k == 1 else TopK(self.top_k)

    def tally(self, weighted: bool) -> Tally:
        return class_tally(self.labels, weighted)

    def predicted(self, batch: Batch) -> Tensor | None:
        if self.num_labels is not None or batch.needed_target.ndim > 1:
            return None
        labels = self.labels
        return (labels if self.num_classes is None else replace(labels, decision=Argmax())).predicted(batch)

    def answers(self, batch: Batch) -> Answers:
        """What was predicted and what is right, of the shape of the target."""
        shape = batch.needed_target.shape
        predicted, target = self.labels.predicted(batch).view(shape), true_labels(batch).view(shape)
        counts = None if self.ignore_index is None else target != self.ignore_index
        return Answers(predicted, target, counts, self.condition)

    @property
    def condition(self) -> str:
        """What the names of terms must also say: all that decides over them."""
        top_k = "" if self.top_k == 1 else f", top {self.top_k}"
        threshold = "" if self.num_classes is not None or self.threshold == 0.5 else f", threshold {self.threshold}"
        return top_k + threshold + ("" if self.ignore_index is None else f", without {self.ignore_index}")

    def few_mistakes(self, counts: Counts | ClassTotals) -> str:
        """A caution where all classes together have few mistakes, so that the matrix says little of them."""
        totals = counts.totals()
        return FEW_MISTAKES if totals.target.sum() - totals.hits.sum() < FEWEST_MISTAKES else ""

    def outcomes(self, counts: Counts | ClassTotals) -> Outcomes:
        """The outcomes of each class, each label, or the positive class."""
        return outcomes(counts.totals(), self.num_classes is not None, self.ignore_index)


@dataclass(frozen=True, eq=False)
class Answers:
    """Predicted and true labels of samples, as terms that are booleans.

    Attributes:
        predicted: labels.
        target: labels of the same shape.
        counts: where the target is not to be ignored; None where all are counted.
        condition: what the names of terms also say.
    """

    predicted: Tensor
    target: Tensor
    counts: Tensor | None
    condition: str

    def __getitem__(self, what: str) -> Tensor:
        """A term by its name in `ANSWERS`; where a target is ignored it is False, or 0."""
        term = ANSWERS[what](self.predicted, self.target)
        return term if self.counts is None else term * self.counts

    def share(self, numerator: str, denominator: str = "", counts: Tensor | None = None) -> SampleTerms:
        """The mean of a term over that of another: of `counts`, or of the denominator; else of all that counts.

        Where a sample has several labels, its terms are means over these.
        """
        values = self[numerator]
        if denominator:
            counts = self[denominator] if counts is None else counts
        elif self.counts is not None:
            denominator, counts = "counted", self.counts
        if values.ndim > 1:
            values = values.float().mean(1)
            counts = None if counts is None else counts.float().mean(1)
        return SampleTerms.of(numerator + self.condition, values, denominator + self.condition, counts)


ANSWERS: Mapping[str, Callable[[Tensor, Tensor], Tensor]] = {
    "correct": torch.eq,
    "wrong": torch.ne,
    "positives": lambda p, t: t == 1,
    "negatives": lambda p, t: t == 0,
    "predicted positives": lambda p, t: p == 1,
    "predicted negatives": lambda p, t: p == 0,
    "true positives": lambda p, t: (p == 1) & (t == 1),
    "true negatives": lambda p, t: (p == 0) & (t == 0),
    "positives or predicted positives": lambda p, t: (p == 1) | (t == 1),
    "mean of positives and predicted positives": lambda p, t: ((p == 1).float() + (t == 1)) / 2,
}


@dataclass(frozen=True)
class Outcomes:
    """True and false positives and negatives of each class or label.

    `present` says which classes have data: of a class, that it was a target or predicted; of a label, any sample.
    They are in units of `2 ** unit`. `ignored` is the class whose targets were left out, if one was: it has no data.
    """

    tp: Array
    fp: Array
    fn: Array
    tn: Array
    present: Array
    unit: int = 0
    ignored: int | None = None

    @property
    def support(self) -> Array:
        """How often each class was the target."""
        return self.tp + self.fn

    @property
    def total(self) -> Array:
        return self.tp + self.fp + self.fn + self.tn

    def pooled(self) -> Outcomes:
        """The sums over the classes, as of one class."""
        tp, fp, fn, tn = [each.sum(-1, keepdims=True) for each in (self.tp, self.fp, self.fn, self.tn)]
        return Outcomes(tp, fp, fn, tn, self.present.any(-1, keepdims=True), self.unit)

    def of(self, classes: Sequence[int]) -> Outcomes:
        """The outcomes of some of the classes, in this order."""
        chosen = list(classes)
        tp, fp, fn, tn, present = (each[..., chosen] for each in (self.tp, self.fp, self.fn, self.tn, self.present))
        ignored = chosen.index(self.ignored) if self.ignored in chosen else None
        return Outcomes(tp, fp, fn, tn, present, self.unit, ignored)


def outcomes(totals: ClassTotals, multiclass: bool, ignored: int | None = None) -> Outcomes:
    """The outcomes of every class, or of the positive class of every label.

    Args:
        totals: what was counted.
        multiclass: whether each sample has one of several classes.
        ignored: the target that was ignored. Where it is a class, this class has no data: its predictions are mistakes
            of the classes that are the target.
    """
    chosen = (..., 0, slice(None)) if multiclass else (..., 1)
    tp = totals.hits[chosen]
    fn, fp = totals.target[chosen] - tp, totals.predicted[chosen] - tp
    tn = totals.target.sum(-1) - tp - fp - fn
    return outcomes_with_data(tp, fp, fn, tn, multiclass, ignored, totals.unit)


def outcomes_with_data(
    tp: Array, fp: Array, fn: Array, tn: Array, multiclass: bool, ignored: int | None = None, unit: int = 0
) -> Outcomes:
    """Outcomes, with which of the classes have data; see `outcomes`."""
    present = np.not_equal(tp + fp + fn + (0 if multiclass else tn), 0).astype(bool)
    if not multiclass or ignored is None or not 0 <= ignored < len(present):
        return Outcomes(tp, fp, fn, tn, present, unit)
    present[..., ignored] = False
    return Outcomes(tp, fp, fn, tn, present, unit, ignored)


def averaged(
    ratio: Callable[[Outcomes], tuple[Array, Array]],
    of: Outcomes,
    average: Average | None,
    undefined: float = 0.0,
    unweighted: float = 0.0,
) -> list[float]:
    """The quotients of all classes, or one average, each rounded once; `undefined` is 0 / 0 of a class with data, and
    `unweighted` the weighted average of labels that no sample has."""
    if average == "micro":
        of = of.pooled()
    if average is None or average == "micro":
        missing = [undefined if present else nan for present in of.present]
        values = [n / d if d else none for n, d, none in zip(*ratio(of), missing, strict=True)]
        return [nan if k == of.ignored else value for k, value in enumerate(values)]
    above, below, present, support = (each.tolist() for each in (*ratio(of), of.present, of.support))
    return [_average(above, below, present, support, average, undefined, unweighted)]


def averages(
    ratio: Callable[[Outcomes], tuple[Array, Array]],
    of: Outcomes,
    average: Average,
    undefined: float = 0.0,
    unweighted: float = 0.0,
) -> list[float]:
    """What `averaged` gives of each of many samples, which are the first dimension of the outcomes."""
    if average == "micro":
        of = of.pooled()
    above, below = ratio(of)
    columns = above, below, of.present, of.support
    means, is_certain = _means_at_once(*columns, average, undefined)
    values: list[float] = means.tolist()
    for row in np.flatnonzero(~is_certain).tolist():
        own, base, exists, targets = (each[row].tolist() for each in columns)
        values[row] = _average(own, base, exists, targets, average, undefined, unweighted)
    return values


def _means_at_once(
    above: Array, below: Array, present: Array, support: Array, average: Average, undefined: float
) -> tuple[Array, Array]:
    """What `_average` gives of each row, and for which rows that is certain."""
    from assay.metrics.mean_quotients import mean_quotients  # here, as few programs resample

    try:
        above, below, support = (each.astype(np.float64) for each in (above, below, support))
    except OverflowError:  # a float has no such integer
        return np.zeros(len(above)), np.zeros(len(above), bool)
    weights = support if average == "weighted" else present.astype(np.float64)
    is_defined = below > 0
    if isnan(undefined):
        weights, undefined = weights * is_defined, 0.0
    means, is_certain = mean_quotients(np.where(is_defined, above, undefined), np.where(is_defined, below, 1), weights)
    return means, is_certain & weights.any(1)


def _average(
    above: Sequence[int],
    below: Sequence[int],
    present: Sequence[bool],
    support: Sequence[int],
    average: Average,
    undefined: float,
    unweighted: float,
) -> float:
    """One average of numbers of Python, rounded once."""
    if average == "micro":
        return above[0] / below[0] if below[0] else undefined if present[0] else nan
    weights: Sequence[int] = present if average == "macro" else support
    if average == "weighted" and any(present) and not any(support):
        return unweighted
    if isnan(undefined):
        weights, undefined = [weight if each else 0 for weight, each in zip(weights, below, strict=True)], 0.0
    total = sum(weights)
    if not total:
        return nan
    bits = BITS + max(below).bit_length()
    rows, none = zip(above, below, weights, strict=True), int(undefined) << bits
    return sum([weight * ((n << bits) // d if d else none) for n, d, weight in rows]) / (total << bits)


def bits_of(below: Iterable[int]) -> int:
    """How many binary digits quotients by these integers need, so that the smallest one has `BITS` of them."""
    return BITS + max((int(each).bit_length() for each in below), default=0)


def fixed(above: Sequence[int], below: Sequence[int], bits: int, undefined: int = 0) -> list[int]:
    """Quotients as integers in units of `2 ** -bits`."""
    return [(int(n) << bits) // int(d) if d else undefined << bits for n, d in zip(above, below, strict=True)]


def mean(values: Iterable[int], weights: Iterable[int], bits: int) -> float:
    """The weighted mean of values in units of `2 ** -bits`, rounded once; NaN when the weights sum to 0."""
    pairs = [(value, int(weight)) for value, weight in zip(values, weights, strict=True)]
    total = sum(weight for _, weight in pairs)
    return sum(value * weight for value, weight in pairs) / (total << bits) if total else nan
