"""TorchMetrics: metrics of assay where a `torchmetrics.Metric` is wanted.

Lightning and Composer ask for `isinstance(metric, torchmetrics.Metric)`, so what is here serves them, too.

What TorchMetrics' base class does with states that were added to it, these do with a meter: the meter counts, sums over
processes, and goes into checkpoints. States never move: a meter counts on the device of each batch.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from assay.errors import ConfigError, StateError, describe
from assay.integrations.class_names import class_named, name_in_torchmetrics
from assay.integrations.optional_packages import import_package
from assay.meter import Meter
from assay.meter.file import ABOUT
from assay.metrics.base import Metric

torchmetrics: Any = import_package("torchmetrics", "metrics that it takes for its own")
gather_all_tensors: Any = import_package("torchmetrics.utilities.distributed", "metrics").gather_all_tensors
squeeze: Any = import_package("torchmetrics.utilities.data", "metrics")._squeeze_if_scalar
apply_to_collection: Any = import_package("lightning_utilities", "metrics").apply_to_collection

_VALUE = "value"


class AssayMetric(torchmetrics.Metric):  # type: ignore[misc]
    """A meter that TorchMetrics, Lightning and Composer take for a metric of TorchMetrics; made by `as_torchmetric`.

    Values are on the device of the last batch, in the dtype that `set_dtype` gives; by default torch's default dtype.
    `update` does not synchronize with the device. `forward` does: it returns the value of the batch.
    `forward`, `sync` and `reset` are those of `torchmetrics.Metric`, to which the meter is one more state: so they call
    an `update` and a `compute` that a subclass defines, and keep states that it adds.

    Attributes:
        meter: what was counted. After `reset` it is another, empty one.
    """

    full_state_update = False
    __jit_unused_properties__: ClassVar[list[str]] = [*torchmetrics.Metric.__jit_unused_properties__, "dtype"]

    def __init__(self, meter: Meter, **options: Any) -> None:
        _check_torchmetrics_options(options)
        super().__init__(**options)
        self._take(meter)

    def _take(self, meter: Meter) -> None:
        """Count with this meter."""
        self.meter = meter
        self._update_signature = _signature(meter)  # by which a collection chooses the arguments of each metric
        self._updates_seen = 0
        self._keeps = False
        self._of_batch = False  # inside forward, whose meter counts one batch and needs no stage
        self._left: int | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._update_signature = _signature(self.meter)  # the base class takes that of `update`

    @property
    def higher_is_better(self) -> bool | None:
        """Whether a higher value is better; None where that is not said, or where there are several metrics."""
        directions = {metric.higher_is_better for metric in self.meter.metrics.values()}
        return directions.pop() if len(directions) == 1 else None

    @property
    def dtype(self) -> torch.dtype:
        """That of the values."""
        return self._dtype

    def set_dtype(self, dst_type: str | torch.dtype) -> AssayMetric:
        """Set the dtype of the values; float64 gives all digits."""
        self._dtype = torch.empty(0, device="cpu").type(dst_type).dtype
        self._computed = None  # a value of another dtype
        return self

    def update(self, preds: Any, target: Any = None, weights: Tensor | None = None, **columns: Tensor) -> None:
        """Count a batch, as `Meter.update` does; features of one group also as `update(features, real=True)`."""
        target = _of_one_group(self.meter, preds, target, columns)
        preds, target, weights, *values = self.first(preds, target, weights, *columns.values())
        self.note_device(preds)
        self.meter.update(preds, target, weights=weights, **dict(zip(columns, values, strict=True)))

    def note_device(self, preds: Any) -> None:
        """Note where values go."""
        if isinstance(preds, Tensor):
            self.__dict__["_device"] = preds.device  # setattr of a module is slow

    def count_only(self, rows: int | None) -> None:
        """Of every batch from now on, count the first rows only; None: all. For samples that a sampler repeats."""
        self._left = rows

    def first(self, *tensors: Any) -> Any:
        return tensors if self._left is None else [None if each is None else each[: self._left] for each in tensors]

    def compute(self) -> Any:
        """The value, or the values by name."""
        return placed(_alone(self.meter.compute()), self._dtype, self._device)

    @torch.jit.unused
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Count a batch, and give the value of it alone; of all processes with `dist_sync_on_step=True`."""
        if self._is_synced or self.dist_sync_on_step or self._defaults or not type(self)._counts_itself():
            return self._forward_by_torchmetrics(*args, **kwargs)
        value = self._count_batch(*args, **kwargs)
        count = self._update_count + 1  # not by setattr, which takes longer than counting
        self.__dict__.update(_update_count=count, _updates_seen=count, _computed=None, _forward_cache=value)
        return value

    @classmethod
    @functools.cache
    def _counts_itself(cls) -> bool:
        """Whether the class that defines `update` and `compute` says how a batch is counted: its meter is all."""
        names = ("update", "compute", "_count_batch")
        return len({next(each for each in cls.__mro__ if name in vars(each)) for name in names}) == 1

    def _count_batch(self, preds: Any, target: Any = None, weights: Tensor | None = None, **columns: Tensor) -> Any:
        """The value of a batch that is then counted."""
        target = _of_one_group(self.meter, preds, target, columns)
        preds, target, weights, *rows = self.first(preds, target, weights, *columns.values())
        self.note_device(preds)
        values = self.meter.forward(preds, target, weights=weights, **dict(zip(columns, rows, strict=True)))
        return placed(squeezed(_alone(values)), self._dtype, self._device)

    def _forward_by_torchmetrics(self, *args: Any, **kwargs: Any) -> Any:
        """The same by the base class, which calls `update` and `compute` of a subclass and keeps its states."""
        before = {**self.__dict__, **self._copy_state_dict()}
        self._of_batch = True
        try:
            value = super().forward(*args, **kwargs)
        except Exception:
            self.__dict__.update(before)  # the base class counts the batch in the place of everything before
            raise
        self._of_batch = False
        self._updates_seen = self._update_count
        return value

    def reset(self) -> None:
        """Forget everything that was counted."""
        super().reset()
        if self._of_batch:
            self.meter = self.meter.fresh(stage_bytes=0)
        else:
            before, self.meter = self.meter, self.meter.fresh()
            self.meter.counts.take_over(before.counts)  # a forward costs no more than before
        self._updates_seen = 0

    def _wrap_update(self, update: Callable[..., None]) -> Callable[..., None]:
        counted = super()._wrap_update(update)

        @functools.wraps(update)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            self.__dict__["_updates_seen"] = count = self._update_count + 1  # also a failed update counts as one there
            if self._defaults or self._enable_grad or not type(self)._counts_itself():
                return counted(*args, **kwargs)
            self.__dict__.update(_computed=None, _update_count=count)  # setattr of a module is slow
            with torch.set_grad_enabled(False):
                update(*args, **kwargs)

        return wrapped

    def _wrap_compute(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        computed = super()._wrap_compute(compute)

        @functools.wraps(compute)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            if self._updates_seen != self._update_count:  # a compute group updates its first member only
                got = f"{self._update_count} updates of a compute group and {self._updates_seen} of its own"
                do = "Leave it out of compute_groups=, or use as_torchmetrics, which counts once for all metrics"
                raise StateError(describe(f"compute of {self.meter!r}", got, "updates of its own", do))
            is_usual = self._update_count and not self._is_synced
            if is_usual and (found := self.__dict__["_computed"]) is not None:
                return found
            if not is_usual or self.distributed_available_fn():  # there is something to warn of, or to ask processes
                return computed(*args, **kwargs)
            value = squeezed(compute(*args, **kwargs))
            if type(value) is not Tensor or value.ndim or not type(self)._counts_itself():  # else a new number
                value = value.clone() if type(value) is Tensor else apply_to_collection(value, Tensor, Tensor.clone)
            self.__dict__["_computed"] = value if self.compute_with_cache else None  # setattr of a module is slow
            return value

        return wrapped

    def _copy_state_dict(self) -> dict[str, Any]:
        """The states, and the meter itself: whoever asks then puts another in its place."""
        return {**super()._copy_state_dict(), "meter": self.meter}

    def _reduce_states(self, incoming_state: dict[str, Any]) -> None:
        """Add this to the states that `_copy_state_dict` gave, and take them for its own."""
        if "meter" not in incoming_state:  # Running copies the states that it knows by name
            got, do = "states by name, as of Running", "Use assay.wrappers.Running"
            raise StateError(describe("a state to add", got, "counts", do))
        super()._reduce_states(incoming_state)
        self.meter = incoming_state["meter"].merge(self.meter)

    def _sync_dist(self, dist_sync_fn: Any = gather_all_tensors, process_group: Any = None) -> None:
        """Put the counts of all processes in the place of one's own."""
        check_dist_sync_fn(None if dist_sync_fn is gather_all_tensors else dist_sync_fn)
        if self._reductions:
            super()._sync_dist(dist_sync_fn, process_group)
        self.meter = self.meter.sync(process_group or self.process_group)

    @property
    def metric_state(self) -> dict[str, Any]:
        """What was counted, as tensors by name; `merge_state` takes it."""
        return {**super().metric_state, **self._own_counts().state_dict()}

    def merge_state(self, incoming_state: Any) -> None:
        """Add what another one of equal metrics has counted, or what its `metric_state` or `state_dict` gave.

        Raises:
            StateError: it is neither, or of other metrics; the counts are then as before.
        """
        if isinstance(incoming_state, Mapping):
            counted = {name: value for name, value in incoming_state.items() if name not in self._defaults}
            meter = self._counts_in(counted)
            states, updates = dict(incoming_state), int(meter.rows > 0)
        elif isinstance(incoming_state, AssayMetric):
            meter, updates = incoming_state._own_counts(), incoming_state.update_count
            states = {name: getattr(incoming_state, name) for name in self._defaults}
        else:
            got, expected = type(incoming_state).__name__, "what as_torchmetric made of equal metrics"
            raise StateError(describe("merge_state", got, expected, "Merge the meters, or pass such a metric"))
        if missing := sorted(self._defaults.keys() - states.keys()):
            do = "Pass what metric_state of an equal metric gave"
            raise StateError(describe("merge_state", f"no {', '.join(missing)}", "every state", do))
        self._add_counts(meter)
        super()._reduce_states(states)
        self._computed = None
        self._update_count = self.update_count + updates
        self._updates_seen += updates

    def _own_counts(self) -> Meter:
        """A meter with the counts of this metric alone."""
        return self.meter

    def _counts_in(self, state: Mapping[str, Tensor]) -> Meter:
        """A meter with the counts of a dictionary."""
        meter = self.meter.fresh()
        meter.load_state_dict(state)
        return meter

    def _add_counts(self, meter: Meter) -> None:
        """Add what a meter has counted."""
        self.meter.merge(meter)

    def persistent(self, mode: bool = False) -> None:
        """Whether the counts go into `state_dict`; they do not by default, as with metrics of TorchMetrics."""
        super().persistent(mode)
        self._keeps = mode

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The counts by name, where `persistent(True)` was called."""
        state: dict[str, Any] = super().state_dict(*args, **kwargs)
        prefix = kwargs.get("prefix", args[1] if len(args) > 1 else "")
        if self._keeps:
            state.update({prefix + name: tensor for name, tensor in self._own_counts().state_dict().items()})
        return state

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *more: Any) -> None:
        _, strict, missing_keys, _, error_msgs = more
        for key in [each for each in self._defaults if prefix + each in state_dict]:
            setattr(self, key, state_dict.pop(prefix + key))
        names = [name for name in state_dict if name.startswith(prefix)] if prefix + ABOUT in state_dict else []
        counted = {name.removeprefix(prefix): state_dict.pop(name) for name in names}
        if counted:
            try:
                self._load_counts(counted)
            except StateError as error:
                error_msgs.append(str(error))
            self._computed = None
            self._update_count = self._updates_seen = int(self.meter.rows > 0)
        elif strict and self._keeps:
            missing_keys.append(prefix + ABOUT)

    def _load_counts(self, state: Mapping[str, Tensor]) -> None:
        """Replace what was counted by what a dictionary has."""
        self.meter.load_state_dict(state)

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Any = "") -> nn.Module:
        """Note the device, and move results and states of a subclass; counts stay where they are."""
        results = {name: getattr(self, name) for name in ("_computed", "_forward_cache")}
        self.__dict__.update(dict.fromkeys(results))
        moved: nn.Module = super()._apply(fn, *filter(None, [exclude_state]))
        self.__dict__.update({name: placed(each, self._dtype, self._device) for name, each in results.items()})
        return moved

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.meter!r})"


def _check_torchmetrics_options(options: Mapping[str, Any]) -> None:
    """Raise for options of `torchmetrics.Metric` that a meter cannot follow."""
    check_dist_sync_fn(options.get("dist_sync_fn"))
    if options.get("compute_on_cpu"):
        raise ConfigError(describe("compute_on_cpu", True, "False", "Leave it out: values are computed on the CPU"))


def check_dist_sync_fn(own: object) -> None:
    if own is not None:
        raise ConfigError(describe("dist_sync_fn", repr(own), "nothing", "Leave it out: the meter sums over the group"))


def squeezed(value: Any) -> Any:
    """A value as `compute` of TorchMetrics gives it: with the shape `()` instead of `(1,)`."""
    if type(value) is tuple:
        return tuple(map(squeezed, value))
    return value if isinstance(value, Tensor) and (not value.ndim or value.numel() != 1) else squeeze(value)


def placed(value: Any, dtype: torch.dtype, device: torch.device) -> Any:
    """A value, or values, on a device, in a dtype where they are floats."""
    if isinstance(value, Tensor):
        return value.to(device, dtype if value.is_floating_point() else value.dtype)
    if isinstance(value, dict):
        return {name: placed(each, dtype, device) for name, each in value.items()}
    if isinstance(value, list | tuple):
        parts = [placed(each, dtype, device) for each in value]
        return value._make(parts) if hasattr(value, "_make") else type(value)(parts)
    return value


def _alone(values: dict[str, Any]) -> Any:
    return values[_VALUE] if values.keys() == {_VALUE} else values


def as_torchmetric(metric: Metric | Meter, *, weighted: bool = False, **options: Any) -> AssayMetric:
    """A metric of assay as a `torchmetrics.Metric`: for `self.log` of Lightning, Composer, or a `MetricCollection`.

    Args:
        metric: a metric, whose value `compute` then gives; or a meter, whose values it gives by name. A meter is copied
            empty.
        weighted: updates come with `weights`.
        **options: `sync_on_compute`, `process_group` and the like, as `torchmetrics.Metric` takes them.

    Returns:
        The metric. `update(preds, target)` takes batches of any device. Values are on the device of the last batch, in
        torch's default dtype; `set_dtype(torch.float64)` gives all digits. The class of the metric has the name of the
        class of TorchMetrics in whose place it is, as `MulticlassAccuracy`.

    Raises:
        ConfigError: it is neither, or `dist_sync_fn` was given.
        MissingDependencyError: TorchMetrics is not installed.

    Example:
        >>> import torch
        >>> from assay import Accuracy
        >>> metric = as_torchmetric(Accuracy(num_classes=3))
        >>> metric.update(torch.tensor([0, 2, 1]), torch.tensor([0, 1, 1]))
        >>> metric.compute()
        tensor(0.6667)
    """
    if isinstance(metric, Meter):
        return AssayMetric(metric.fresh(), **options)
    if not isinstance(metric, Metric):
        got = type(metric).__name__  # type: ignore[unreachable]
        raise ConfigError(describe("metric", got, "a metric or a meter of assay", "Pass Accuracy(num_classes=10)"))
    kind = class_named(AssayMetric, name_in_torchmetrics(metric))
    made: AssayMetric = kind(Meter(weighted=weighted, value=metric), **options)
    return made


class _SharedMeter:
    """One meter for all members of a collection, and what was read from it."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.members: list[_Member] = []
        self.read: dict[str, Any] | None = None
        self.read_of_batch: dict[str, Any] | None = None
        self.of_batch = False

    def first(self, preds: Any, *tensors: Any) -> Any:
        """The rows of a batch that count; values go where they are."""
        for member in self.members:
            member.note_device(preds)
        return self.members[0].first(preds, *tensors)

    def replace(self, meter: Meter) -> None:
        """Count with another meter from now on."""
        self.meter = meter
        for member in self.members:
            member.meter = meter
        self.changed(updates=0)

    def changed(self, updates: int = 1) -> None:
        """Note that something was counted."""
        self.read = None
        for member in self.members:
            member.note_updates(updates)

    def values(self, member: AssayMetric) -> dict[str, Any]:
        """The values of all metrics, over all processes; read once until something is counted. Inside `forward`, those
        of its batch."""
        if self.read_of_batch is not None:
            return self.read_of_batch
        if self.read is None or not member.compute_with_cache:
            wanted = member.dist_sync_on_step if self.of_batch else member.sync_on_compute
            everywhere = wanted and member.distributed_available_fn()
            meter = self.meter.sync(member.process_group) if everywhere else self.meter
            self.read = meter.compute()
        return self.read


class _Member(AssayMetric):
    """One metric of a collection."""

    def __init__(self, shared: _SharedMeter, name: str, **options: Any) -> None:
        super().__init__(shared.meter, **options)
        self._shared, self._name = shared, name
        self._to_sync = False  # what is read is shared, and so is the exchange between processes
        shared.members.append(self)

    def note_updates(self, updates: int) -> None:
        """Note that the meter has counted so many batches more."""
        count = self._update_count + updates
        self.__dict__.update(_computed=None, _update_count=count, _updates_seen=count)

    @property
    def higher_is_better(self) -> bool | None:
        """Whether a higher value is better; None where that is not said."""
        return self.meter.metrics[self._name].higher_is_better

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Refuse: what one member counted, the others would have counted, too."""
        raise self._refused("update", "a batch for one member", "Call update of the collection")

    @torch.jit.unused
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse, as `update` does."""
        raise self._refused("forward", "a batch for one member", "Call the collection")

    def merge_state(self, incoming_state: Any) -> None:
        """Refuse: the counts are those of all members."""
        raise self._refused("merge_state", "counts for one member", "Call merge of the collection's meter")

    def _refused(self, what: str, got: str, do: str) -> StateError:
        return StateError(describe(f"{what} of {self._name}", got, "one for all" if "batch" in got else "all", do))

    def compute(self) -> Any:
        """The value of this metric."""
        return placed(self._shared.values(self)[self._name], self._dtype, self._device)

    def reset(self) -> None:
        """Forget everything that was counted, for all members."""
        torchmetrics.Metric.reset(self)
        self._updates_seen = 0
        self._shared.read = None
        self.meter.reset()

    def sync(self, *args: Any, **kwargs: Any) -> None:
        """Refuse, unless with `should_sync=False`: `compute` asks all processes at once, for all members."""
        if kwargs.get("should_sync", args[2] if len(args) > 2 else True):
            raise self._refused("sync", "counts for one member", "Call sync of the collection's meter")

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        if self._update_count:  # this member had the counts of all
            self._shared.changed(updates=0)
            for member in self._shared.members:
                member._update_count = member._updates_seen = self._update_count

    def persistent(self, mode: bool = False) -> None:
        """Whether the counts go into `state_dict`; the first member keeps them for all."""
        super().persistent(mode and self._name == next(iter(self.meter.metrics)))


class AssayCollection(torchmetrics.MetricCollection):  # type: ignore[misc]
    """The metrics of one meter as a `torchmetrics.MetricCollection`; made by `as_torchmetrics`.

    A batch is counted once for all of them, and one exchange sums it over processes.
    """

    __jit_unused_properties__: ClassVar[list[str]] = ["metric_state", "compute_groups", "meter", "_shared"]

    def __init__(self, meter: Meter, prefix: str | None = None, postfix: str | None = None, **options: Any) -> None:
        shared = _SharedMeter(meter)
        kinds = {name: class_named(_Member, name_in_torchmetrics(metric)) for name, metric in meter.metrics.items()}
        members = {name: kind(shared, name, **options) for name, kind in kinds.items()}
        super().__init__(members, prefix=prefix, postfix=postfix, compute_groups=False)

    @property
    def _shared(self) -> _SharedMeter:
        shared: _SharedMeter = next(iter(self.values(copy_state=False)))._shared
        return shared

    @property
    def meter(self) -> Meter:
        """What was counted."""
        return self._shared.meter

    def update(self, preds: Any, target: Any = None, weights: Tensor | None = None, **columns: Tensor) -> None:
        """Count a batch for all metrics."""
        target = _of_one_group(self.meter, preds, target, columns)
        preds, target, weights, *values = self._shared.first(preds, target, weights, *columns.values())
        self.meter.update(preds, target, weights=weights, **dict(zip(columns, values, strict=True)))
        self._shared.changed()

    @torch.jit.unused
    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Count a batch, and give the values of it alone; of all processes with `dist_sync_on_step=True`."""
        shared = self._shared
        on_step = any(member.dist_sync_on_step for member in shared.members)
        if on_step or type(self).update is not AssayCollection.update:
            return self._forward_by_update(*args, **kwargs)
        shared.read_of_batch = self._count_batch(*args, **kwargs)
        shared.changed()
        try:
            return self._values_of_batch()
        finally:
            shared.read_of_batch = None
            shared.changed(updates=0)

    def _count_batch(
        self, preds: Any, target: Any = None, weights: Tensor | None = None, **columns: Tensor
    ) -> dict[str, Any]:
        """The values of a batch that is then counted."""
        preds, target, weights, *rows = self._shared.first(preds, target, weights, *columns.values())
        return self.meter.forward(preds, target, weights=weights, **dict(zip(columns, rows, strict=True)))

    def _values_of_batch(self) -> dict[str, Any]:
        values: dict[str, Any] = self.compute()
        for member in self._shared.members:
            member._forward_cache = member._computed
        return values

    def _forward_by_update(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The same by `update` of a subclass, or with an exchange between processes."""
        shared, total = self._shared, self.meter
        shared.replace(total.fresh())
        shared.of_batch = True
        try:
            self.update(*args, **kwargs)
            values = self._values_of_batch()
            total.merge(self.meter)
        finally:
            shared.of_batch = False
            shared.replace(total)
        return values

    def add_metrics(self, metrics: Any, *additional_metrics: Any) -> None:
        """Only when it is made: the members share one meter."""
        if len(self):
            do = "Make a collection of all of them"
            raise StateError(describe("add_metrics", "another metric", "those of the meter", do))
        super().add_metrics(metrics, *additional_metrics)


def as_torchmetrics(
    meter: Meter | Mapping[str, Metric], prefix: str | None = None, postfix: str | None = None, **options: Any
) -> AssayCollection:
    """The metrics of one meter as a `torchmetrics.MetricCollection`: for `self.log_dict` of Lightning.

    Args:
        meter: a meter, which is copied empty, or metrics by name.
        prefix: put before each name.
        postfix: put behind each name.
        **options: as `torchmetrics.Metric` takes them.

    Raises:
        MissingDependencyError: TorchMetrics is not installed.

    Example:
        >>> import torch
        >>> from assay import Accuracy, F1Score
        >>> metrics = as_torchmetrics({"acc": Accuracy(num_classes=3), "f1": F1Score(num_classes=3)}, prefix="val_")
        >>> metrics.update(torch.tensor([0, 2, 1]), torch.tensor([0, 1, 1]))
        >>> sorted(metrics.compute())
        ['val_acc', 'val_f1']
    """
    empty = meter.fresh() if isinstance(meter, Meter) else Meter(**dict[str, Any](meter))
    return AssayCollection(empty, prefix, postfix, **options)


def _compares_groups(meter: Meter) -> bool:
    """Whether the metrics compare features of generated with those of real samples, as FID does."""
    return {metric.inputs for metric in meter.metrics.values()} == {"features"}


def _of_one_group(meter: Meter, preds: Any, target: Any, columns: dict[str, Any]) -> Any:
    """The target of a batch; that of TorchMetrics' `update(features, real)`, which has one group, for each sample."""
    by_name = target is None and "real" in columns
    if not (by_name or isinstance(target, bool)) or not _compares_groups(meter):
        return target
    real = columns.pop("real") if by_name else target
    return torch.full((len(preds),), bool(real), device=preds.device)


def _signature(meter: Meter) -> inspect.Signature:
    """That of `update`, with the columns that the metrics of a meter count."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    names = ("preds", "target", "weights", *sorted(meter.columns), *["real"] * _compares_groups(meter))
    return inspect.Signature([inspect.Parameter(name, kind, default=None) for name in names])
