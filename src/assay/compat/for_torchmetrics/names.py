"""Classes and functions in the place of those of TorchMetrics, by their names."""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from assay.compat.drop_ins import EQUAL_ERROR_RATES, FAMILIES, QUERY_FUNCTIONS
from assay.compat.errors_of_others import error_as_there
from assay.compat.for_torchmetrics.calls import REUSED, Calls, are_plain
from assay.compat.for_torchmetrics.families import CompatibleEqualErrorRate, CompatibleFamily, Family, entry_of
from assay.compat.for_torchmetrics.metric import (
    TABLE,
    CompatibleAggregate,
    CompatibleMetric,
    CompatibleOperatingPoint,
    CompatibleR2,
    CompatibleRate,
    has_gradient,
    require_gradient,
)
from assay.compat.for_torchmetrics.single_queries import number_of_query
from assay.compat.modules import SignatureOfOwner
from assay.errors import InputError
from assay.integrations.optional_packages import import_package
from assay.meter.batch_values import is_plain, leaves_traces

_aggregation: Any = import_package("torchmetrics.aggregation", "metrics of its names")
_checks: Any = import_package("torchmetrics.utilities.checks", "metrics of its names")

ClassificationTask: Any = import_package("torchmetrics.utilities.enums", "metrics").ClassificationTask


_HOMES = ("boxes", "columns", "dictionaries", "images", "masks", "networks", "points", "signals")
"""The modules of families, which take long to import, and few programs need."""


@functools.cache
def families() -> Mapping[str, Family]:
    """How assay counts classes whose arguments are others in assay."""
    homes = (import_module(f"assay.compat.for_torchmetrics.{home}") for home in _HOMES)
    of_home = (getattr(home, f"OF_{name.upper()}") for home, name in zip(homes, _HOMES, strict=True))
    return {name: family for found in of_home for name, family in found.items()}


_QUERY = ("preds", "target")
_OPTIONS = ("num_classes", "zero_division")
"""What classes take although their constructors do not name it."""


@functools.cache
def compatible_class(original: Any) -> type:
    """The class in the place of one of TorchMetrics that has a counterpart."""
    name = original.__name__.removeprefix("_")
    family = families()[name] if name in FAMILIES else None
    if name == "EER":
        entry = replace(TABLE.entries["ROC"], name=name, tasks=tuple(EQUAL_ERROR_RATES))
    elif name in EQUAL_ERROR_RATES:
        entry = replace(TABLE.entries[EQUAL_ERROR_RATES[name]], name=name)
    else:
        entry = TABLE.entries[name] if family is None else entry_of(name, family)
    home = ".".join(original.__module__.split(".")[:2])
    if not hasattr(import_module(home), original.__name__):  # a package that it needs is not installed
        home = original.__module__
    body: dict[str, Any] = {"__doc__": original.__doc__, "__module__": f"assay.compat.{home}"}
    if entry.tasks:
        body |= {"__new__": _task_constructor(original), "__signature__": _signature_of_constructor(original)}
        return type(original.__name__, (original,), body)
    update = inspect.signature(original.update)
    updates = update.replace(parameters=list(update.parameters.values())[1:])
    base: type[CompatibleMetric] = CompatibleRate if hasattr(original, "_final_state") else CompatibleMetric
    if entry.assay in ("SensitivityAtSpecificity", "SpecificityAtSensitivity"):
        base = CompatibleOperatingPoint
    if name in EQUAL_ERROR_RATES:
        base = CompatibleEqualErrorRate
    if entry.assay == "R2Score":
        base = CompatibleR2
    if "nan_strategy" in entry.defaults() and issubclass(original, _aggregation.BaseAggregator):
        base = CompatibleAggregate
    if entry.name.startswith("Retrieval"):
        base = import_module("assay.compat.for_torchmetrics.retrieval").CompatibleRetrieval
    if family is not None:
        base = CompatibleFamily
        body |= {"family": family, "size_field": family.by_shape}
    body |= {"entry": entry, "original": original, "updates": updates}
    body["__signature__"] = SignatureOfOwner(inspect.signature(original))
    body |= {name: getattr(original, name) for name in ("higher_is_better", "is_differentiable")}
    return type(name, (base, original), body)


