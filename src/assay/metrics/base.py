"""What a metric is: a frozen description of which tally it needs and how its value is read from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor

from assay.tally.base import Tally


class Metric(ABC):
    """A frozen description: nothing in a metric changes, so one can be shared, compared, hashed and written down.

    Subclasses are frozen dataclasses whose fields are plain values (numbers, strings, booleans, tuples of them).
    """

    @abstractmethod
    def tally(self, weighted: bool) -> Tally:
        """The tally that this metric is read from, with or without sample weights."""

    @abstractmethod
    def read(self, counted: Any) -> Any:
        """The value, from what the tally's `read` gives. A tensor, or a named tuple of tensors; on the host."""

    def __call__(self, preds: Tensor, target: Tensor | None = None, *, weights: Tensor | None = None) -> Any:
        """The value of this metric on one batch.

        Args:
            preds: predictions, on any device.
            target: what they are compared with, of the shape that the metric's description states.
            weights: one weight per sample, shape `(N,)`, or one per target.

        Returns:
            The value on the host; float64 where it is a number.

        Raises:
            InputError: shapes, dtypes or values that cannot be measured.
        """
        from assay.meter import Meter  # the meter knows metrics; a metric meets it only when it is called

        meter = Meter(value=self, weighted=weights is not None)
        meter.update(preds, target, weights=weights)
        return meter.compute()["value"]


def number(value: float) -> Tensor:
    """A result: a 0-dimensional float64 tensor on the host."""
    return torch.tensor(value, dtype=torch.float64)


def vector(values: Any) -> Tensor:
    """A result per class or output: a float64 tensor on the host."""
    return torch.tensor([float(v) for v in values], dtype=torch.float64)
