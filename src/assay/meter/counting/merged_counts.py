"""What was merged into a meter or loaded: states on the CPU, beside those of the devices."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from assay.meter.counting.flat_states import FlatStates
from assay.tally.base import State, Tally, merge, merge_into
from assay.tally.stores.sample_store import SampleStore


class MergedCounts:
    """The sum of the states of other meters, and how many samples they stand for.

    `states` is None while nothing was added.
    """

    def __init__(self, tallies: Sequence[Tally]) -> None:
        self._tallies = tallies
        self.states: list[State] | None = None
        self.rows = 0
        self._flat: FlatStates | None = None
        self._borrowed = False
        self.is_constant = True
        """Whether nothing was added in place, so that the states that are there now never change."""

    def borrow(self, states: Sequence[State], rows: int) -> None:
        """Have these states, without a copy, where there were none; who gives them does not change them."""
        self.states, self.rows, self._borrowed = list(states), rows, True

    def add(self, *counts: tuple[Sequence[State], int]) -> None:
        """Add states and their numbers of samples, all at once."""
        parts = [*([] if self.states is None else [self.states]), *(states for states, _ in counts)]
        if parts:
            with torch.inference_mode(False):
                self.states = [merge(tally, [part[k] for part in parts]) for k, tally in enumerate(self._tallies)]
            self._flat, self._borrowed = None, False
            self.rows += sum(rows for _, rows in counts)

    def extend(self, states: Sequence[State], rows: int) -> None:
        """Add the states of another meter on the CPU without a copy of what was added before; they may be sparse."""
        if self.states is None or self._borrowed:
            self.add((states, rows))
            return
        self.is_constant = False
        with torch.inference_mode(False):
            for tally, state, other in zip(self._tallies, self.states, states, strict=True):
                merge_into(tally, state, other)
        self.rows += rows

    def add_in_place(self, states: Sequence[State] | FlatStates, rows: int) -> None:
        """Add states on the CPU of one batch without a copy of what was added before; they may change afterwards."""
        if self._borrowed:
            self.add()
        self.is_constant = False
        if isinstance(states, FlatStates):
            self._flat_states().numbers.add_(states.numbers)
        else:
            if self.states is None:
                with torch.inference_mode(False):
                    self.states = [tally.zero(torch.device("cpu")) for tally in self._tallies]
            self._add_each(self.states, states)
        self.rows += rows

    def _flat_states(self) -> FlatStates:
        """The states, as views of one tensor from now on."""
        if self._flat is None:
            flat = FlatStates(self._tallies)
            if self.states is not None:
                for tally, state, other in zip(self._tallies, flat.states, self.states, strict=True):
                    merge_into(tally, state, other)
            self._flat, self.states = flat, flat.states
        return self._flat

    def _add_each(self, total: Sequence[State], states: Sequence[State]) -> None:
        for state, other in zip(total, states, strict=True):
            for name, store in other.items():
                if isinstance(store, SampleStore) and name in state:  # raises before anything is added
                    state[name].reserve(torch.device("cpu"), store.nbytes)
        for tally, state, other in zip(self._tallies, total, states, strict=True):
            tally.absorb(state, other)
