"""Ignite's names on assay's counts: `from assay.compat import ignite` for `import ignite`.

`assay.compat.ignite.metrics` has Ignite's metrics; everything else, such as `ignite.engine`, is Ignite's own.
"""

from __future__ import annotations

from typing import Any

from assay.compat.ignite_metric import SCORES, TABLE, compatible_class
from assay.compat.modules import others_own, stand_for
from assay.integrations.optional_packages import import_package

_GENERAL = (
    *("Average", "BatchFiltered", "BatchWise", "EpochMetric", "EpochWise", "Frequency", "GeometricAverage", "GpuInfo"),
    *("Loss", "Metric", "MetricGroup", "MetricUsage", "MetricsLambda", "RunningAverage", "RunningBatchWise"),
    *("RunningEpochWise", "SingleEpochRunningBatchWise", "VariableAccumulation"),
)
"""Names that are no metrics of predictions, and work beside these as they are."""

_CLASSES_UNKNOWN = "its labels do not say how many classes there are: as_ignite(metric(num_classes=...))"


def replace(original: Any) -> Any:
    """What stands for an object of Ignite.

    A metric that assay has with other arguments only, or not at all, is the library's own, with a warning.
    """
    name = getattr(original, "__name__", "")
    module = getattr(original, "__module__", None) or ""
    if not module.startswith("ignite.metrics") or name in _GENERAL:
        return original
    instead = TABLE.without.get(name, "")
    if entry := TABLE.entries.get(name):
        unclear = entry.assay in ("CohenKappa", "MatthewsCorrCoef")
        instead = _CLASSES_UNKNOWN if unclear else "" if name in SCORES else entry.unsure
        if not instead:
            return compatible_class(original)
    if not instead or instead.startswith("keep it"):
        return original
    return others_own(original, instead)


__getattr__, __dir__ = stand_for(import_package("ignite", "metrics of its names"), replace)
