"""The last updates of a meter: what a running value is read from."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import torch.distributed as dist
from torch import Tensor

from assay.errors import ConfigError, StateError, describe
from assay.meter import Meter
from assay.wrappers.nested_meters import load_meters, require_meter, save_meters


class Running:
    """Measures the last `updates` batches, and forgets those before them.

    Each update is counted by itself, on the device of its batch. The value is read from the sum of the last ones, which
    are integers: it has the bits of a meter that was given those batches alone. Nothing is subtracted, so
    nothing drifts.

    Args:
        meter: says what is measured; it is not changed.
        updates: how many updates count. As many states are kept.

    Raises:
        ConfigError: `updates` below 1.
        StateError: no meter.

    Example:
        >>> import torch
        >>> from assay import Mean, Meter
        >>> window = Running(Meter(loss=Mean()), updates=2)
        >>> for loss in (9.0, 1.0, 2.0):
        ...     window.update(torch.tensor([loss]))
        >>> window.compute()
        {'loss': tensor(1.5000, dtype=torch.float64)}
    """

    def __init__(self, meter: Meter, updates: int) -> None:
        if isinstance(updates, bool) or not isinstance(updates, int) or updates < 1:
            do = "Say how many of the last updates count"
            raise ConfigError(describe("updates", repr(updates), "an integer of 1 or more", do))
        meter = require_meter("meter", meter)
        self.updates = updates
        self._like = meter.fresh()
        self._next = meter.fresh(stage_bytes=0)
        self._last: deque[Meter] = deque(maxlen=updates)

    @property
    def rows(self) -> int:
        """How many samples are in the window."""
        return sum(meter.rows for meter in self._last)

    def __len__(self) -> int:
        """How many updates are in the window: `updates` of them, once there were so many."""
        return len(self._last)

    def update(
        self, preds: Any, target: Any = None, *, weights: Tensor | None = None, **columns: Tensor | None
    ) -> None:
        """Count a batch, as `Meter.update` does; the oldest one leaves when the window is full.

        Raises:
            ShapeError, DtypeError, DeviceError: from metadata, at once; the window is then as it was.
        """
        try:
            self._next.update(preds, target, weights=weights, **columns)
        except BaseException:
            self._next.reset()
            raise
        leaving = self._last[0] if len(self) == self.updates else self._next.fresh()
        self._last.append(self._next)
        leaving.reset()
        self._next = leaving

    def total(self) -> Meter:
        """A new meter with what is in the window: to be added, written to a file, or read."""
        return self._like.fresh().merge(*self._last)

    def compute(self, only: Iterable[str] | None = None) -> dict[str, Any]:
        """The values of the last updates, as `Meter.compute` gives them."""
        return self.total().compute(only)

    def sync(self, group: dist.ProcessGroup | None = None) -> Meter:
        """A new meter with the windows of all processes: the last `updates` updates of each. See `Meter.sync`."""
        return self.total().sync(group)

    def reset(self) -> None:
        """Forget everything that was counted."""
        self._last.clear()
        self._next.reset()

    def state_dict(self) -> dict[str, Tensor]:
        """What is in the window, as tensors on the CPU, the oldest update first."""
        return save_meters({str(k): meter for k, meter in enumerate(self._last)})

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Replace what is in the window by what `state_dict` gave; of a longer window, its last updates.

        Raises:
            StateError: the state is of other metrics, or not whole; the window is then as it was.
        """
        meters = load_meters(state, lambda name: self._next.fresh() if name.isdecimal() else None)
        order = sorted(meters, key=int)
        if order != [str(k) for k in range(len(order))]:
            do = "Save the window again"
            raise StateError(describe("state_dict", f"updates {', '.join(order)}", "all from 0 on", do))
        self._last = deque((meters[name] for name in order), maxlen=self.updates)

    def __repr__(self) -> str:
        return f"Running({self._like!r}, updates={self.updates}; {len(self)} updates)"
