"""Which labels the metrics of a table take."""

from __future__ import annotations

from collections.abc import Iterable

from assay.metrics.base import Metric
from assay.metrics.classification.label_metrics import LabelMetric
from assay.metrics.classification.probabilities import ScoreMetric
from assay.metrics.classification.ranking_metric import RankingMetric

_OF_CLASSES = (LabelMetric, ScoreMetric, RankingMetric)
_OF_RATERS = ("ratings", "rater labels")
"""What metrics count instead of one label a sample: numbers of ratings, or a label of each rater."""


def takes_labels(metrics: Iterable[Metric]) -> bool:
    """Whether targets are labels to all metrics."""
    return all(isinstance(each, _OF_CLASSES) for each in metrics)


def class_count(metrics: Iterable[Metric]) -> int | None:
    """How many classes labels may be of; None where metrics take any labels, or none."""
    counts = [count for metric in metrics if (count := _classes_of(metric)) is not None]
    return max(counts, default=None)


def _classes_of(metric: Metric) -> int | None:
    """How many classes the labels of a metric may be of: two where one of classification does not say."""
    count: int | None = getattr(metric, "num_classes", None)
    if isinstance(metric, _OF_CLASSES):
        return count or 2
    return None if metric.inputs in _OF_RATERS else count


def ignored_labels(metrics: Iterable[Metric]) -> frozenset[int]:
    """The labels that metrics leave out."""
    labels = (getattr(metric, "ignore_index", None) for metric in metrics)
    return frozenset(label for label in labels if label is not None)
