"""The loop: every batch once through the model and into the meter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from assay.devices.memory import free_cached, is_out_of_memory
from assay.errors import AssayError, CapacityError, ConfigError, ShapeError, describe
from assay.evaluation.data.batch import Reader
from assay.evaluation.data.coverage import CoverageTracker
from assay.evaluation.data.data_source import ANOTHERS, Index, Unit, Units, broken_loader, is_of_the_loader
from assay.evaluation.errors import BatchError, RankError, loading_advice
from assay.evaluation.model.forward import Forward, Predicted
from assay.evaluation.model.memory import Limit
from assay.evaluation.nested_batch import row_count, row_marks, structure, take
from assay.evaluation.observe.observers import NOTHING, Observers, RowMetadata
from assay.evaluation.processes.companions import Companions, is_of_a_collective
from assay.evaluation.processes.ranks import Ranks
from assay.evaluation.resume.checkpoint import Checkpoints
from assay.evaluation.resume.termination import Termination
from assay.meter import Meter
from assay.render.text import first_names

_MAX_IDS = 8
_NOT_OF_A_BATCH = (ConfigError, ShapeError, RankError, CapacityError)
"""Errors that say how batches are to be read, or that all is lost: no batch is left out for them."""


class Watcher(Protocol):
    """What looks on: a progress bar."""

    def step(self, rows: int) -> None:
        """A batch of so many rows is done."""


@dataclass
class Loop:
    """Everything that a batch passes.

    Attributes:
        forward: predicts.
        reader: knows the ids of a stream's samples.
        meter: counts.
        observers: count and keep what else is wanted of the samples.
        coverage: notes which samples were counted.
        checkpoints: written in between.
        ranks: asked whether the others live.
        on_error: "raise" or "skip".
        limit: how many samples are predicted at once.
        position: how many batches of a stream were read.
        torn: something is counted of which it is not noted yet what it was; nothing can be saved then.
        termination: ends the loop after a signal, where that leaves nothing torn.
        companions: the processes that the model is shared with; None where it is whole on each.
        repeats: how many times the model was called with samples that do not count, because others called it.
        grad_mode: what the model runs in.
        spare: gives a batch to call the model with where none could be loaded.
        is_decided: asked after each batch whether no more samples are needed; None where all of them are.
    """

    forward: Forward
    reader: Reader
    meter: Meter
    observers: Observers
    coverage: CoverageTracker
    checkpoints: Checkpoints
    ranks: Ranks
    on_error: str = "raise"
    limit: Limit = field(default_factory=Limit)
    position: int = 0
    torn: bool = False
    termination: Termination = field(default_factory=Termination)
    companions: Companions | None = None
    repeats: int = 0
    grad_mode: Callable[[], AbstractContextManager[Any]] = torch.inference_mode
    spare: Callable[[], Any] = lambda: None
    is_decided: Callable[[], bool] | None = None
    _last: Any = None

    def __post_init__(self) -> None:
        self._takes_tensors = not self.meter.plan.encoders and not self.meter.columns

    def run(self, units: Units, watcher: Watcher | None = None) -> None:
        """Count all batches.

        Raises:
            BatchError: a batch failed, unless it is to be skipped; or the loader did, which is never skipped.
            RankError: another rank is gone, or does not come.
        """
        try:
            with closing(units):  # a loader's workers end now, also after an error
                self._run(units, watcher)
        except RuntimeError as error:
            if is_of_the_loader(error):
                raise broken_loader(error) from error
            if self.companions is not None and is_of_a_collective(error):
                raise self.ranks.left_alone(error) from error
            raise

    def _run(self, units: Units, watcher: Watcher | None) -> None:
        ranks, checkpoints, termination, is_decided = self.ranks, self.checkpoints, self.termination, self.is_decided
        termination.must_wait = lambda: self.torn
        writes, is_alone = checkpoints.writes, ranks.alone
        with self.grad_mode():
            for unit in units:
                if ranks.lost:
                    ranks.check()
                if not is_alone:
                    ranks.note(self.position, "loading")
                rows = self._one(unit) if self.companions is None else self._shared(unit, self.companions)
                self.position += unit.own
                if watcher is not None:
                    watcher.step(rows)
                if termination.requested:
                    termination.check()
                if writes and checkpoints.due():
                    self.save()
                if is_decided is not None and is_decided():
                    return

    def save(self) -> None:
        """Write what was counted so far, unless a failure left it between two batches."""
        if not (self.torn or self.observers.broken):
            self.checkpoints.save(self.meter, self.observers, self.coverage, self.position)

    def _one(self, unit: Unit) -> int:
        if unit.error is not None:
            return self._failed(unit.index, None, unit.error, "loading")
        index, batch = unit.index, unit.data
        if batch is ANOTHERS:
            return 0
        if index is None and self.coverage.keyed:
            batch = self._new_rows(batch)
            if batch is None:
                return 0
        if self.limit.rows is None:
            try:
                predicted = self.forward(batch)
            except Exception as error:
                if not is_out_of_memory(error):
                    return self._failed(index, batch, error, "predicting")
            else:
                return self._count(index, batch, predicted)
        return self._in_pieces(index, batch)

    def _shared(self, unit: Unit, companions: Companions) -> int:
        """A batch of a model that other processes have parts of: each of them calls it equally often."""
        index, batch = unit.index, unit.data
        if batch is ANOTHERS:
            return 0
        with self._answered("comparing"):
            failed = companions.any_failed(self.position, index, batch, unit.error is not None)
        if failed:
            error = unit.error or BatchError("another process with the same samples could not load it")
            return self._failed(index, None, error, "loading") + self._repeat()
        new = self._new_rows(batch) if unit.own and index is None and self.coverage.keyed else batch
        if not unit.own or new is None:
            return self._repeat(batch)
        batch = new
        try:
            with self._answered("predicting"):
                predicted = self._predicted(batch, companions)
        except Exception as error:
            return self._failed_together(index, batch, error)
        self._last = batch
        if predicted is not None:
            companions.note_outputs(predicted.preds)
        self.ranks.note(self.position, "counting")
        if predicted is not None and companions.place.counts:
            rows = self._count(index, batch, predicted)
        else:
            rows = self._witness(index, batch, self._rows(index, batch) if predicted is None else predicted.rows)
        self.ranks.note(self.position + 1, "loading")
        return rows

    def _predicted(self, batch: Any, companions: Companions) -> Predicted | None:
        """The predictions of a batch; None on a process that has no outputs of the model."""
        if companions.place.has_outputs:
            return self.forward(batch)
        self.forward.repeat(batch)
        return None

    def _repeat(self, batch: Any = None) -> int:
        """Call the model once more where another process calls it with samples that this one does not have.

        Args:
            batch: what to call it with, where there was no other batch yet.
        """
        if self.companions is not None and self.companions.place.needs_repeats:
            self.repeats += 1
            if self._last is None:
                self._last = self.spare() if batch is None else batch
            try:
                with self._answered("predicting"):
                    self.forward.repeat(self._last)
            except AssayError:
                raise
            except Exception as error:
                got, do = (
                    f"{type(error).__name__}: {error}",
                    "Correct the sample or the model; other processes wait for it",
                )
                raise BatchError(describe("batch that is repeated", got, "a call of the model", do)) from error
        return 0

    def _witness(self, index: Index, batch: Any, rows: int) -> int:
        """Note a batch that another process with the same samples counts."""
        self.coverage.count(index, rows)
        if index is None and self.coverage.keyed:
            self.coverage.know(self.reader.ids(batch), self._marks(batch, rows))
        return rows

    def _failed_together(self, index: Index, batch: Any, error: Exception) -> int:
        """Leave a batch out where no other process waits in the middle of a forward; else raise."""
        if is_out_of_memory(error):
            got = f"no memory for {self._rows(index, batch)} samples on {self.forward.device}"
            do = "Pass a smaller batch_size=: processes that share a model cannot halve a batch of their own"
            raise BatchError(describe(f"batch with {self._id_text(index, batch)}", got, "predictions", do)) from error
        if self.forward.stage != "inside":
            rows = self._failed(index, batch, error, "predicting")
            return rows + (self._repeat() if self.forward.stage == "before" else 0)
        if isinstance(error, _NOT_OF_A_BATCH):
            raise error
        got = f"{type(error).__name__} while predicting: {error}"
        do = "Correct the sample or the model; no batch is skipped for whose forward other processes may wait"
        raise BatchError(describe(f"batch with {self._id_text(index, batch)}", got, "predictions", do)) from error

    @contextmanager
    def _answered(self, doing: str) -> Iterator[None]:
        """Raise a `RankError` where a collective inside ends because another process does not come."""
        self.ranks.note(self.position, doing)
        try:
            yield
        except Exception as error:
            if is_of_a_collective(error):
                raise self.ranks.left_alone(error) from error
            raise

    def _in_pieces(self, index: Index, batch: Any) -> int:
        """A batch in parts that fit, after memory ran out."""
        rows = self._rows(index, batch)
        if self.limit.rows is None and not self.limit.halve(rows):
            return self._too_large(index, batch)
        free_cached(self.forward.device)
        done = 0
        while done < rows:
            size = min(self.limit.rows or rows, rows - done)
            part = slice(done, done + size)
            of_part = None if index is None else index[part]
            piece = take(batch, rows, part)
            try:
                predicted = self.forward(piece)
            except Exception as error:
                if not is_out_of_memory(error):
                    return done + self._failed(of_part, piece, error, "predicting")
                fits = self.limit.halve(size)
            else:
                done += self._count(of_part, piece, predicted)
                self.torn = index is None and not self.coverage.keyed  # no run can resume from a part of a batch
                continue
            if not fits:
                return done + self._too_large(of_part, piece)
            free_cached(self.forward.device)
        self.torn = False
        return rows

    def _count(self, index: Index, batch: Any, predicted: Predicted) -> int:
        rows, ids, known = predicted.rows, None, NOTHING if self.observers.busy else None
        if index is not None or not self.reader.notes_nothing:
            try:
                ids, known = self._row_metadata(index, batch, predicted, rows)
            except Exception as error:
                return self._failed(index, batch, error, "reading ids and slices")
        self.torn = True
        preds, target, weights, columns = predicted
        is_plain = self._takes_tensors and weights is None and not columns
        if is_plain and self.meter.counts.stage(preds, target):
            if known is not None:
                self.observers.push_staged(known, self.coverage.rows, rows)
        else:
            self._count_arguments(index, batch, predicted, known)
        self.coverage.count(index, rows)
        if index is None and ids is not None:
            self.coverage.know(ids, self._marks(batch, rows))
        self.torn = False
        if self.forward.sample is not None:
            self.forward.note_sample(self._ids(index, batch))
        return rows

    def _count_arguments(self, index: Index, batch: Any, predicted: Predicted, known: RowMetadata | None) -> None:
        """Count a batch of any layout, here and by observers."""
        try:
            arguments = self.meter.arguments(*predicted)
            is_staged = self.meter.count(arguments)
        except AssayError as error:  # of a batch that cannot be measured nothing was counted
            self.torn = False
            error.add_note(f"In the batch with {self._id_text(index, batch)}.")
            raise
        if known is not None and is_staged:
            self.observers.push_staged(known, self.coverage.rows, predicted.rows)
        elif known is not None:
            self.observers.push(known, self.coverage.rows, arguments)

    def _row_metadata(
        self, index: Index, batch: Any, predicted: Predicted, rows: int
    ) -> tuple[list[Any] | None, RowMetadata | None]:
        """The ids of the rows, and what observers must know of them; nothing is counted yet."""
        ids = self.reader.ids(batch) if self.reader.has_ids and (index is None or self.observers) else None
        samples = index if index is not None else ids
        if samples is not None and rows != len(samples):
            got = f"{rows} rows of predictions for {len(samples)} samples ({structure(batch)})"
            do = "Give one row a sample; say with preds= which part of the outputs has them"
            raise ShapeError(describe("batch", got, "as many", do))
        return ids, self.observers.metadata(index, ids, batch, predicted, rows) if self.observers else None

    def _new_rows(self, batch: Any) -> Any:
        """A batch of a stream without the samples whose ids were there before; None when none is left."""
        ids = self.reader.ids(batch)
        new_rows = self.coverage.fresh(ids, self._marks(batch, len(ids)))
        if len(new_rows) == len(ids):
            return batch
        self.coverage.repeated += len(ids) - len(new_rows)
        return take(batch, len(ids), new_rows) if new_rows else None

    def _marks(self, batch: Any, rows: int) -> list[int]:
        marks: list[int] = row_marks(batch, rows).tolist()
        return marks

    def _failed(self, index: Index, batch: Any, error: Exception, doing: str) -> int:
        """Leave a batch out, or raise."""
        if isinstance(error, _NOT_OF_A_BATCH) or is_of_the_loader(error):
            raise error  # not this batch, but how it is to be read
        named = self._id_text(index, batch)
        if self.on_error != "skip":
            shown = "" if batch is None else f" ({structure(batch)})"
            got = f"{type(error).__name__} while {doing}: {error}"
            usual = 'Correct the sample or the model, or pass on_error="skip" to leave such batches out'
            do = loading_advice(error) or usual
            raise BatchError(describe(f"batch with {named}{shown}", got, "predictions", do)) from error
        rows = len(index) if index is not None else (row_count(batch) or 0)
        self.coverage.skip(index, rows, f"{type(error).__name__}: {error}", named)
        return rows

    def _too_large(self, index: Index, batch: Any) -> int:
        message = f"memory runs out on {self.forward.device} with one sample"
        return self._failed(index, batch, MemoryError(message), "predicting")

    def _rows(self, index: Index, batch: Any) -> int:
        rows = len(index) if index is not None else row_count(batch)
        if rows is None:
            do = "Give batches with tensors, or smaller ones"
            raise ShapeError(describe("batch", structure(batch), "rows that can be split, as memory ran out", do))
        return rows

    def _ids(self, index: Index, batch: Any) -> list[Any]:
        if self.reader.has_ids and batch is not None:
            return self.reader.ids(batch)
        return [] if index is None else index.tolist()

    def _id_text(self, index: Index, batch: Any) -> str:
        ids = self._ids(index, batch)
        if not ids:
            return f"number {self.position} of the stream"
        return f"the ids {first_names(ids, _MAX_IDS)}"
