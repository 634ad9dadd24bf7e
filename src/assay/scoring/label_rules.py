"""Which labels the metrics of a table take."""

from __future__ import annotations

from collections.abc import Iterable

from assay.metrics.base import Metric
from assay.metrics.classification.label_metrics import LabelMetric
from assay.metrics.classification.probabilities import ScoreMetric
from assay.metrics.classification.ranking import RankingMetric
from assay.metrics.nominal.fleiss_kappa import FleissKappa

_OF_CLASSES = (LabelMetric, ScoreMetric, RankingMetric)


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
    return None if isinstance(metric, FleissKappa) else count  # whose predictions are numbers of ratings


def ignored_labels(metrics: Iterable[Metric]) -> frozenset[int]:
    """The labels that metrics leave out."""
    labels = (getattr(metric, "ignore_index", None) for metric in metrics)
    return frozenset(label for label in labels if label is not None)
