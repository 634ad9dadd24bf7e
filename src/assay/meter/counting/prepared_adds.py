"""Batches of one layout counted into the same states by compiled code, without what is the same for each of them."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from assay.devices.placement import is_as_read
from assay.meter.inputs.arguments import Arguments
from assay.tally.base import Batch, PreparedAdd, State, Tally


class PreparedAdds:
    """Counts batches of one layout in host memory; it is prepared when the second one comes, as many come once.

    Args:
        tallies: those that count.
    """

    def __init__(self, tallies: Sequence[Tally]) -> None:
        self._tallies = tallies
        self._adds: Sequence[PreparedAdd] | None = None
        self._calls = 0

    def add(self, states: Sequence[State], batch: Arguments) -> bool:
        """Count a batch into the states, which are the same each time; false where nothing was counted.

        That is the first batch, one whose tensors do not lie in memory as they are read, and all batches where a tally
        has no `prepare` for them.
        """
        if self._adds is None and self._calls > 1:
            return False
        preds, target, weights = batch.tensors[:3]
        if preds is None or not is_as_read(preds):
            return False
        if (target is not None and not is_as_read(target)) or (weights is not None and not is_as_read(weights)):
            return False
        if torch.is_autocast_enabled(preds.device.type):  # which is turned off where batches are counted
            return False
        if self._adds is None:
            self._calls += 1
            self._adds = prepared_adds(self._tallies, states, batch) if self._calls == 2 else None
            if self._adds is None:
                return False
        for add in self._adds:
            add(preds, target, weights)
        return True


def prepared_adds(tallies: Sequence[Tally], states: Sequence[State], batch: Arguments) -> list[PreparedAdd] | None:
    """What counts batches like this one into these states; None where a tally has nothing for them."""
    preds, target, weights, *others = batch.tensors
    if preds is None or not states or batch.ragged or any(other is not None for other in others):
        return None
    rows = Batch(preds, target, weights, compiled=True)
    adds = (tally.prepare(state, rows) for tally, state in zip(tallies, states, strict=True))
    found = [add for add in adds if add is not None]
    return found if len(found) == len(tallies) else None
