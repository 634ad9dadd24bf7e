"""Calls of functions that were made before with the same arguments beside the data: their metrics, ready to count."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from assay.compat.for_torchmetrics.metric import CompatibleMetric
from assay.devices.placement import is_in_host_memory
from assay.errors import InputError
from assay.meter.batch_values import Reused, is_plain

REUSED: Reused[str, CompatibleMetric] = Reused()
"""The metrics that functions of each thread make, of which none has counted anything."""

_PLAIN = (bool, float, int, str, type(None))

_MOST_CALLS = 64
"""So many ways to call a function are known, and so many calls are prepared in each thread."""


class Calls:
    """The calls of a function that were made before with the same arguments beside the data, and their metrics.

    Args:
        signature: of the function.
        data: the names of its first arguments, the data.
    """

    def __init__(self, signature: inspect.Signature, data: Sequence[str]) -> None:
        first = list(signature.parameters)[: len(data)]
        self._data = len(data) if data and first == list(data) else 0
        self._keys: dict[Hashable, str] = {}

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Callable[[str], None] | None:
        """What notes the key of the metric that answered a call; None where a call has more than plain arguments."""
        settings = (*args[self._data :], *kwargs.values())
        if not self._data or len(args) < self._data or not all(type(each) in _PLAIN for each in settings):
            return None
        return functools.partial(self._note, self._call(args, kwargs))

    def _note(self, call: Hashable, key: str) -> None:
        if len(self._keys) >= _MOST_CALLS:
            self._keys.clear()
        self._keys[call] = key

    def _call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hashable:
        width = args[0].shape[1:2] if isinstance(args[0], Tensor) else ()  # of which some functions take their outputs
        return self._settings(args, kwargs), width

    def _settings(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Hashable:
        """The arguments beside the data."""
        settings = args[self._data :]
        if not settings and not kwargs:
            return torch.get_default_dtype()
        types = (*map(type, settings), *map(type, kwargs.values()))
        return settings, tuple(kwargs.items()), types, torch.get_default_dtype()

    def value(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The value of a call; None where it must be looked at more closely."""
        if len(args) < self._data or not self._keys or not is_plain():
            return None
        batch, found = args[: self._data], None
        layout = self._layout(self._settings(args, kwargs), batch)
        prepared = None if layout is None else _PREPARED.take(layout)
        if prepared is not None:
            try:
                found = prepared(batch)
            except InputError:  # it is raised again, by the meter
                found = None
            _PREPARED.put(layout, prepared)
        return self._measured(args, kwargs, layout if prepared is None else None) if found is None else found

    def _measured(self, args: Sequence[Any], kwargs: Mapping[str, Any], layout: Hashable) -> Any:
        """The value by the metric that answered such a call before; None of a call that none answered."""
        try:
            key = self._keys.get(self._call(args, kwargs))
        except TypeError:  # an argument has no hash
            return None
        return None if key is None else _measured(key, args[: self._data], layout)

    def _layout(self, settings: Hashable, batch: Sequence[Any]) -> Hashable:
        """That of a call with plain tensors in host memory, all of whose numbers are there; else None."""
        layout: list[Any] = [self, settings]
        for each in batch:
            if not is_in_host_memory(each) or each.untyped_storage().nbytes() < each.nbytes:
                return None
            layout += (each.shape, each.dtype)
        return tuple(layout)


_PREPARED: Reused[Hashable, Callable[[Sequence[Tensor]], Any]] = Reused(_MOST_CALLS)
"""What gives the values of calls with data of one layout, in host memory."""


def _measured(key: str, batch: Sequence[Any], layout: Hashable = None) -> Any:
    """The value by the metric of this key; None where it is lent or gone. Later calls of the layout are prepared."""
    if any(isinstance(each, Tensor) and each.requires_grad for each in batch):
        return None
    metric = REUSED.take(key)
    if metric is None:
        return None
    try:
        found = metric.value_of(*batch)
        prepared = None if layout is None else metric.prepared_value_of(batch)
    except InputError:
        return None  # it is raised again, with the text of TorchMetrics
    if prepared is not None:
        _PREPARED.put(layout, prepared)
    REUSED.put(key, metric)
    return found


def are_plain(values: Iterable[Any]) -> bool:
    """Whether the text of these values says all of them."""
    return all(type(each) in _PLAIN or (type(each) in (list, tuple) and are_plain(each)) for each in values)
