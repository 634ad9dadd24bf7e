"""What was merged into a meter or loaded: states on the CPU, beside those of the devices."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from assay.tally.base import State, Tally, merge, merge_into
from assay.tally.sample_store import SampleStore


class MergedCounts:
    """The sum of the states of other meters, and how many samples they stand for.

    `states` is None while nothing was added.
    """

    def __init__(self, tallies: Sequence[Tally]) -> None:
        self._tallies = tallies
        self.states: list[State] | None = None
        self.rows = 0

    def add(self, *counts: tuple[Sequence[State], int]) -> None:
        """Add states and their numbers of samples, all at once."""
        parts = [*([] if self.states is None else [self.states]), *(states for states, _ in counts)]
        if parts:
            with torch.inference_mode(False):
                self.states = [merge(tally, [part[k] for part in parts]) for k, tally in enumerate(self._tallies)]
            self.rows += sum(rows for _, rows in counts)

    def add_in_place(self, states: Sequence[State], rows: int) -> None:
        """Add canonical states without a copy of what was added before."""
        if self.states is None:
            self.add((states, rows))
            return
        for state, other in zip(self.states, states, strict=True):
            for name, store in other.items():
                if isinstance(store, SampleStore):  # raises before anything is added
                    state[name].reserve(torch.device("cpu"), store.nbytes)
        for tally, state, other in zip(self._tallies, self.states, states, strict=True):
            merge_into(tally, state, other)
        self.rows += rows
