"""Metrics of labels, of scores and of errors that Ignite defines as assay does, but for shapes and means."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import torch
from torch import Tensor

from assay.compat.counterparts import counterpart
from assay.compat.for_ignite.metric import CompatibleIgniteMetric, check_classes, check_divisor, pair, quietly
from assay.compat.for_torchmetrics.values import placed
from assay.decide import Rows, TopK
from assay.errors import ShapeError, describe
from assay.integrations.optional_packages import import_package
from assay.meter import Meter
from assay.metrics import Accuracy, ExactMatch
from assay.metrics.base import Metric
from assay.metrics.exact_arithmetic import means, quotient, result, root, rounded
from assay.migrate.table import Counterpart, library
from assay.tally.base import Batch, BatchLayout, Tally
from assay.tally.rows.row_terms import check_vectors
from assay.tally.sums.row_sums import RowSums, RowTerm, RowTotals, RowValues

_regression: Any = import_package("ignite.metrics.regression._base", "metrics of its names")

_OF_LABELS = ("Accuracy", "Precision", "Recall")
_OF_SCORES = ("AveragePrecision", "PrecisionRecallCurve", "ROC_AUC")

_OVER_ROWS = ("MeanAbsoluteError", "MeanSquaredError", "RootMeanSquaredError")
"""Names of metrics that divide the sum over all numbers by the number of rows."""


class IgnitePair(CompatibleIgniteMetric):
    """A metric of predictions and targets, made from its row in the table of counterparts.

    The size of the data is that of dimension 1; the flag says that predictions are labels, or scores of one class.
    """

    entry: ClassVar[Counterpart]

    def __init_subclass__(cls) -> None:
        cls.entry = library("ignite").entries[cls.original.__name__]
        cls.sized = cls.original.__name__ in (*_OF_LABELS, *_OF_SCORES)

    def _check(self, output: Any) -> None:
        """Raise what the class of Ignite raises for these shapes."""
        for check in ("_check_shape", "_check_type"):
            if hasattr(self.original, check):
                getattr(self, check)(output)
        if self.original.__module__.startswith("ignite.metrics.regression"):
            check_regression(output)

    def _count(self, output: Any) -> None:
        preds, target = pair(output)
        self._check((preds, target))
        classes = preds.shape[1] if preds.ndim > 1 else 1
        if self.name in ("Precision", "Recall") and preds.ndim > target.ndim:
            check_classes(target, classes)
        if self.name == "MeanNormalizedBias":
            check_divisor(target)
        self._begin(classes, int(preds.ndim == target.ndim or classes == 1))
        self.meter.update(*self._batch(preds, target))
        self._updated = True  # as Precision and Recall say of themselves

    def _meter_of(self, size: int, flag: int) -> Meter:
        return Meter(value=self._metric(size))

    @property
    def _binary(self) -> bool:
        """Whether labels of two classes are predicted."""
        return bool(self._layout and self._layout[1]) and not self._multilabel and self.name in _OF_LABELS

    @property
    def _of_each_sample(self) -> bool:
        """Whether the mean over samples is taken of a rate of the labels of each."""
        return bool(self._multilabel) and self._arguments.get("average") == "samples"

    def _metric(self, classes: int) -> Metric:
        """What counts batches with this size of dimension 1."""
        name = self.name
        fields: dict[str, Any] = {"logits": True} if name in _OF_SCORES else {}  # of any size
        if self._of_each_sample:
            return SampleRate()
        if self._multilabel and name == "Accuracy":
            return ExactMatch(num_labels=classes)
        if self._multilabel or (name in _OF_SCORES and classes > 1):
            return counterpart(self.entry, self._counted(), num_labels=classes, **fields)
        if name in _OF_LABELS:
            return counterpart(self.entry, self._counted(), num_classes=2 if self._binary else classes)
        if name == "TopKCategoricalAccuracy":
            return Accuracy(num_classes=2)  # of hits and misses
        if name == "ConfusionMatrix":
            fields["ignore_index"] = -1
        return counterpart(self.entry, self._counted(), **fields)

    def _counted(self) -> dict[str, Any]:
        """The arguments. Means over classes are taken afterwards, as those without data count as 0, and so are those
        over samples."""
        average = self._arguments.get("average")
        if average in ("macro", True):
            return {**self._arguments, "average": False}
        return {**self._arguments, "average": None} if average == "samples" else self._arguments

    def _batch(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        name = self.name
        if self._of_each_sample:
            return _rows_of_labels(preds, target) if name == "Precision" else _rows_of_labels(target, preds)
        if name in _OF_LABELS and (self._multilabel or self._binary):
            preds = preds if self._multilabel else preds.reshape(target.shape)
            return zeros_and_ones(preds), zeros_and_ones(target)
        if name in _OF_LABELS:
            return preds, target.long()
        if name == "TopKCategoricalAccuracy":
            return _hits(preds, target, self._arguments["k"])
        if name in _OVER_ROWS or name == "MaximumAbsoluteError":
            return preds.reshape(target.shape), target
        if name == "ConfusionMatrix":
            target = without_others(target, self._arguments["num_classes"])
        if name in _OF_SCORES:
            preds, target = preds if preds.is_floating_point() else preds.float(), zeros_and_ones(target)
        if name != "MeanPairwiseDistance":
            return column(preds, target)
        return preds, target

    def _without_data(self) -> Any:
        if self._layout is not None and self.name in ("Precision", "Recall"):
            return placed(self._value(self.meter.sync()), self._double_dtype, self._device)
        return super()._without_data()

    def _value(self, meter: Meter) -> Any:
        if self._of_each_sample:
            return float(meter.compute()["value"]) if meter.rows else 0.0
        averaged = "average" in self._arguments  # classes without data are 0
        value = quietly(meter) if averaged else meter.compute()["value"]
        value = _over_rows(meter) if self.name in _OVER_ROWS else self._as_there(value, meter.rows)
        of_class_1 = self._binary and self._arguments.get("average") is False  # which stays a tensor there
        return value.item() if isinstance(value, Tensor) and not value.ndim and not of_class_1 else value

    def _as_there(self, value: Any, rows: int) -> Any:
        """A value of assay's metric as Ignite has it."""
        if isinstance(value, tuple):
            return tuple(value)
        if "average" not in self._arguments:
            return value
        average, value = self._arguments["average"], value.nan_to_num(0.0)
        if average == "samples":
            return value / rows
        if average in ("macro", True):
            return value.mean()
        return value[1] if self._binary and average is False else value


