"""What a meter has counted: the states of each device, and those of other meters that were added."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from assay.meter.device_counts import DeviceCounts
from assay.meter.merged_counts import MergedCounts
from assay.tally.base import State, Tally, merge


class MeterCounts:
    """The states of tallies wherever they lie; their sum is what a meter reads.

    Args:
        tallies: what is counted.
        stage_bytes: how many bytes the staged rows of a device may take.

    Attributes:
        by_device: what was counted of the batches of each device.
        merged: what was added, on the CPU.
    """

    def __init__(self, tallies: Sequence[Tally], stage_bytes: int) -> None:
        self._tallies, self._stage_bytes = tallies, stage_bytes
        self.by_device: dict[torch.device, DeviceCounts] = {}
        self.merged = MergedCounts(tallies)

    @property
    def rows(self) -> int:
        """How many samples were given."""
        return self.merged.rows + sum(counts.rows for counts in self.by_device.values())

    def of(self, device: torch.device) -> DeviceCounts:
        """Those of one device, which are made where there are none."""
        if device not in self.by_device:
            self.by_device[device] = DeviceCounts(self._tallies, device, self._stage_bytes)
        return self.by_device[device]

    def flushed(self) -> dict[torch.device, list[State]]:
        """For each device the states that lie there, with the rows that were staged."""
        return {device: counts.flushed() for device, counts in self.by_device.items() if counts.is_open}

    def states(self) -> list[State]:
        """The sum of all states, in a form that depends on how they were counted; the value does not."""
        return self._sum(self._parts())

    def states_to_read(self) -> list[State]:
        """The same, without a copy where nothing changes it: what was merged, and nothing was counted besides."""
        merged = self.merged
        is_constant = merged.states is not None and merged.is_constant and not self.by_device
        return merged.states if is_constant and merged.states is not None else self.states()

    def states_to_add(self) -> list[State]:
        """The same, in a form that may be added to any number of others.

        What was counted here is in that form: words of exact sums are below 2 ** 34. What was merged before may not be.
        Nobody may change these states: they are those of the meter itself where they lie in one place.
        """
        parts = self._parts()
        states = parts[0] if len(parts) == 1 else self._sum(parts)
        return states if self.merged.states is None else self.settled(states, self.rows)

    def settled(self, states: Sequence[State], rows: int) -> list[State]:
        """The states of so many rows in a form to compute from, and to add to any number of others."""
        return [tally.settle(state, rows) for tally, state in zip(self._tallies, states, strict=True)]

    def _parts(self) -> list[list[State]]:
        parts = [counts.host_states() for counts in self.by_device.values() if counts.is_open]
        if self.merged.states is not None:
            parts.append(self.merged.states)
        return parts or [[tally.zero(torch.device("cpu")) for tally in self._tallies]]

    def _sum(self, parts: Sequence[Sequence[State]]) -> list[State]:
        return [merge(tally, [part[k] for part in parts]) for k, tally in enumerate(self._tallies)]
