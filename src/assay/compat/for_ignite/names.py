"""Classes and functions in the place of those of Ignite, by their names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from types import FunctionType
from typing import Any

from assay.compat.drop_ins import drop_ins
from assay.compat.for_ignite.metric import CompatibleIgniteMetric
from assay.compat.for_ignite.pairs import OF_PAIRS, IgnitePair
from assay.compat.for_ignite.samples import OF_SAMPLES
from assay.compat.for_ignite.sums import OF_SUMS
from assay.compat.for_ignite.values import OF_VALUES
from assay.compat.modules import SignatureOfOwner, others_own

_COUNTED: Mapping[str, type[CompatibleIgniteMetric]] = {
    **dict.fromkeys(OF_PAIRS, IgnitePair),
    **OF_VALUES,
    **OF_SUMS,
    **OF_SAMPLES,
}
"""The class that counts each metric."""

_MAKERS = ("ClassificationReport", "DemographicParityDifference", "Fbeta", "Rouge", "SubgroupAccuracyDifference")
"""Names of functions and classes that make other metrics, which are those here."""


def replace(original: Any) -> Any:
    """What stands for an object of Ignite.

    A metric that assay has with other arguments only, or not at all, is the library's own, with a warning.
    """
    name, module = getattr(original, "__name__", ""), getattr(original, "__module__", None) or ""
    if not module.startswith("ignite.metrics"):
        return original
    if name in _COUNTED:
        return compatible_class(original)
    if name in _MAKERS:
        return _maker(original)
    return others_own(original, drop_ins("ignite")[name].instead) if name == "FID" else original


@functools.cache
def compatible_class(original: Any) -> type[CompatibleIgniteMetric]:
    """The class in the place of one of Ignite that assay counts."""
    return type(original.__name__, (_COUNTED[original.__name__], original), _body(original))


@functools.cache
def _maker(original: Any) -> Any:
    """A function or class of Ignite that makes metrics, with the metrics that stand here for those of Ignite."""
    if not isinstance(original, type):
        made = _with_metrics_here(original)
        functools.update_wrapper(made, original)
        made.__module__ = "assay.compat.ignite.metrics"
        return made
    constructor = _with_metrics_here(vars(original)["__init__"])
    return type(original.__name__, (original,), {**_body(original), "__init__": constructor})


def _with_metrics_here(function: Any) -> Any:
    """The same code, in which the names of Ignite's metrics are those of the classes here."""
    names = function.__code__.co_names
    names = {name: replace(function.__globals__[name]) for name in names if name in function.__globals__}
    same = FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    same.__kwdefaults__ = function.__kwdefaults__
    return same


def _body(original: Any) -> dict[str, Any]:
    body = {"__doc__": original.__doc__, "__module__": "assay.compat.ignite.metrics", "original": original}
    return body | {"__signature__": SignatureOfOwner(inspect.signature(original))}
