"""TorchMetrics' wrappers that are changed here: batches of any device, and a `forward` that keeps what was counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from assay.devices.placement import move
from assay.integrations.optional_packages import import_package

_bootstrapping: Any = import_package("torchmetrics.wrappers.bootstrapping", "metrics of its names")
_minmax: Any = import_package("torchmetrics.wrappers.minmax", "metrics of its names")
_multioutput: Any = import_package("torchmetrics.wrappers.multioutput", "metrics of its names")

_Batch = tuple[tuple[Any, ...], dict[str, Any]]


class CompatibleBootStrapper(_bootstrapping.BootStrapper):  # type: ignore[misc]
    """Values of a metric over resampled batches, of any device.

    The `forward` of TorchMetrics 1.9 forgets what was counted before.
    """

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Count a batch, resampled for each copy of the metric."""
        for metric, batch in self._resampled(args, kwargs):
            if batch is not None:
                metric.update(*batch[0], **batch[1])

    def compute(self) -> dict[str, Tensor]:
        """The mean and the other numbers of the values, by name."""
        return self._summary([metric.compute() for metric in self.metrics])

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """Count a batch, and give the numbers of it alone."""
        resampled = self._resampled(args, kwargs)
        values = [
            _emptied(metric).compute() if batch is None else metric(*batch[0], **batch[1])
            for metric, batch in resampled
        ]
        self._forward_cache = self._summary(values)
        return self._forward_cache

    def _resampled(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[tuple[Any, _Batch | None]]:
        """Each copy of the metric, with samples that are drawn from the batch for it; None where none was drawn."""
        tensors = [each for each in (*args, *kwargs.values()) if isinstance(each, Tensor)]
        if not tensors:
            raise ValueError("None of the input contained tensors, so could not determine the sampling size")
        for metric in self.metrics:
            rows = _bootstrapping._bootstrap_sampler(len(tensors[0]), sampling_strategy=self.sampling_strategy)
            drawn = (
                tuple(_rows(each, rows) for each in args),
                {name: _rows(each, rows) for name, each in kwargs.items()},
            )
            yield metric, drawn if len(rows) else None

    def _summary(self, values: Sequence[Tensor]) -> dict[str, Tensor]:
        found = torch.stack(list(values))
        summary = {
            "mean": found.mean(0) if self.mean else None,
            "std": found.std(0) if self.std else None,
            "quantile": None if self.quantile is None else torch.quantile(found, self.quantile),
            "raw": found if self.raw else None,
        }
        return {name: each for name, each in summary.items() if each is not None}


def _rows(each: Any, rows: Tensor) -> Any:
    return each.index_select(0, rows.to(each.device)) if isinstance(each, Tensor) else each


def _emptied(metric: Any) -> Any:
    copy = metric.clone()
    copy.reset()
    return copy


class CompatibleMinMax(_minmax.MinMaxMetric):  # type: ignore[misc]
    """A value, and the least and the greatest one that were computed.

    The `forward` of TorchMetrics 1.9 forgets what was counted before.
    """

    if TYPE_CHECKING:  # TorchScript evaluates the annotations of a class
        min_val: Tensor
        max_val: Tensor

    def compute(self) -> dict[str, Tensor]:
        """The value of all batches, and the least and the greatest value until now, by name."""
        return self._with_limits(self._base_metric.compute())

    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Tensor]:
        """Count a batch, and give the value of it alone, with the least and the greatest one until now."""
        self._forward_cache = self._with_limits(self._base_metric(*args, **kwargs))
        return self._forward_cache

    def _with_limits(self, value: Any) -> dict[str, Tensor]:
        if not self._is_suitable_val(value):
            raise RuntimeError(f"Returned value from base metric should be a float or scalar tensor, but got {value}.")
        value = torch.as_tensor(value)
        least, most = (each.to(value.device) for each in (self.min_val, self.max_val))
        self.min_val = value if least > value else least
        self.max_val = value if most < value else most
        return {"raw": value, "max": self.max_val, "min": self.min_val}


class CompatibleMultioutput(_multioutput.MultioutputWrapper):  # type: ignore[misc]
    """A metric for each output, of batches of any device."""

    if TYPE_CHECKING:
        _device: torch.device

    def _get_args_kwargs_by_output(self, *args: Any, **kwargs: Any) -> Any:
        """The arguments for each output; those on another device than the first are moved to it."""
        device = next((each.device for each in (*args, *kwargs.values()) if isinstance(each, Tensor)), self._device)
        self._device = device
        return super()._get_args_kwargs_by_output(*move(args, device), **move(kwargs, device))


CHANGED = {kind.__base__: kind for kind in (CompatibleBootStrapper, CompatibleMinMax, CompatibleMultioutput)}
"""The classes in the place of those of TorchMetrics."""

for _original, _kind in CHANGED.items():
    _kind.__name__ = _kind.__qualname__ = _original.__name__
    _kind.__module__ = "assay.compat.torchmetrics.wrappers"
