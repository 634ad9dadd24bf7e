"""`Running` of TorchMetrics' names: a metric over the last updates."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from typing import Any

from torch import nn

from assay.compat.for_torchmetrics.names import compatible_class
from assay.integrations.optional_packages import import_package
from assay.integrations.torchmetrics import AssayMetric

_aggregation: Any = import_package("torchmetrics.aggregation", "metrics of its names")
_running: Any = import_package("torchmetrics.wrappers.running", "metrics of its names")


class CompatibleRunning(_running.Running):  # type: ignore[misc]
    """A metric over the last updates, as TorchMetrics has it.

    A metric of assay has no states by name that could be copied: each update is counted by a metric of its own.
    """

    _last: Sequence[Any]

    def __init__(self, base_metric: Any, window: int = 5) -> None:
        _running.Running.__init__(self, base_metric, window)  # not that of a subclass, which makes the metric
        own = isinstance(base_metric, AssayMetric)
        self._last = nn.ModuleList(base_metric.clone() for _ in range(window if own else 0))  # type: ignore[assignment]

    def _next(self) -> AssayMetric:
        """The metric that counts the next update, in the place of the oldest one."""
        metric: AssayMetric = self._last[self._num_vals_seen % self.window]
        metric.reset()
        return metric

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Count a batch, and forget the oldest one of a full window."""
        if not self._last:
            super().update(*args, **kwargs)
            return
        self._next().update(*args, **kwargs)
        self._num_vals_seen += 1

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Count a batch, and give the value of it alone."""
        if not self._last:
            return super().forward(*args, **kwargs)
        value = self._next()(*args, **kwargs)
        self._num_vals_seen += 1
        self._computed = None
        return value

    def compute(self) -> Any:
        """The value of the last updates."""
        if not self._last:
            return super().compute()
        self.base_metric.reset()
        for metric in self._last:
            if metric.update_called:
                self.base_metric.merge_state(metric)
        value = self.base_metric.compute()
        self.base_metric.reset()
        return value

    def reset(self) -> None:
        """Forget all updates."""
        super().reset()
        for metric in self._last:
            metric.reset()

    def persistent(self, mode: bool = False) -> None:
        """Whether the updates go into `state_dict`."""
        super().persistent(mode)
        for metric in self._last:
            metric.persistent(mode)


CompatibleRunning.__name__ = CompatibleRunning.__qualname__ = "Running"  # by which a collection names it
CompatibleRunning.__module__ = "assay.compat.torchmetrics.wrappers"


@functools.cache
def running_aggregate(original: Any) -> type:
    """The class in the place of `RunningMean` or `RunningSum`, with the aggregate of assay's counts."""
    name = original.__name__
    kind = compatible_class(getattr(_aggregation, f"{name.removeprefix('Running')}Metric"))

    def construct(self: Any, window: int = 5, nan_strategy: Any = "warn", **options: Any) -> None:
        CompatibleRunning.__init__(self, kind(nan_strategy=nan_strategy, **options), window)

    body = {"__init__": construct, "__signature__": inspect.signature(original), "__doc__": original.__doc__}
    return type(name, (CompatibleRunning, original), {**body, "__module__": "assay.compat.torchmetrics.aggregation"})
