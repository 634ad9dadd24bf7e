"""Metrics of TorchMetrics inside a meter."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.integrations.optional_packages import import_package
from assay.metrics.base import Metric, number
from assay.tally.base import Tally
from assay.tally.stores.row_store import RowStore

torchmetrics: Any = import_package("torchmetrics", "metrics that it takes for its own")

_ROWS = 4096
"""How many rows a metric of TorchMetrics is given at once when the value is computed."""


@dataclass(frozen=True, eq=False)
class Foreign(Metric):
    """A metric of TorchMetrics inside a meter; made by `from_torchmetrics`."""

    metric: Any
    preds: tuple[int, ...] = ()
    target: tuple[int, ...] | None = ()

    def __post_init__(self) -> None:
        if not isinstance(self.metric, torchmetrics.Metric):
            do = "Pass an instance, as in from_torchmetrics(MulticlassAccuracy(10), preds=(10,))"
            raise ConfigError(describe("metric", type(self.metric).__name__, "a metric of TorchMetrics", do))

    def tally(self, weighted: bool) -> Tally:
        if weighted:
            do = "Measure it without weights"
            raise ConfigError(describe(type(self.metric).__name__, "weights", "none, which it does not take", do))
        return RowStore(self.preds, self.target)

    def compute(self, counted: Sequence[Tensor]) -> Any:
        metric = copy.deepcopy(self.metric).to("cpu")
        metric.reset()
        metric.sync_on_compute = metric._to_sync = False  # the meter has the samples of all processes
        if not len(counted[0]):
            return number(math.nan)
        for rows in zip(*(torch.split(column, _ROWS) for column in counted), strict=True):
            metric.update(*rows)
        return _detached(metric.compute())


def _detached(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, Mapping):
        return {name: _detached(each) for name, each in value.items()}
    return tuple(map(_detached, value)) if isinstance(value, list | tuple) else value


def from_torchmetrics(metric: Any, *, preds: tuple[int, ...] = (), target: tuple[int, ...] | None = ()) -> Foreign:
    """A metric of TorchMetrics as one that a meter takes.

    The meter keeps the samples, where they come from, and the metric gets all of them when it is read, on the CPU, in
    one order. So there is nothing to place, batches may come from any device, and the value has the same bits however
    they were split over batches and processes. It needs memory for the samples (see `SampleStore`), and a meter with
    such a metric cannot be read back from a file.

    Args:
        metric: what `update(preds, target)` takes rows of; its own state is not changed.
        preds: the shape of one row: `(10,)` for scores of ten classes, `()` for one number.
        target: the same of the target; None for a metric that takes none.

    Raises:
        ConfigError: it is no metric of TorchMetrics.
        MissingDependencyError: TorchMetrics is not installed.

    Example:
        >>> import torch
        >>> from assay import Meter
        >>> from torchmetrics.classification import MulticlassAccuracy
        >>> meter = Meter(acc=from_torchmetrics(MulticlassAccuracy(3, average="micro"), preds=(3,)))
        >>> meter.update(torch.eye(3), torch.tensor([0, 1, 1]))
        >>> meter.compute()
        {'acc': tensor(0.6667)}
    """
    return Foreign(metric, tuple(preds), None if target is None else tuple(target))
