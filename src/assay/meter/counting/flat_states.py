"""States on the CPU that one batch after the other is counted into, each from zero on."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from assay.tally.base import State, Tally
from assay.tally.stores.held_samples import HeldSamples, held


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

    def clear(self) -> None:
        """Have counted nothing."""
        self.numbers.zero_()

    def release(self) -> None:
        """Keep no sample; what was counted may stay."""

    @staticmethod
    def fits(tallies: Sequence[Tally]) -> bool:
        """Whether all fields of these tallies are there from the first sample on and merge by addition."""
        of_batch = ((tally, tally.zero_of_batch(torch.device("cpu"))) for tally in tallies)
        return all(
            set(tally.fields.values()) == {"sum"} and state.keys() <= tally.fields.keys() for tally, state in of_batch
        )


class HeldStates:
    """States whose stores have the samples of one batch as they are, which must not change meanwhile.

    Args:
        zeros: a state of nothing for each tally, which stays as it is.

    Attributes:
        states: for each tally the state.
    """

    def __init__(self, zeros: Sequence[State]) -> None:
        self._zeros = zeros
        with torch.inference_mode(False):
            self.states = [held(zero) for zero in zeros]
        self._fields = [dict(state) for state in self.states]

    def clear(self) -> None:
        """Have counted nothing."""
        for state, fields, zero in zip(self.states, self._fields, self._zeros, strict=True):
            state.clear()  # of fields that came with samples, too
            state.update(fields)
            for name, each in fields.items():
                if isinstance(each, HeldSamples):
                    each.clear()
                else:
                    each.copy_(zero[name])

    def release(self) -> None:
        """Keep no sample; what was counted may stay."""
        for state in self.states:
            for each in state.values():
                if isinstance(each, HeldSamples):
                    each.clear()


class StatesOfDevice:
    """States that were counted on a device and copied to the CPU.

    Args:
        states: for each tally the state.
    """

    def __init__(self, states: Sequence[State]) -> None:
        self.states = states

    def release(self) -> None:
        """Keep no sample; these belong to nobody else."""
