"""A table of metrics: a row says how a metric of a library is made and which inputs it takes; rows become cases."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from assay.audit.cases.case import Case
from assay.audit.other_libraries import inputs
from assay.audit.tensor_trees import tensors_of

Get = Callable[[str], Any]
PLAIN = (str, int, float, list, tuple, type(None))
Make = Callable[[Get, torch.device], Any]


@dataclass(frozen=True)
class MetricSpec:
    """How one metric is made and fed."""

    path: str  # the metric below its library, such as ``"classification.BinaryAUROC"``
    draw: inputs.Draw | None = None  # one of the functions of :mod:`assay.audit.other_libraries.inputs`
    arguments: Mapping[str, Any] = field(default_factory=dict)  # of the constructor
    # makes the metric where arguments are not enough; takes a function that finds a class by its path, and a device
    make: Make | None = None
    sizes: tuple[int, ...] = inputs.BATCHES  # of the batches
    keywords: tuple[str, ...] = ()  # the names of the last inputs of ``update``, where they must be named
    label: str = ""  # tells rows apart whose arguments are the same, such as ``"weighted"``
    needs: tuple[str, ...] = ()  # packages without which it cannot run
    why_not: str = ""  # why it is not run at all

    @property
    def missing(self) -> str:
        """Why the metric cannot be run here; empty if it can."""
        absent = [package for package in self.needs if importlib.util.find_spec(package) is None]
        return self.why_not or (f"needs {' and '.join(absent)}" if absent else "")

    def name(self, library: str) -> str:
        """The metric with its arguments, as findings call it."""
        shown = [f"{key}={value!r}" for key, value in self.arguments.items() if isinstance(value, PLAIN)]
        shown += [self.label] if self.label else []
        return f"{library}.{self.path}" + (f"({', '.join(shown)})" if shown else "")


@dataclass(frozen=True)
class LibraryMetrics:
    """What the metrics of one library have in common."""

    name: str  # the module that findings name, such as ``"ignite.metrics"``
    rows: tuple[MetricSpec, ...]  # its metrics
    # arguments that every constructor gets for a device
    options: Callable[[torch.device], dict[str, Any]] = lambda device: {}
    # ``(metric, batch)`` feeds one batch; the default gives the inputs as positional arguments
    update: Callable[[Any, tuple[Any, ...]], Any] = lambda metric, batch: metric.update(*batch)
    rebuilds: bool = False  # whether users move a metric by making it with another ``device=``, for want of a ``to``
    # ``(metric)`` reads the value over all processes, where that takes more than ``compute``
    sync: Callable[[Any], Any] | None = None
    # attributes that hold no state: first values, which are copied at a reset, and values already read
    hidden: tuple[str, ...] = ()

    def get(self, path: str) -> Any:
        """A class of the library by its path below it."""
        module, _, name = f"{self.name}.{path}".rpartition(".")
        return getattr(importlib.import_module(module), name)

    def build(self, row: MetricSpec, device: torch.device) -> Any:
        """The metric of a row, made for a device."""
        if row.make is not None:
            return row.make(self.get, device)
        return self.get(row.path)(**row.arguments, **self.options(device))

    def case(self, row: MetricSpec) -> Case:
        """The case that runs a row; one that says why not where it cannot run."""
        case = Case(row.name(self.name), lambda: self.build(row, torch.device("cpu")), why_not=row.missing)
        if row.missing or row.draw is None:
            return case
        update = _by_keywords(row.keywords) if row.keywords else self.update
        move = (lambda _, device: self.build(row, device)) if self.rebuilds else case.move
        batches = inputs.batches(row.draw, row.sizes)
        return replace(case, batches=batches, update=update, move=move, states=self.states, sync=self.sync)

    def states(self, metric: Any) -> dict[str, Any]:
        """What a metric keeps, by path, without what is :attr:`hidden`."""
        states = tensors_of(metric).items()
        return {path: state for path, state in states if not {*path.replace("[", ".").split(".")} & {*self.hidden}}


def variants(path: str, draw: inputs.Draw, *arguments: Mapping[str, Any], **more: Any) -> list[MetricSpec]:
    """One row for each set of arguments."""
    return [MetricSpec(path, draw, chosen, **more) for chosen in arguments]


def plain(draw: inputs.Draw, prefix: str, names: Iterable[str], **arguments: Any) -> list[MetricSpec]:
    """Rows of metrics that take the same inputs and the same arguments."""
    return [MetricSpec(f"{prefix}{name}", draw, arguments) for name in names]


def _by_keywords(keywords: tuple[str, ...]) -> Callable[[Any, tuple[Any, ...]], Any]:
    def update(metric: Any, batch: tuple[Any, ...]) -> Any:
        first = len(batch) - len(keywords)
        return metric.update(*batch[:first], **dict(zip(keywords, batch[first:], strict=True)))

    return update
