"""Metrics with the arguments and definitions of TorchMetrics' classes, on assay's counts."""

from __future__ import annotations

import inspect
import math
import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from assay.compat.counterparts import counterpart
from assay.compat.errors_of_others import (
    FewSamplesError,
    MergeError,
    MergeRefusedError,
    NanValuesError,
    error_as_there,
)
from assay.compat.for_torchmetrics.batches import batch_format, keeps, sample_stats, shared
from assay.compat.for_torchmetrics.rates import rate, rate_of
from assay.compat.for_torchmetrics.states import state_of
from assay.compat.for_torchmetrics.subclasses import CompatibleType, itself
from assay.compat.for_torchmetrics.values import (
    dtype_of_class,
    dtype_of_function,
    has_thresholds,
    number_in,
    operating_points,
    original_value,
    placed,
    reduced_later,
)
from assay.compat.modules import warn_of_others_own
from assay.devices.placement import to_host
from assay.errors import (
    AssayWarning,
    ConfigError,
    InputError,
    InvalidValuesError,
    InvalidValuesWarning,
    NoDataWarning,
    StateError,
    describe,
    taken_warnings,
    warn,
)
from assay.integrations.torchmetrics import AssayMetric, check_dist_sync_fn, squeezed, torchmetrics
from assay.meter import Meter
from assay.meter.file import described
from assay.meter.prepared_values import PreparedValue
from assay.meter.values import plain_value
from assay.metrics.base import Metric
from assay.metrics.classification.confusion import StatScores
from assay.metrics.classification.ranking import ROC
from assay.migrate.table import Counterpart, library
from assay.tally.base import NAN_LEFT_OUT

TABLE = library("torchmetrics")

_VALUE = "value"
_DATA = {"preds", "target"}

_REDUCED: Mapping[str | None, Callable[[Tensor], Tensor]] = {
    None: lambda counts: counts,
    "none": lambda counts: counts,
    "micro": lambda counts: counts.sum(0),
    "macro": lambda counts: counts.float().mean(0),
}
"""How `StatScores` of TorchMetrics reduces the counts of classes `(C, 5)`, by `average`."""

_DECLARED_OTHERWISE = ("ContinuousRankedProbabilityScore",)
"""Classes whose values have a gradient although their `is_differentiable` is False."""


