"""The value of a metric on one batch, by meters that are reused from one call of the metric to the next."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor
from torch.compiler import is_compiling

from assay.meter.inputs.label_codes import found_labels
from assay.meter.meter import Meter
from assay.metrics.base import Metric

Key = TypeVar("Key")
Measures = TypeVar("Measures")

MOST_METERS = 16
"""So many meters are reused in each thread: those of the metrics that were called last."""
MOST_BYTES = 1 << 20
"""A meter whose states take more bytes is not reused."""


class Reused(threading.local, Generic[Key, Measures]):
    """What measures one batch after another in one thread, by a key; what was used last is the last.

    Args:
        most: so many are kept.
    """

    def __init__(self, most: int = MOST_METERS) -> None:
        self.by_key: dict[Key, Measures] = {}
        self._most = most

    def take(self, key: Key) -> Measures | None:
        """One that nobody else uses until it is put back: a call inside of a call gets another one."""
        try:
            return self.by_key.pop(key, None)
        except TypeError:  # a metric of one's own with a field that has no hash
            return None

    def put(self, key: Key, measures: Measures) -> None:
        """Keep one for a later call."""
        self.by_key[key] = measures
        if len(self.by_key) > self._most:
            del self.by_key[next(iter(self.by_key))]


_REUSED: Reused[tuple[Metric, bool], Meter] = Reused()


def value_of_batch(
    metric: Metric,
    preds: Any,
    target: Any,
    weights: Tensor | None,
    columns: Mapping[str, Tensor | None],
    labels: Sequence[str] | None = None,
) -> Any:
    """The value of a metric on one batch, from states that were zero before.

    A meter is reused where no trace of one call is left to the next: not for metrics that hold a function of the caller
    or have no hash, nor in a mode of torch, in which tensors may be none that are there later. A call that raises
    leaves no meter.

    Raises:
        InputError: invalid shapes, dtypes or values.
    """
    if type(preds) is not Tensor or labels is not None:
        labels = found_labels(metric, preds, target) if labels is None else labels
        if labels is not None:
            labelled = meter_of_batch(metric, weights, labels)
            return labelled.values_of(preds, target, weights=weights, **columns)[type(metric).__name__]
    key, reuses = (metric, weights is not None), is_plain()
    meter = _REUSED.take(key) if reuses else None
    is_new = meter is None
    if meter is None:
        meter = meter_of_batch(metric, weights)
    (value,) = meter.values_of(preds, target, weights=weights, **columns).values()
    if reuses and not (is_new and leaves_traces(metric, meter)):
        _REUSED.put(key, meter)
    return value


def meter_of_batch(metric: Metric, weights: Tensor | None, labels: Sequence[str] | None = None) -> Meter:
    """A meter for one batch, which needs no stage."""
    return Meter(metric, weighted=weights is not None, stage_bytes=0, labels=labels)


def is_plain() -> bool:
    """Whether there is no mode of torch, and nothing is being compiled."""
    return not (is_compiling() or torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack())


def leaves_traces(metric: Metric, meter: Meter) -> bool:
    """Whether a metric has no hash or holds a function of the caller, or its meter takes too much memory."""
    try:
        hash(metric)
    except TypeError:
        return True
    if any(encoder.function is not None for encoder in metric.encoders):
        return True
    fields = (each for tally in meter.tallies for each in tally.zero_of_batch(torch.device("cpu")).values())
    return sum(each.nbytes for each in fields if isinstance(each, Tensor)) > MOST_BYTES
