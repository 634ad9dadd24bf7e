"""What was counted of one device's batches, and the rows staged there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from assay.devices.placement import outside_inference, to_host
from assay.devices.policies import policy
from assay.errors import StateError, describe
from assay.meter.checks.law_checks import HostCounter, check_fingerprints, check_laws, no_fingerprints, of_batch
from assay.meter.checks.recounts import KeptRows, Recounts, check_recount
from assay.meter.counting.flat_states import FlatStates, HeldStates, StatesOfDevice
from assay.meter.counting.prepared_adds import PreparedAdds
from assay.meter.counting.row_stage import RowStage, columns_of
from assay.meter.inputs.arguments import Arguments, layout_of, preds_of
from assay.meter.meter_options import MeterOptions
from assay.native.library import library
from assay.tally.base import Batch, State, Tally, merge_into
from assay.tally.conservation import HostCount
from assay.tally.inputs import readable
from assay.tally.stores.sample_store import SampleStore
from assay.tally.sums.fingerprints import Fingerprint
from assay.tally.term_log import RecordedTerms, ReplayedTerms, TermLog
from assay.tally.triton_check import uses_triton

AT_ONCE_BYTES = 1 << 19
"""Compiled code counts a batch of so many bytes in less time than it takes to copy it."""
PREPARED_BYTES = 1 << 13
"""The same where it is prepared for the layout of a batch."""


class DeviceCounts:
    """What was counted of one device's batches: the states of the tallies, and the rows staged for them.

    Args:
        tallies: what counts.
        device: of the batches.
        options: how they are counted.
        follower: is given staged rows when they are counted; what it keeps of them it copies.
    """

    def __init__(
        self,
        tallies: Sequence[Tally],
        device: torch.device,
        options: MeterOptions,
        follower: Callable[[Arguments], None] | None = None,
    ) -> None:
        self._rows = 0
        self._policy = policy(device)
        self._tallies, self._device = tallies, self._policy.tally_on.value
        self._triton = uses_triton(self._device)
        self._compiled = policy(self._device).compiled.value and not self._triton
        self._on_host = self._device == self._policy.read_on.value
        self._keeps_samples = any("samples" in tally.fields.values() for tally in tallies)
        is_compiled = self._compiled and library() is not None
        scales = [tally.compiled_chunk_scale if is_compiled else tally.chunk_scale for tally in tallies]
        self._chunk_elements = self._policy.chunk_elements.value * min(scales)
        self._stage = RowStage(self._device, options.stage_bytes, self._compiled)
        self._follower, self._is_followed = follower, False
        self._at_once = self._only_stages = False
        self._prepared: PreparedAdds | None = None
        self._prepared_of_batch: PreparedAdds | None = None
        self.layout: tuple[Any, ...] = ()
        self.rows_of_layout = 0
        self._broken = ""
        self._states: list[State] = []
        self._rows_of_graphs: Tensor | None = None
        self._rows_by_python = 0  # of those of graphs
        self._given = HostCounter()
        self._fingerprints: list[Fingerprint | None] = []
        self._has_fingerprints = options.fingerprints and not self._on_host
        is_recounted = options.recount != "off" and options.stage_bytes > 0 and not self._on_host
        self.recounts = Recounts(options.recount) if is_recounted else None

    @property
    def is_open(self) -> bool:
        """Whether there are states: not before the first `push`."""
        return self._rows_of_graphs is not None

    def _open(self) -> None:
        """Make the states, where there are none."""
        if self.is_open:
            return
        self._states = self._zero()
        with outside_inference():
            self._fingerprints = no_fingerprints(self._tallies, self._device if self._has_fingerprints else None)
            self._rows_of_graphs = torch.zeros((), dtype=torch.int64, device=self._device)

    def _zero(self) -> list[State]:
        """The states of nothing, on the device."""
        with outside_inference():
            states = [tally.zero(self._device) for tally in self._tallies]
        for store in _stores(states):
            store.has_checksums = self._has_fingerprints
        return states

    @property
    def rows(self) -> int:
        """How many samples were given."""
        return self._rows + (0 if self._rows_of_graphs is None else int(self._rows_of_graphs))

    def expect(self, batch: Arguments, is_as_given: bool = True) -> None:
        """Stage batches of this layout from now on; what is staged of another one is counted first.

        Args:
            batch: one of them.
            is_as_given: its tensors are those of the caller, so that a follower may have the rows of the stage instead.
        """
        self._refuse_if_broken()
        is_followed, columns = is_as_given and self._follower is not None, columns_of(batch)
        if columns != self._stage.columns or is_followed != self._is_followed:
            self._flush()
            self._is_followed = is_followed
            if self.recounts is not None:
                self.recounts.expect((*columns[0], *batch.names))
        self._stage.expect(batch, columns)
        self._given.expect(batch, self._rows + self._rows_by_python)
        self.rows_of_layout, size = preds_of(batch).shape[0], batch.nbytes
        is_fast = self._compiled and library() is not None and size >= AT_ONCE_BYTES
        self._at_once = is_fast or self.rows_of_layout * 2 > self._stage.capacity
        can_prepare = self._compiled and not torch.compiler.is_compiling()
        is_large = bool(self._stage.capacity) and size >= PREPARED_BYTES and not is_followed
        is_sooner = can_prepare and is_large and all(each.prepares_compiled_calls for each in self._tallies)
        self._prepared = PreparedAdds(self._tallies) if is_sooner else None
        self._prepared_of_batch = PreparedAdds(self._tallies) if can_prepare else None
        self._only_stages = not (self._at_once or is_sooner or self.recounts or (self._follower and not is_followed))
        self.layout = layout_of(batch)

    def push(self, batch: Arguments) -> bool:
        """Stage a batch of the expected layout, or count it at once when it is large.

        Returns:
            Whether the follower is given its rows when they are counted.
        """
        rows, recounts, stage = self.rows_of_layout, self.recounts, self._stage
        if recounts is not None:
            recounts.batches += 1
        if not stage.capacity:
            self.count_on_device(batch)
            return False
        if self._prepared is not None and self._count_prepared(self._prepared, batch):
            self._rows += rows
            return False
        if self._at_once:
            self._count(batch, () if recounts is None else recounts.of_batch(batch))
            self._rows += rows
            return False
        if stage.rows + rows > stage.capacity:
            self._flush()
        is_full = recounts is not None and recounts.stage(batch, is_first=not stage.rows)
        if self._rows_of_graphs is None:
            self._open()
        stage.add(batch)
        self._rows += rows
        if is_full:
            self._flush()
        return self._is_followed

    def stage(self, preds: Tensor, target: Tensor | None) -> int:
        """Stage a batch that is like the last one that was staged; see `MeterCounts.stage`."""
        rows = self._stage.move(preds, target) if self._only_stages and not self._broken else 0
        self._rows += rows
        return rows

    def count_on_device(self, batch: Arguments) -> None:
        """Count a batch with nothing left to Python, whose numbers stand still when a graph is replayed."""
        self._count(batch, () if self.recounts is None or is_compiling() else self.recounts.of_batch(batch))
        assert self._rows_of_graphs is not None, "counting opens it"
        self._rows_of_graphs += len(preds_of(batch))
        if not is_compiling():
            self._rows_by_python += len(preds_of(batch))

    def count_each(self, batches: Sequence[tuple[Tally, Arguments]], rows: int) -> None:
        """Count another batch into the state of each tally, or into none.

        Args:
            batches: for each tally one that counts into the same state, and the batch.
            rows: how many samples they are.
        """
        self._refuse_if_broken()
        self._open()
        try:
            for (tally, batch), state, fingerprint in zip(batches, self._states, self._fingerprints, strict=True):
                tally.add(state, rows_of_tally := self._batch(batch))
                if fingerprint is not None:
                    fingerprint.add(tally.fingerprint(rows_of_tally))
        except BaseException as error:
            self._break(error)
            raise
        self._given.forget_elements()
        self._rows += rows

    def _flush(self) -> None:
        stage = self._stage
        if stage.rows:
            staged = stage.staged()
            self._count(staged, () if self.recounts is None else self.recounts.of_stage(stage.rows))
            stage.clear()
            if self._is_followed and self._follower is not None:
                self._follower(staged)

    def _count(self, batch: Arguments, kept: Sequence[KeptRows] = ()) -> None:
        """Count rows into all tallies, or into none; of those that are kept the CPU will count the same.

        What can be known before is checked before: the metadata, and that samples have room. When counting fails
        nevertheless (memory that runs out, an interrupt), the tallies may differ, and these counts cannot be read
        again.
        """
        if is_compiling():
            with torch.no_grad(), torch.autocast(self._device.type, enabled=False):
                self._add(self._states, batch)  # a loop over chunks would be a graph for each number of rows
            return
        self._refuse_if_broken()
        self._open()
        self._reserve(batch.nbytes)
        try:
            apart = sum(len(each) for each in kept)
            if apart:
                self._count_apart(batch.rows(slice(0, apart)), kept)
            if apart < preds_of(batch).shape[0]:
                self._count_chunks(self._states, batch.rows(slice(apart, None)) if apart else batch)
        except BaseException as error:
            self._break(error)
            raise
        if self.recounts is not None and self.recounts.how == "all" and self.recounts.is_full:
            self.recount()

    def _count_apart(self, batch: Arguments, kept: Sequence[KeptRows]) -> None:
        """Count rows into states of their own, which are added to the others: integers add up to the same bits."""
        assert self.recounts is not None, "it has kept rows"
        states, terms = self._zero(), RecordedTerms()
        self._count_chunks(states, batch, terms)
        for tally, state, other in zip(self._tallies, self._states, states, strict=True):
            merge_into(tally, state, other)
        self.recounts.wait(kept, states, terms)

    def _break(self, error: BaseException) -> None:
        """Refuse all that comes, as the tallies may differ."""
        self._broken = type(error).__name__
        self.layout = ()  # so that the next update comes to be refused

    def _count_prepared(self, prepared: PreparedAdds, batch: Arguments) -> bool:
        """Count a batch of the expected layout in one call a tally; false where nothing was counted."""
        try:
            return prepared.add(self._states, batch)
        except BaseException as error:
            self._break(error)
            raise

    def _reserve(self, size: int) -> None:
        for store in _stores(self._states):
            store.reserve(self._device, size)

    def _refuse_if_broken(self) -> None:
        if self._broken:
            raise interrupted("meter", self._broken)

    def states_of(self, batch: Arguments) -> FlatStates | HeldStates | StatesOfDevice:
        """The states on the CPU of a batch of the expected layout alone, which is not counted here.

        The next batch may take the same states. They have its samples as they are, until `release` is called.
        """
        reused = self._batch_states
        if reused is not None:
            reused.clear()
            if self._prepared_of_batch is None or not self._prepared_of_batch.add(reused.states, batch):
                self._count_chunks(reused.states, batch, is_counted=False)
            return reused
        states = [tally.zero_of_batch(self._device) for tally in self._tallies]
        terms = None if self.recounts is None else RecordedTerms()
        self._count_chunks(states, batch, terms, is_counted=False)
        on_host = _on_host(states)
        check_laws(self._tallies, on_host, of_batch(batch), f"device {self._device}")
        if self.recounts is not None and terms is not None:
            self._recount_step(batch, on_host, terms)
        return StatesOfDevice(on_host)

    @cached_property
    def _zeros_of_batch(self) -> list[State]:
        with torch.inference_mode(False):
            return [tally.zero_of_batch(self._device) for tally in self._tallies]

    @cached_property
    def batches_are_whole(self) -> bool:
        """Whether the states of one batch have all fields of those of many; some tallies count one in fewer numbers."""
        zeros = zip(self._tallies, self._zeros_of_batch, strict=True)
        return all(name in zero or rule == "late" for tally, zero in zeros for name, rule in tally.fields.items())

    def _recount_step(self, batch: Arguments, states: Sequence[State], terms: RecordedTerms) -> None:
        """Count a step once more if it is drawn; its value is read, so the device is waited for anyway."""
        assert self.recounts is not None
        self.recounts.batches += 1
        rows = self.recounts.of_batch(batch)
        if rows and len(rows[0]) == len(batch.preds):
            self._check_recount([rows[0].on_host()], states, terms, "this step")
            self.recounts.recounted += 1

    @cached_property
    def _batch_states(self) -> FlatStates | HeldStates | None:
        """The states that batches are counted into one after the other; None where that is not on the CPU."""
        if not self._on_host:
            return None
        return FlatStates(self._tallies) if FlatStates.fits(self._tallies) else HeldStates(self._zeros_of_batch)

    def is_one_chunk(self, batch: Arguments) -> bool:
        """Whether compiled code counts a batch in host memory at once, with its tensors as they are."""
        preds = batch.preds
        is_short = preds.numel() <= self._chunk_elements and len(preds) > 0 and self._compiled and self._on_host
        return is_short and all(each is None or self._readable(each).dtype == each.dtype for each in batch.tensors)

    def _count_chunks(
        self, states: Sequence[State], batch: Arguments, terms: TermLog | None = None, is_counted: bool = True
    ) -> None:
        preds = preds_of(batch)
        kind = preds.device.type
        if torch.is_autocast_enabled(kind):
            with torch.autocast(kind, enabled=False):
                self._count_chunks(states, batch, terms, is_counted)
            return
        rows = preds.shape[0]
        size = max(1, self._chunk_elements * rows // max(1, preds.numel()))
        for start in range(0, rows, size):
            chunk = batch if rows <= size else batch.rows(slice(start, start + size))
            self._add(states, chunk, terms, is_counted)

    def _add(
        self, states: Sequence[State], batch: Arguments, terms: TermLog | None = None, is_counted: bool = True
    ) -> None:
        """Count rows that are few enough for the cache; those that are counted for good have a fingerprint."""
        rows = self._batch(batch, terms)
        for k, (tally, state) in enumerate(zip(self._tallies, states, strict=True)):
            if terms is not None:
                terms.tally = k
            tally.add(state, rows)
        for tally, fingerprint in zip(self._tallies, self._fingerprints if is_counted else (), strict=False):
            if fingerprint is not None:
                fingerprint.add(tally.fingerprint(rows))

    def _batch(self, batch: Arguments, terms: TermLog | None = None) -> Batch:
        tensors = [None if each is None else self._readable(each) for each in batch.tensors]
        preds, target, weights, *columns = tensors
        assert preds is not None
        return Batch(
            preds,
            target,
            weights,
            self._policy.chunk_elements.value // 4,
            self._compiled and not is_compiling(),
            {name: each for name, each in zip(batch.names, columns, strict=True) if each is not None},
            batch.ragged,
            self._triton and not is_compiling(),
            terms,
        )

    def _readable(self, tensor: Tensor) -> Tensor:
        """The same values where they are counted, without gradients, and in a dtype that torch has operators for."""
        tensor = tensor.detach()
        return readable(tensor if tensor.device == self._device else tensor.to(self._device))

    def flushed(self) -> list[State]:
        """The states on the device, with everything that was staged."""
        self._refuse_if_broken()
        if self._stage.rows or not self.is_open:
            self._open()
            self._flush()
        return self._states

    def sums_on_host(self) -> list[State] | None:
        """The states where they lie, if that is the CPU; who asks does not change them, and they have no samples."""
        return self.flushed() if self._on_host and self.is_open else None

    def host_states(self) -> list[State]:
        """The states on the CPU, with everything that was staged.

        Raises:
            DeviceFaultError: they break a conservation law, or have another fingerprint than the batches. What the CPU
                itself counts is not checked.
        """
        states = self.flushed()
        if self._on_host:  # samples that come later are not in the copy of a store
            return [{k: v if isinstance(v, Tensor) else v.copy() for k, v in state.items()} for state in states]
        states = _on_host(states)
        where = f"device {self._device}"
        check_laws(self._tallies, states, self._host_count, where)
        check_fingerprints(self._tallies, states, self._fingerprints, where, self._triton)
        self.recount()
        return states

    def recount(self) -> None:
        """Count on the CPU what was kept for that; waits for the device.

        Raises:
            DeviceFaultError: the CPU counts something else.
        """
        if self.recounts is None or not self.recounts.waiting:
            return
        for each in self.recounts.waiting:
            batches = [rows.on_host() for rows in each.rows]
            self._check_recount(batches, _on_host(each.states), each.terms, each.name)
        self.recounts.done()

    def _check_recount(
        self, batches: Sequence[Arguments], states: Sequence[State], recorded: RecordedTerms, name: str
    ) -> None:
        on_cpu, terms = (
            DeviceCounts(self._tallies, torch.device("cpu"), MeterOptions(stage_bytes=0)),
            ReplayedTerms(recorded),
        )
        on_cpu._open()
        for batch in batches:
            on_cpu._count_chunks(on_cpu._states, batch, terms)
        rows = sum(len(batch.preds) for batch in batches)
        where = f"device {self._device}"
        check_recount(self._tallies, states, on_cpu._states, terms.differs, rows, where, name)

    @property
    def _host_count(self) -> HostCount:
        """What the host counted of the samples."""
        return self._given.at(self.rows, self._rows + self._rows_by_python, staged=not self._rows_by_python)


def _stores(states: Sequence[State]) -> list[SampleStore]:
    return [value for state in states for value in state.values() if isinstance(value, SampleStore)]


def _on_host(states: Sequence[State]) -> list[State]:
    return [
        {name: to_host(value) if isinstance(value, Tensor) else value.on_host() for name, value in state.items()}
        for state in states
    ]


def interrupted(where: str, error: str) -> StateError:
    """The error for counts that an error of this name left in the middle of a batch."""
    got = f"counts that a {error} interrupted in the middle of a batch"
    do = "Call reset() and count again, or load the last state that was saved"
    return StateError(describe(where, got, "whole batches", do))