def _signature_of_constructor(original: Any) -> SignatureOfOwner:
    """That of the constructor that chooses the class of `task`."""
    signature = inspect.signature(original.__new__)
    return SignatureOfOwner(signature.replace(parameters=list(signature.parameters.values())[1:]))


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
    known = _parameters(original)
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
    with suppress(ImportError):  # the classes of its family, of which `torchmetrics` imports some only
        import_module(f"torchmetrics.{original.__module__.split('.')[2]}")
    entry = TABLE.entries[original.__name__]
    calls = Calls(signature, _data_of((entry.tasks or (entry.name,))[0]))

    @functools.wraps(original)
    def value(*args: Any, **kwargs: Any) -> Any:
        if (known := calls.value(args, kwargs)) is not None:
            return known
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        entry = TABLE.entries[original.__name__]
        if entry.tasks:
            task = ClassificationTask.from_str(bound.arguments["task"]).value
            entry = TABLE.entries[next(name for name in entry.tasks if name.startswith(task))]
        kind, given = _class_of(entry.name), bound.arguments
        batch = [given[name] for name in _data_of(entry.name)]
        if require_gradient(given.values()) and has_gradient(kind):
            return original(*args, **kwargs)
        if "num_outputs" in _parameters(kind) and "num_outputs" not in given and batch[0].ndim == 2:
            given = {**given, "num_outputs": batch[0].shape[1]}  # which these functions take from the shape
        try:
            found = _value_of(kind, given, batch, calls.named(args, kwargs))
        except InputError as error:
            raise error_as_there(error, lambda: original(*args, **kwargs)) from error
        return original(*args, **kwargs) if found is None else found

    value.__module__ = f"assay.compat.{original.__module__}"
    return value


_MEANT: Mapping[str, Mapping[str, Any]] = {
    "demographic_parity": {"task": "demographic_parity", "target": None},
    "equal_opportunity": {"task": "equal_opportunity"},
}
"""What functions mean that do not take it."""


_IMAGES = ("ms", "pan", "pan_lr")
"""Arguments of functions of fused images, which `update` of their classes takes in a dictionary."""


def _batch_in(given: Mapping[str, Any], data: Sequence[str]) -> list[Any]:
    """What `update` takes, in the arguments of a function, which has the images in its dictionary one by one."""
    if "ms" in given:
        names = (name for name in _IMAGES if given[name] is not None)
        return [given["preds"], {name: given[name] for name in names}]
    return [given[each] for each in data]


def _updated(kind: Any) -> list[str]:
    """The names of what `update` of a class takes."""
    return list(inspect.signature(kind.update).parameters)[1:]


