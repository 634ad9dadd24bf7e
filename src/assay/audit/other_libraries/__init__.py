"""Inputs for the metrics of other libraries, so that they can be audited: TorchMetrics, Ignite, TorchEval."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.errors import MissingDependencyError

if TYPE_CHECKING:
    from assay.audit.cases.case import Case
    from assay.audit.other_libraries.descriptions import LibraryMetrics

LIBRARIES = {
    "torchmetrics": ("torchmetrics_metrics", "torchmetrics"),
    "ignite.metrics": ("ignite_metrics", "pytorch-ignite"),
    "torcheval.metrics": ("torcheval_metrics", "torcheval"),
}


def cases(name: str) -> Iterator[Case]:
    """The cases of a library: one for each metric and each set of arguments that leads to other code.

    Example:
        >>> [case.name for case in cases("torchmetrics")][-1]
        'torchmetrics.video.vmaf.VideoMultiMethodAssessmentFusion'
    """
    metrics = library(name)
    yield from map(metrics.case, metrics.rows)


def library(name: str) -> LibraryMetrics:
    """The table of one of :data:`LIBRARIES`; ``"ignite"`` and ``"torcheval"`` mean their metrics.

    Raises:
        MissingDependencyError: the library is not installed.
    """
    name = name if name in LIBRARIES else f"{name}.metrics"
    module, package = LIBRARIES[name]
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        raise MissingDependencyError(package, extra="bench", purpose=f"the audit of {name}")
    table: LibraryMetrics = importlib.import_module(f"{__name__}.{module}").LIBRARY
    return table
