"""TorchMetrics: metrics of assay where a `torchmetrics.Metric` is wanted, and its metrics inside a meter.

Lightning and Composer ask for `isinstance(metric, torchmetrics.Metric)`, so what is here serves them, too.

What TorchMetrics' base class does with states that were added to it, these do with a meter: the meter counts, sums over
processes, and goes into checkpoints. States never move: a meter counts on the device of each batch.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from assay.errors import ConfigError, StateError, describe
from assay.integrations.hosts import host
from assay.meter import Meter
from assay.meter.file import ABOUT
from assay.metrics.base import Metric, number
from assay.tally.base import Tally
from assay.tally.rows import Rows

torchmetrics: Any = host("torchmetrics", "metrics that it takes for its own")

_VALUE = "value"
_ROWS = 4096
"""How many rows a metric of TorchMetrics is given at once when it is read."""


class AssayMetric(torchmetrics.Metric):  # type: ignore[misc]
    """A meter that TorchMetrics, Lightning and Composer take for a metric of TorchMetrics; made by `as_torchmetric`.

    `update` does not wait for the device. `forward`, which gives the value of the batch, does: it is read on the host.

    Attributes:
        meter: what was counted.
    """

    full_state_update = False
    is_differentiable = False
    _device: torch.device
    _is_synced: bool

    def __init__(self, meter: Meter, **options: Any) -> None:
        if options.get("dist_sync_fn") is not None:
            do = "Leave it out: counts are summed over the process group by the meter"
            raise ConfigError(describe("dist_sync_fn", repr(options["dist_sync_fn"]), "nothing", do))
        super().__init__(**options)
        self.meter = meter
        self._own: Meter | None = None
        self._keeps = False
        self._left: int | None = None

    @property
    def higher_is_better(self) -> bool | None:
        """Whether a higher value is better; None where that is not said, or where there are several metrics."""
        directions = {metric.better for metric in self.meter.metrics.values()}
        return {"higher": True, "lower": False}.get(directions.pop()) if len(directions) == 1 else None

    def update(self, preds: Tensor, target: Tensor | None = None, weights: Tensor | None = None) -> None:
        """Count a batch, as `Meter.update` does."""
        self.meter.update(*self._first(preds, target), weights=self._first(weights)[0])

    def count_only(self, rows: int | None) -> None:
        """Of every batch from now on, count the first rows only; None: all. For samples that a sampler repeats."""
        self._left = rows

    def _first(self, *given: Any) -> Any:
        return given if self._left is None else [None if each is None else each[: self._left] for each in given]

    def compute(self) -> Any:
        """The value, or the values by name; float64 on the host."""
        return _alone(self.meter.compute())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Count a batch, and give the value of it alone."""
        batch = self.meter.fresh()
        batch.update(*self._first(*args), **{name: self._first(each)[0] for name, each in kwargs.items()})
        self.update(*args, **kwargs)
        self._forward_cache = _alone(batch.compute())
        return self._forward_cache

    def reset(self) -> None:
        """Forget everything that was counted."""
        super().reset()
        self.meter, self._own, self._left = self._own or self.meter, None, None
        self.meter.reset()

    def sync(
        self,
        dist_sync_fn: Callable[..., Any] | None = None,
        process_group: Any | None = None,
        should_sync: bool = True,
        distributed_available: Callable[[], bool] | None = None,
    ) -> None:
        """Put the counts of all processes in the place of one's own, until `unsync`."""
        if not should_sync:
            return
        if self._is_synced:
            raise StateError(describe("sync", "counts of all processes already", "one's own", "Call unsync() first"))
        available = distributed_available or self.distributed_available_fn
        if not available():
            return
        self._own, self.meter = self.meter, self.meter.sync(process_group or self.process_group)
        self._is_synced = True

    def unsync(self, should_unsync: bool = True) -> None:
        """Take back one's own counts."""
        if not should_unsync:
            return
        if not self._is_synced or self._own is None:
            raise StateError(describe("unsync", "one's own counts", "those of all processes", "Call sync() first"))
        self.meter, self._own, self._is_synced = self._own, None, False

    def merge_state(self, incoming_state: Any) -> None:
        """Add what another one of equal metrics has counted."""
        if not isinstance(incoming_state, AssayMetric):
            got, expected = type(incoming_state).__name__, "what as_torchmetric made of equal metrics"
            raise StateError(describe("merge_state", got, expected, "Merge the meters, or pass such a metric"))
        self.meter.merge(incoming_state.meter)
        self._computed = None
        self._update_count += incoming_state._update_count

    def _reduce_states(self, incoming_state: dict[str, Any]) -> None:
        """Refuse what `torchmetrics.wrappers.Running` keeps: it copies tensors by name, and counts have none."""
        got, do = "states by name, as of Running", "Make a Window of assay.wrappers"
        raise StateError(describe("a state to add", got, "counts", do))

    def persistent(self, mode: bool = False) -> None:
        """Whether the counts go into `state_dict`; they do not by default, as with metrics of TorchMetrics."""
        self._keeps = mode

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The counts by name, where `persistent(True)` was called."""
        held: dict[str, Any] = nn.Module.state_dict(self, *args, **kwargs)
        prefix = kwargs.get("prefix", args[1] if len(args) > 1 else "")
        if self._keeps:
            held.update({prefix + name: tensor for name, tensor in self.meter.state_dict().items()})
        return held

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        names = [name for name in state_dict if name.startswith(prefix)] if prefix + ABOUT in state_dict else []
        counted = {name.removeprefix(prefix): state_dict.pop(name) for name in names}
        if counted:
            try:
                self.meter.load_state_dict(counted)
            except StateError as error:
                error_msgs.append(str(error))
            self._computed, self._update_count = None, int(self.meter.rows > 0)
        elif strict and self._keeps:
            missing_keys.append(prefix + ABOUT)

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Any = "") -> nn.Module:
        """Note the device: there is nothing to move, and results, which are float64, stay on the host."""
        self._device = fn(torch.zeros(1, device=self._device)).device
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.meter!r})"


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
        The metric. `update(preds, target)` takes batches of any device, and `.to(device)` moves nothing.

    Raises:
        ConfigError: it is neither, or `dist_sync_fn` was given.
        MissingDependencyError: TorchMetrics is not installed.

    Example:
        >>> import torch
        >>> from assay import Accuracy
        >>> metric = as_torchmetric(Accuracy(num_classes=3))
        >>> metric.update(torch.tensor([0, 2, 1]), torch.tensor([0, 1, 1]))
        >>> metric.compute()
        tensor(0.6667, dtype=torch.float64)
    """
    if isinstance(metric, Meter):
        return AssayMetric(metric.fresh(), **options)
    given: object = metric
    if not isinstance(given, Metric):
        got = type(given).__name__
        raise ConfigError(describe("metric", got, "a metric or a meter of assay", "Pass Accuracy(num_classes=10)"))
    return AssayMetric(Meter(weighted=weighted, value=metric), **options)


