"""Batches as TorchMetrics takes them, as assay's metrics take them; nothing is read on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from assay.metrics.base import Metric
from assay.metrics.classification.confusion import StatScores
from assay.metrics.classification.samplewise import sample_outcomes
from assay.tally.base import Batch as CountedBatch

Batch = tuple[Any, ...]
"""`preds` and `target`, and what else an update takes by position."""


def batch_format(name: str, metric: Metric) -> Callable[..., Batch]:
    """The function that makes a batch of TorchMetrics one of a metric of assay.

    Args:
        name: the class in TorchMetrics.
        metric: the metric that counts it.
    """
    of_labels = hasattr(metric, "threshold")
    if name.startswith("Binary"):
        return _unchanged_shape if of_labels else _flat
    if name.startswith("Multiclass"):
        return _labels if of_labels else _rows
    if name.startswith("Multilabel"):
        return _unchanged_shape if of_labels else _label_rows
    return _as_it_is


def _as_it_is(*batch: Any) -> Batch:
    return batch


def _unchanged_shape(preds: Tensor, target: Tensor) -> Batch:
    return probabilities(preds), target


def _flat(preds: Tensor, target: Tensor) -> Batch:
    return probabilities(preds.flatten()), target.flatten()


def _labels(preds: Tensor, target: Tensor) -> Batch:
    return preds, target


def _rows(preds: Tensor, target: Tensor) -> Batch:
    return class_probabilities(preds.movedim(1, -1).flatten(0, -2)), target.flatten()


def _label_rows(preds: Tensor, target: Tensor) -> Batch:
    return probabilities(preds.movedim(1, -1).flatten(0, -2)), target.movedim(1, -1).flatten(0, -2)


def probabilities(scores: Tensor) -> Tensor:
    """Scores, of which the sigmoid is taken where one is outside [0, 1]; labels as they are.

    Example:
        >>> probabilities(torch.tensor([0.2, 0.7])), probabilities(torch.tensor([0.0, 2.0]))
        (tensor([0.2000, 0.7000]), tensor([0.5000, 0.8808]))
    """
    if not scores.is_floating_point() or not scores.numel():
        return scores
    return torch.where(((scores < 0) | (scores > 1)).any(), scores.sigmoid(), scores)


def class_probabilities(scores: Tensor) -> Tensor:
    """Scores `(N, C)`, of which the softmax is taken where one is outside [0, 1].

    Example:
        >>> class_probabilities(torch.tensor([[0.2, 0.7]])), class_probabilities(torch.tensor([[0.0, 2.0]]))
        (tensor([[0.2000, 0.7000]]), tensor([[0.1192, 0.8808]]))
    """
    if not scores.is_floating_point() or not scores.numel():
        return scores
    return torch.where(((scores < 0) | (scores > 1)).any(), scores.softmax(1), scores)


def sample_stats(metric: StatScores, preds: Tensor, target: Tensor) -> list[Tensor]:
    """True and false positives, true and false negatives of each sample, `(N, C)`; `(N,)` of binary data."""
    of, _ = sample_outcomes(metric.labels, CountedBatch(preds.detach(), target, None))
    binary = metric.num_classes is None and metric.num_labels is None
    return [each.squeeze(1) if binary else each for each in (of.tp, of.fp, of.tn, of.fn)]
