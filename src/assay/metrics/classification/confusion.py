"""Counts as they are: the confusion matrix, outcomes per class, samples that are all right, a table per class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import nan
from typing import Annotated, Literal, NamedTuple, get_args

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import SHARE, number, vector
from assay.metrics.classification.label_metrics import (
    Average,
    LabelMetric,
    TopKField,
    averaged,
    outcomes,
)
from assay.metrics.classification.rates import F1Score, Precision, Recall
from assay.metrics.classification.samplewise import ONE, MultidimField, SampleMatches, SampleOutcomes
from assay.metrics.exact_arithmetic import means, quotient, rounded
from assay.metrics.per_sample import SampleTerms
from assay.stats.intervals import Ends, few_of_a_kind, wilson
from assay.tally.base import Batch, State, Tally
from assay.tally.labels.confusion import ClassTotals, Confusion, Counts
from assay.tally.labels.sample_hits import SampleHits, SampleTotals
from assay.tally.sums.row_sums import RowSums, RowTotals

Normalize = Literal["true", "pred", "all"]


@dataclass(frozen=True, kw_only=True)
class ConfusionMatrix(LabelMetric):
    """How often each true class was predicted as each class.

        M_ij = #{samples: target = i, preds = j}

    `M_ij` counts samples of true class `i` that were predicted as `j`.

    Returns:
        Shape `(C, C)`, `(num_labels, 2, 2)` or `(2, 2)`: int64 counts, or float64 when normalised or weighted;
        normalised, NaN without data. On the device the state takes `8 (C + 3) (C + 2)` bytes per label, and 70 times
        that when samples are weighted.

    Raises:
        ConfigError: arguments that contradict each other, an unknown `normalize`, a matrix of more than 2 GiB.
        InvalidValuesError: by `compute`, if there was a NaN, a label out of range, or a score outside [0, 1] without
            `logits=True`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> ConfusionMatrix(num_classes=3)(preds, target)
        tensor([[1, 0, 0],
                [0, 1, 1],
                [0, 0, 1]])

    Source: Provost and Kohavi, Machine Learning 30 (1998), 271-274.
    """

    normalize: Annotated[
        Normalize | None,
        '"true" divides by how often the true class occurs, "pred" by how often the predicted class does, "all" by '
        "all; None counts. What would be divided by 0 is 0.",
    ] = None

    picture = "matrix"

    def tally(self, weighted: bool) -> Tally:
        return Confusion(self.labels, weighted)

    def reading(self, tally: Tally) -> Callable[[State], Tensor | None] | None:
        if self.normalize is not None or not isinstance(tally, Confusion) or tally.weighted:
            return None
        plain, has_labels = tally.plain_matrices, self.num_labels is not None

        def read(state: State) -> Tensor | None:
            matrices = plain(state)
            return matrices if matrices is None or has_labels else matrices[0]

        return read

    def compute(self, counts: Counts) -> Tensor:
        matrix = _counts(counts.values, counts.unit) if self.normalize is None else self._shares(counts.values)
        return matrix if self.num_labels is not None else matrix[0]

    def _shares(self, values: np.ndarray) -> Tensor:
        axes = {"true": (2,), "pred": (1,), "all": (1, 2)}[self.normalize or "all"]
        below = values.sum(axes, keepdims=True)
        data = values.sum((1, 2), keepdims=True) != 0
        if values.dtype == object or values.sum() >= 1 << 53:
            shares = np.vectorize(lambda n, d: int(n) / int(d) if d else 0.0, otypes=[float])(values, below)
        else:
            shares = values / np.maximum(below, 1)
        return torch.from_numpy(np.where(data, shares, nan))


def _counts(values: np.ndarray, unit: int) -> Tensor:
    """Counts as int64, or as float64 when they have a unit."""
    if not unit:
        return torch.from_numpy(values.astype(np.int64))
    return vector(rounded(Fraction(v, 1 << -unit)) for v in values.ravel()).view(values.shape)


class Stats(NamedTuple):
    """Outcomes per class or averaged: true and false positives and negatives, and how often the class is the target."""

    tp: Tensor
    fp: Tensor
    tn: Tensor
    fn: Tensor
    support: Tensor


@dataclass(frozen=True, kw_only=True)
class StatScores(LabelMetric):
    """True positives, false positives, true negatives, false negatives and support.

    Of class `k`: `tp = M_kk`, `fn` the rest of row `k` of the confusion matrix, `fp` the rest of column `k`, `tn` all
    else, `support = tp + fn`. By sample, the mean over the samples with a label that is not ignored.

    Returns:
        `Stats` of int64 tensors (float64 when weighted, averaged by "macro" or "weighted", or by sample), of shape
        `(C,)` or `(num_labels,)` with `average=None`, else `()`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> StatScores(num_classes=3)(preds, target).fp
        tensor([0, 0, 1])

    Source: Fawcett, Pattern Recognition Letters 27 (2006), 861-874.
    """

    top_k: TopKField = 1
    average: Annotated[
        Average | None,
        'None counts per class; "micro" sums over classes; "macro" is the mean over all classes; "weighted" weighs '
        "them by support.",
    ] = None
    multidim_average: MultidimField = "global"

    examples = ({}, {"num_classes": 4, "average": "weighted", "multidim_average": "samplewise"})
    estimates = False

    @property
    def sample_term(self) -> SampleOutcomes:
        return SampleOutcomes(self, "micro" if self.binary else self.average)

    def tally(self, weighted: bool) -> Tally:
        return super().tally(weighted) if self.multidim_average == "global" else RowSums(self.sample_term, weighted)

    def reading(self, tally: Tally) -> Callable[[State], Stats | None] | None:
        is_of_classes = self.multidim_average == "global" and (self.binary or self.average is None)
        if not is_of_classes or not isinstance(tally, Confusion) or tally.weighted:
            return None
        plain, of_classes, binary = tally.plain_outcomes, self.num_classes is not None, self.binary

        def read(state: State) -> Stats | None:
            table = plain(state, of_classes)
            return None if table is None else Stats(*(table[:, 0] if binary else table).unbind())

        return read

    def compute(self, counts: Counts | ClassTotals | RowTotals) -> Stats:
        if isinstance(counts, RowTotals):
            return Stats(*self.sample_term.means(counts))
        of = outcomes(counts.whole_totals(), self.num_classes is not None, self.ignore_index)
        every = (of.tp, of.fp, of.tn, of.fn, of.support)
        if self.binary or self.average is None:
            if not of.unit:  # one tensor of all of them takes less time
                table = torch.from_numpy(np.array(every, dtype=np.int64))
                return Stats(*(table[:, 0] if self.binary else table).unbind())
            return Stats(*(_counts(each[0, ...] if self.binary else each, of.unit) for each in every))
        if self.average == "micro":
            return Stats(*(_counts(each.sum(keepdims=True)[0, ...], of.unit) for each in every))
        weights = of.support.astype(object) if self.average == "weighted" else np.ones(len(of.tp), dtype=object)
        return Stats(*(number(self._mean(each, weights, of.unit)) for each in every))

    @staticmethod
    def _mean(values: np.ndarray, weights: np.ndarray, unit: int) -> float:
        total = int(weights.sum()) << -unit
        return (values * weights).sum() / total if total else nan


@dataclass(frozen=True, kw_only=True)
class ExactMatch(LabelMetric):
    """The share of samples whose labels are all right.

    `samples with every label right / samples`. A sample of multiclass or binary data `(N, ...)` is a row with all its
    positions; of multilabel data `(N, num_labels, ...)` a position with all its labels, and with "samplewise" the value
    is the mean over rows of the share of positions. Ignored labels are neither right nor wrong, and a sample of nothing
    else is left out.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[1, 0], [1, 1]]), torch.tensor([[1, 0], [0, 1]])
        >>> ExactMatch(num_labels=2)(preds, target)
        tensor(0.5000, dtype=torch.float64)

    Source: Sorower, A literature survey on algorithms for multi-label learning (2010), section 7.
    """

    value_range = SHARE

    multidim_average: MultidimField = "global"

    examples = ({}, {"num_labels": 3, "multidim_average": "samplewise"})
    higher_is_better = True
    unchanged_by = frozenset({"swap"})

    def tally(self, weighted: bool) -> Tally:
        return RowSums(SampleMatches(self), weighted) if self._by_position else SampleHits(self.labels, weighted)

    @property
    def _by_position(self) -> bool:
        """Whether a row has a share of its positions."""
        return self.multidim_average == "samplewise" and self.num_labels is not None

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if self.num_labels is not None and batch.needed_target.ndim > 2:
            return self._of_positions(batch) if self._by_position else None  # else a sample is a position of a row
        answers = self.answers(batch)
        right = answers["correct"] if answers.counts is None else answers["correct"] | ~answers.counts
        if right.ndim == 1:
            return answers.share("correct")
        name = "all labels correct" + answers.condition
        if answers.counts is None:
            return SampleTerms.of(name, right.flatten(1).all(1))
        some = answers.counts.flatten(1).any(1)
        return SampleTerms.of(name, right.flatten(1).all(1) & some, "some label counted" + answers.condition, some)

    def _of_positions(self, batch: Batch) -> SampleTerms:
        shares = SampleMatches(self)(batch)
        assert shares.counted is not None, "samples of nothing but ignored labels are left out"
        name = f"value of {self!r}"
        return SampleTerms.of(name, shares.values[0][:, 0] / ONE, f"has a {name}", shares.counted)

    @property
    def closed_form(self) -> str:
        return "" if self._by_position else "Wilson's interval"

    def interval(self, counts: SampleTotals | RowTotals, confidence_level: float, rows: int) -> Ends | None:
        if isinstance(counts, RowTotals):
            return None
        samples = counts.right + counts.wrong
        return wilson(counts.right, samples, confidence_level) if samples <= rows else None

    def caution(self, counts: SampleTotals | RowTotals) -> str:
        return "" if isinstance(counts, RowTotals) else few_of_a_kind(counts.right, counts.right + counts.wrong)

    def compute(self, counts: SampleTotals | RowTotals) -> Tensor:
        if isinstance(counts, RowTotals):
            return number(rounded(quotient(means(counts)[0], ONE)))
        samples = counts.right + counts.wrong
        return number(counts.right / samples if samples else nan)


class ClassTable(NamedTuple):
    """Precision, recall, F1 and support of each class, and their averages.

    `precision`, `recall`, `f1` and `support` have the shape `(K,)`; `micro`, `macro` and `weighted` hold precision,
    recall and F1, shape `(3,)`.
    """

    precision: Tensor
    recall: Tensor
    f1: Tensor
    support: Tensor
    micro: Tensor
    macro: Tensor
    weighted: Tensor

    def rows(self, names: Sequence[str] | None = None) -> list[tuple[str, float, float, float, float]]:
        """One row per class and average: name, precision, recall, F1, support.

        Args:
            names: of the classes; their numbers by default.
        """
        chosen = list(names) if names is not None else [str(k) for k in range(len(self.support))]
        if len(chosen) != len(self.support):
            do = "Give one name for each class"
            raise ConfigError(describe("names", f"{len(chosen)} names", f"{len(self.support)}", do))
        columns = [each.tolist() for each in (self.precision, self.recall, self.f1, self.support)]
        table = list(zip(chosen, *columns, strict=True))
        for name, average in (("micro", self.micro), ("macro", self.macro), ("weighted", self.weighted)):
            table.append((name, *average.tolist(), self.support.sum().item()))
        return table

    def __str__(self) -> str:
        head = f"{'':>10} {'precision':>9} {'recall':>9} {'f1':>9} {'support':>9}"
        return "\n".join([head, *(f"{n:>10} {p:9.4f} {r:9.4f} {f:9.4f} {s:9g}" for n, p, r, f, s in self.rows())])


@dataclass(frozen=True, kw_only=True)
class ClassReport(LabelMetric):
    """A table of precision, recall, F1 and support for each class, with their averages.

    `tp / (tp + fp)`, `tp / (tp + fn)`, `2 tp / (2 tp + fp + fn)` and `tp + fn`. Binary data has rows for class 0 and
    class 1.

    Returns:
        `ClassTable` of tensors on the CPU; `print` shows it. NaN for a class without data. If `ignore_index` is a
        class, averages over classes leave it out, and its own values are NaN.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 2, 1, 2]), torch.tensor([0, 1, 1, 2])
        >>> print(ClassReport(num_classes=3)(preds, target))
                   precision    recall        f1   support
                 0    1.0000    1.0000    1.0000         1
                 1    1.0000    0.5000    0.6667         2
                 2    0.5000    1.0000    0.6667         1
             micro    0.7500    0.7500    0.7500         4
             macro    0.8333    0.8333    0.7778         4
          weighted    0.8750    0.7500    0.7500         4

    Source: van Rijsbergen, Information Retrieval (1979), chapter 7.
    """

    top_k: TopKField = 1

    def compute(self, counts: Counts | ClassTotals) -> ClassTable:
        of = outcomes(counts.totals(), self.num_labels is None, self.ignore_index)
        kinds = [kind.ratio.weights() for kind in (Precision, Recall, F1Score)]
        precision, recall, f1 = (vector(averaged(kind, of, None)) for kind in kinds)
        micro, macro, weighted = (vector(averaged(kind, of, how)[0] for kind in kinds) for how in get_args(Average))
        return ClassTable(precision, recall, f1, _counts(of.support, of.unit), micro, macro, weighted)
