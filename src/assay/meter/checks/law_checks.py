"""Whether what was counted satisfies the conservation laws of its tallies, and the error where it does not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from assay.errors import DeviceFaultError, describe
from assay.meter.inputs.arguments import Arguments
from assay.tally.base import State, Tally
from assay.tally.conservation import NO_ROWS, BrokenLaw, HostCount
from assay.tally.stores.sample_store import SampleStore
from assay.tally.sums.fingerprints import Fingerprint, has_special

COUNT_ON_CPU = (
    "Count again in a new meter on the CPU, with preds.cpu() and target.cpu(): the device, its driver or a copy from "
    "it is at fault"
)
READ_AGAIN = "Read what was saved once more, or count again"


class HostCounter:
    """Counts the elements of one device's batches from their shapes: once a change of shapes, not once a batch."""

    def __init__(self) -> None:
        self._settled = NO_ROWS
        self._of_row: tuple[int | None, int | None] = 0, 0
        self._is_mixed = self._is_partial = False

    def forget_elements(self) -> None:
        """Only rows are known from now on, as of a batch whose parts several processes count."""
        self._is_partial = True

    def expect(self, batch: Arguments, rows: int) -> None:
        """Rows are as those of this batch from now on; so many were counted before."""
        self._settle(rows)
        of_row = elements_of_row(batch)
        self._is_mixed = self._is_mixed or (bool(rows) and of_row != self._of_row)
        self._of_row = of_row

    def at(self, rows: int, counted_by_python: int, staged: bool) -> HostCount:
        """What was given by now.

        Args:
            rows: how many rows.
            counted_by_python: of how many of them Python knows; it sees no row of a CUDA graph that is replayed.
            staged: whether all rows were staged, which those of a CUDA graph never are.
        """
        if self._is_partial or rows != counted_by_python or (self._is_mixed and not staged):
            return HostCount(rows)
        self._settle(rows)
        return self._settled

    def _settle(self, rows: int) -> None:
        self._settled += of_rows(rows - self._settled.rows, self._of_row)


def of_rows(rows: int, of_row: tuple[int | None, int | None]) -> HostCount:
    """The count of so many rows that have so many elements of `preds` and of `target` each."""
    return HostCount(rows, *(None if each is None else each * rows for each in of_row))


def of_batch(batch: Arguments) -> HostCount:
    """The count of one batch."""
    return of_rows(len(batch.preds), elements_of_row(batch))


def elements_of_row(batch: Arguments) -> tuple[int | None, int | None]:
    """How many elements a row has of `preds` and of `target`; None without any, as tallies may leave such rows out."""
    preds, target, *_ = batch.tensors
    return _elements(preds), _elements(target)


def _elements(tensor: Tensor | None) -> int | None:
    return None if tensor is None else math.prod(tensor.shape[1:]) or None


def check_laws(
    tallies: Sequence[Tally], states: Sequence[State], given: HostCount, where: str, do: str = COUNT_ON_CPU
) -> None:
    """Check states on the CPU; those of a single batch, which may lack fields, and sparse ones are passed over.

    Args:
        tallies: what was counted.
        states: the state of each of them.
        given: what the host counted of the same batches.
        where: where the states come from, for messages.
        do: what to do where they break a law.

    Raises:
        DeviceFaultError: a state breaks a law.
    """
    for tally, state in zip(tallies, states, strict=True):
        for name, store in state.items():
            if isinstance(store, SampleStore) and not store.is_whole():
                law = f"the rows of {name!r} have the checksum that other operators made of them"
                raise fault(where, tally, BrokenLaw(law, "the checksum of the batches", "another checksum"), do)
        if _is_whole(tally, state):
            for broken in tally.broken_laws(state, given):
                raise fault(where, tally, broken, do)


def _is_whole(tally: Tally, state: State) -> bool:
    has_all = all(name in state for name, rule in tally.fields.items() if rule != "late")
    return has_all and not any(isinstance(each, Tensor) and each.is_sparse for each in state.values())


def no_fingerprints(tallies: Sequence[Tally], device: torch.device | None) -> list[Fingerprint | None]:
    """For each tally the fingerprint of nothing on a device; None without a device, and for tallies without one."""
    sizes = [None if device is None else tally.fingerprint_size for tally in tallies]
    return [None if device is None or size is None else Fingerprint.zero(size, device) for size in sizes]


def check_fingerprints(
    tallies: Sequence[Tally],
    states: Sequence[State],
    fingerprints: Sequence[Fingerprint | None],
    where: str,
    skips_special: bool,
) -> None:
    """Compare states on the CPU with the fingerprints of the batches that were counted.

    Args:
        tallies: what was counted.
        states: the state of each of them, not canonical.
        fingerprints: those of the batches, on the device.
        where: where the states come from, for messages.
        skips_special: whether sums leave out what is not finite, as kernels in Triton do.

    Raises:
        DeviceFaultError: a state has another fingerprint.
    """
    for tally, state, counted in zip(tallies, states, fingerprints, strict=True):
        if counted is None:
            continue
        on_host = counted.on_host()
        if on_host is None:
            broken = BrokenLaw("the copy of a fingerprint is whole", "its marks at both ends", "others")
            raise fault(where, tally, broken)
        of_sums = not (skips_special and has_special(state))
        differs = on_host.difference(tally.fingerprint_of(state), of_sums)
        if differs:
            law = f"the {differs} are those of the batches, which other operators have added up"
            raise fault(where, tally, BrokenLaw(law, "the fingerprint of the batches", "another fingerprint"))


def fault(where: str, tally: Tally, broken: BrokenLaw, do: str = COUNT_ON_CPU) -> DeviceFaultError:
    """The error of a state that breaks a law."""
    message = describe(f"{type(tally).__name__} of {where}", broken.got, f"{broken.expected}, as {broken.law}", do)
    return DeviceFaultError(message, where=where, tally=tally, law=broken.law)
