"""Batches of a device that the CPU counts once more: the execution that counts is compared, not a second one.

The rows of some flushes are kept on the device as they came, beside the stage and by another operator, and their counts
are added to the others from states of their own. When counts are read, the CPU counts the same rows. Nothing waits for
the device before.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from assay.devices.placement import has_own_memory, move, to_host
from assay.meter.checks.law_checks import fault
from assay.meter.inputs.arguments import Arguments
from assay.meter.meter_options import Recount
from assay.tally.base import State, Tally
from assay.tally.conservation import BrokenLaw
from assay.tally.stores.sample_store import SampleStore
from assay.tally.term_log import RecordedTerms, difference

RATE = 1e-3
KEPT_BYTES = 1 << 26
"""Of rows, states and terms that wait for the next read, on each device; beyond it no other flush is drawn."""
MOST_LAYOUTS = 16
_WIDEST, _WIDEST_BYTES = 16, 1 << 20
"""How many times the bytes of a view its memory may have to be kept from its beginning, and how many in all."""


class RecountSummary(NamedTuple):
    """How many batches of devices there were, and how many of them were counted once more, with the same bits.

    Attributes:
        recounted: how many were.
        batches: of how many.
    """

    recounted: int = 0
    batches: int = 0

    def __str__(self) -> str:
        chance = 1 - 0.99**self.recounted
        worth = f"A fault in 1 of 100 batches is found by so many with a probability of {100 * chance:.0f} %."
        return f"{self.recounted:,} of {self.batches:,} batches were recounted on the CPU: the same bits. {worth}"


class KeptTensor(NamedTuple):
    """A copy on the device: of the memory of a view from its beginning, which no operator reads as a view there."""

    memory: Tensor
    view: tuple[Sequence[int], Sequence[int], int] | None

    @classmethod
    def of(cls, tensor: Tensor) -> KeptTensor:
        tensor = tensor.detach()
        if has_own_memory(tensor) and tensor.numel():
            last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
            end = tensor.storage_offset() + last + 1
            most = max(_WIDEST_BYTES // tensor.element_size(), 2 * tensor.numel())
            if end <= min(most, _WIDEST * tensor.numel()):
                view = tensor.shape, tensor.stride(), int(tensor.storage_offset())
                return cls(tensor.as_strided((end,), (1,), 0).clone(), view)
        return cls(tensor.clone(), None)

    def on_host(self) -> Tensor:
        memory = to_host(self.memory)
        return memory if self.view is None else memory.as_strided(*self.view)


@dataclass(frozen=True, eq=False)
class KeptRows:
    """The rows of a batch, and its number among those of the device, from 1."""

    number: int
    rows: int
    batch: Arguments
    kept: Sequence[KeptTensor | None]

    def __len__(self) -> int:
        return self.rows

    @classmethod
    def of(cls, number: int, batch: Arguments) -> KeptRows:
        kept = [None if each is None else KeptTensor.of(each) for each in batch.tensors]
        return cls(number, len(batch.preds), batch._replace(tensors=()), kept)

    @property
    def nbytes(self) -> int:
        return sum(each.memory.nbytes for each in self.kept if each is not None) + self.batch.nbytes

    def on_host(self) -> Arguments:
        tensors = [None if each is None else each.on_host() for each in self.kept]
        return Arguments(tensors, self.batch.names, move(dict(self.batch.ragged), "cpu"))


@dataclass(frozen=True, eq=False)
class WaitingRecount:
    """What a device counted of some rows alone: its states, and the terms that it rounded."""

    rows: Sequence[KeptRows]
    states: Sequence[State]
    terms: RecordedTerms

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for each in self.rows) + _state_bytes(self.states) + self.terms.nbytes

    @property
    def name(self) -> str:
        first, last = self.rows[0].number, self.rows[-1].number
        return f"batch {first}" if first == last else f"batches {first} to {last}"


@dataclass
class Recounts:
    """Draws the flushes of a device that are counted once more, and keeps their rows.

    Attributes:
        how: which of them.
        batches: how many batches there were.
        recounted: how many of them were counted once more.
        waiting: those that will be, at the next read.
    """

    how: Recount
    batches: int = 0
    recounted: int = 0
    waiting: list[WaitingRecount] = field(default_factory=list, repr=False)
    _held: int = 0
    _bytes_staged: int = 0
    _is_first: bool = False
    _layouts: set[Any] = field(default_factory=set)
    _staged: list[KeptRows] | None = field(default=None, repr=False)
    _random: random.Random = field(default_factory=random.Random)  # of its own: seeds of the user are not touched

    @property
    def is_full(self) -> bool:
        return self._held >= KEPT_BYTES

    def expect(self, layout: Any) -> None:
        """The first flush of a layout is counted once more."""
        if layout not in self._layouts and len(self._layouts) < MOST_LAYOUTS:
            self._layouts.add(layout)
            self._is_first = True

    def _is_drawn(self) -> bool:
        is_drawn = not self.is_full and (self.how == "all" or self._is_first or self._random.random() < RATE)
        self._is_first = self._is_first and not is_drawn
        return is_drawn

    def of_batch(self, batch: Arguments) -> list[KeptRows]:
        """The rows of a batch that is counted at once, or as many as there is memory for, if it is drawn; else none."""
        rows = len(batch.preds)
        if not rows or not self._is_drawn():
            return []
        fit = rows if batch.nbytes <= KEPT_BYTES else rows * KEPT_BYTES // batch.nbytes
        return [KeptRows.of(self.batches, batch if fit == rows else batch.rows(slice(0, fit)))] if fit else []

    def stage(self, batch: Arguments, is_first: bool) -> bool:
        """Keep a batch whose rows are staged, if the flush that it comes to is drawn; the first one decides that.

        Returns:
            Whether there is no memory for another one.
        """
        if is_first:
            self._staged, self._bytes_staged = [] if self._is_drawn() else None, 0
        if self._staged is None:
            return False
        self._staged.append(KeptRows.of(self.batches, batch))
        self._bytes_staged += self._staged[-1].nbytes
        return self._bytes_staged >= KEPT_BYTES

    def of_stage(self, rows: int) -> list[KeptRows]:
        """The rows that were staged until now, so many; none where their flush was not drawn, or an update failed."""
        staged, self._staged = self._staged or [], None
        return staged if sum(map(len, staged)) == rows else []

    def wait(self, rows: Sequence[KeptRows], states: Sequence[State], terms: RecordedTerms) -> None:
        """Count these rows once more at the next read."""
        self.waiting.append(WaitingRecount(rows, states, terms))
        self._held += self.waiting[-1].nbytes

    def done(self) -> None:
        """What was waiting has the same counts."""
        self.recounted += sum(len(each.rows) for each in self.waiting)
        self.waiting, self._held = [], 0


def check_recount(
    tallies: Sequence[Tally],
    of_device: Sequence[State],
    of_cpu: Sequence[State],
    differs: dict[int, str],
    rows: int,
    where: str,
    name: str,
) -> None:
    """Compare what a device and the CPU counted of the same rows.

    Args:
        tallies: what was counted.
        of_device: the state of each, on the CPU.
        of_cpu: the same, counted by the CPU with the terms of the device.
        differs: for some tallies, by their number, which term of the device is too far from that of the CPU.
        rows: how many rows there are.
        where: the device, for messages.
        name: of the rows, for messages.

    Raises:
        DeviceFaultError: they differ.
    """
    for k, (tally, state, own) in enumerate(zip(tallies, of_device, of_cpu, strict=True)):
        if k in differs:
            law = f"the CPU computes the same terms of {name}, but for their rounding"
            raise fault(where, tally, BrokenLaw(law, "the terms of the CPU", differs[k]))
        found = _difference(tally.canonicalize(own, rows), tally.canonicalize(state, rows))
        if found:
            law = f"the CPU counts the same of {name}"
            raise fault(where, tally, BrokenLaw(law, "the counts of the CPU", found))


def _difference(own: State, other: State) -> str:
    """How the first field reads that differs in two canonical states; empty where none does."""
    for name in dict.fromkeys((*own, *other)):
        one, two = own.get(name), other.get(name)
        if isinstance(one, Tensor) and isinstance(two, Tensor):
            found = difference(one, two)
        elif isinstance(one, SampleStore) and isinstance(two, SampleStore):
            found = "".join(difference(one.column(each), two.column(each)) for each in one.columns)
        else:
            found = "a field that one of them lacks"
        if found:
            return f"{name!r}: {found}"
    return ""


def _state_bytes(states: Sequence[State]) -> int:
    return sum(each.nbytes for state in states for each in state.values() if isinstance(each, Tensor | SampleStore))