@dataclass(frozen=True)
class _Rate(RowTerm):
    """The share of the labels of a row of `preds` that the row of `target` has, too; 0 where there are none."""

    invalid = ("labels are neither 0 nor 1",)

    def check(self, layout: BatchLayout) -> None:
        check_vectors(layout)

    def __call__(self, batch: Batch) -> RowValues:
        labels, others = batch.preds, batch.needed_target
        known = ((labels >= 0) & (others >= 0)).all(1)
        shares = (labels * others).sum(1) / labels.sum(1).clamp(min=1)
        return RowValues(shares.masked_fill(~known, 0), counted=known, invalid=[~known])


@dataclass(frozen=True)
class SampleRate(Metric):
    """The mean over rows of `_Rate`."""

    def tally(self, weighted: bool) -> Tally:
        return RowSums(_Rate(), weighted)

    def compute(self, counts: RowTotals) -> Tensor:
        return result(means(counts))


def _rows_of_labels(*labels: Tensor) -> tuple[Tensor, Tensor]:
    """Labels `(N, C, ...)` as rows `(N, C)`."""
    first, second = (zeros_and_ones(each).movedim(1, -1).reshape(-1, each.shape[1]) for each in labels)
    return first, second


def check_regression(output: Any) -> None:
    """Raise where Ignite's metrics of regression do."""
    _regression._check_output_shapes(output)
    _regression._check_output_types(output)


def column(preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both of shape `(N,)` where predictions are `(N, 1)`."""
    if preds.ndim == 2 and preds.shape[1] == 1:
        return preds.flatten(), target.flatten()
    return preds, target


def zeros_and_ones(labels: Tensor) -> Tensor:
    """Labels as integers; other numbers than 0 and 1 are invalid ones."""
    return torch.where(labels == labels * labels, labels, -1).long()


def without_others(target: Tensor, classes: int) -> Tensor:
    """Labels, of which those of no class are -1."""
    return torch.where((target >= 0) & (target < classes), target, -1)


def _over_rows(meter: Meter) -> float:
    """The sum over all numbers by the number of rows, rounded once; or the root of that."""
    metric: Any = meter.metrics["value"]
    value = quotient(total_of(meter), Fraction(meter.rows))
    return root(value) if metric.formula.root else rounded(value)


def total_of(meter: Meter) -> Any:
    """The exact sum of the errors."""
    metric: Any = meter.metrics["value"]
    return metric.formula.above.evaluate(meter.counts_of("value").sum_of(0))


def _hits(scores: Tensor, target: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """1 for each target among the `k` highest scores of its row, 0 for others; and 1 for each. Invalid ones are 2."""
    if scores.ndim < 2 or scores.shape[1] < k:
        got, expected = f"shape {tuple(scores.shape)}", f"(N, C) with at least {k} classes"
        raise ShapeError(describe("y_pred", got, expected, "Pass scores of all classes, or a smaller k"))
    classes = scores.shape[1]
    scores = scores if scores.dtype == torch.float64 else scores.float()
    label = target.flatten().long()
    is_class = (label >= 0) & (label < classes) & (label == target.flatten())
    label = label.clamp(0, classes - 1)
    decided = TopK(k)(Rows(scores.movedim(1, -1).reshape(-1, classes), label))
    hits = (decided == label).long().masked_fill(decided == classes, 2)
    return hits, torch.ones_like(hits).masked_fill(~is_class, 2)


OF_PAIRS = frozenset(
    (
        *_OF_LABELS,
        *_OF_SCORES,
        *_OVER_ROWS,
        *(
            "CanberraMetric",
            "ConfusionMatrix",
            "FractionalAbsoluteError",
            "FractionalBias",
            "GeometricMeanAbsoluteError",
        ),
        *("GeometricMeanRelativeAbsoluteError", "KendallRankCorrelation", "MaximumAbsoluteError", "MeanError"),
        *("MeanNormalizedBias", "MeanPairwiseDistance", "PearsonCorrelation", "R2Score", "SpearmanRankCorrelation"),
        *("TopKCategoricalAccuracy", "WaveHedgesDistance"),
    )
)
"""The names of these metrics."""
