"""`MetricCollection` of TorchMetrics' names: what its metrics share is counted once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import torch

from assay.compat.for_torchmetrics.metric import CompatibleMetric
from assay.integrations.optional_packages import import_package
from assay.meter import Meter

_collections: Any = import_package("torchmetrics.collections", "metrics of its names")


class MetricCollection(_collections.MetricCollection):  # type: ignore[misc]
    """Metrics that are updated with the same batches, as TorchMetrics has it.

    A compute group is the compatible metrics that read the same batches; one meter counts for all of them. Metrics that
    the caller puts into different groups share none.
    """

    __jit_unused_properties__ = (*_collections.MetricCollection.__jit_unused_properties__, "compute_groups")
    _is_parted = False
    if TYPE_CHECKING:  # TorchScript evaluates the annotations of a class
        _groups: dict[int, list[str]]
        _groups_of_caller: dict[int, list[str]]
        _state_is_copy: bool

    @property
    def compute_groups(self) -> dict[int, list[str]]:
        """The groups as TorchMetrics has them: those of the caller; else each metric by itself before the first update.

        Then the metrics of a group have the same states in TorchMetrics. One meter may count for several groups.
        """
        if isinstance(self._enable_compute_groups, list):
            return self._groups_of_caller
        groups: dict[Hashable, list[str]] = defaultdict(list)
        for number, names in self._groups.items():
            for name in names:
                states = getattr(getattr(self, name), "_states_there", ())
                groups[(number, states) if self._groups_checked else name].append(name)
        order = list(self.keys(keep_base=True))
        return dict(enumerate(sorted(groups.values(), key=lambda names: order.index(names[0]))))

    def _init_compute_groups(self) -> None:
        """Let metrics that have counted nothing share a meter; metrics of TorchMetrics itself are groups of one."""
        super()._init_compute_groups()
        self._groups_of_caller, self._is_parted = self._groups, False
        group_of = {name: number for number, names in self._groups.items() for name in names}
        by_caller = isinstance(self._enable_compute_groups, list)
        groups: dict[Hashable, list[str]] = defaultdict(list)
        for name in self.keys(keep_base=True):
            groups[by_caller and group_of[name], _shared_by(getattr(self, name), name)].append(name)
        self._groups = dict(enumerate(groups.values()))
        for members in self._members():
            if len(members) > 1 and not members[0].update_called:
                metrics = list(dict.fromkeys(each.described() for each in members))
                meter = Meter(weighted=members[0].meter.weighted, **{f"value{i}": m for i, m in enumerate(metrics)})
                for each in members:
                    each.share(meter, f"value{metrics.index(each.described())}")

    def _members(self) -> list[list[Any]]:
        """The metrics of each group."""
        return [[self._modules[name] for name in names] for names in self._groups.values()]

    def _compute_groups_create_state_ref(self, copy: bool = False) -> None:
        """Give all of a group the counts of the first, or a copy of them."""
        if self._state_is_copy and not copy:
            self._part()
        if not self._state_is_copy:
            for first, *others in self._members():
                following = {name: getattr(first, name) for name in _FOLLOWING} if others else {}
                for each in others:  # not by setattr of a module, which is slow
                    each.__dict__.update(following, meter=deepcopy(first.meter) if copy else first.meter)
        self._state_is_copy = copy

    def _part(self) -> None:
        """Take metrics that were updated or reset by themselves out of their groups."""
        if self._state_is_copy and self._enable_compute_groups:
            groups: dict[Hashable, list[str]] = defaultdict(list)
            for number, names in self._groups.items():
                for name in names:
                    groups[number, _counted_by(getattr(self, name), name)].append(name)
            self._is_parted |= len(groups) > len(self._groups)
            self._groups = dict(enumerate(groups.values()))

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        self._state_is_copy = True  # each metric then loads counts of its own

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Count a batch."""
        self._part()
        self._groups_checked = bool(self._enable_compute_groups)
        super().update(*args, **kwargs)

    def reset(self) -> None:
        """Forget everything that was counted; metrics that were taken out of their groups are in them again."""
        super().reset()
        if self._is_parted:
            self._init_compute_groups()

    def compute(self) -> dict[str, Any]:
        """The values of all metrics; those of a group are computed, and summed over processes, together."""
        for members in self._members():
            if len(members) > 1 and members[0].update_called and not self._state_is_copy:
                members[0].compute_for(members)
        values: dict[str, Any] = super().compute()
        return values

    @torch.jit.unused
    def forward(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Count a batch, and give the values of it alone."""
        self._part()
        self._groups_checked = bool(self._enable_compute_groups)
        if self._enable_compute_groups:
            self._state_is_copy = False
            self._compute_groups_create_state_ref()
            for members in self._members():
                if len(members) > 1:
                    members[0].count_for(members, *args, **members[0]._filter_kwargs(**kwargs))
        values: dict[str, Any] = super().forward(*args, **kwargs)
        return values


_FOLLOWING = ("_update_count", "_updates_seen", "_device", "_has_float64")
"""Attributes of the first metric of a group that the others take over."""


def _shared_by(metric: Any, name: str) -> Hashable:
    """What metrics have in common that share a meter."""
    if (
        not isinstance(metric, CompatibleMetric)
        or metric._defaults
        or metric.entry.by_shape
        or metric.dist_sync_on_step
    ):
        return name
    if metric.update_called:
        return id(metric.meter)
    return metric.takes(), metric.sync_on_compute, id(metric.process_group)


def _counted_by(metric: Any, name: str) -> Hashable:
    """What the metrics of a group have in common while none is updated, reset or loaded by itself."""
    if not isinstance(metric, CompatibleMetric) or metric.counts_alone():
        return name
    return metric.update_count, metric.meter.rows
