"""Which tallies serve which metrics, and what they count of the arguments of an update."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from operator import is_
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.compiler import is_compiling

from assay.decide import Argmax
from assay.devices.memory import host_bytes
from assay.devices.placement import is_freed
from assay.encode.base import TENSORS
from assay.errors import AssayError, ConfigError, InputError, ShapeError, describe
from assay.meter.counting.compiled_rows import CAN_TRACE
from assay.meter.inputs.arguments import NO_RAGGED, Arguments, layout_of
from assay.meter.inputs.label_codes import numbered
from assay.meter.inputs.raw_samples import encoded, shared_encoders
from assay.metrics.base import Metric
from assay.metrics.parsing import as_text
from assay.tally.arrays import as_tensor
from assay.tally.base import BatchLayout, State, Tally
from assay.tally.composite import CompositeTally, components
from assay.tally.inputs import check_inputs, layout, match_shapes
from assay.tally.labels.labels import Labels

MOST_LAYOUTS = 64
"""So many layouts of batches are known to be right."""
_PLAIN = (Tensor, type(None))


@dataclass(frozen=True)
class TallySource:
    """What is counted for a metric: one of the tallies of a plan, or several together; and where they are."""

    tally: Tally
    places: tuple[int, ...]

    @cached_property
    def _composite(self) -> CompositeTally | None:
        return self.tally if isinstance(self.tally, CompositeTally) else None  # an abstract class takes long to ask

    def state(self, states: Sequence[State]) -> State:
        """Its state, out of those of all tallies of the plan."""
        if self._composite is None:
            return states[self.places[0]]
        leaves = self._composite.tallies
        return self._composite.gathered({leaf: states[k] for leaf, k in zip(leaves, self.places, strict=True)})


class StateReading(NamedTuple):
    """What reads a value from a state as it was counted, and which of the tallies of a plan has that."""

    read: Callable[[State], Any]
    place: int


class TallyPlan:
    """Which tallies serve which metrics: as few as their descriptions allow.

    Meters of the same metrics have the same plan, for metrics in any order: their states add up by
    their place in it.
    """

    def __init__(self, metrics: Mapping[str, Metric], weighted: bool, labels: tuple[str, ...] = ()) -> None:
        self.labels = labels
        """What strings in updates stand for, in the order of their numbers; empty where none are taken."""
        self.encoders = shared_encoders(metrics)
        self.is_one_operator = bool(self.encoders) or not CAN_TRACE
        """Whether an update inside a compiled function is one operator, because `torch.compile` cannot trace it."""
        self.metrics, self.weighted = dict(metrics), weighted
        self._wanted = {name: metrics[name].batch_tally(weighted) for name in sorted(metrics)}
        tallies: list[Tally] = []
        for tally in (leaf for wanted in self._wanted.values() for leaf in components(wanted)):
            for k, other in enumerate(tallies):
                both = other.union(tally)
                if both is not None:
                    tallies[k] = both
                    break
            else:
                tallies.append(tally)
        self.tallies: tuple[Tally, ...] = tuple(tallies)
        self.state_bytes = self._checked_state_bytes()
        """What the states of one meter take, without samples and without what is absent at first."""
        self._right: set[tuple[Any, ...]] = set()
        groups: dict[Tally, int] = {}
        self.group_of = {name: groups.setdefault(wanted, len(groups)) for name, wanted in self._wanted.items()}
        """A number for each metric, the same for metrics that are computed from the same tally."""
        self._sources = {name: self._serving(wanted) for name, wanted in self._wanted.items()}
        self._readings: dict[str, StateReading | None] = {}
        self.are_numbers: dict[str, bool] = {}
        """Of metrics of which it was asked, whether they read single numbers; see `needing_bootstrap`."""
        encoded = {encoder.column for encoder in self.encoders}
        self.counted_columns = frozenset().union(*(tally.columns for tally in self.tallies)) - encoded
        """The names of the columns of an update that are counted themselves."""
        self.columns = self.counted_columns.union(*(encoder.columns for encoder in self.encoders))
        """The names of the columns that an update must be given."""
        self.uses_target = any(tally.uses_target for tally in self._wanted.values())
        """Whether a tally counts the target."""
        self.counts_tensors = not all(metric.encoders for metric in metrics.values())
        """Whether a metric is computed from `preds` and `target` themselves, and not from what encoders give."""
        self.takes_raw = any(encoder.takes != TENSORS for encoder in self.encoders)
        """Whether updates take lists of raw samples, such as strings, instead of tensors."""
        self.counts_one_encoder = (
            len(self.encoders) == 1
            and self.takes_raw
            and self.encoders[0].on_cpu
            and self.encoders[0].function is None
            and not self.counted_columns
        )
        """Whether rows that one encoder makes on the CPU and weights are all that is counted."""

    def _checked_state_bytes(self) -> int:
        """The size of the states; raise a `ConfigError` when they would take more memory than this machine has."""
        states = (tally.zero(torch.device("meta")) for tally in self.tallies)
        size = sum(each.nbytes for state in states for each in state.values() if isinstance(each, Tensor))
        if size > host_bytes():
            got = f"states of {size / 2**30:,.0f} GiB for {', '.join(map(repr, self.metrics.values()))}"
            expected = f"at most the memory of this machine, {host_bytes() / 2**30:,.1f} GiB"
            do = "Check the numbers of classes, outputs, bins and features, which states are sized by"
            raise ConfigError(describe("Meter", got, expected, do))
        return size

    @property
    def label_classes(self) -> int | None:
        """Of how many scores just the class with the highest one is counted; None where more is counted of them."""
        labels = [getattr(tally, "labels", None) for tally in self.tallies]
        known = {
            each.num_classes if isinstance(each, Labels) and each.decision == Argmax() and not each.num_labels else None
            for each in labels
        }
        return known.pop() if len(known) == 1 else None

    def _serving(self, wanted: Tally) -> TallySource:
        places = tuple(
            next(k for k, other in enumerate(self.tallies) if other.union(leaf) == other) for leaf in components(wanted)
        )
        counted = tuple(self.tallies[k] for k in places)
        return TallySource(CompositeTally(counted) if isinstance(wanted, CompositeTally) else counted[0], places)

    def beyond(self, tallies: Collection[Tally]) -> list[str]:
        """The metrics that are computed from other tallies than these as well."""
        return [
            name for name in self.metrics if not all(self.tallies[k] in tallies for k in self._sources[name].places)
        ]

    def check_columns(self, names: Collection[str]) -> None:
        """Raise a `ConfigError` when columns of these names are not those that the metrics count."""
        if set(names) == self.columns:
            return
        readers = {name: each.columns & self.columns for name, each in self._wanted.items()}
        for name, metric in self.metrics.items():
            readers[name] = readers[name].union(*(encoder.columns for encoder in metric.encoders))
        got = ", ".join(sorted(names)) or "no column"
        expected = ", ".join(sorted(self.columns)) or "none"
        missing, unknown = sorted(self.columns - set(names)), sorted(set(names) - self.columns)
        do = f"Leave out {', '.join(unknown)}, which no metric counts"
        if missing:
            wanting = ", ".join(name for name, columns in readers.items() if columns & set(missing))
            do = f"Pass {', '.join(f'{name}=...' for name in missing)} to update, for {wanting}"
        raise ConfigError(describe("columns", got, expected, do))

    def arguments(
        self, preds: Any, target: Any, weights: Tensor | None, columns: Mapping[str, Tensor | None]
    ) -> Arguments:
        """See `Meter.arguments`."""
        is_plain = type(preds) is Tensor and (target is None or type(target) is Tensor)
        if is_plain and not (columns or self.columns or self.encoders):
            return Arguments((preds, target, weights), (), NO_RAGGED)
        present = {name: tensor for name, tensor in columns.items() if tensor is not None}
        self.check_columns(present)
        if not self.takes_raw:
            preds, target = as_tensor(preds), as_tensor(target)
            present = {name: as_tensor(column) for name, column in present.items()}
        ragged = NO_RAGGED
        if self.encoders:
            placeholder, rows, ragged = encoded(self.encoders, preds, target, present)
            present = {name: present[name] for name in self.counted_columns} | rows
            if not self.counts_tensors:
                preds, target = placeholder, None
            elif not self.uses_target:
                target = None
        names = sorted(present)
        return Arguments((preds, target, weights, *(present[name] for name in names)), names, ragged)

    def checked(self, batch: Arguments, strict: bool) -> Arguments:
        """The arguments on one device and with a sample dimension, after their metadata was found to be right.

        What was right as it was given is right for all meters of this plan, and looked through once.

        Args:
            batch: what `arguments` gave, or some of its rows.
            strict: raise where tensors are on several devices, instead of moving them with a warning.
        """
        if is_compiling() or batch.names or self.labels or any(type(each) not in _PLAIN for each in batch.tensors):
            return self._looked_through(batch, strict)
        try:
            given = layout_of(batch)
        except RuntimeError:  # a tensor without storage, or without a shape
            return self._looked_through(batch, strict)
        if given in self._right and not any(tensor is not None and is_freed(tensor) for tensor in batch.tensors):
            return batch
        found = self._looked_through(batch, strict)
        if all(map(is_, found.tensors, batch.tensors)):
            if len(self._right) >= MOST_LAYOUTS:
                self._right.clear()
            self._right.add(given)
        return found

    def _looked_through(self, batch: Arguments, strict: bool) -> Arguments:
        if not batch.names:
            self.check_columns(())
        names = ("preds", "target", "weights", *batch.names)
        arguments = dict(zip(names, batch.tensors, strict=True))
        if self.labels:
            arguments |= {name: numbered(name, arguments[name], self.labels) for name in ("preds", "target")}
        if self.counts_one_encoder and not self.weighted and arguments["weights"] is None:
            made = {name: tensor for name, tensor in arguments.items() if tensor is not None}
            self.check(layout(made))  # no tensor is the caller's: nothing else can be wrong
            return batch
        tensors = match_shapes(check_inputs(arguments, self.weighted, strict), self.check)
        return Arguments([tensors.get(name) for name in names], batch.names, batch.ragged)

    def check(self, layout: BatchLayout) -> None:
        """Raise an `InputError` when a batch of this layout cannot be counted, or holds what nothing reads."""
        if layout.target is not None and not self.uses_target:
            do = "Leave it out; weights are passed by name, as weights=..."
            raise ShapeError(
                describe("target", "a tensor", f"none, which {', '.join(self._wanted)} would not read", do)
            )
        for name in self._wanted:
            error = self._error(name, layout)
            if error is not None:
                raise type(error)(self._message(error, layout)) from None

    def _error(self, name: str, layout: BatchLayout) -> InputError | None:
        """Why a batch of this layout cannot be counted for a metric; None where it can."""
        try:
            self._wanted[name].check(layout)
            self.metrics[name].check(layout)
        except InputError as error:
            return error
        return None

    def _message(self, error: InputError, layout: BatchLayout) -> str:
        """An error, with the names of the metrics that it is of, and with arguments that the metrics need."""
        arguments = getattr(error, "arguments", {})
        names, forms = [], []
        for name, metric in self.metrics.items():
            if "." in name or str(self._error(name, layout)) != str(error):
                continue  # with a dot: of the diagnostics of an evaluation, which follow from the other metrics
            names.append(name)
            with suppress(AssayError, TypeError):  # TypeError: a metric of metrics has no such argument
                fitting = replace(metric, **arguments)  # type: ignore[type-var]
                forms.append(f"{fitting!r}, as a string {as_text(name, fitting)}")
        is_of_all = len(names) == sum("." not in name for name in self.metrics)
        return f"{'' if is_of_all else ', '.join(names) + ': '}{error}" + (
            f" Write {'; and '.join(forms)}." if arguments and forms else ""
        )

    def readings(self, names: Iterable[str]) -> list[tuple[TallySource, Tally, list[str]]]:
        """What is read for metrics: what is counted for it, the tally to read, and which metrics do."""
        readings: dict[tuple[TallySource, Tally], list[str]] = {}
        for name in names:
            readings.setdefault((self._sources[name], self._wanted[name]), []).append(name)
        return [(source, wanted, metrics) for (source, wanted), metrics in readings.items()]

    def state_of(self, name: str, states: Sequence[State]) -> tuple[Tally, State]:
        """The tally that a metric asked for, and its state."""
        wanted, source = self._wanted[name], self._sources[name]
        state = source.state(states)
        is_whole = wanted is source.tally or wanted == source.tally
        return wanted, state if is_whole else source.tally.extract(state, wanted)

    def reading_of(self, name: str) -> StateReading | None:
        """What reads the value of a metric at once; None where `compute` must be asked, or takes several tallies."""
        if name not in self._readings:
            metric, source = self.metrics[name], self._sources[name]
            is_alone = len(source.places) == 1 and _says_how_it_is_read(type(metric))
            read = metric.reading(source.tally) if is_alone else None
            self._readings[name] = None if read is None else StateReading(read, source.places[0])
        return self._readings[name]

    def states_of(self, tallies: Iterable[Tally], states: Sequence[State]) -> list[State]:
        """The states of tallies that some of the metrics ask for."""
        counted = [
            (tally, next(k for k, own in enumerate(self.tallies) if own.union(tally) == own)) for tally in tallies
        ]
        return [
            states[k] if self.tallies[k] == tally else self.tallies[k].extract(states[k], tally) for tally, k in counted
        ]


def _says_how_it_is_read(kind: type[Metric]) -> bool:
    """Whether a class says it of the `compute` that it has, and not of one that it replaces."""
    computed, *said = (
        next(each for each in kind.__mro__ if name in vars(each)) for name in ("compute", "quotient_of_sums", "reading")
    )
    return any(issubclass(each, computed) for each in said)


def tally_plan(metrics: Mapping[str, Metric], weighted: bool, labels: tuple[str, ...] = ()) -> TallyPlan:
    """The plan of these metrics; equal metrics share one, as a plan never changes.

    Metrics that hold a function of the caller get their own: it is no part of their equality, and is not to be kept.
    """
    if any(encoder.function is not None for metric in metrics.values() for encoder in metric.encoders):
        return TallyPlan(metrics, weighted, labels)
    try:
        return _shared_plan(tuple(metrics.items()), weighted, labels)
    except TypeError:  # a metric of one's own with a field that has no hash
        return TallyPlan(metrics, weighted, labels)


@lru_cache(maxsize=256)
def _shared_plan(metrics: tuple[tuple[str, Metric], ...], weighted: bool, labels: tuple[str, ...]) -> TallyPlan:
    return TallyPlan(dict(metrics), weighted, labels)
