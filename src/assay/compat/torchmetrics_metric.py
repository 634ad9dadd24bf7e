"""Classes and functions with the names, arguments and definitions of TorchMetrics, on assay's counts."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, ClassVar

import torch
from torch import Tensor

from assay.compat.counterparts import counterpart
from assay.compat.torchmetrics_batches import batch_format, sample_stats
from assay.compat.torchmetrics_values import operating_points, original_value, placed, reduced_later
from assay.errors import ConfigError, NoDataWarning, describe
from assay.integrations.optional_packages import import_package
from assay.integrations.torchmetrics import AssayMetric
from assay.meter import Meter
from assay.metrics.classification.confusion import StatScores
from assay.metrics.classification.ranking import ROC
from assay.migrate.table import Counterpart, library

ClassificationTask: Any = import_package("torchmetrics.utilities.enums", "metrics").ClassificationTask

TABLE = library("torchmetrics")


class CompatibleMetric(AssayMetric):
    """A metric with the arguments of a class of TorchMetrics, whose constructor checks them and keeps them.

    Values are on the device of the last batch, in the dtype that `set_dtype` gives; float32 by default.
    """

    is_differentiable = False
    entry: ClassVar[Counterpart]
    original: ClassVar[Any]
    updates: ClassVar[inspect.Signature]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        arguments = inspect.signature(self.original).bind(*args, **kwargs).arguments
        self.original.__init__(self, *args, **kwargs)
        self._arguments = {**arguments, **arguments.pop("kwargs", {})}
        metric = counterpart(self.entry, self._arguments)
        self._average = self._arguments.get("average", getattr(metric, "average", None))
        self._begin(self._counted(metric))
        self._drop_states()

    def _counted(self, metric: Any) -> Any:
        """What is counted, of the metric of assay that has these arguments."""
        if getattr(metric, "multidim_average", "global") != "global":
            do = f"Import {self.entry.name} from torchmetrics itself; assay's is the mean over samples"
            raise ConfigError(describe("multidim_average", metric.multidim_average, "'global'", do))
        return reduced_later(metric)

    def _begin(self, metric: Any) -> None:
        """Count this metric from now on."""
        self._metric = metric
        self._format = batch_format(self.entry, metric)
        self._take(Meter(weighted="weight" in self.updates.parameters, value=metric))
        self._update_signature = self.updates

    def _drop_states(self) -> None:
        """Forget the states of TorchMetrics' class, in whose place the meter counts."""
        for name in self._defaults:
            delattr(self, name)
        for states in (self._defaults, self._persistent, self._reductions):
            states.clear()

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._update_signature = self.updates

    @property
    def dtype(self) -> torch.dtype:
        """That of the values."""
        return self._dtype

    def set_dtype(self, dst_type: str | torch.dtype) -> CompatibleMetric:
        """Set the dtype of the values."""
        self._dtype = torch.empty(0).type(dst_type).dtype
        return self

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Count a batch, with the arguments that the class of TorchMetrics takes."""
        self._count(self._batch(*args, **kwargs))

    def _count(self, batch: Mapping[str, Any]) -> None:
        """Count a batch as assay's metric takes it."""
        self.meter.update(**batch)

    def compute(self) -> Any:
        """The value, as the class of TorchMetrics gives it."""
        with _without_data_warnings():
            return self._converted(self.meter.compute()["value"])

    def _count_batch(self, *args: Any, **kwargs: Any) -> Any:
        batch = self._batch(*args, **kwargs)
        with _without_data_warnings():
            return self._converted(self.meter.forward(**batch)["value"])

    def _batch(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """A batch as assay's metric takes it."""
        args, kwargs = self._first(*args), dict(zip(kwargs, self._first(*kwargs.values()), strict=True))
        batch = self._format(*args, **kwargs)
        preds = batch["preds"]
        if isinstance(preds, Tensor):
            self._device = preds.device
            if (
                self.entry.by_shape
                and preds.ndim == 2
                and not self.meter.rows
                and self._metric.num_outputs != preds.shape[1]
            ):
                self._begin(replace(self._metric, num_outputs=preds.shape[1]))
        return batch

    def _converted(self, value: Any) -> Any:
        return placed(original_value(value, self._metric, self._average), self._dtype, self._device)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._arguments.items())})"


class CompatibleRate(CompatibleMetric):
    """A quotient of true and false positives and negatives: assay counts them, the class of TorchMetrics divides."""

    def _counted(self, metric: Any) -> Any:
        return _with_fields(StatScores, metric)

    def _drop_states(self) -> None:
        if self.multidim_average == "global":
            super()._drop_states()

    def _count(self, batch: Mapping[str, Any]) -> None:
        super()._count(batch)
        if self._defaults:  # the counts of each sample
            self._update_state(*sample_stats(self._metric, **batch))

    def _converted(self, value: Any) -> Any:
        if not self._defaults:
            counts = (each.to(self._device) for each in value[:4])
            self.__dict__.update(zip(("tp", "fp", "tn", "fn"), counts, strict=True))  # setattr of a module is slow
        return placed(self.original.compute(self), self._dtype, self._device)