class CompatibleMetric(AssayMetric, metaclass=CompatibleType):
    """A metric with the arguments of a class of TorchMetrics, whose constructor checks them and keeps them.

    Values are on the device of the last batch, in the dtype that `set_dtype` gives; float32 by default.
    """

    entry: ClassVar[Counterpart]
    original: ClassVar[Any]
    updates: ClassVar[inspect.Signature]
    size_field: ClassVar[str] = "num_outputs"
    """Of the metric: what the first batch decides, where `entry.by_shape`."""
    _has_float64 = False  # the last batch

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """An empty metric; that of TorchMetrics itself, with a warning, where an argument has no counterpart."""
        if CompatibleMetric not in type(self).__mro__:  # a subclass that counts by itself
            self.original.__init__(self, *args, **kwargs)
            return
        arguments = self._given(*args, **kwargs)
        try:
            check_dist_sync_fn(arguments.get("dist_sync_fn"))
            metric = self._counterpart(arguments)
        except ConfigError as error:
            kind = type(self)
            self.__class__ = itself(kind)
            kind.original.__init__(self, *args, **kwargs)
            why, do = "an argument has no counterpart in assay", str(error).removesuffix(".")
            warn_of_others_own(kind.__name__, kind.original, why, do, 2)
            return
        self._construct(*args, **kwargs)
        self._arguments = arguments
        self._average = arguments.get("average", getattr(metric, "average", None))
        self._take(self._meter_of(self._counted(metric)))
        self._update_signature = self.updates
        self._states_there = tuple(self._defaults)
        self._drop_states()

    def _construct(self, *args: Any, **kwargs: Any) -> None:
        """Check the arguments, and keep them as attributes, as the class of TorchMetrics does."""
        self.original.__init__(self, *args, **kwargs)

    @classmethod
    def _given(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:
        arguments = inspect.signature(cls.original).bind(*args, **kwargs).arguments
        options = arguments.pop("kwargs", {})
        return {**arguments, **options}

    @classmethod
    def _counterpart(cls, arguments: Mapping[str, Any]) -> Metric:
        """The metric of assay that has these arguments."""
        if cls.entry.name.startswith("Multiclass") and arguments.get("num_classes") is None:
            raise ConfigError(describe("num_classes", None, "the number of classes", "Pass num_classes"))
        metric: Any = counterpart(cls.entry, arguments)
        if cls.entry.assay == "CHRFScore":
            metric = replace(metric, eps_smoothing=True)  # the mean of the F-scores of the orders, as there
        samplewise = getattr(metric, "multidim_average", "global") != "global"
        if samplewise and not issubclass(cls, CompatibleRate):
            do = "Take multidim_average='global', or the mean over samples of assay's metric"
            raise ConfigError(describe("multidim_average", metric.multidim_average, "'global'", do))
        return metric  # type: ignore[no-any-return]

    def _counted(self, metric: Any) -> Any:
        """What is counted, of the metric of assay that has these arguments."""
        return reduced_later(metric)

    def _meter_of(self, metric: Any) -> Meter:
        """An empty meter of this metric, which is the one of assay from now on."""
        self._metric = metric
        self._format = batch_format(self.entry, metric)
        self._name = _VALUE  # in the meter; another one where a compute group shares it
        return Meter(weighted="weight" in self.updates.parameters, value=metric)

    def described(self) -> Any:
        """The metric of assay that is counted."""
        return self._metric

    def takes(self) -> Hashable:
        """How batches are given: equal for metrics that can share a meter."""
        return shared(self._format), str(self.updates), self._metric.inputs

    def share(self, meter: Meter, name: str) -> None:
        """Count with a meter that has the metric under this name, from now on."""
        self.meter, self._name = meter, name

    def _follow(self, metric: Any) -> None:
        """Count as many outputs as this metric has, where data say how many there are and none were counted."""
        if self.entry.by_shape and not self.meter.rows and self._metric != metric:
            self.meter = self._meter_of(metric)

    def _of_size(self, size: int) -> Any:
        """The metric of so many outputs, or of another size that data say."""
        return replace(self._metric, **{self.size_field: size})

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("_states_there", ()):
            return super().__getattr__(name)
        return state_of(self, name, self._name, self._arguments)

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
        self._dtype = torch.empty(0, device="cpu").type(dst_type).dtype
        self._computed = None  # a value of another dtype
        return self

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Count a batch, with the arguments that the class of TorchMetrics takes.

        Raises:
            InputError: of metadata, as `Meter.update`; also of the class that TorchMetrics raises, and with its text.
        """
        try:
            self._count(self._batch(*args, **kwargs))
        except InputError as error:
            raise self._error_as_there(error, args, kwargs) from error

    def _error_as_there(self, error: InputError, args: Sequence[Any], kwargs: Mapping[str, Any]) -> InputError:
        """The error of a batch, as the class of TorchMetrics raises it."""

        def update() -> None:
            self.original(**self._arguments).update(*args, **kwargs)

        return error_as_there(error, update)

    def _count(self, batch: Mapping[str, Any]) -> None:
        """Count a batch as assay's metric takes it."""
        self.meter.update(**batch)

    def compute(self) -> Any:
        """The value, as the class of TorchMetrics gives it."""
        plain = self._plain_value()
        if plain is not None:
            return self._converted(plain)
        only = None if self.counts_alone() else [self._name]
        return self._value(self._reported_as_there(self.meter.compute, only)[self._name])

    def _plain_value(self) -> Any:
        """The value of assay's metric where there is nothing to report; None where the meter must say it."""
        return plain_value(self.meter, self._name)

    def _count_batch(self, *args: Any, **kwargs: Any) -> Any:
        try:
            batch = self._batch(*args, **kwargs)
            value = self._reported_as_there(self.meter.forward, **batch)[self._name]
            return self._converted(value) if _has_samples(batch["preds"]) else self._value(value)
        except InputError as error:
            raise self._error_as_there(error, args, kwargs) from error

    def value_of(self, *args: Any) -> Any:
        """The value of a batch, as TorchMetrics' function gives it, which is not counted; None without any sample."""
        self.__dict__["_dtype"] = self._dtype_of(args)  # setattr of a module is slow
        batch = self._batch(*args)
        value = self._reported_as_there(self.meter.values_of, **batch)[self._name]
        return squeezed(self._converted(value)) if _has_samples(batch["preds"]) else None

    def _dtype_of(self, data: Sequence[Any]) -> torch.dtype:
        """That of the value of these data by the function of TorchMetrics."""
        return dtype_of_function(self.entry.name, data)

    def prepared_value_of(self, batch: Sequence[Tensor]) -> Callable[[Sequence[Tensor]], Any] | None:
        """What gives `value_of` of batches of the layout of one that was just measured; None where nothing is faster.

        It gives None for batches that `value_of` must measure.
        """
        data = self._format(*batch)
        value = PreparedValue.of(self.meter, data["preds"], data["target"]) if data.keys() == _DATA else None
        if value is None:
            return None
        counted, name, kind = self._metric, self._name, type(self)
        dtype, has_float64 = self._dtype, self._has_float64
        keeps_data = keeps(self._format, counted, batch, data)
        reports = kind._reported_as_there is not CompatibleMetric._reported_as_there
        is_quotient = value.is_quotient and not reports and kind._converted is CompatibleMetric._converted

        def values(preds: Tensor, target: Tensor) -> dict[str, Any]:
            found = value(preds, target)
            if found is None:
                raise _NotPreparedError
            return {name: found}

        def value_of(batch: Sequence[Tensor]) -> Any:
            if self._metric is not counted and self._metric != counted:
                return None  # it has measured another number of outputs meanwhile
            preds, target = batch if keeps_data else self._format(*batch).values()
            if is_quotient:  # which is neither warned of nor changed
                number = value.quotient(preds, target)
                return None if math.isnan(number) else number_in(number, dtype)
            self.__dict__.update(_dtype=dtype, _has_float64=has_float64)  # of the last batch; setattr is slow
            if not reports:
                with taken_warnings(NoDataWarning):
                    found = value(preds, target)
                return None if found is None else squeezed(self._converted(found))
            try:
                found = self._reported_as_there(values, preds=preds, target=target)
            except _NotPreparedError:
                return None
            return squeezed(self._converted(found[name]))

        return value_of

    @torch.jit.unused
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Count a batch, and give the value of it alone."""
        if "_of_batch_of_group" in self.__dict__:  # the first of its compute group has counted the batch
            return self.__dict__.pop("_of_batch_of_group")
        differentiable = self._differentiable_value(args, kwargs)
        value = super().forward(*args, **kwargs)
        return value if differentiable is None else differentiable

    def _differentiable_value(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The value of a batch as TorchMetrics' class computes it, where an input requires a gradient; else None."""
        inputs = (*args, *kwargs.values())
        if not (require_gradient(inputs) and has_gradient(self.original)):
            return None
        there = self.__dict__.pop("_for_gradients", None) or self.original(**self._arguments)  # which takes long
        device = next(each.device for each in inputs if isinstance(each, Tensor))
        if there.device != device:
            there.to(device)
        if there.dtype != self._dtype:
            there.set_dtype(self._dtype)
        args, kwargs = self.first(*args), dict(zip(kwargs, self.first(*kwargs.values()), strict=True))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # counting the batch warns
            value = there(*args, **kwargs)
        there.reset()  # it keeps no graph
        self.__dict__["_for_gradients"] = there  # no submodule
        return value

    def compute_for(self, group: Sequence[CompatibleMetric]) -> None:
        """Compute the values of a compute group, which shares the meter; `compute` of each then gives its value."""
        if all(each._computed is not None for each in group):
            return
        options = {
            "dist_sync_fn": self.dist_sync_fn,
            "should_sync": self._to_sync,
            "should_unsync": self._should_unsync,
        }
        with self.sync_context(**options):
            values = self._reported_as_there(self.meter.compute)
            for each in group:
                value = squeezed(each._value(values[each._name]))
                each.__dict__["_computed"] = value  # setattr of a module is slow

    def count_for(self, group: Sequence[CompatibleMetric], *args: Any, **kwargs: Any) -> None:
        """Count a batch for a compute group, which shares the meter; `forward` of each then gives its value."""
        differentiable = [each._differentiable_value(args, kwargs) for each in group]
        try:
            batch = self._batch(*args, **kwargs)
            values = self._reported_as_there(self.meter.forward, **batch)
        except InputError as error:
            raise self._error_as_there(error, args, kwargs) from error
        for each, with_gradient in zip(group, differentiable, strict=True):
            each._device, each._has_float64 = self._device, self._has_float64
            value = each._value(values[each._name])
            count = each._update_count + 1
            each.__dict__.update(_update_count=count, _updates_seen=count, _computed=None)
            each.__dict__.update(_forward_cache=value)
            each.__dict__.update(_of_batch_of_group=value if with_gradient is None else with_gradient)

    def _batch(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """A batch as assay's metric takes it."""
        if self._left is not None:
            args, kwargs = self.first(*args), dict(zip(kwargs, self.first(*kwargs.values()), strict=True))
        batch = self._format(*args, **kwargs)
        preds = batch["preds"]
        if isinstance(preds, Tensor):
            # setattr of a module is slow
            self.__dict__.update(_device=preds.device, _has_float64=preds.dtype == torch.float64)
            if self.entry.by_shape and preds.ndim <= 2:
                self._follow(self._of_size(preds.shape[1] if preds.ndim == 2 else 1))
        return batch

    def counts_alone(self) -> bool:
        """Whether the meter is of this metric alone, and not of its compute group."""
        return self._name == _VALUE

    def merge_state(self, incoming_state: Any) -> None:
        """Add what another metric of the same arguments has counted, or what its `metric_state` or `state_dict` gave.

        Raises:
            MergeError: it is neither, or of other arguments; the counts are then as before.
        """
        if not isinstance(incoming_state, Mapping | torchmetrics.Metric):
            raise MergeError(
                f"Expected incoming state to be a dict or an instance of Metric but got {incoming_state!r}"
            )
        if self.full_state_update is not False:
            raise MergeRefusedError(
                "``merge_state`` is not supported for metrics with ``full_state_update=True``: what they count depends "
                "on what was counted before. Define `merge_state` in the class."
            )
        if not isinstance(incoming_state, Mapping | CompatibleMetric):
            got = type(incoming_state).__name__
            raise MergeError(f"Expected incoming state to be an instance of {type(self).__name__} but got {got}")
        try:
            super().merge_state(incoming_state)
        except StateError as error:
            raise MergeError(f"Expected incoming state to be an equal metric, or what it gave. {error}") from error

    def _own_counts(self) -> Meter:
        return self.meter if self.counts_alone() else self.meter.only(**{_VALUE: self._name})

    def _counts_in(self, state: Mapping[str, Tensor]) -> Meter:
        if there := self._names_of_torchmetrics(state):
            raise StateError(_other_states(there))
        metric = self._metric
        if self.entry.by_shape:
            description, _ = described(state, "state_dict")
            (found,) = description.made((type(metric),), "state_dict").values()
            metric = self._of_size(getattr(found, self.size_field))
        meter = self.meter.fresh({_VALUE: metric})
        meter.load_state_dict(state)
        return meter

    def _names_of_torchmetrics(self, state: Mapping[str, Tensor], prefix: str = "") -> list[str]:
        """The states of TorchMetrics' class in a dictionary."""
        return [name for name in self._states_there if name not in self._defaults and prefix + name in state]

    def _add_counts(self, meter: Meter) -> None:
        if self.entry.by_shape:
            if not meter.rows:
                return
            self._follow(self._of_size(getattr(meter.metrics[_VALUE], self.size_field)))
        if not self.counts_alone():
            self.meter, self._name = self._own_counts(), _VALUE
        self.meter.merge(meter)

    def _load_counts(self, state: Mapping[str, Tensor]) -> None:
        meter = self._counts_in(state)
        self.meter, self._name = self.meter.fresh({_VALUE: self._metric}), _VALUE
        self._add_counts(meter)

    def _reduce_states(self, incoming_state: dict[str, Any]) -> None:
        if self.entry.by_shape and "meter" in incoming_state and not incoming_state["meter"].rows:
            incoming_state = {**incoming_state, "meter": self.meter.fresh()}
        super()._reduce_states(incoming_state)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *more: Any) -> None:
        if there := self._names_of_torchmetrics(state_dict, prefix):
            more[-1].append(_other_states(there))
            for name in there:
                state_dict.pop(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, *more)

    def _value(self, value: Any) -> Any:
        """The value as the class of TorchMetrics gives it; without any sample its own, where it has one."""
        if self.meter.rows:
            return self._converted(value)
        empty = self.original(**self._arguments)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = self.original.compute(empty)  # not by `empty.compute`, which synchronizes and warns
        except (IndexError, RuntimeError, ValueError):
            return self._converted(value)
        return placed(squeezed(found), self._dtype, self._device)

    def _converted(self, value: Any) -> Any:
        value = original_value(value, self._metric, self._average)
        if not (self._has_float64 and has_thresholds(self._metric)):
            dtype = dtype_of_class(self.entry.name, self._dtype, self._has_float64)
            return placed(value, dtype, self._device)
        *rates, thresholds = placed(value, torch.float64, self._device)  # a rounded one is another threshold
        return *placed(rates, self._dtype, self._device), thresholds

    def _reported_as_there(self, values: Callable[..., dict[str, Any]], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Values by name. Where TorchMetrics has a number, there is no warning; elsewhere NaN is its value, too."""
        with taken_warnings(NoDataWarning):
            return values(*args, **kwargs)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._arguments.items())})"


class CompatibleRate(CompatibleMetric):
    """A quotient of true and false positives and negatives, divided and averaged as TorchMetrics does."""

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
        how = None if self._defaults else rate_of(self.entry.name)
        if how is not None:
            return placed(rate(how, self, value[:4]), self._dtype, self._device)
        if not self._defaults:
            average = self._average if value.tp.ndim else "none"
            if self.entry.assay == "StatScores" and average in _REDUCED:
                return placed(_REDUCED[average](torch.stack(value, -1)), self._dtype, self._device)
            counts = (each.to(self._device) for each in value[:4])
            self.__dict__.update(zip(("tp", "fp", "tn", "fn"), counts, strict=True))  # setattr of a module is slow
        return placed(self.original.compute(self), self._dtype, self._device)


class CompatibleAggregate(CompatibleMetric):
    """An aggregate of numbers, whose `nan_strategy` says what becomes of NaN."""

    _has_warned = False

    def _counts_in(self, state: Mapping[str, Tensor]) -> Meter:
        if state.keys() != set(self._states_there):
            return super()._counts_in(state)
        value, weight = (to_host(torch.as_tensor(state.get(name, 1))).double() for name in (self.state_name, "weight"))
        meter = self.meter.fresh({_VALUE: self._metric})
        is_mean = "weight" in state
        if not is_mean or weight:
            batch = {"value": value / weight, "weight": weight} if is_mean else {"value": value}
            meter.update(**self._format(**batch))
        return meter

    def _reported_as_there(self, values: Callable[..., dict[str, Any]], *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Values by name. NaN that are left out are reported once a metric; infinite values are values there."""
        try:
            with taken_warnings(AssayWarning) as taken:
                found = values(*args, **kwargs)
        except InvalidValuesError as error:
            raise NanValuesError(f"Encountered `nan` values in tensor. {error}") from error
        for message, _ in taken:
            if NAN_LEFT_OUT in message and not self._has_warned:
                self._has_warned = True
                warn(f"Encountered `nan` values in tensor. Will be removed. {message}", InvalidValuesWarning)
        return found


class CompatibleR2(CompatibleMetric):
    """R² adjusted as TorchMetrics does: with too few samples there is a warning, and no adjustment."""

    def _counted(self, metric: Any) -> Any:
        return replace(metric, adjusted=0)

    def _plain_value(self) -> Any:
        return None if self.adjusted else super()._plain_value()

    def _reported_as_there(self, values: Callable[..., dict[str, Any]], *args: Any, **kwargs: Any) -> dict[str, Any]:
        rows = len(kwargs["preds"]) if "preds" in kwargs else self.meter.rows
        if rows == 1:
            do = "Compute of two samples or more"
            why = describe("R2Score", "1 sample, which has no variance", "2 or more", do)
            raise FewSamplesError(f"Needs at least two samples to calculate r2 score. {why}")
        found = super()._reported_as_there(values, *args, **kwargs)
        if not self.adjusted or not rows:
            return found
        free = rows - self.adjusted - 1
        if free <= 0:
            why = "Division by zero in" if free == 0 else "More independent regressions than data points in"
            warn(f"{why} adjusted r2 score. Falls back to standard r2 score.", NoDataWarning)
            return found
        return {name: 1 - (1 - value) * (rows - 1) / free for name, value in found.items()}


class CompatibleOperatingPoint(CompatibleMetric):
    """The largest of two rates where the other has a minimum, and its threshold, on the curve that assay counts."""

    def _counted(self, metric: Any) -> Any:
        return _with_fields(ROC, metric)

    def _converted(self, value: Any) -> Any:
        minimum = next(each for name, each in self._arguments.items() if name.startswith("min_"))
        fpr, tpr, thresholds = super()._converted(value)
        sensitivity = self.entry.assay == "SensitivityAtSpecificity"
        return operating_points(fpr, tpr, thresholds, minimum, sensitivity)


def _has_samples(preds: Any) -> bool:
    """Whether a batch with these has any sample; a number and a text are one."""
    if isinstance(preds, Tensor):
        return not preds.ndim or preds.shape[0] > 0  # `len` of a tensor is a function of Python
    return isinstance(preds, str) or len(preds) > 0


def require_gradient(inputs: Iterable[Any]) -> bool:
    """Whether a value of these inputs is to have a gradient."""
    return any(isinstance(each, Tensor) and each.requires_grad for each in inputs) and torch.is_grad_enabled()


def has_gradient(original: Any) -> bool:
    """Whether the values of a class of TorchMetrics have a gradient; those of aggregates do, which declare nothing."""
    return original.is_differentiable is not False or original.__name__ in _DECLARED_OTHERWISE


def _with_fields(kind: Any, metric: Any) -> Any:
    """A metric of the same data as another one, whose values are not yet averaged."""
    taken = {each.name for each in fields(metric)} & {each.name for each in fields(kind)}
    return kind(**{name: getattr(metric, name) for name in taken - {"average", "multidim_average"}})


def _other_states(names: Sequence[str]) -> str:
    """The message about states that TorchMetrics saved."""
    do = "Save metric_state or state_dict of the compatible metric; or leave these keys out, and count the data again"
    got = f"states of TorchMetrics' own class ({', '.join(names)})"
    return describe("state", got, "counts of assay, which are exact and cannot be made from rounded sums", do)


class _NotPreparedError(Exception):
    """A batch that a meter must measure."""