@functools.cache
def compatible_family_function(original: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function in the place of one of TorchMetrics that measures what a class of a family does.

    Args:
        original: the function.
        name: of the class.
    """
    signature = inspect.signature(original)
    home = ".".join(["torchmetrics", original.__module__.split(".")[2]])
    kind: Any = getattr(import_module(home), name)
    settings = _parameters(kind)
    data = ["preds", "target"] if "task" in settings and name == "EER" else _updated(kind)
    others = {each.name: each.default for each in signature.parameters.values() if each.name not in settings}
    calls = Calls(signature, () if "num_groups" in settings else data)

    @functools.wraps(original)
    def value(*args: Any, **kwargs: Any) -> Any:
        if (known := calls.value(args, kwargs)) is not None:
            return known
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = {**bound.arguments, **_MEANT.get(original.__name__, {})}
        if "num_groups" in settings and "num_groups" not in given:
            given["num_groups"] = len(given["groups"].unique())
        unknown = any(
            given[each] != default for each, default in others.items() if each not in (*data, "ms", "pan", "pan_lr")
        )
        if unknown or (require_gradient(given.values()) and has_gradient(kind)):
            return original(*args, **kwargs)
        try:
            found = _value_of(kind, given, _batch_in(given, data), calls.named(args, kwargs))
        except InputError as error:
            raise error_as_there(error, lambda: original(*args, **kwargs)) from error
        return original(*args, **kwargs) if found is None else found

    value.__module__ = f"assay.compat.{original.__module__}"
    return value


@functools.cache
def with_defaults_of(deprecated: Any, kind: Any) -> Any:
    """A compatible class or function with the defaults of its copy at the root of TorchMetrics, where it has others."""
    signature = inspect.signature(deprecated)
    own = inspect.signature(kind).parameters
    if all(each.default == own[name].default for name, each in signature.parameters.items() if name in own):
        return kind
    is_class = isinstance(kind, type)

    @functools.wraps(kind.__init__ if is_class else kind)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args[is_class:], **kwargs)
        bound.apply_defaults()
        options = bound.arguments.pop("kwargs", {})
        return (kind.__init__ if is_class else kind)(*args[:is_class], **bound.arguments, **options)

    if not is_class:
        return call
    body = {"__init__": call, "__signature__": SignatureOfOwner(signature), "__doc__": kind.__doc__}
    return type(kind)(kind.__name__, (kind,), {**body, "__module__": "assay.compat.torchmetrics"})


def _value_of(
    kind: type, arguments: Mapping[str, Any], batch: Sequence[Any], note: Callable[[str], None] | None = None
) -> Any:
    """The value of a batch; None without any sample, and where an argument has no counterpart.

    Args:
        kind: the class of TorchMetrics that measures it.
        arguments: of the call.
        batch: what `update` takes.
        note: is given the key of the metric, where it answers later calls.
    """
    settings = {name: value for name, value in arguments.items() if name in _parameters(kind) or name in _OPTIONS}
    key = f"{kind.__name__} {settings} {torch.get_default_dtype()}" if are_plain(settings.values()) else ""
    reuses = bool(key) and is_plain()
    metric = REUSED.take(key) if reuses else None
    is_new = metric is None
    if metric is None:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Metric `", UserWarning)  # of a buffer, which functions do not have
            metric = _with_arguments(kind, arguments)
        if not isinstance(metric, CompatibleMetric):
            return None
        if metric._defaults:  # counts of each sample, which the class also stores
            metric.update(*batch)
            return metric.compute() if metric.meter.rows else None
    found = metric.value_of(*(each.detach() if isinstance(each, Tensor) else each for each in batch))
    if reuses and not (is_new and leaves_traces(metric.described(), metric.meter)):
        REUSED.put(key, metric)
        if note is not None:
            note(key)
    return found


@functools.cache
def compatible_query_function(original: Callable[..., Any]) -> Callable[..., Any]:
    """The function in the place of one of TorchMetrics that measures one query."""
    signature, name = inspect.signature(original), original.__name__

    @functools.wraps(original)
    def value(*args: Any, **kwargs: Any) -> Any:
        is_plain_pair = len(args) == 2 and not kwargs
        given = dict(zip(_QUERY, args, strict=True)) if is_plain_pair else signature.bind(*args, **kwargs).arguments
        preds, target = given.pop("preds"), given.pop("target")
        if (known := number_of_query(name, preds, target, given)) is not None:
            return known
        kind, settings = _class_named(QUERY_FUNCTIONS[original.__name__]), {"empty_target_action": "neg", **given}
        _checks._check_retrieval_functional_inputs(preds, target, allow_non_binary_target=True)
        found = _value_of(kind, settings, (preds, target, torch.zeros_like(preds, dtype=torch.int64)))
        if not isinstance(found, tuple):
            return found
        precision, recall, k = (each.reshape(-1) for each in found)  # a curve of one point is none of shape () there
        return precision, recall, k.clamp(max=len(preds)) if given.get("adaptive_k") else k  # which the class does not

    value.__module__ = f"assay.compat.{original.__module__}"
    return value


@functools.cache
def _parameters(original: type) -> Mapping[str, inspect.Parameter]:
    """Those of the constructor of a class of TorchMetrics."""
    return inspect.signature(original).parameters


@functools.cache
def _data_of(name: str) -> tuple[str, ...]:
    """The names of the arguments of a function that are data."""
    entry = TABLE.entries[name]
    return tuple(each.name for each in entry.takes if entry.rules.get(each.name) == "data")


@functools.cache
def _class_of(name: str) -> type:
    """The class of TorchMetrics that measures what a function does."""
    entry = TABLE.entries[name]
    tasks = ("Binary", "Multiclass", "Multilabel")
    task = next((each for each in tasks if entry.name.startswith(each.lower())), "")
    classes = (each for each in TABLE.entries.values() if not each.function and not each.tasks)
    return _class_named(next(each.name for each in classes if each.assay == entry.assay and each.name.startswith(task)))


@functools.cache
def _class_named(name: str) -> type:
    """The class of TorchMetrics of this name."""
    modules = [module for path, module in sorted(sys.modules.items()) if path.startswith("torchmetrics.")]
    return next(found for each in modules if isinstance(found := getattr(each, name, None), type))
