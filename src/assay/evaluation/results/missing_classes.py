"""Slices whose samples lack classes: a mean over classes of them is not that of all samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from assay.meter.values import Readings
from assay.metrics.base import Metric
from assay.render.text import first_names

Absent = Mapping[str, frozenset[int]]
"""By the name of a metric that is a mean over classes, the classes that are never the target."""


def absent_classes(readings: Readings, metrics: Mapping[str, Metric]) -> Absent:
    """The classes that are never the target, of metrics that are means over classes."""
    names = [name for name, each in metrics.items() if _may_lack(each)] if readings.rows else []
    return {name: metrics[name].classes_without_targets(readings.of(name)[1]) for name in names}


def missing_classes(part: Absent, whole: Absent, classes: Sequence[str]) -> dict[str, str]:
    """Which classes a slice lacks that all samples have, in words, by the names of the metrics.

    Args:
        part: the classes that the slice lacks.
        whole: those that all samples lack.
        classes: the names of the classes; none for numbers.

    Example:
        >>> missing_classes({"f1": frozenset({0, 2, 5})}, {"f1": frozenset({5})}, ())
        {'f1': 'no sample of classes 0, 2'}
    """
    lacking = {name: sorted(each - whole.get(name, frozenset())) for name, each in part.items()}
    return {name: f"no sample of {_named(each, classes)}" for name, each in lacking.items() if each}


def _may_lack(metric: Metric) -> bool:
    return type(metric).classes_without_targets is not Metric.classes_without_targets


def _named(numbers: Sequence[int], classes: Sequence[str]) -> str:
    names = (classes[k] if k < len(classes) else str(k) for k in numbers)
    return f"{'class' if len(numbers) == 1 else 'classes'} {first_names(names)}"
