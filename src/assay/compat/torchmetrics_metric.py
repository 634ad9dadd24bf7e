"""Classes and functions with the names and arguments of TorchMetrics, on assay's counts."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from assay.compat.counterparts import counterpart
from assay.compat.torchmetrics_batches import batch_format, sample_stats
from assay.compat.torchmetrics_values import converted, reduced_later
from assay.integrations.optional_packages import import_package
from assay.integrations.torchmetrics import AssayMetric
from assay.meter import Meter
from assay.metrics.base import Metric
from assay.metrics.classification.confusion import StatScores
from assay.migrate.table import Counterpart, library

ClassificationTask: Any = import_package("torchmetrics.utilities.enums", "metrics").ClassificationTask

TABLE = library("torchmetrics")


class CompatibleMetric(AssayMetric):
    """A metric with the arguments of one of TorchMetrics, whose constructor checks them and keeps them as attributes.

    Values are on the device of the last batch, in the dtype that `set_dtype` gives; float32 by default.
    """

    is_differentiable = False
    entry: ClassVar[Counterpart]
    original: ClassVar[type]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        signature = inspect.signature(self.original.__init__)
        arguments = signature.bind(self, *args, **kwargs).arguments
        self.original.__init__(self, *args, **kwargs)  # type: ignore[misc]
        options = arguments.pop("kwargs", {})
        given = {**dict(list(arguments.items())[1:]), **{name: options[name] for name in ("zero_division",) if name in options}}
        self._given = {n: v for n, v in given.items() if n not in signature.parameters or v != signature.parameters[n].default}
        self._metric = self._counted(counterpart(self.entry, given))
        self._take(Meter(value=self._metric))
        self._drop_states()
        self._update_signature = inspect.signature(self.original.update)

    def _counted(self, metric: Metric) -> Metric:
        """What is counted, of the metric of assay that has these arguments."""
        return reduced_later(metric)

    def _drop_states(self) -> None:
        """Forget the states of TorchMetrics' class, in whose place the meter counts."""
        for name in self._defaults:
            delattr(self, name)
        for states in (self._defaults, self._persistent, self._reductions):
            states.clear()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._update_signature = inspect.signature(self.original.update)

    @property
    def dtype(self) -> torch.dtype:
        """That of the values."""
        return self._dtype

    def set_dtype(self, dst_type: str | torch.dtype) -> CompatibleMetric:
        """Set the dtype of the values."""
        self._dtype = dst_type
        return self

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Count a batch, given as TorchMetrics' class takes it."""
        super().update(*self._batch(*args, **kwargs))

    def compute(self) -> Any:
        """The value, as TorchMetrics gives it."""
        return self._converted(super().compute())

    def _count_batch(self, *args: Any, **kwargs: Any) -> Any:
        return self._converted(super()._count_batch(*self._batch(*args, **kwargs)))

    def _batch(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """A batch as assay's metric takes it."""
        given = inspect.signature(self.original.update).bind(self, *args, **kwargs)
        batch = batch_format(self.entry.name, self._metric)(*given.args[1:])
        if isinstance(batch[0], Tensor):
            self._device = batch[0].device
            self._count_outputs(batch[0])
        return batch

    def _count_outputs(self, preds: Tensor) -> None:
        """Take the number of outputs from the first batch, where TorchMetrics does."""
        if self.entry.by_shape and preds.ndim == 2 and self._metric.num_outputs != preds.shape[1]:
            self._metric = replace(self._metric, num_outputs=preds.shape[1])
            self.meter = Meter(value=self._metric)

    def _converted(self, value: Any) -> Any:
        return converted(value, self.entry.assay, self._metric, self.original_average, self._dtype, self._device)

    @property
    def original_average(self) -> object:
        return getattr(self, "average", None)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._given.items())})"


class CompatibleRate(CompatibleMetric):
    """A metric of true and false positives and negatives, which assay counts and TorchMetrics' class reduces."""

    def _counted(self, metric: Metric) -> Metric:
        names = {each.name for each in fields(StatScores)} & {each.name for each in fields(metric)} - {"average"}
        return StatScores(average=None, **{name: getattr(metric, name) for name in names})

    def _drop_states(self) -> None:
        if self.multidim_average == "global":
            super()._drop_states()

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Count a batch, given as TorchMetrics' class takes it."""
        super().update(*args, **kwargs)
        if self._defaults:  # outcomes of each sample
            self._update_state(*sample_stats(self._metric, *self._batch(*args, **kwargs)))

    def _converted(self, value: Any) -> Any:
        if not self._defaults:
            self.tp, self.fp, self.tn, self.fn = (each.to(self._device) for each in value[:4])
        result = self.original.compute(self)
        return result.to(self._dtype) if result.is_floating_point() else result


@functools.cache
def compatible_class(original: type) -> type:
    """The class in the place of one of TorchMetrics that has a counterpart."""
    entry = TABLE.entries[original.__name__]
    home = ".".join(original.__module__.split(".")[:2])
    body = {"__doc__": original.__doc__, "__module__": f"assay.compat.{home}", "entry": entry, "original": original}
    if entry.tasks:
        body["__new__"] = _task_constructor(original, entry)
        return type(original.__name__, (), body)
    base = CompatibleRate if hasattr(original, "_final_state") else CompatibleMetric
    return type(original.__name__, (base, original), body)


def _task_constructor(original: Any, entry: Counterpart) -> Callable[..., Any]:
    @functools.wraps(original.__new__)
    def construct(cls: type, *args: Any, **kwargs: Any) -> Any:
        chosen = type(original(*args, **kwargs))  # which checks the arguments
        bound = inspect.signature(original.__new__).bind(cls, *args, **kwargs)
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if name in names_of(chosen)}
        return compatible_class(chosen)(**given, **bound.arguments.get("kwargs", {}))

    return construct


def names_of(function: Any) -> set[str]:
    """The names of the parameters of a function or class, without `**kwargs`."""
    return set(inspect.signature(function).parameters) - {"kwargs"}


@functools.cache
def compatible_function(original: Callable[..., Any]) -> Callable[..., Any]:
    """The function in the place of one of TorchMetrics that has a counterpart."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def value(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        entry = TABLE.entries[original.__name__]
        if entry.tasks:
            entry = TABLE.entries[_task_function(entry, given.pop("task"))]
        batch = [given.pop(each.name) for each in entry.takes if entry.rules.get(each.name) == "data"]
        kind = _class_of(entry)
        taken = names_of(kind)
        metric = compatible_class(kind)(**{name: each for name, each in given.items() if name in taken})
        metric.update(*batch)
        return metric.compute()

    value.__module__ = f"assay.compat.{original.__module__}"
    return value


def _task_function(entry: Counterpart, task: str) -> str:
    """The function of a task, such as "binary"."""
    from_task = ClassificationTask.from_str(task)
    return next(name for name in entry.tasks if name.startswith(from_task.value))


def _class_of(entry: Counterpart) -> type:
    """The class of TorchMetrics that measures what a function does."""
    tasks = ("Binary", "Multiclass", "Multilabel")
    task = next((each for each in tasks if entry.name.startswith(each.lower())), "")
    names = [
        each.name
        for each in TABLE.entries.values()
        if not each.function and not each.tasks and each.assay == entry.assay and each.name.startswith(task)
    ]
    return original_class(names[0])


def original_class(name: str) -> type:
    """A class of TorchMetrics, wherever it lies."""
    modules = [sys.modules[each] for each in sorted(sys.modules) if each.startswith("torchmetrics.")]
    found: type = next(getattr(each, name) for each in modules if isinstance(getattr(each, name, None), type))
    return found
