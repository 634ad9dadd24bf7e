"""Inputs for the metrics of other libraries, so that they can be audited: TorchMetrics, Ignite, TorchEval."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.errors import ConfigError, MissingDependencyError, describe

if TYPE_CHECKING:
    from assay.audit.case import Case
    from assay.audit.other_libraries.descriptions import LibraryMetrics

LIBRARIES = {
    "torchmetrics": ("torchmetrics_metrics", "torchmetrics"),
    "ignite.metrics": ("ignite_metrics", "pytorch-ignite"),
    "torcheval.metrics": ("torcheval_metrics", "torcheval"),
}


def cases(target: str | type) -> Iterator[Case]:
    """The cases of a library, of a part of it, or of one class: one for each metric and set of arguments.

    Args:
        target: ``"torchmetrics"``, ``"ignite.metrics"`` or ``"torcheval.metrics"``; a module or class below one of
            them, such as ``"torchmetrics.classification"``; or a metric class of one of them.

    Raises:
        ConfigError: the target belongs to none of the libraries.
        MissingDependencyError: the library is not installed.

    Example:
        >>> [case.name for case in cases("torchmetrics.aggregation.MeanMetric")][0]
        'torchmetrics.aggregation.MeanMetric'
    """
    if isinstance(target, type):
        yield from _of_class(target)
        return
    name = knows(target)
    yield from library(name).cases(target[len(name) + 1 :])


def knows(target: str) -> str:
    """The library that a dotted name belongs to; ``"ignite"`` and ``"torcheval"`` alone mean their metrics."""
    for name in LIBRARIES:
        if f"{target}.".startswith(f"{name}.") or target == name.partition(".")[0]:
            return name
    expected = f"one of {', '.join(LIBRARIES)}, or what lies below it"
    todo = "Give your own cases in a function audit_cases() of the target's module"
    raise ConfigError(describe("inputs", f"the target {target}, for which none are known", expected, todo))


def library(name: str) -> LibraryMetrics:
    """The table of one library.

    Raises:
        MissingDependencyError: the library is not installed.
    """
    module, package = LIBRARIES[name]
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        raise MissingDependencyError(package, extra="bench", purpose=f"the audit of {name}")
    found: LibraryMetrics = importlib.import_module(f"{__name__}.{module}").LIBRARY
    return found


def _of_class(target: type) -> Iterator[Case]:
    of = library(knows(target.__module__))
    for row in of.rows:
        if row.path.rpartition(".")[2] == target.__name__:
            yield of.case(row)