class _Shared:
    """One meter for all members of a collection, and what was read from it."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.members: list[_Member] = []
        self.read: dict[str, Any] | None = None

    def changed(self, updates: int = 1, batch: Mapping[str, Any] | None = None) -> None:
        """Note that something was counted, and the values of the batch alone where they were read."""
        self.read = None
        for member in self.members:
            member._computed, member._forward_cache = None, (batch or {}).get(member._name)
            member._update_count += updates

    def values(self, member: AssayMetric) -> dict[str, Any]:
        """The values of all metrics, over all processes; read once until something is counted."""
        if self.read is None:
            everywhere = member.sync_on_compute and member.distributed_available_fn()
            meter = self.meter.sync(member.process_group) if everywhere else self.meter
            self.read = meter.compute()
        return self.read


class _Member(AssayMetric):
    """One metric of a collection."""

    def __init__(self, shared: _Shared, name: str, **options: Any) -> None:
        super().__init__(shared.meter, **options)
        self._shared, self._name = shared, name
        shared.members.append(self)

    @property
    def higher_is_better(self) -> bool | None:
        """Whether a higher value is better; None where that is not said."""
        return {"higher": True, "lower": False}.get(self.meter.metrics[self._name].better)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Refuse: what one member counted, the others would have counted, too."""
        do = "Call update of the collection"
        raise StateError(describe(f"update of {self._name}", "a batch for one member", "one for all", do))

    def compute(self) -> Any:
        """The value of this metric."""
        return self._shared.values(self)[self._name]

    def reset(self) -> None:
        """Forget everything that was counted, for all members."""
        super().reset()
        self._shared.read = None

    def sync(self, *args: Any, **kwargs: Any) -> None:
        """Nothing: `compute` asks all processes at once, for all members."""

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        if self._update_count:  # this member had the counts of all
            self._shared.changed(updates=0)
            for member in self._shared.members:
                member._update_count = self._update_count

    def persistent(self, mode: bool = False) -> None:
        """Whether the counts go into `state_dict`; the first member keeps them for all."""
        self._keeps = mode and self._name == next(iter(self.meter.metrics))


