"""Several tallies as one, for a metric that is read from all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from assay.tally.base import Batch, BatchLayout, InvalidValues, Rule, State, Tally
from assay.tally.conservation import HostCount, Laws


@dataclass(frozen=True)
class CompositeTally(Tally):
    """Tallies of the same batches. What is read is a tuple with what each of them reads.

    A meter takes it apart and counts what is in it along with the tallies of its other metrics, each distinct one once.
    The state has the fields of the distinct tallies, as `"<number>.<field>"`.

    Args:
        tallies: one or more; equal ones are counted once. None is itself of this class: see `combine`.
    """

    tallies: tuple[Tally, ...]

    @cached_property
    def distinct(self) -> tuple[Tally, ...]:
        """Each tally once."""
        return tuple(dict.fromkeys(self.tallies))

    @property
    def chunk_scale(self) -> int:
        return min(tally.chunk_scale for tally in self.distinct)

    @property
    def uses_target(self) -> bool:
        return any(tally.uses_target for tally in self.distinct)

    @property
    def columns(self) -> frozenset[str]:
        return frozenset().union(*(tally.columns for tally in self.distinct))

    @property
    def fields(self) -> Mapping[str, Rule]:
        return {f"{k}.{name}": rule for k, tally in enumerate(self.distinct) for name, rule in tally.fields.items()}

    def check(self, layout: BatchLayout) -> None:
        for tally in self.distinct:
            tally.check(layout)

    def zero(self, device: torch.device) -> State:
        return self.gathered({tally: tally.zero(device) for tally in self.distinct})

    def add(self, state: State, batch: Batch) -> None:
        states = self.states(state)
        for tally, own in states.items():
            tally.add(own, batch)
        state.update(self.gathered(states))  # with the fields that were not there before

    def canonicalize(self, state: State, rows: int) -> State:
        return self.gathered({tally: tally.canonicalize(own, rows) for tally, own in self.states(state).items()})

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        problems = [problem for tally, own in self.states(state).items() for problem in tally.invalid_values(own)]
        return tuple(dict.fromkeys(problems))

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        for tally, own in self.states(state).items():
            yield from tally.broken_laws(own, given)

    @property
    def declares_laws(self) -> bool:
        return all(tally.declares_laws for tally in self.distinct)

    def compute(self, state: State) -> tuple[Any, ...]:
        """What each tally reads, in the order in which they were given."""
        read = {tally: tally.compute(own) for tally, own in self.states(state).items()}
        return tuple(read[tally] for tally in self.tallies)

    def extract(self, state: State, wanted: Tally) -> State:
        """The state of `wanted`, which names as many tallies; each can be read from the one in its place here."""
        assert isinstance(wanted, CompositeTally), "a meter asks for what its metrics named"
        states = self.states(state)
        pairs = zip(self.tallies, wanted.tallies, strict=True)
        return wanted.gathered({w: own.extract(states[own], w) if w != own else states[own] for own, w in pairs})

    def states(self, state: State) -> dict[Tally, State]:
        """The state of each distinct tally."""
        return {
            tally: {key.removeprefix(f"{k}."): value for key, value in state.items() if key.startswith(f"{k}.")}
            for k, tally in enumerate(self.distinct)
        }

    def gathered(self, states: Mapping[Tally, State]) -> State:
        """One state from those of the distinct tallies."""
        return {f"{k}.{name}": value for k, tally in enumerate(self.distinct) for name, value in states[tally].items()}


def components(tally: Tally) -> tuple[Tally, ...]:
    """The tallies that are counted for a metric: those that are together, or the one."""
    return tally.tallies if isinstance(tally, CompositeTally) else (tally,)


def combine(tallies: Iterable[Tally]) -> CompositeTally:
    """Tallies as one, however many are in each of them."""
    return CompositeTally(tuple(leaf for tally in tallies for leaf in components(tally)))
