"""The value of a metric on batches of one layout in host memory, without what is the same for each of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from assay.devices.placement import is_as_read
from assay.devices.subnormals import keeps_subnormals
from assay.meter.counting.flat_states import FlatStates
from assay.meter.counting.prepared_adds import prepared_adds
from assay.meter.inputs.arguments import Arguments, layout_of
from assay.meter.meter import Meter
from assay.native.library import library
from assay.native.quotients import StateQuotient
from assay.tally.base import Batch, PreparedAdd, State
from assay.tally.stores.held_samples import held


class PreparedValue:
    """The value of the only metric of a meter, for batches of the layout of one that the meter has just measured.

    Args:
        meter: it counts nothing here, and its counts stay as they are.
        batch: one of that layout, of tensors that `is_as_read`.
    """

    def __init__(self, meter: Meter, batch: Arguments) -> None:
        self._plan, self._rows = meter.plan, len(batch.preds)
        ((self._name, self._metric),) = meter.metrics.items()
        tallies = self._plan.tallies
        self._flat = FlatStates(tallies) if FlatStates.fits(tallies) else None
        self._adds: Sequence[PreparedAdd] | None = None
        self._read: Callable[[], Any] | None = None
        self._quotient: Callable[[], float] | None = None
        self._zeros = [] if self._flat else [tally.zero_of_batch(batch.preds.device) for tally in tallies]
        is_alone = self._flat is None and tallies == (self._metric.batch_tally(weighted=False),)
        self._counts_of = tallies[0].counts_of if is_alone else None
        if self._flat is not None:
            self._numbers = self._flat.numbers.numpy()
            self._adds = prepared_adds(tallies, self._flat.states, batch)
            reading = self._plan.reading_of(self._name) if library() is not None else None
            if reading is not None:
                state = self._flat.states[reading.place]
                self._read = partial(reading.read, state)
                self._quotient = reading.read.of(state) if isinstance(reading.read, StateQuotient) else None

    @classmethod
    def of(cls, meter: Meter, preds: Tensor, target: Tensor | None) -> PreparedValue | None:
        """None where a meter must measure such batches: columns, several chunks, other shapes or another device.

        So it is where the numbers of this batch do not lie as they are read: what is prepared has its strides.
        """
        counts = meter.counts.current
        if counts is None or meter.columns or meter.plan.encoders:  # whose batches may be lists
            return None
        if not cls._takes(preds, target):
            return None
        batch = Arguments((preds, target, None))
        if counts.layout != layout_of(batch) or not counts.is_one_chunk(batch):
            return None
        return cls(meter, batch)

    @property
    def is_quotient(self) -> bool:
        """Whether the value is a quotient of sums, of which a metric has nothing to warn."""
        return self._quotient is not None

    @keeps_subnormals
    def quotient(self, preds: Tensor, target: Tensor | None) -> float:
        """The value of a batch of this layout, where it is a quotient; NaN where the meter must be asked."""
        states = self._counted(preds, target)
        return math.nan if states is None or self._quotient is None else self._quotient()

    @keeps_subnormals
    def __call__(self, preds: Tensor, target: Tensor | None) -> Any:
        """The value of a batch of this layout, as `Meter.values_of` has it; None where the meter must be asked."""
        if self._counts_of is not None and self._takes(preds, target):
            counts = self._counts_of(Batch(preds, target, None, compiled=True))
            if counts is not None:
                return self._metric.compute(counts)
        states = self._counted(preds, target)
        if states is None:
            return None
        if self._read is not None:
            return self._read()
        plan = self._plan
        settled = [each.settle(state, self._rows) for each, state in zip(plan.tallies, states, strict=True)]
        tally, state = plan.state_of(self._name, settled)
        return None if tally.invalid_values(state) else self._metric.compute(tally.compute(state))

    @staticmethod
    def _takes(preds: Tensor, target: Tensor | None) -> bool:
        """Whether the tensors lie as they are read, and operators compute in their dtypes."""
        is_read = is_as_read(preds) and (target is None or is_as_read(target))
        return is_read and not torch.is_autocast_enabled("cpu")

    def _counted(self, preds: Tensor, target: Tensor | None) -> Sequence[State] | None:
        """The states of this batch alone; None where the meter must count it."""
        if not self._takes(preds, target):
            return None
        if self._flat is None:
            states = [held(zero) for zero in self._zeros]
        else:
            states = self._flat.states
            self._numbers.fill(0)
            if self._adds is not None:
                for add in self._adds:
                    add(preds, target, None)
                return states
        batch = Batch(preds, target, None, compiled=True)
        for tally, state in zip(self._plan.tallies, states, strict=True):
            tally.add(state, batch)
        return states