class AssayCollection(torchmetrics.MetricCollection):  # type: ignore[misc]
    """The metrics of one meter as a `torchmetrics.MetricCollection`; made by `as_torchmetrics`.

    A batch is counted once for all of them, and one exchange sums it over processes.
    """

    def __init__(self, meter: Meter, prefix: str | None = None, postfix: str | None = None, **options: Any) -> None:
        shared = _Shared(meter)
        members = {name: _Member(shared, name, **options) for name in meter.metrics}
        super().__init__(members, prefix=prefix, postfix=postfix, compute_groups=False)

    @property
    def _shared(self) -> _Shared:
        shared: _Shared = next(iter(self.values(copy_state=False)))._shared
        return shared

    def _counted(self, preds: Tensor, target: Tensor | None, weights: Tensor | None) -> tuple[Any, ...]:
        """What counts of a batch."""
        first = self._shared.members[0]
        return tuple(first._first(preds, target, weights))

    @property
    def meter(self) -> Meter:
        """What was counted."""
        return self._shared.meter

    def update(self, preds: Tensor, target: Tensor | None = None, weights: Tensor | None = None) -> None:
        """Count a batch for all metrics."""
        preds, target, weights = self._counted(preds, target, weights)
        self.meter.update(preds, target, weights=weights)
        self._shared.changed()

    def forward(self, preds: Tensor, target: Tensor | None = None, weights: Tensor | None = None) -> dict[str, Any]:
        """Count a batch, and give the values of it alone."""
        preds, target, weights = self._counted(preds, target, weights)
        batch = self.meter.fresh()
        batch.update(preds, target, weights=weights)
        values = batch.compute()
        self.meter.update(preds, target, weights=weights)
        self._shared.changed(batch=values)
        return {self._set_name(name): value for name, value in values.items()}

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
    made = meter.fresh() if isinstance(meter, Meter) else Meter(**dict[str, Any](meter))
    return AssayCollection(made, prefix, postfix, **options)


@dataclass(frozen=True, eq=False)
class Foreign(Metric):
    """A metric of TorchMetrics inside a meter; made by `from_torchmetrics`."""

    metric: Any
    preds: tuple[int, ...] = ()
    target: tuple[int, ...] | None = ()

    def __post_init__(self) -> None:
        if not isinstance(self.metric, torchmetrics.Metric):
            do = "Pass an instance, as in from_torchmetrics(MulticlassAccuracy(10), preds=(10,))"
            raise ConfigError(describe("metric", type(self.metric).__name__, "a metric of TorchMetrics", do))

    def tally(self, weighted: bool) -> Tally:
        if weighted:
            do = "Measure it without weights"
            raise ConfigError(describe(type(self.metric).__name__, "weights", "none, which it does not take", do))
        return Rows(self.preds, self.target)

    def read(self, counted: Sequence[Tensor]) -> Any:
        metric = copy.deepcopy(self.metric).to("cpu")
        metric.reset()
        metric.sync_on_compute = metric._to_sync = False  # the meter has the samples of all processes
        if not len(counted[0]):
            return number(math.nan)
        for rows in zip(*(torch.split(column, _ROWS) for column in counted), strict=True):
            metric.update(*rows)
        return _detached(metric.compute())


def _detached(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach()
    if isinstance(value, Mapping):
        return {name: _detached(each) for name, each in value.items()}
    return tuple(map(_detached, value)) if isinstance(value, list | tuple) else value


def from_torchmetrics(metric: Any, *, preds: tuple[int, ...] = (), target: tuple[int, ...] | None = ()) -> Foreign:
    """A metric of TorchMetrics as one that a meter takes.

    The meter keeps the samples, where they come from, and the metric gets all of them when it is read, on the host, in
    one order. So there is nothing to place, batches may come from any device, and the value has the same bits however
    they were split over batches and processes. It needs memory for the samples (see `SampleStore`), and a meter with
    such a metric cannot be read back from a file.

    Args:
        metric: what `update(preds, target)` takes rows of; its own state stays as it is.
        preds: the shape of one row: `(10,)` for scores of ten classes, `()` for one number.
        target: the same of the target; None for a metric that takes none.

    Raises:
        ConfigError: it is no metric of TorchMetrics.
        MissingDependencyError: TorchMetrics is not installed.

    Example:
        >>> import torch
        >>> from assay import Meter
        >>> from torchmetrics.classification import MulticlassAccuracy
        >>> meter = Meter(acc=from_torchmetrics(MulticlassAccuracy(3, average="micro"), preds=(3,)))
        >>> meter.update(torch.eye(3), torch.tensor([0, 1, 1]))
        >>> meter.compute()
        {'acc': tensor(0.6667)}
    """
    return Foreign(metric, tuple(preds), None if target is None else tuple(target))
