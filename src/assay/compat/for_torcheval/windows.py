"""Metrics of the last updates, or of the last samples, with TorchEval's definitions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from assay.compat.for_torcheval.metric import CompatibleTorchEval, inside
from assay.compat.for_torchmetrics.values import placed
from assay.meter import Meter


class _OfWindow(CompatibleTorchEval):
    """What is kept of a window is not in meters of its own."""

    inner: ClassVar[Any]
    """The compatible class of the metric without a window."""

    def _meters_of(self, size: int) -> dict[str, Meter]:
        return {}

    def _of_update(self) -> Any:
        """A metric that counts one update."""
        taken = inspect.signature(self.inner).parameters
        return self.inner(**{name: each for name, each in self._arguments.items() if name in taken})

    def _value(self) -> Any:
        return None


class WindowedUpdates(_OfWindow):
    """The value of all updates and that of the last `max_num_updates`, each of which is counted by itself."""

    def reset(self) -> Any:
        super().reset()
        self.max_num_updates, self.total_updates = self._arguments["max_num_updates"], 0
        self._lifetime, self._last = self._of_update(), list[Any]()
        return self

    def _has_data(self) -> bool:
        return bool(self.total_updates)

    def _count(self, *args: Any, **kwargs: Any) -> None:
        update = self._of_update().update(*args, **kwargs)
        if self.original.__name__ == "WindowedMeanSquaredError":
            batch = inspect.signature(self.original.update).bind(self, *args, **kwargs).arguments
            check = self._window_mean_squared_error_update_input_check
            check(batch["input"], batch["target"], None, self.num_tasks)
        if self.enable_lifetime:
            self._lifetime.merge_state([update])
        self._last = [*self._last, update][-self.max_num_updates :]
        self.total_updates += 1

    def compute(self) -> Any:
        """The value of all updates and that of the window; the latter alone without `enable_lifetime`."""
        if not self._has_data():
            return self.original(**self._arguments).compute()
        windowed = self._of_update().merge_state(self._last)
        values = [each.to(self.device).compute() for each in (self._lifetime, windowed)]
        if self.original.__name__ == "WindowedMeanSquaredError":
            values = [each.squeeze() for each in values]
        return tuple(values) if self.enable_lifetime else values[1]

    def _add(self, other: Any) -> None:
        self._lifetime.merge_state([other._lifetime])
        self._last, self.total_updates = [*self._last, *other._last], self.total_updates + other.total_updates
        self.max_num_updates += other.max_num_updates

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        for name, number in (("most", self.max_num_updates), ("total", self.total_updates), ("kept", len(self._last))):
            yield name, torch.tensor(number, device="cpu")
        for name, metric in [("lifetime", self._lifetime), *((str(k), each) for k, each in enumerate(self._last))]:
            for key, tensor in metric._tensors():
                yield f"{name}/{key}", tensor

    def _take(self, tensors: Mapping[str, Tensor]) -> None:
        self.reset()
        self.max_num_updates, self.total_updates = int(tensors["most"]), int(tensors["total"])
        self._lifetime._take(inside(tensors, "lifetime/"))
        self._last = [self._of_update() for _ in range(int(tensors["kept"]))]
        for k, metric in enumerate(self._last):
            metric._take(inside(tensors, f"{k}/"))


class WindowedSamples(_OfWindow):
    """The area of the last `max_num_samples` samples, which are kept."""

    def reset(self) -> Any:
        super().reset()
        self.max_num_samples, self.total_samples = self._arguments["max_num_samples"], 0
        self._kept: list[Tensor] = []
        return self

    def _has_data(self) -> bool:
        return bool(self.total_samples)

    def _count(self, input: Tensor, target: Tensor, weight: Tensor | None = None) -> None:
        weights = torch.ones_like(input, dtype=torch.float32) if weight is None else weight
        self._of_update().update(input, target, weights)  # which checks the batch
        self._keep([each.detach().reshape(self.num_tasks, -1) for each in (input, target, weights)])
        self.total_samples += input.shape[-1]

    def _keep(self, batch: list[Tensor]) -> None:
        parts = zip(self._kept, batch, strict=True) if self._kept else ((each,) for each in batch)
        self._kept = [torch.cat([part.to(group[-1].device) for part in group], 1) for group in parts]
        self._kept = [each[:, -self.max_num_samples :] for each in self._kept]

    def compute(self) -> Any:
        """The area of each task."""
        if not self._has_data():
            return self.original(**self._arguments).compute()
        batch = [each[0] if self.num_tasks == 1 else each for each in self._kept]
        return placed(self._of_update().update(*batch).compute(), torch.float64, self.device)

    def _add(self, other: Any) -> None:
        self.max_num_samples += other.max_num_samples
        if other._kept:
            self._keep(other._kept)
        self.total_samples += other.total_samples

    def _tensors(self) -> Iterator[tuple[str, Tensor]]:
        yield "most", torch.tensor(self.max_num_samples, device="cpu")
        yield "total", torch.tensor(self.total_samples, device="cpu")
        for k, each in enumerate(self._kept):
            yield f"kept{k}", each

    def _take(self, tensors: Mapping[str, Tensor]) -> None:
        self.reset()
        self.max_num_samples, self.total_samples = int(tensors["most"]), int(tensors["total"])
        self._kept = [tensors[f"kept{k}"] for k in range(3) if f"kept{k}" in tensors]


WINDOWED = {
    "WindowedBinaryAUROC": "BinaryAUROC",
    "WindowedBinaryNormalizedEntropy": "BinaryNormalizedEntropy",
    "WindowedClickThroughRate": "ClickThroughRate",
    "WindowedMeanSquaredError": "MeanSquaredError",
    "WindowedWeightedCalibration": "WeightedCalibration",
}
"""The metric without a window of each that has one."""
