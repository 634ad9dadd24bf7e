"""A part of a batch, such as a column or one output, counted by another tally."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from assay.tally.base import Batch, InvalidValues, Rule, State, Tally
from assay.tally.composite import CompositeTally, combine, components
from assay.tally.conservation import HostCount, Laws
from assay.tally.sums.fingerprints import Fingerprint, FingerprintSize


@dataclass(frozen=True)
class PartTally(Tally):
    """What another tally counts of a part of each batch. The further fields of a class say which part."""

    tally: Tally

    @property
    @abstractmethod
    def place(self) -> tuple[Hashable, ...]:
        """Which part: equal for all tallies that are counted of it."""

    @property
    def chunk_scale(self) -> int:
        return self.tally.chunk_scale

    @property
    def uses_target(self) -> bool:
        return self.tally.uses_target

    @property
    def columns(self) -> frozenset[str]:
        return self.tally.columns

    @property
    def fields(self) -> Mapping[str, Rule]:
        return self.tally.fields

    def zero(self, device: torch.device) -> State:
        return self.tally.zero(device)

    def zero_of_batch(self, device: torch.device) -> State:
        return self.tally.zero_of_batch(device)

    def absorb(self, state: State, other: State) -> None:
        self.tally.absorb(state, other)

    def add(self, state: State, batch: Batch) -> None:
        self.tally.add(state, batch.memoize(self.place, self.select))

    @abstractmethod
    def select(self, batch: Batch) -> Batch:
        """The part of a batch."""

    def canonicalize(self, state: State, rows: int) -> State:
        return self.tally.canonicalize(state, rows)

    @abstractmethod
    def given_of_part(self, given: HostCount) -> HostCount:
        """What the host counted of the part, where it counted this of the whole."""

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        return self.tally.broken_laws(state, self.given_of_part(given))

    @property
    def declares_laws(self) -> bool:
        return self.tally.declares_laws

    @property
    def fingerprint_size(self) -> FingerprintSize | None:
        return self.tally.fingerprint_size

    def fingerprint(self, batch: Batch) -> Fingerprint:
        return self.tally.fingerprint(batch.memoize(self.place, self.select))

    def fingerprint_of(self, state: State) -> Fingerprint:
        return self.tally.fingerprint_of(state)

    def compute(self, state: State) -> Any:
        return self.tally.compute(state)

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        return self.tally.invalid_values(state)

    def union(self, other: Tally) -> Tally | None:
        if not isinstance(other, PartTally) or other.place != self.place:
            return None
        both = self.tally.union(other.tally)
        return None if both is None else replace(self, tally=both)

    def extract(self, state: State, wanted: Tally) -> State:
        assert isinstance(wanted, PartTally), "a union of what is counted of a part is asked for one of them"
        return state if wanted == self else self.tally.extract(state, wanted.tally)


def of_part(tally: Tally, make: Callable[[Tally], PartTally]) -> Tally:
    """What a tally counts of a part; of several tallies, what each of them does."""
    if isinstance(tally, CompositeTally):
        return combine(make(leaf) for leaf in components(tally))
    return make(tally)
