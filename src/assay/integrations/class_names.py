"""Classes that hosts tell apart by their names, as Composer and `MetricCollection` do."""

from __future__ import annotations

import functools
from typing import Any

from assay.integrations.optional_packages import import_package
from assay.metrics.base import Metric

torchmetrics: Any = import_package("torchmetrics", "the names of its classes")


def name_in_torchmetrics(metric: Metric) -> str:
    """The name of the TorchMetrics class that a metric replaces, or the metric's own."""
    name = type(metric).__name__
    sizes = (("num_classes", "Multiclass"), ("num_labels", "Multilabel"))
    task = next((task for size, task in sizes if getattr(metric, size, None) is not None), "Binary")
    places = ((torchmetrics.classification, f"{task}{name}"), (torchmetrics, f"{name}Metric"))
    return next((there for place, there in places if hasattr(place, there)), name)


@functools.cache
def class_named(base: type, name: str) -> Any:
    """A class derived from another one, with a name; the same class for the same name. Its instances can be pickled."""

    def reduced(self: Any, protocol: Any) -> Any:
        reduced_as_usual: Any = super(kind, self).__reduce_ex__(protocol)
        return _empty, (base, name), *reduced_as_usual[2:]

    body = {"__doc__": base.__doc__, "__module__": base.__module__, "__reduce_ex__": reduced}
    kind: Any = type(name, (base,), body)
    return kind


def _empty(base: type, name: str) -> Any:
    """An instance of a named class, which unpickling fills."""
    kind = class_named(base, name)
    return kind.__new__(kind)
