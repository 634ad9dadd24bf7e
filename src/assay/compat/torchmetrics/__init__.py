"""TorchMetrics' names on assay's counts: `from assay.compat import torchmetrics` for `import torchmetrics`.

Every module of TorchMetrics has a counterpart: `assay.compat.torchmetrics.classification`, `.functional` and so on.
`MetricCollection` counts once what its metrics share. Other wrappers and what is not a metric are TorchMetrics' own,
and take these metrics.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from assay.compat.drop_ins import (
    FAMILIES,
    FAMILY_FUNCTIONS,
    FUNCTIONS_ALONE,
    PAIRWISE,
    QUERY_FUNCTIONS,
    RUNNING,
    DropIn,
    drop_ins,
)
from assay.compat.for_torchmetrics.collection import MetricCollection as CompatibleCollection
from assay.compat.for_torchmetrics.names import (
    compatible_class,
    compatible_family_function,
    compatible_function,
    compatible_query_function,
    with_defaults_of,
)
from assay.compat.for_torchmetrics.running import CompatibleRunning, running_aggregate
from assay.compat.for_torchmetrics.wrappers import CHANGED
from assay.compat.modules import others_own, stand_for
from assay.integrations.optional_packages import import_package

_GENERAL = ("torchmetrics.aggregation", "torchmetrics.collections", "torchmetrics.metric", "torchmetrics.wrappers")
_DROP_INS = drop_ins("torchmetrics")
_CHANGED = {kind.__base__: kind for kind in (CompatibleCollection, CompatibleRunning)} | CHANGED


def replace(original: Any) -> Any:
    """What stands for an object of TorchMetrics.

    A metric that assay has with other arguments only, or not at all, is the library's own, with a warning.
    """
    current = _current(original)
    name = getattr(current, "__name__", "")
    if current is not original and (name in FAMILIES or name in FAMILY_FUNCTIONS):
        return with_defaults_of(original, replace(current))
    if isinstance(original, type) and original in _CHANGED:
        return _CHANGED[original]
    found = _DROP_INS.get(name, DropIn(name))
    if name in RUNNING:
        return running_aggregate(current)
    if name in PAIRWISE:
        return import_module("assay.compat.for_torchmetrics.pairs").compatible_pair_function(current)
    if name in FUNCTIONS_ALONE:
        return import_module("assay.compat.for_torchmetrics.functions").compatible_function_alone(current)
    if name in QUERY_FUNCTIONS:
        return compatible_query_function(current)
    if name in FAMILY_FUNCTIONS:
        return compatible_family_function(current, FAMILY_FUNCTIONS[name])
    if found.assay or found.tasks:
        return compatible_class(current) if isinstance(current, type) else compatible_function(current)
    if not found.instead or original.__module__.startswith(_GENERAL) or found.instead.startswith("keep it"):
        return original
    return others_own(original, found.instead, name)


def _current(original: Any) -> Any:
    """The object of the family's module, where the root has a deprecated copy of it under the same name."""
    family, _, deprecated = (getattr(original, "__module__", None) or "").rpartition(".")
    if deprecated != "_deprecated":
        return original
    return getattr(import_module(family), original.__name__.removeprefix("_"))


__getattr__, __dir__ = stand_for(import_package("torchmetrics", "metrics of its names"), replace)
