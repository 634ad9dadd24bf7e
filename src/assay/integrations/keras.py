"""Keras 3 on torch: a metric of assay as a `keras.metrics.Metric`."""

from __future__ import annotations

import os
from typing import Any

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.integrations.optional_packages import import_package
from assay.meter import Meter
from assay.metrics.base import Metric

os.environ.setdefault("KERAS_BACKEND", "torch")  # read once, when Keras is imported for the first time
keras: Any = import_package("keras", "metrics that it takes for its own")


class KerasMetric(keras.metrics.Metric):  # type: ignore[misc]
    """A meter of one metric that Keras takes for a metric of its own; made by `as_keras`.

    Keras reads metrics after each batch to show them, and synchronizes with the device then.

    Attributes:
        meter: what was counted.
    """

    def __init__(self, metric: Metric, name: str, weighted: bool) -> None:
        super().__init__(name=name)
        self.meter = Meter(weighted=weighted, value=metric)

    def update_state(self, y_true: Tensor, y_pred: Tensor, sample_weight: Tensor | None = None) -> None:
        """Count a batch, without the positions that Keras masks. Keras names the target first."""
        preds = y_pred.detach()
        target = _as_target(y_true, preds)
        mask = keras.src.backend.get_keras_mask(y_pred)
        if mask is not None:
            preds, target, sample_weight = (_unmasked(each, mask) for each in (preds, target, sample_weight))
        self.meter.update(preds, target, weights=sample_weight)

    def result(self) -> Any:
        """The value, as a float."""
        if not self.meter.rows:
            return 0.0  # Keras reads metrics before the first batch
        return float(self.meter.compute()["value"])

    def reset_state(self) -> None:
        """Forget everything that was counted."""
        self.meter.reset()


def _unmasked(values: Any, mask: Tensor) -> Any:
    """The rows of the positions that count; a weight of a whole sample is that of each position."""
    if values is None:
        return None
    missing = mask.ndim - values.ndim
    return values[(..., *(None,) * missing)].expand(mask.shape)[mask] if missing > 0 else values[mask]


def _as_target(y_true: Tensor, preds: Tensor) -> Tensor:
    """Keras gives targets a last dimension of 1 where predictions have one."""
    if y_true.ndim == preds.ndim and y_true.shape[-1] == 1 and preds.shape[-1] != 1:
        return y_true.squeeze(-1)
    return y_true


def as_keras(metric: Metric, name: str = "", *, weighted: bool = False) -> KerasMetric:
    """A metric of assay for `model.compile(metrics=[...])` of Keras 3 with the torch backend.

    Args:
        metric: reads one number.
        name: what Keras calls it; that of its class by default.
        weighted: there are sample weights; give it as `weighted_metrics=[...]` then.

    Raises:
        ConfigError: it is no metric, or Keras runs on another backend.
        MissingDependencyError: Keras is not installed.
    """
    if keras.backend.backend() != "torch":
        do = 'Set os.environ["KERAS_BACKEND"] = "torch" before Keras is imported'
        raise ConfigError(describe("keras", f"the backend {keras.backend.backend()}", "torch", do))
    argument: object = metric
    if not isinstance(argument, Metric):
        got = type(argument).__name__
        raise ConfigError(describe("metric", got, "a metric of assay", "Pass Accuracy(num_classes=10)"))
    return KerasMetric(metric, name or type(metric).__name__.lower(), weighted)
