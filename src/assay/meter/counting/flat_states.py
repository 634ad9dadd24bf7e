"""States whose fields are all sums, as views of one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from assay.tally.base import State, Tally


class FlatStates:
    """States of tallies in one tensor of int64: they are cleared, and added to others, all at once.

    Args:
        tallies: those whose states they are; `fits` of them is true.

    Attributes:
        numbers: what was counted, of shape `(all numbers of all fields,)`, on the CPU.
        states: for each tally the views of `numbers` that are its state.
    """

    def __init__(self, tallies: Sequence[Tally]) -> None:
        with torch.inference_mode(False):
            zeros = [tally.zero(torch.device("cpu")) for tally in tallies]
            sizes = [field.numel() for state in zeros for field in state.values()]
            self.numbers = torch.zeros(sum(sizes), dtype=torch.int64, device="cpu")
            parts = iter(torch.split(self.numbers, sizes))
            self.states: list[State] = [
                {name: next(parts).view(field.shape) for name, field in state.items()} for state in zeros
            ]

    @staticmethod
    def fits(tallies: Sequence[Tally]) -> bool:
        """Whether all fields of these tallies are there from the first sample on and merge by addition."""
        of_batch = ((tally, tally.zero_of_batch(torch.device("cpu"))) for tally in tallies)
        return all(
            set(tally.fields.values()) == {"sum"} and state.keys() <= tally.fields.keys() for tally, state in of_batch
        )
