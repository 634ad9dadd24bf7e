"""Per-sample values of a metric that is a mean over samples, and what is predicted for each sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from assay.devices.policies import policy
from assay.tally.base import Batch
from assay.tally.inputs import check_inputs, match_shapes, readable

if TYPE_CHECKING:
    from assay.metrics.base import Metric


@dataclass(frozen=True, eq=False)
class SampleTerms:
    """Terms of a metric, one number or boolean a sample, whose names say what they are.

    Equal names mean equal numbers: metrics of the same samples share their terms. (What scores are, such as logits,
    is no part of a name: metrics that are given the same scores agree about that.)

    Attributes:
        terms: tensors of shape `(N,)` by name, on the device of the predictions.
        numerator: the name of the term whose mean is the value, or the numerator of it.
        denominator: the name of the term by whose mean it is divided, or empty.
    """

    terms: Mapping[str, Tensor]
    numerator: str
    denominator: str = ""

    @classmethod
    def of(cls, name: str, values: Tensor, denominator: str = "", counts: Tensor | None = None) -> SampleTerms:
        """The mean of `values`; or, with `counts`, their sum over that of the counts."""
        terms = {name: values}
        if counts is not None:
            terms[denominator] = counts
        return cls(terms, name, denominator if counts is not None else "")

    def weighted(self, weights: Tensor) -> SampleTerms:
        """The same for samples with weights `(N,)`."""
        weights = weights if weights.dtype == torch.float64 else weights.float()
        none = weights == 0  # even of what is infinite
        terms = {_weighed(name): (term * weights).masked_fill(none, 0) for name, term in self.terms.items()}
        if not self.denominator:
            terms["weight"] = weights
        return SampleTerms(
            terms, _weighed(self.numerator), _weighed(self.denominator) if self.denominator else "weight"
        )


def _weighed(name: str) -> str:
    return f"{name}, weighted"


def per_sample_values(
    metric: Metric, preds: Any, target: Any = None, weights: Tensor | None = None, **columns: Tensor
) -> SampleTerms | None:
    """What each sample contributes to a metric, where its value is a mean over samples or the quotient of two.

    The value is `mean(numerator)`, or `mean(numerator) / mean(denominator)`, up to the rounding of the terms; where
    that is 0 / 0, a metric may define another value. Nothing synchronizes with the device.

    Args:
        metric: any metric.
        preds: a batch, as for `Meter.update`.
        target: likewise.
        weights: likewise.
        **columns: likewise.

    Returns:
        The terms; None where the metric is no such mean, or where a row has more than one sample in it, as images do.

    Raises:
        InputError: what the metric's update would raise for this batch.

    Example:
        >>> from assay import Recall
        >>> found = per_sample_values(Recall(), torch.tensor([0.2, 0.9, 0.7]), torch.tensor([1, 1, 0]))
        >>> found.numerator, found.denominator
        ('true positives', 'positives')
        >>> found.terms["true positives"]
        tensor([False,  True, False])
    """
    if metric.encoders and metric.encoder is None:
        return None  # made of metrics of raw samples
    if metric.encoder is not None:
        taken = metric.encoder.columns
        preds = metric.encoder.encode(preds, target, {name: columns[name] for name in sorted(taken)})
        target, columns = None, {name: column for name, column in columns.items() if name not in taken}
        if not isinstance(preds, Tensor):
            return None  # samples of any number of items, as images with boxes
    return row_values(metric, preds, target, weights, columns)


def row_values(
    metric: Metric, preds: Tensor, target: Tensor | None, weights: Tensor | None, columns: Mapping[str, Tensor]
) -> SampleTerms | None:
    """`per_sample_values` of raw samples that were encoded: `preds` are the rows of the metric's encoder."""
    batch = _batch(metric, preds, target, weights, columns)
    with torch.no_grad(), torch.autocast(batch.preds.device.type, enabled=False):
        terms = metric.per_sample(batch)
        if terms is None or batch.weights is None:
            return terms
        each = single(batch.weights)
        return None if each is None else terms.weighted(each)


def predictions(metric: Metric, preds: Any, target: Any = None, **columns: Tensor) -> Tensor | None:
    """What is predicted for each sample: the label of a classification, or the prediction of a regression.

    Args:
        metric: any metric.
        preds: a batch, as for `Meter.update`.
        target: likewise.
        **columns: likewise.

    Returns:
        Labels, int64 of shape `(N,)`, or predictions of that shape; None where the metric predicts nothing (as it ranks
        scores) or several things of a sample.

    Raises:
        InputError: what the metric's update would raise for this batch.

    Example:
        >>> from assay import Accuracy
        >>> predictions(Accuracy(), torch.tensor([0.2, 0.9, 0.7]), torch.tensor([1, 1, 0]))
        tensor([0, 1, 1])
    """
    if metric.encoders:
        return None
    batch = _batch(metric, preds, target, None, columns)
    with torch.no_grad(), torch.autocast(batch.preds.device.type, enabled=False):
        return metric.predicted(batch)


def _batch(
    metric: Metric, preds: Tensor, target: Tensor | None, weights: Tensor | None, columns: Mapping[str, Tensor]
) -> Batch:
    """A batch whose metadata was found to be right."""
    arguments = {"preds": preds, "target": target, "weights": weights, **columns}
    fit = match_shapes(check_inputs(arguments, weights is not None, False), metric.tally(weights is not None).check)
    tensors = {name: readable(each.detach()) for name, each in fit.items()}
    compiled = policy(tensors["preds"].device).compiled.value
    named = {name: tensors[name] for name in columns}
    return Batch(tensors["preds"], tensors.get("target"), tensors.get("weights"), compiled=compiled, columns=named)


def single(rows: Tensor) -> Tensor | None:
    """The one value of each row, of shape `(N,)`; None where rows have more.

    Example:
        >>> single(torch.zeros(3, 1)).shape, single(torch.zeros(3, 2))
        (torch.Size([3]), None)
    """
    if rows.ndim == 1:
        return rows
    return rows[:, 0] if rows.ndim == 2 and rows.shape[1] == 1 else None
