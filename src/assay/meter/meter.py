"""The meter: the one class that changes. It holds what was counted for the metrics it was given."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from operator import is_
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.compiler import is_compiling

from assay._atomic import Location
from assay._lazy import LateAttributeError
from assay.devices.subnormals import keeps_subnormals
from assay.errors import StateError, describe
from assay.meter import file
from assay.meter.counting.compiled_rows import numbered, update_by_one_operator
from assay.meter.counting.counts import MeterCounts
from assay.meter.counting.device_counts import DeviceCounts
from assay.meter.counting.flat_states import FlatStates
from assay.meter.counting.tally_plan import TallyPlan, tally_plan
from assay.meter.inputs.arguments import NO_RAGGED, Arguments, layout_of, preds_of
from assay.meter.inputs.label_codes import checked_labels
from assay.meter.meter_options import STAGE_BYTES, MeterOptions, Recount
from assay.meter.options import chosen_metrics, metrics_text, named_metrics, require_names
from assay.meter.processes.distributed_tensors import check_shares, groups_of, is_distributed
from assay.meter.processes.shares import own_share
from assay.meter.processes.sync import synced
from assay.meter.values import Readings, fatal_problems
from assay.metrics.base import Metric
from assay.tally.base import InvalidValues, State, Tally
from assay.tally.inputs import type_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from torch.distributed.device_mesh import DeviceMesh


class Meter:
    """Counts batches for several metrics and reads their values.

    Every distinct tally is counted once. Batches may come from any device, in any size and order; each device has its
    own counts, which are added when the meter is read. Small batches are staged: an update copies its rows into a
    buffer, and the tallies run when it is full or when someone reads. The value does not depend on it, to the bit.

    Several threads may use a meter one after the other. Calls that overlap raise a `StateError` and do nothing: give
    each thread a meter of its own, and add the meters.

    Args:
        *metrics: metrics that are named after their class; or strings as on the command line, such as
            "accuracy:num_classes=10,f1:num_classes=10", which name them.
        weighted: updates come with `weights`.
        strict: raise a `DeviceError` for arguments on several devices, instead of moving them to that of `preds`.
        stage_bytes: how many bytes of a device's memory the staged rows may take; 0 counts every batch at once, with
            nothing left to Python, so that a CUDA graph that captured an update can be replayed.
        labels: the strings that stand for classes in updates, in the order of their numbers.
        recount: which batches of devices the CPU counts once more: "sampled", "all" or "off"; see docs/proof.md.
        fingerprints: find what devices count wrongly, by a few more operators a flush.
        **named: metrics under the names that `compute` shall give them.

    Raises:
        ConfigError: no metric, one name twice, or an invalid option.

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
        *metrics: Metric | str,
        weighted: bool = False,
        strict: bool = False,
        stage_bytes: int = STAGE_BYTES,
        labels: Sequence[str] | None = None,
        recount: Recount = "sampled",
        fingerprints: bool = True,
        **named: Metric | str,
    ) -> None:
        found = named_metrics(metrics, named, labels)
        options = MeterOptions(weighted, strict, stage_bytes, recount, fingerprints)
        self._begin(found, options, tally_plan(found, weighted, checked_labels(labels, found)))

    def _begin(self, metrics: dict[str, Metric], options: MeterOptions, plan: TallyPlan) -> None:
        self.metrics, self.options, self.plan = metrics, options, plan
        self.weighted, self.strict, self.stage_bytes = options.weighted, options.strict, options.stage_bytes
        self.counts = MeterCounts(self.plan.tallies, self.options)
        self.number = numbered(self)
        self.shared_by: frozenset[int] = frozenset()
        """The processes that have counted parts of the same `DTensor`, by rank; `sync` adds them up."""

    if not TYPE_CHECKING:  # for type checkers, a meter has what its class says

        def __getattr__(self, name: str) -> Any:
            """Raise for what the meter does not have; what to write instead is named."""

            def about() -> str:
                from assay.meter import habits  # here, as few programs come here

                return habits.about(name, vars(self).get("metrics", ()), dir(type(self)))

            raise LateAttributeError(about)

    def reset(self) -> None:
        """Forget everything that was counted."""
        self.counts.clear()
        self.shared_by = frozenset()

    @property
    def rows(self) -> int:
        """How many samples (rows of dimension 0) were given."""
        return self.counts.rows

    @property
    def tallies(self) -> tuple[Tally, ...]:
        """The distinct tallies that the metrics are computed from, each of which is counted once."""
        return self.plan.tallies

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that an update must be given, in addition to `preds`, `target` and `weights`."""
        return self.plan.columns

    @property
    def takes_raw(self) -> bool:
        """Whether updates take lists of raw samples, such as strings, instead of tensors."""
        return self.plan.takes_raw

    def states(self) -> list[State]:
        """The canonical state of each of the `tallies`, on the CPU, with everything that was counted.

        Meters that were given the same samples have the same states, to the bit.
        """
        return self.counts.canonical()[0]

    def device_states(self) -> dict[torch.device, list[State]]:
        """For each device that batches came from, the state of each of the `tallies`, as it lies there.

        Staged rows are counted first. What was merged or loaded is on no device.
        """
        return self.counts.flushed()

    def update(
        self,
        preds: Any = None,
        target: Any = None,
        *others: Any,
        weights: Tensor | None = None,
        **columns: Tensor | None,
    ) -> None:
        """Count a batch.

        Args:
            preds: shape `(N, ...)`, as the metrics state; a 0-dimensional tensor is one sample. Where the metrics want
                the shape of `target`, `(N, 1)` is taken as `(N,)`; nothing else is reshaped.
            target: shape `(N, ...)`; likewise.
            weights: shape `(N,)`, or that of `target`; only for a meter made with `weighted=True`.
            **columns: further columns of the metrics, by name, one row a sample, such as `indexes=` of retrieval.

        Instead of tensors, arrays of NumPy and JAX, Series of pandas and Polars, numbers and lists of them are taken;
        floats of Python are float64, and strings what `labels` says. The caller may write into all of them later.

        Metrics of raw samples take lists for `preds` and `target`, as their descriptions state. They are encoded at
        once: on the CPU, or boxes on their device. Functions and networks of the caller are called at once, too.

        Of a `DTensor` each process counts its own samples (`Shard(0)`), or one of those with the same (`Replicate`);
        scores that are sharded over classes stay there: labels (argmax, top-k), `LogLoss` of logits and `Perplexity`
        take some bytes a row. All processes of its mesh must call this, and `sync` before values are computed. A target
        that is a plain tensor has the samples of all processes or of this one.

        Raises:
            ConfigError: a column is missing, or no metric counts it, or a `DTensor` is partial or sharded otherwise;
                nothing has then been counted.
            ShapeError, DtypeError, DeviceError: from metadata, at once; nothing has then been counted.
            StateError: another thread is updating or reading this meter; nothing has then been counted.
            TypeError: more than `preds` and `target` were given without a name.
        """
        if others:
            raise self._refusal_of("update", others)
        if type(preds) is not Tensor and is_distributed(preds):
            share = own_share({"preds": preds, "target": target, "weights": weights, **columns}, self.plan, self.strict)
            self.shared_by |= share.ranks
            if share.batches is not None:
                return self.counts.add_each(share.batches, share.rows)
            preds, target, weights, columns = *share.main, share.columns
        if self.plan.is_one_operator and is_compiling():
            return update_by_one_operator(self, {"preds": preds, "target": target, "weights": weights, **columns})
        self.count(self._arguments(preds, target, weights, columns))

    def _arguments(self, preds: Any, target: Any, weights: Tensor | None, columns: Mapping[str, Any]) -> Arguments:
        """The same as `arguments`, faster where there are just tensors."""
        if columns or self.plan.encoders:
            return self.arguments(preds, target, weights, columns)
        return Arguments((preds, target, weights), (), NO_RAGGED)  # torch 2.6 compiles no `_make`

    def forward(
        self,
        preds: Any = None,
        target: Any = None,
        *others: Any,
        weights: Tensor | None = None,
        **columns: Tensor | None,
    ) -> dict[str, Any]:
        """Count a batch, and compute the value of every metric of this batch alone.

        The arguments are those of `update`. This synchronizes with the device.

        Raises:
            InputError: what `update` and `compute` raise; nothing has then been counted.

        Example:
            >>> from assay import Mean, Meter
            >>> meter = Meter(loss=Mean())
            >>> [meter.forward(torch.tensor(x))["loss"].item() for x in ([1.0, 2.0], [6.0])]
            [1.5, 6.0]
            >>> meter.compute()["loss"]
            tensor(3., dtype=torch.float64)
        """
        if others:
            raise self._refusal_of("forward", others)
        return self._forward(self._arguments(preds, target, weights, columns), is_counted=True)

    __call__ = forward

    def values_of(
        self,
        preds: Any = None,
        target: Any = None,
        *others: Any,
        weights: Tensor | None = None,
        **columns: Tensor | None,
    ) -> dict[str, Any]:
        """The value of every metric of a batch alone, as `forward` gives it, without counting it.

        Raises:
            InputError: what `update` and `compute` raise.

        Example:
            >>> from assay import Mean, Meter
            >>> meter = Meter(loss=Mean())
            >>> meter.values_of(torch.tensor([1.0, 2.0]))["loss"].item(), meter.rows
            (1.5, 0)
        """
        if others:
            raise self._refusal_of("values_of", others)
        return self._forward(self._arguments(preds, target, weights, columns), is_counted=False)

    def _refusal_of(self, method: str, others: Sequence[Any]) -> TypeError:
        """The error for a call with more than predictions and targets by place."""
        from assay.meter import habits  # here, as few programs come here

        return TypeError(habits.about_positions(method, len(others), self.columns))

    @keeps_subnormals
    def _forward(self, batch: Arguments, is_counted: bool) -> dict[str, Any]:
        with self.counts.busy:
            of_device, batch = self.ready(batch)
            counted, rows = of_device.states_of(batch), of_device.rows_of_layout
            readings = Readings(self.plan, counted.states, rows, self.counts.settled, of_device.batches_are_whole)
            values = readings.values(self.metrics)
            if is_counted:
                self.counts.merged.add_in_place(counted if isinstance(counted, FlatStates) else readings.states, rows)
            counted.release()
        return values

    def arguments(
        self, preds: Any, target: Any, weights: Tensor | None, columns: Mapping[str, Tensor | None]
    ) -> Arguments:
        """The arguments of an update as tensors for `count`: raw samples are encoded, nothing is counted.

        Raises:
            ConfigError: a column is missing, or no metric counts it.
            InputError: raw samples cannot be encoded.
        """
        return self.plan.arguments(preds, target, weights, columns)

    @keeps_subnormals
    def count(self, batch: Arguments) -> bool:
        """Count a batch that `arguments` gave, or some of its rows; whether `counts.follower` is given them later."""
        counts = self.counts
        if is_compiling():  # metadata is checked while tracing, and what remains is the counting
            batch = self.checked(batch)
            if counts.keeps_samples:
                update_by_one_operator(self, batch.by_name())
            else:
                counts.traced(preds_of(batch).device).count_on_device(batch)
            return False
        if not counts.busy.acquire(False):
            raise counts.busy.error()
        try:
            of_device, batch = self.ready(batch)
            return of_device.push(batch)
        finally:
            counts.busy.release()

    def ready(self, batch: Arguments) -> tuple[DeviceCounts, Arguments]:
        """The counts of the device of a batch, and the batch. A new layout is checked; nothing is counted yet."""
        counts = self.counts.current
        try:
            known = counts is not None and counts.layout == layout_of(batch)
        except RuntimeError:  # a tensor without storage, or without a shape
            known = False
        if counts is None or not known:
            given, batch = batch, self.checked(batch)
            counts = self.counts.of(batch.preds.device)
            counts.expect(batch, all(map(is_, given.tensors, batch.tensors)))
            self.counts.current = counts
        return counts, batch

    def checked(self, batch: Arguments) -> Arguments:
        """The arguments on one device and with a sample dimension, after their metadata was found to be right."""
        return self.plan.checked(batch, self.strict)

    @keeps_subnormals
    def compute(self, only: Iterable[str] | None = None) -> dict[str, Any]:
        """The value of every metric, read on the CPU.

        Args:
            only: names of the metrics to read; all by default.

        Returns:
            A dictionary from names to values: float64 tensors on the CPU, or named tuples of them. A metric without
            data returns NaN and warns.

        Raises:
            ConfigError: there is no metric of a name.
            InvalidValuesError: labels out of range or scores that are NaN were counted; says how many, and for which
                metric.
            StateError: parts of a `DTensor` were counted, which are not added up yet.
        """
        names: Iterable[str] = self.metrics
        if only is not None:
            wanted = {only} if isinstance(only, str) else set(only)
            require_names("compute", wanted, self.metrics)
            names = [name for name in self.metrics if name in wanted]
        return self.readings().values(names)

    def readings(self, *, canonical: bool = False) -> Readings:
        """What the tallies compute of all samples, each once for all who ask.

        Args:
            canonical: from canonical states, which intervals need that add up a number for each sample.

        Raises:
            StateError: parts of a `DTensor` were counted, which are not added up yet.

        Example:
            >>> from assay import Mean, Meter
            >>> meter = Meter(loss=Mean())
            >>> meter.update([1.0, 2.0])
            >>> meter.readings().values(["loss"])
            {'loss': tensor(1.5000, dtype=torch.float64)}
        """
        if len(self.shared_by) > 1:
            got = f"a part of the samples of ranks {', '.join(map(str, sorted(self.shared_by)))}"
            raise StateError(describe("compute", got, "all of them", "Call meter.sync().compute() on each of them"))
        if canonical:
            return Readings(self.plan, *self.counts.canonical())
        return Readings(self.plan, *self.counts.as_counted(), self.counts.settled)

    def __getitem__(self, name: str) -> Any:
        """The value of one metric, as `compute` gives it.

        Raises:
            ConfigError: there is no such metric.

        Example:
            >>> from assay import Mean, Meter
            >>> meter = Meter(loss=Mean())
            >>> meter.update([1.0, 2.0])
            >>> meter["loss"]
            tensor(1.5000, dtype=torch.float64)
        """
        return self.compute([name])[name]

    __iter__ = None  # a meter is no sequence, although it has __getitem__

    def invalid_values(self) -> tuple[tuple[str, InvalidValues], ...]:
        """What was counted that metrics refuse, each with the name of a metric whose value `compute` so cannot give."""
        return fatal_problems(self.plan, self.counts.to_read()[0])

    def counts_of(self, name: str) -> Any:
        """What was counted for one metric, as its `compute` takes it.

        Args:
            name: the metric.

        Raises:
            ConfigError: there is no such metric.
        """
        require_names("counts_of", [name], self.metrics)
        tally, state = self.plan.state_of(name, self.states())
        return tally.compute(state)

    def only(self, *names: str, **renamed: str) -> Meter:
        """A new meter of some of the metrics, with what was counted for them.

        Args:
            *names: the metrics.
            **renamed: metrics that get another name, as in `only(accuracy="acc")`.

        Raises:
            ConfigError: there is no such metric, or no name was given.

        Example:
            >>> import torch
            >>> from assay import Accuracy, F1Score, Meter
            >>> meter = Meter(acc=Accuracy(num_classes=2), f1=F1Score(num_classes=2))
            >>> meter.update(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]))
            >>> meter.only("acc").compute()
            {'acc': tensor(0.6667, dtype=torch.float64)}
        """
        part = self.fresh(chosen_metrics(self.metrics, names, renamed))
        part.shared_by = self.shared_by
        states, rows = self.counts.canonical()
        part.counts.add((self.plan.states_of(part.tallies, states), rows))
        return part

    def plot(self, name: str = "", axes: Axes | None = None, *, classes: Sequence[str] = ()) -> Axes:
        """Draw a value with Matplotlib: curves, a confusion matrix, a reliability diagram, or bars of numbers.

        Args:
            name: which metric, or "values" for all single numbers as bars; by default the first that is more than a
                number, else "values".
            axes: where to draw; by default on axes of a new figure of pyplot.
            classes: the names of the classes; by default the `labels`.

        Returns:
            The axes.

        Raises:
            ConfigError: there is no such metric, or nothing to draw of it.
        """
        from assay.meter.plots import drawn  # here, so that a meter that draws nothing imports nothing that draws

        values = self.compute([name] if name in self.metrics else None)
        return drawn(self.metrics, values, name, axes, classes or self.plan.labels)

    def merge(self, *others: Meter) -> Meter:
        """Add what other meters of the same metrics have counted to this one; they stay as they are.

        Raises:
            StateError: a meter of other metrics, or with other weights.
        """
        for other in others:
            if not isinstance(other, Meter):
                raise StateError(describe("merge", type_name(other), "a meter", "Pass meters of equal metrics"))
            if (other.metrics, other.weighted, other.plan.labels) != (self.metrics, self.weighted, self.plan.labels):
                own, got = (metrics_text(each.metrics, each.plan.labels) for each in (self, other))
                raise StateError(describe("merge", f"a meter of {got}", f"one of {own}", "Make equal meters"))
        self.counts.add(*(meter.counts.to_add() for meter in others))
        self.shared_by = self.shared_by.union(*(meter.shared_by for meter in others))
        return self

    def __add__(self, other: Meter) -> Meter:
        """A new meter with what both have counted."""
        if not isinstance(other, Meter):
            return NotImplemented
        return self.fresh().merge(self, other)

    def sync(self, group: dist.ProcessGroup | DeviceMesh | None = None) -> Meter:
        """A new meter with what this one and those of all other processes of a group have counted; the same on all.

        This meter stays as it was. One collective does it where the counts take less than 256 KiB, else two; samples
        take a second one, too. A process without data takes part like any other. Without `torch.distributed` at work,
        the new meter is a copy.

        Args:
            group: the process group, or a mesh whose processes have different samples, such as `mesh["dp"]`; None for
                the default group. A mesh of several dimensions takes one collective for each.

        Raises:
            SyncError: on all ranks, when their metrics are not equal or one of them failed before the exchange, or the
                group lacks a process that has counted parts of the same `DTensor`; and where a collective fails.

        Example:
            >>> from assay import Accuracy, Meter
            >>> meter = Meter(acc=Accuracy(num_classes=3))
            >>> meter.update(torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 2, 1]))
            >>> meter.sync().compute()["acc"]  # under torchrun: of all processes
            tensor(0.7500, dtype=torch.float64)
        """
        if not (dist.is_available() and dist.is_initialized()):
            return self.fresh().merge(self)

        def checked() -> tuple[Sequence[State], int]:
            check_shares(self.shared_by, group)
            return self.counts.canonical()

        counted: Callable[[], tuple[Sequence[State], int]] = checked
        for each in groups_of(group):
            total = self.fresh()
            total.counts.add(synced(self.plan, counted, each))
            counted = total.counts.canonical
        return total

    def state_dict(self) -> dict[str, Tensor]:
        """What was counted, as tensors by name on the CPU, with a description of it as bytes under `about`.

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
        description, tensors = file.saved(self.plan, *self.counts.canonical())
        about = bytearray(description.to_json().encode())
        return {file.ABOUT: torch.frombuffer(about, dtype=torch.uint8), **tensors}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Replace what was counted by what `state_dict` gave.

        Raises:
            StateError: the state is of other metrics, of another version, or not whole; the meter is then as before.
        """
        self.counts.replace(*file.counts_in_state(self.plan, state))

    def to_file(self, path: str | os.PathLike[str]) -> Location:
        """Write what was counted to a safetensors file; a crash leaves the old file or the new one, never a part.

        Args:
            path: the file, on this machine or at a URL.

        Returns:
            The path written.
        """
        return file.write(path, *file.saved(self.plan, *self.counts.canonical()))

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], known: Iterable[type[Metric] | Metric] = ()) -> Meter:
        """The meter that `to_file` wrote; its metrics need not be given.

        Args:
            path: the file, on this machine or at a URL.
            known: classes of metrics of your own that may be in it; and metrics that hold a function, as `PerSample`
                does, since no file has that.

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
        description, tensors = file.read(path)
        with file.as_file_error(where):
            metrics: dict[str, Any] = description.made(known, where)
            meter = cls(weighted=description.weighted, labels=description.labels or None, **metrics)
            meter.counts.replace(*file.counts_in(meter.plan, description, tensors, where))
        return meter

    def fresh(self, metrics: Mapping[str, Metric] | None = None, **options: Any) -> Meter:
        """An empty meter like this one.

        Args:
            metrics: the metrics by name; by default those of this meter.
            **options: `stage_bytes`, `recount` and other options that are not those of this meter.
        """
        if metrics is None and not options:  # with nothing to check
            empty = Meter.__new__(Meter)
            empty._begin(dict(self.metrics), self.options, self.plan)
            return empty
        named: dict[str, Any] = dict(self.metrics if metrics is None else metrics, labels=self.plan.labels or None)
        return Meter(**self.options.changed(options), **named)

    def __deepcopy__(self, memo: dict[int, Any]) -> Meter:
        return self.fresh().merge(self)

    def __getstate__(self) -> dict[str, Any]:
        states, rows = self.counts.canonical()
        options = asdict(self.options) | {"labels": self.plan.labels or None}
        return {"metrics": self.metrics, "options": options, "states": states, "rows": rows, "shared": self.shared_by}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__init__(**saved["options"], **saved["metrics"])  # type: ignore[misc]
        self.counts.add((saved["states"], saved["rows"]))
        self.shared_by = saved.get("shared", frozenset())

    def __repr__(self) -> str:
        return f"Meter({metrics_text(self.metrics)}; {self.rows} samples)"