class CompatibleOperatingPoint(CompatibleMetric):
    """The largest of two rates where the other has a minimum, and its threshold, on the curve that assay counts."""

    def _counted(self, metric: Any) -> Any:
        return _with_fields(ROC, metric)

    def _converted(self, value: Any) -> Any:
        minimum = next(each for name, each in self._arguments.items() if name.startswith("min_"))
        fpr, tpr, thresholds = super()._converted(value)
        sensitivity = self.entry.assay == "SensitivityAtSpecificity"
        return operating_points(fpr, tpr, thresholds, minimum, sensitivity)


def _with_fields(kind: Any, metric: Any) -> Any:
    """A metric of the same data as another one, whose values are not yet averaged."""
    taken = {each.name for each in fields(metric)} & {each.name for each in fields(kind)}
    return kind(**{name: getattr(metric, name) for name in taken - {"average", "multidim_average"}})


@contextmanager
def _without_data_warnings() -> Iterator[None]:
    """Where TorchMetrics has a number, it is given; elsewhere NaN is its value, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoDataWarning)
        yield


@functools.cache
def compatible_class(original: Any) -> type:
    """The class in the place of one of TorchMetrics that has a counterpart."""
    entry = TABLE.entries[original.__name__]
    home = ".".join(original.__module__.split(".")[:2])
    body: dict[str, Any] = {"__doc__": original.__doc__, "__module__": f"assay.compat.{home}"}
    if entry.tasks:
        return type(original.__name__, (), {**body, "__new__": _task_constructor(original)})
    update = inspect.signature(original.update)
    updates = update.replace(parameters=list(update.parameters.values())[1:])
    base: type[CompatibleMetric] = CompatibleRate if hasattr(original, "_final_state") else CompatibleMetric
    if entry.assay in ("SensitivityAtSpecificity", "SpecificityAtSensitivity"):
        base = CompatibleOperatingPoint
    body |= {"entry": entry, "original": original, "updates": updates, "higher_is_better": original.higher_is_better}
    return type(original.__name__, (base, original), body)


def _task_constructor(original: Any) -> Callable[..., Any]:
    """A constructor that makes the class of `task`, as that of TorchMetrics does."""
    signature = inspect.signature(original.__new__)

    @functools.wraps(original.__new__)
    def construct(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        chosen = type(original(*args[1:], **kwargs))  # which checks the arguments
        return _with_arguments(chosen, bound.arguments, bound.arguments.pop("kwargs"))

    return construct


def _with_arguments(
    original: type, arguments: Mapping[str, Any], options: Mapping[str, Any] = MappingProxyType({})
) -> Any:
    """The metric in the place of one of TorchMetrics, with those of the arguments that it takes."""
    known = inspect.signature(original).parameters
    taken = {name: value for name, value in arguments.items() if name in known and _differs(value, known[name].default)}
    if "zero_division" in arguments and "zero_division" not in known:  # which classes take as an option
        taken["zero_division"] = arguments["zero_division"]
    if "num_classes" in known and known["num_classes"].default is inspect.Parameter.empty:
        taken.setdefault("num_classes", 2)  # functions of categories do not ask for it, and assay does not need it
    return compatible_class(original)(**taken, **options)


def _differs(value: object, default: object) -> bool:
    return isinstance(value, Tensor) or value != default


@functools.cache
def compatible_function(original: Callable[..., Any]) -> Callable[..., Any]:
    """The function in the place of one of TorchMetrics that has a counterpart."""
    signature = inspect.signature(original)

    @functools.wraps(original)
    def value(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        entry = TABLE.entries[original.__name__]
        if entry.tasks:
            task = ClassificationTask.from_str(bound.arguments["task"]).value
            entry = TABLE.entries[next(name for name in entry.tasks if name.startswith(task))]
        batch = [bound.arguments[each.name] for each in entry.takes if entry.rules.get(each.name) == "data"]
        metric = _with_arguments(_class_of(entry), bound.arguments)
        metric.update(*batch)
        return metric.compute()

    value.__module__ = f"assay.compat.{original.__module__}"
    return value


def _class_of(entry: Counterpart) -> type:
    """The class of TorchMetrics that measures what a function does."""
    tasks = ("Binary", "Multiclass", "Multilabel")
    task = next((each for each in tasks if entry.name.startswith(each.lower())), "")
    classes = (each for each in TABLE.entries.values() if not each.function and not each.tasks)
    name = next(each.name for each in classes if each.assay == entry.assay and each.name.startswith(task))
    modules = [module for path, module in sorted(sys.modules.items()) if path.startswith("torchmetrics.")]
    return next(found for each in modules if isinstance(found := getattr(each, name, None), type))
