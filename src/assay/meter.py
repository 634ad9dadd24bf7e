"""The meter: the one class that changes. It holds what was counted for the metrics it was given."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.compiler import is_compiling

from assay import meter_file
from assay.devices.placement import bring_together
from assay.devices.policies import policy
from assay.errors import ConfigError, NoDataWarning, ShapeError, StateError, ValuesError, ValuesWarning, describe
from assay.meter_file import ABOUT, Description, from_tensors, to_tensors
from assay.metrics.base import Metric
from assay.sync import synced
from assay.tally.base import Batch, Column, Layout, State, Tally, merge
from assay.tally.samples import SampleStore

STAGE_BYTES = 1 << 21


class Meter:
    """Counts batches for several metrics and reads their values.

    Every distinct tally is counted once, however many metrics are read from it. Batches may come from any device, in
    any size and order; each device has its own counts, which are added when the meter is read. Small batches are
    staged: an update copies its rows into a buffer, and the tallies run when it is full or when someone reads. The
    value does not depend on it, to the bit.

    Args:
        *metrics: metrics that are named after their class.
        weighted: updates come with `weights`.
        strict: raise a `DeviceError` when the arguments of an update are on several devices, instead of moving them to
            the device of `preds` with a warning.
        stage_bytes: how many bytes of a device's memory the staged rows may take; 0 counts every batch at once, with
            nothing left to Python, so that a CUDA graph that captured an update can be replayed.
        **named: metrics under the names that `compute` shall give them.

    Raises:
        ConfigError: no metric, or one name twice.

    Example:
        >>> import torch
        >>> from assay import Accuracy, Meter
        >>> meter = Meter(acc=Accuracy(num_classes=3))
        >>> meter.update(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 2, 1]))
        >>> meter.compute()
        {'acc': tensor(0.7500, dtype=torch.float64)}
    """

    def __init__(
        self,
        *metrics: Metric,
        weighted: bool = False,
        strict: bool = False,
        stage_bytes: int = STAGE_BYTES,
        **named: Metric,
    ) -> None:
        self.metrics = _named(metrics, named)
        self.weighted, self.strict, self.stage_bytes = weighted, strict, stage_bytes
        self._plan = Plan(self.metrics, weighted)
        self.reset()

    def reset(self) -> None:
        """Forget everything that was counted."""
        self._lanes: dict[torch.device, Lane] = {}
        self._lane: Lane | None = None
        self._carried: list[State] | None = None
        self._carried_rows = 0

    @property
    def rows(self) -> int:
        """How many samples (rows of dimension 0) were given."""
        return self._carried_rows + sum(lane.rows for lane in self._lanes.values())

    def update(self, preds: Tensor, target: Tensor | None = None, *, weights: Tensor | None = None) -> None:
        """Count a batch.

        Args:
            preds: shape `(N, ...)`, as the metrics state; a 0-dimensional tensor is one sample.
            target: shape `(N, ...)`.
            weights: shape `(N,)`, or that of `target`; only for a meter made with `weighted=True`.

        Raises:
            ShapeError, DtypeError, DeviceError: from metadata, at once; nothing has then been counted.
        """
        if is_compiling():
            self._trace(preds, target, weights)
            return
        lane = self._lane
        if lane is None or not isinstance(preds, Tensor) or lane.layout != _layout(preds, target, weights):
            preds, target, weights, lane = self._prepare(preds, target, weights)
        lane.push(preds, target, weights)

    def _trace(self, preds: Tensor, target: Tensor | None, weights: Tensor | None) -> None:
        """The update under `torch.compile`: metadata is checked while tracing, and what remains is the counting."""
        preds, target, weights = self._checked(preds, target, weights)
        if preds.device not in self._lanes:
            raise StateError(
                describe(
                    "update under torch.compile",
                    f"the first batch of {preds.device}",
                    "one of a device that the meter knows",
                    "Call update once outside of the compiled function, with no rows if you like",
                )
            )
        self._lanes[preds.device].count_on_device(preds, target, weights)

    def _prepare(
        self, preds: Tensor, target: Tensor | None, weights: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None, Lane]:
        """Check a batch of a new layout, and find or make the lane of its device."""
        preds, target, weights = self._checked(preds, target, weights)
        lane = self._lanes.get(preds.device)
        if lane is None:
            lane = self._lanes[preds.device] = Lane(self._plan.tallies, preds.device, self.stage_bytes)
        lane.expect(preds, target, weights)
        self._lane = lane
        return preds, target, weights, lane

    def _checked(
        self, preds: Tensor, target: Tensor | None, weights: Tensor | None
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The arguments on one device and with a sample dimension, after their metadata was found to be right."""
        given: dict[str, Any] = {"preds": preds, "target": target, "weights": weights}
        for name, tensor in given.items():
            if tensor is not None and not isinstance(tensor, Tensor):
                raise ShapeError(describe(name, type(tensor).__name__, "a tensor", f"Pass torch.as_tensor({name})"))
        if (weights is not None) != self.weighted:
            got = "no weights" if weights is None else "weights"
            expected = "weights" if self.weighted else "none"
            raise ConfigError(
                describe("weights", got, expected, "Make the meter with weighted=True, or leave them out")
            )
        together = bring_together(strict=self.strict, **given)
        tensors = {name: t[None] if t.ndim == 0 else t for name, t in together.items() if t is not None}
        preds = tensors["preds"]
        for name, tensor in tensors.items():
            if tensor.shape[0] != preds.shape[0]:
                raise ShapeError(
                    describe(
                        name,
                        f"{tensor.shape[0]} samples",
                        f"as many as preds has, {preds.shape[0]}",
                        "Dimension 0 counts the samples",
                    )
                )
        target, weights = tensors.get("target"), tensors.get("weights")
        columns = {name: Column(tensor.dtype, tuple(tensor.shape[1:])) for name, tensor in tensors.items()}
        self._plan.check(Layout(columns["preds"], columns.get("target"), columns.get("weights")))
        return preds, target, weights

    def compute(self) -> dict[str, Any]:
        """The value of every metric, read on the host.

        Returns:
            A dictionary from names to values: float64 tensors on the host, or named tuples of them. A metric without
            data reads NaN and warns.

        Raises:
            ValuesError: labels out of range or scores that are NaN were counted; says how many, and for which metric.
        """
        states, rows = self._states()
        return {name: self._value(name, metric, states, rows) for name, metric in self.metrics.items()}

    def _value(self, name: str, metric: Metric, states: Sequence[State], rows: int) -> Any:
        tally, state = self._plan.state_of(name, states)
        if not rows:
            warnings.warn(
                describe(name, "no data", "at least one sample", "It reads NaN; call update first"),
                NoDataWarning,
                stacklevel=3,
            )
        for problem in tally.problems(state):
            message = describe(
                name, f"{problem.count} of the {problem.what}", "none", "Correct or leave out those samples"
            )
            if problem.fatal:
                raise ValuesError(message)
            warnings.warn(message, ValuesWarning, stacklevel=3)
        return metric.read(tally.read(state))

    def _states(self) -> tuple[list[State], int]:
        """Everything counted so far: one settled host state per tally, and the number of rows."""
        parts = [lane.host_states() for lane in self._lanes.values()]
        if self._carried is not None:
            parts.append(self._carried)
        if not parts:
            parts.append([tally.zero(torch.device("cpu")) for tally in self._plan.tallies])
        merged = [merge(tally, [p[k] for p in parts]) for k, tally in enumerate(self._plan.tallies)]
        rows = self.rows
        return [tally.settle(state, rows) for tally, state in zip(self._plan.tallies, merged, strict=True)], rows

    def merge(self, *others: Meter) -> Meter:
        """Add what other meters of the same metrics have counted to this one; they stay as they are.

        Raises:
            StateError: a meter of other metrics, or with other weights.
        """
        for other in others:
            if other.metrics != self.metrics or other.weighted != self.weighted:
                raise StateError(
                    describe(
                        "merge",
                        f"a meter of {_listed(other.metrics)}",
                        f"one of {_listed(self.metrics)}",
                        "Make both meters with equal metrics",
                    )
                )
        parts = [meter._states() for meter in others]
        for states, rows in parts:
            self._carry(states, rows)
        return self

    def _carry(self, states: Sequence[State], rows: int) -> None:
        own = [self._carried] if self._carried is not None else []
        self._carried = [merge(tally, [*(s[k] for s in own), states[k]]) for k, tally in enumerate(self._plan.tallies)]
        self._carried_rows += rows

    def __add__(self, other: Meter) -> Meter:
        """A new meter with what both have counted."""
        if not isinstance(other, Meter):
            return NotImplemented
        return self.fresh().merge(self, other)

    def sync(self, group: dist.ProcessGroup | None = None) -> Meter:
        """A new meter with what this one and those of all other processes of a group have counted; alike on all.

        This meter stays as it was. One collective does it where the counts take less than 256 KiB, else two; samples
        take a second one, too. A process without data takes part like any other. Without `torch.distributed` at work,
        the new meter is a copy.

        Args:
            group: the process group; None for the default one.

        Raises:
            SyncError: on all ranks, when their metrics are not equal or one of them failed before the exchange; and
                where a collective fails.

        Example:
            >>> from assay import Accuracy, Meter
            >>> meter = Meter(acc=Accuracy(num_classes=3))
            >>> meter.update(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 2, 1]))
            >>> meter.sync().compute()["acc"]  # under torchrun: of all processes
            tensor(0.7500, dtype=torch.float64)
        """
        if not (dist.is_available() and dist.is_initialized()):
            return self.fresh().merge(self)
        total = self.fresh()
        described = f"Meter({_listed(self.metrics)}{', weighted=True' if self.weighted else ''})"
        total._carry(*synced(self._plan.tallies, self._states, described, group))
        return total

    def state_dict(self) -> dict[str, Tensor]:
        """What was counted, as tensors by name on the host, with a description of it as bytes under `about`.

        They can go into any checkpoint. `load_state_dict` of a meter with equal metrics takes them.

        Example:
            >>> from assay import Mean, Meter
            >>> meter = Meter(loss=Mean())
            >>> meter.update(torch.tensor([1.0, 2.0]))
            >>> resumed = Meter(loss=Mean())
            >>> resumed.load_state_dict(meter.state_dict())
            >>> resumed.compute()
            {'loss': tensor(1.5000, dtype=torch.float64)}
        """
        states, rows = self._states()
        about = Description.of(self.metrics, self.weighted, rows).to_json().encode()
        return {ABOUT: torch.tensor(list(about), dtype=torch.uint8), **to_tensors(self._plan.tallies, states)}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Replace what was counted by what `state_dict` gave.

        Raises:
            StateError: the state is of other metrics, of another version, or not whole; the meter is then as before.
        """
        tensors = dict(state)
        if ABOUT not in tensors:
            raise StateError(
                describe("state_dict", f"no {ABOUT!r}", "what Meter.state_dict gave", "Pass that of a meter, unchanged")
            )
        text = bytes(tensors.pop(ABOUT).tolist()).decode(errors="replace")
        self._load(Description.from_json(text, "state_dict"), tensors, "state_dict")

    def to_file(self, path: str | os.PathLike[str]) -> Path:
        """Write what was counted to a safetensors file; a crash leaves the old file or the new one, never a part.

        Returns:
            The path written.
        """
        states, rows = self._states()
        description = Description.of(self.metrics, self.weighted, rows)
        return meter_file.write(path, description, to_tensors(self._plan.tallies, states))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], known: Iterable[type[Metric]] = ()) -> Meter:
        """The meter that `to_file` wrote; its metrics need not be told.

        Args:
            path: the file.
            known: classes of metrics of your own that may be in it.

        Raises:
            StateError: the file is cut short, changed, of another version, not one of a meter, or holds a metric that
                is not known.

        Example:
            >>> import tempfile
            >>> from assay import Mean, Meter
            >>> meter = Meter(loss=Mean())
            >>> meter.update(torch.tensor([1.0, 2.0]))
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     Meter.from_file(meter.to_file(f"{folder}/loss.safetensors")).compute()
            {'loss': tensor(1.5000, dtype=torch.float64)}
        """
        where = os.fspath(path)
        description, tensors = meter_file.read(path)
        meter = cls(weighted=description.weighted, **description.made(known, where))  # type: ignore[arg-type]
        meter._load(description, tensors, where)
        return meter

    def _load(self, description: Description, tensors: Mapping[str, Tensor], where: str) -> None:
        own = Description.of(self.metrics, self.weighted, description.rows)
        if own.to_json() != description.to_json():
            got = f"counts for {description.metrics}{', weighted' if description.weighted else ''}"
            expected = f"for {own.metrics}{', weighted' if own.weighted else ''}"
            raise StateError(describe(where, got, expected, "Load it into a meter with equal metrics"))
        states = from_tensors(self._plan.tallies, tensors, where)
        self.reset()
        self._carry(states, description.rows)

    def fresh(self) -> Meter:
        """A meter of the same metrics that has counted nothing."""
        return Meter(weighted=self.weighted, strict=self.strict, stage_bytes=self.stage_bytes, **self.metrics)

    def __deepcopy__(self, memo: dict[int, Any]) -> Meter:
        return self.fresh().merge(self)

    def __getstate__(self) -> dict[str, Any]:
        states, rows = self._states()
        options = {"weighted": self.weighted, "strict": self.strict, "stage_bytes": self.stage_bytes}
        return {"metrics": self.metrics, "options": options, "states": states, "rows": rows}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__init__(**saved["options"], **saved["metrics"])  # type: ignore[misc]
        self._carry(saved["states"], saved["rows"])

    def __repr__(self) -> str:
        return f"Meter({_listed(self.metrics)}; {self.rows} samples)"


class Plan:
    """Which tallies serve which metrics: as few as their descriptions allow."""

    def __init__(self, metrics: Mapping[str, Metric], weighted: bool) -> None:
        self._wanted = {name: metric.tally(weighted) for name, metric in metrics.items()}
        joined: list[Tally] = []
        for tally in self._wanted.values():
            for k, other in enumerate(joined):
                both = other.join(tally)
                if both is not None:
                    joined[k] = both
                    break
            else:
                joined.append(tally)
        self.tallies: tuple[Tally, ...] = tuple(joined)
        self._index = {name: self._serving(tally) for name, tally in self._wanted.items()}

    def _serving(self, tally: Tally) -> int:
        return next(k for k, other in enumerate(self.tallies) if other.join(tally) == other)

    def check(self, layout: Layout) -> None:
        for tally in self._wanted.values():
            tally.check(layout)

    def state_of(self, name: str, states: Sequence[State]) -> tuple[Tally, State]:
        """The tally that a metric asked for, and its state."""
        wanted, k = self._wanted[name], self._index[name]
        return wanted, self.tallies[k].part(states[k], wanted) if wanted != self.tallies[k] else states[k]


class Lane:
    """What was counted of one device's batches: the states of the tallies, and the rows staged for them."""

    def __init__(self, tallies: Sequence[Tally], device: torch.device, stage_bytes: int) -> None:
        self._rows = 0
        self._policy = policy(device)
        self._tallies, self._device, self._stage_bytes = tallies, self._policy.tally_on.value, stage_bytes
        self._compiled = policy(self._device).compiled.value
        self._staged = 0
        self._capacity = 0
        self._buffers: list[Tensor] = []
        self._staged_rows: tuple[Any, ...] = ()
        self.layout: tuple[Any, ...] = ()
        self._broken = ""
        with torch.inference_mode(False):
            self._states = [tally.zero(self._device) for tally in tallies]
            self._rows_of_graphs = torch.zeros((), dtype=torch.int64, device=self._device)

    @property
    def rows(self) -> int:
        """How many samples were given."""
        return self._rows + int(self._rows_of_graphs)

    def expect(self, preds: Tensor, target: Tensor | None, weights: Tensor | None) -> None:
        """Stage batches of this layout from now on; what is staged of another one is counted first."""
        self._refuse_if_broken()
        given = (preds, target, weights)
        rows = tuple(None if t is None else (t.dtype, t.shape[1:]) for t in given)
        if rows != self._staged_rows:
            self._flush()
            row_bytes = sum(math.prod(t.shape[1:]) * t.element_size() for t in given if t is not None)
            self._capacity = self._stage_bytes // max(1, row_bytes)
            self._staged_rows = rows
            with torch.inference_mode(False):
                self._buffers = [
                    torch.empty(self._capacity, *t.shape[1:], dtype=t.dtype, device=self._device)
                    for t in given
                    if t is not None
                ]
        self._slots: dict[int, list[Tensor]] = {}
        self.layout = _layout(*given)

    def push(self, preds: Tensor, target: Tensor | None, weights: Tensor | None) -> None:
        """Stage a batch, or count it at once when it is large."""
        rows = preds.shape[0]
        if not self._capacity:
            self.count_on_device(preds, target, weights)
            return
        if rows * 2 > self._capacity:
            self._count(preds, target, weights)
            self._rows += rows
            return
        if self._staged + rows > self._capacity:
            self._flush()
        given = [t.detach() if t.requires_grad else t for t in (preds, target, weights) if t is not None]
        slot = self._slots.get(self._staged)
        if slot is None:  # a view of the buffer costs as much as the copy into it: it is kept for the next round
            slot = self._slots[self._staged] = [b[self._staged : self._staged + rows] for b in self._buffers]
        for into, tensor in zip(slot, given, strict=True):
            into.copy_(tensor)
        self._staged += rows
        self._rows += rows

    def count_on_device(self, preds: Tensor, target: Tensor | None, weights: Tensor | None) -> None:
        """Count a batch with nothing left to Python, whose numbers stand still when a graph is replayed."""
        self._count(preds, target, weights)
        self._rows_of_graphs += preds.shape[0]

    def _flush(self) -> None:
        if self._staged:
            buffers = iter(self._buffers)
            self._count(*(None if rows is None else next(buffers)[: self._staged] for rows in self._staged_rows))
            self._staged = 0

    def _count(self, preds: Tensor | None, target: Tensor | None, weights: Tensor | None) -> None:
        """Count rows into all tallies, or into none.

        What can be known before is checked before: the metadata, and that samples have room. When counting fails
        nevertheless (memory that runs out, an interrupt), the tallies may differ, and this lane cannot be read again.
        """
        if is_compiling():
            self._count_chunks(preds, target, weights)
            return
        self._refuse_if_broken()
        self._make_room(preds, target, weights)
        try:
            self._count_chunks(preds, target, weights)
        except BaseException as error:
            self._broken = type(error).__name__
            self.layout = ()  # so that the next update comes to be refused
            raise

    def _make_room(self, *given: Tensor | None) -> None:
        stores = [value for state in self._states for value in state.values() if isinstance(value, SampleStore)]
        for store in stores:
            store.reserve(self._device, sum(tensor.nbytes for tensor in given if tensor is not None))

    def _refuse_if_broken(self) -> None:
        if self._broken:
            raise StateError(
                describe(
                    "meter",
                    f"counts that a {self._broken} interrupted in the middle of a batch",
                    "whole batches",
                    "Call reset() and count again, or load the last state that was saved",
                )
            )

    def _count_chunks(self, preds: Tensor | None, target: Tensor | None, weights: Tensor | None) -> None:
        assert preds is not None
        elements = self._policy.chunk_elements.value * min(tally.chunk_scale for tally in self._tallies)
        size = max(1, elements * len(preds) // max(1, preds.numel()))
        with torch.no_grad(), torch.autocast(preds.device.type, enabled=False):
            if is_compiling():  # a loop over chunks would be a graph for each number of rows
                self._add(preds, target, weights)
                return
            for start in range(0, len(preds), size):
                rows = slice(start, start + size)
                self._add(*(None if t is None else t[rows] for t in (preds, target, weights)))

    def _add(self, preds: Tensor | None, target: Tensor | None, weights: Tensor | None) -> None:
        assert preds is not None
        batch = Batch(
            self._here(preds),
            None if target is None else self._here(target),
            None if weights is None else self._here(weights),
            cached=self._policy.chunk_elements.value // 4,
            compiled=self._compiled and not is_compiling(),
        )
        for tally, state in zip(self._tallies, self._states, strict=True):
            tally.add(state, batch)

    def _here(self, tensor: Tensor) -> Tensor:
        return tensor.detach().to(self._device)

    def host_states(self) -> list[State]:
        """The states on the host, with everything that was staged."""
        self._refuse_if_broken()
        self._flush()
        return [
            {name: value.cpu() if isinstance(value, Tensor) else value for name, value in state.items()}
            for state in self._states
        ]


def _layout(preds: Tensor, target: Tensor | None, weights: Tensor | None) -> tuple[Any, ...]:
    """All that is checked of a batch, in a form that is quick to make and to compare."""
    if not isinstance(target, Tensor):
        return preds.shape, preds.dtype, preds.device, target, _column(weights)
    return preds.shape, preds.dtype, preds.device, target.shape, target.dtype, target.device, _column(weights)


def _column(tensor: Tensor | None) -> tuple[Any, ...] | None:
    return None if tensor is None else (tensor.shape, tensor.dtype, tensor.device)


def _named(metrics: Sequence[Metric], named: Mapping[str, Metric]) -> dict[str, Metric]:
    names = [type(metric).__name__ for metric in metrics]
    for name in names:
        if names.count(name) > 1 or name in named:
            raise ConfigError(
                describe("Meter", f"two metrics named {name}", "names that differ", "Give names as keywords")
            )
    everything = dict(zip(names, metrics, strict=True)) | dict(named)
    if not everything:
        raise ConfigError(describe("Meter", "no metric", "one or more", "Write Meter(acc=Accuracy(num_classes=10))"))
    for name, metric in everything.items():
        if not isinstance(metric, Metric):
            raise ConfigError(describe(name, type(metric).__name__, "a metric", "Pass an instance such as Accuracy()"))
    return everything


def _listed(metrics: Mapping[str, Metric]) -> str:
    return ", ".join(f"{name}={metric!r}" for name, metric in metrics.items())


__all__ = ["Meter"]
