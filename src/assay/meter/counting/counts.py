"""What a meter has counted, as states that add up.

A meter has one state for each of its tallies, and a number of rows. They lie in several places: one for each device
that batches came from, with the rows staged there, and one on the CPU for what was added. All that reads or changes
them does it by these operations of `MeterCounts`:

- `clear`: all states are zero.
- `add`: add states and rows, all at once; a copy is changed.
- `extend`: add states in place, which may be sparse.
- `add_each`: count what is known of a batch of each tally for itself.
- `borrow`: have states without a copy, where there were none.
- `replace`: `clear`, then `add`.
- `canonical`: the sum, in the one form that all states of the same samples have.
- `to_read`: the sum, in a form to compute from.
- `as_counted`: the sum, in any form.
- `to_add`: the sum, in a form that may be added to any number of others.
- `flushed`: the states of each device, where they lie.

The last five count the staged rows first. Each holds `busy`, and raises a `StateError` where another operation does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeAlias

import torch
from torch import Tensor

from assay.devices.subnormals import keeps_subnormals
from assay.errors import StateError, describe
from assay.meter.checks.recounts import RecountSummary
from assay.meter.counting.device_counts import DeviceCounts
from assay.meter.counting.merged_counts import MergedCounts
from assay.meter.inputs.arguments import Arguments
from assay.meter.meter_options import MeterOptions
from assay.tally.base import State, Tally, merge

Counted: TypeAlias = tuple[list[State], int]
"""A state for each tally, on the CPU, and the number of rows."""


class OneAtATime:
    """A lock that does not wait: one operation holds it, and another one raises a `StateError`."""

    def __init__(self) -> None:
        lock = Lock()
        self.acquire, self.release = lock.acquire, lock.release

    def __enter__(self) -> None:
        if not self.acquire(False):
            raise self.error()

    def __exit__(self, *raised: object) -> None:
        self.release()

    @staticmethod
    def error() -> StateError:
        """The error for an operation while another one is at work."""
        got, do = "a call while another one was at work", "Give each thread a meter and add the meters, or share a lock"
        return StateError(describe("meter", got, "one call at a time", do))


class MeterCounts:
    """The states of tallies wherever they lie; their sum is what a meter reads.

    Args:
        tallies: what is counted.
        options: how.

    Attributes:
        keeps_samples: whether a state grows with the samples, as those do that keep them.
        busy: is held while an operation is at work; inside of `with counts.busy` no other one reads or changes states.
        current: the counts of the device of the last batch.
        by_device: what was counted of the batches of each device.
        merged: what was added, on the CPU.
        follower: is given staged rows when they are counted, in their order; for batches that `Meter.count` says so of.
    """

    def __init__(self, tallies: Sequence[Tally], options: MeterOptions) -> None:
        self._tallies, self._options = tallies, options
        rules = {rule for tally in tallies for rule in tally.fields.values()}
        self.keeps_samples, self._are_sums = "samples" in rules, rules == {"sum"}
        self._stay_in_place, self._are_copies = rules <= {"sum", "max"}, rules <= {"sum", "samples", "late"}
        self.busy = OneAtATime()
        self.follower: Callable[[Arguments], None] | None = None
        self._forget()

    def _forget(self) -> None:
        self.current: DeviceCounts | None = None
        self.by_device: dict[torch.device, DeviceCounts] = {}
        self.merged = MergedCounts(self._tallies)

    @property
    def rows(self) -> int:
        """How many samples were given."""
        rows = self.merged.rows
        for counts in self.by_device.values():
            rows += counts.rows
        return rows

    def take_over(self, other: MeterCounts) -> None:
        """Take, into empty counts, what another one of the same tallies and options has prepared for values of batches.

        What the other one has counted, it still has.
        """
        if not other.busy.acquire(False):  # another thread is using it, and goes on to
            return
        try:
            if not any(counts.is_open or counts.recounts is not None for counts in other.by_device.values()):
                self.by_device, self.current = other.by_device, other.current
                other.by_device, other.current = {}, None
        finally:
            other.busy.release()

    def clear(self) -> None:
        """Forget everything."""
        with self.busy:
            self._forget()

    def add(self, *counts: tuple[Sequence[State], int]) -> None:
        """Add the states and rows of others, all at once."""
        with self.busy:
            self.merged.add(*counts)

    def extend(self, states: Sequence[State], rows: int) -> None:
        """Add the states of another meter without a copy of what was added before; they may be sparse."""
        with self.busy:
            self.merged.extend(states, rows)

    @keeps_subnormals
    def add_each(self, batches: Sequence[tuple[Tally, Arguments]], rows: int) -> None:
        """Count another batch into the state of each tally; see `DeviceCounts.count_each`."""
        with self.busy:
            self.of(batches[0][1].preds.device).count_each(batches, rows)

    def stage(self, preds: Tensor, target: Tensor | None) -> int:
        """Stage a batch in host memory that is like the last one, by copying memory alone.

        Returns:
            How many rows it has; 0 where nothing was staged, and `Meter.count` must be asked.
        """
        current = self.current
        if current is None or not self.busy.acquire(False):
            return 0
        try:
            return current.stage(preds, target)
        finally:
            self.busy.release()

    def borrow(self, states: Sequence[State], rows: int) -> None:
        """Have these states, where there were none; who gives them does not change them while they are read."""
        with self.busy:
            self.merged.borrow(states, rows)

    def replace(self, states: Sequence[State], rows: int) -> None:
        """Have a copy of these states instead of what was counted."""
        with self.busy:
            self._forget()
            self.merged.add((states, rows))

    @keeps_subnormals
    def canonical(self) -> Counted:
        """The sum, in the one form that all states of the same samples have, to the bit."""
        with self.busy:
            states, rows = self._sum(self._parts()), self.rows
        return [tally.canonicalize(state, rows) for tally, state in zip(self._tallies, states, strict=True)], rows

    def to_read(self) -> Counted:
        """The sum in a form to compute from, without a copy if all of it was merged, or all are sums of one device."""
        states, rows = self.as_counted()
        return self.settled(states, rows), rows

    def as_counted(self) -> tuple[Sequence[State], int]:
        """The sum in any form, which `settled` takes; nobody may change it."""
        if not self.busy.acquire(False):  # `with` would call two functions of Python
            raise self.busy.error()
        try:
            merged, only = self.merged, self.current if len(self.by_device) == 1 and self._stay_in_place else None
            if only is not None and merged.states is None and (counted := only.sums_on_host()) is not None:
                return counted, only.rows
            rows = self.rows
            if merged.is_constant and not self.by_device and merged.states is not None:
                states: Sequence[State] = merged.states
            else:
                parts = self._parts()
                is_read_as_it_is = self._are_sums or (merged.states is None and self._are_copies and self.keeps_samples)
                states = parts[0] if len(parts) == 1 and is_read_as_it_is else self._sum(parts)
            return states, rows
        finally:
            self.busy.release()

    @keeps_subnormals
    def to_add(self) -> Counted:
        """The sum in a form that may be added to any number of others, which nobody may change.

        What was counted here is in that form: words of exact sums are below 2 ** 34. What was merged before may not be.
        """
        with self.busy:
            parts, rows = self._parts(), self.rows
            states = parts[0] if len(parts) == 1 else self._sum(parts)
            return (states if self.merged.states is None else self.settled(states, rows)), rows

    def flushed(self) -> dict[torch.device, list[State]]:
        """For each device the states that lie there, with the rows that were staged."""
        with self.busy:
            return {device: counts.flushed() for device, counts in self.by_device.items() if counts.is_open}

    def recounted(self) -> RecountSummary:
        """How many batches of devices there were, and how many of them the CPU has counted once more by now."""
        with self.busy:
            for counts in self.by_device.values():
                counts.flushed()
                counts.recount()
            found = [each.recounts for each in self.by_device.values() if each.recounts is not None]
        return RecountSummary(sum(each.recounted for each in found), sum(each.batches for each in found))

    def of(self, device: torch.device) -> DeviceCounts:
        """Those of one device, which are made where there are none."""
        if device not in self.by_device:
            follower = None if self.by_device else self.follower  # rows of several devices would come in no order
            self.by_device[device] = DeviceCounts(self._tallies, device, self._options, follower)
        return self.by_device[device]

    def traced(self, device: torch.device) -> DeviceCounts:
        """Those of one device under `torch.compile`, which makes none.

        Raises:
            StateError: there are none.
        """
        counts = self.by_device.get(device)
        if counts is None or not counts.is_open:
            got, expected = f"the first batch of {device}", "one of a device that the meter knows"
            do = "Call update once outside of the compiled function, with no rows if you like"
            raise StateError(describe("update under torch.compile", got, expected, do))
        return counts

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
