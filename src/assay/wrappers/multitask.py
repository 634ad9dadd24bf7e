"""Several targets of one model: a meter for each, updated together."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch.distributed as dist
from torch import Tensor

from assay.errors import ConfigError, InputError, ShapeError, StateError, describe
from assay.meter import Meter
from assay.meter.inputs.arguments import Arguments
from assay.wrappers.nested_meters import load_meters, require_meter, save_meters


class Multitask:
    """A meter for each task of a model that gives a dictionary of predictions.

    A batch is checked for all tasks before it is counted for any of them.

    Args:
        **meters: the meters by task; they count.

    Raises:
        ConfigError: no task.
        StateError: something is no meter.

    Example:
        >>> import torch
        >>> from assay import Accuracy, MeanSquaredError, Meter
        >>> tasks = Multitask(kind=Meter(acc=Accuracy(num_classes=3)), size=Meter(mse=MeanSquaredError()))
        >>> preds = {"kind": torch.tensor([0, 2]), "size": torch.tensor([1.0, 2.0])}
        >>> tasks.update(preds, {"kind": torch.tensor([0, 1]), "size": torch.tensor([1.0, 4.0])})
        >>> tasks.compute()
        {'kind': {'acc': tensor(0.5000, dtype=torch.float64)}, 'size': {'mse': tensor(2., dtype=torch.float64)}}
    """

    def __init__(self, **meters: Meter) -> None:
        if not meters:
            do = "Write Multitask(seg=Meter(...), depth=Meter(...))"
            raise ConfigError(describe("Multitask", "no task", "one meter or more", do))
        self.meters = {name: require_meter(name, meter) for name, meter in meters.items()}

    @property
    def rows(self) -> dict[str, int]:
        """How many samples were given, by task."""
        return {name: meter.rows for name, meter in self.meters.items()}

    def update(
        self,
        preds: Mapping[str, Any],
        target: Mapping[str, Any] | None = None,
        *,
        weights: Mapping[str, Tensor] | Tensor | None = None,
        **columns: Mapping[str, Tensor | None],
    ) -> None:
        """Count a batch for the tasks that are in `preds`.

        Args:
            preds: predictions by task. A task that is absent has no samples in this batch.
            target: targets by the same names; without those of metrics that read none.
            weights: by name, or one tensor for all tasks.
            **columns: the named columns of metrics, each by the names of the tasks that take it.

        Raises:
            ShapeError: a name is no task, a target has no predictions, or shapes do not fit.
            DtypeError, DeviceError, ConfigError: as `Meter.update`. Nothing has then been counted, for any task.
        """
        arguments: dict[str, Mapping[str, Any]] = {"preds": preds, "target": target or {}}
        if weights is not None and not isinstance(weights, Tensor):
            arguments["weights"] = weights
        arguments |= columns
        for argument, tensors in arguments.items():
            self._check_names(argument, tensors, self.meters if argument == "preds" else preds)
        of_all = weights if isinstance(weights, Tensor) else None
        batches = {
            name: (
                each,
                arguments["target"].get(name),
                arguments.get("weights", {}).get(name, of_all),
                {column: of_tasks.get(name) for column, of_tasks in columns.items()},
            )
            for name, each in preds.items()
        }
        with ExitStack() as alone:
            for meter in {id(self.meters[name]): self.meters[name] for name in batches}.values():
                alone.enter_context(meter.counts.busy)
            ready: list[tuple[Meter, Arguments]] = []
            for name, batch in batches.items():
                meter = self.meters[name]
                try:
                    ready.append((meter, meter.ready(meter.arguments(*batch))[1]))
                except (InputError, ConfigError) as error:
                    raise type(error)(f"{name}: {error}") from error
            for meter, rows in ready:
                counts, rows = meter.ready(rows)  # again, as one meter may be that of several tasks
                counts.push(rows)

    def _check_names(self, argument: str, tensors: object, known: Mapping[str, object]) -> None:
        if not isinstance(tensors, Mapping):
            do = "Pass a dictionary from tasks to tensors"
            raise ShapeError(describe(argument, type(tensors).__name__, f"tensors for {', '.join(known)}", do))
        others = [str(name) for name in tensors if name not in known]
        if others:
            do = "Correct the names"
            raise ShapeError(describe(argument, f"also {', '.join(others)}", f"some of {', '.join(known)}", do))

    def compute(self) -> dict[str, dict[str, Any]]:
        """The values of every task, by task and by metric."""
        return {name: meter.compute() for name, meter in self.meters.items()}

    def merge(self, *others: Multitask) -> Multitask:
        """Add what others of equal meters have counted; they stay as they are.

        Raises:
            StateError: other tasks, or other metrics for one of them; nothing has then been added.
        """
        for other in others:
            if not isinstance(other, Multitask) or other.meters.keys() != self.meters.keys():
                do = "Make both with the same tasks"
                raise StateError(describe("merge", repr(other), f"tasks {', '.join(self.meters)}", do))
        merged = {
            name: meter.fresh().merge(meter, *(other.meters[name] for other in others))
            for name, meter in self.meters.items()
        }
        self.meters = merged
        return self

    def __add__(self, other: Multitask) -> Multitask:
        """New ones with what both have counted."""
        if not isinstance(other, Multitask):
            return NotImplemented
        return self.fresh().merge(self, other)

    def sync(self, group: dist.ProcessGroup | None = None) -> Multitask:
        """New ones with what all processes have counted: one exchange for each task. See `Meter.sync`."""
        return Multitask(**{name: self.meters[name].sync(group) for name in sorted(self.meters)})._ordered_as(self)

    def _ordered_as(self, other: Multitask) -> Multitask:
        self.meters = {name: self.meters[name] for name in other.meters}
        return self

    def fresh(self) -> Multitask:
        """The same tasks with nothing counted."""
        return Multitask(**{name: meter.fresh() for name, meter in self.meters.items()})

    def reset(self) -> None:
        """Forget everything that was counted."""
        for meter in self.meters.values():
            meter.reset()

    def state_dict(self) -> dict[str, Tensor]:
        """What was counted, as tensors on the CPU."""
        return save_meters(self.meters)

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Replace what was counted by what `state_dict` gave.

        Raises:
            StateError: other tasks or metrics, or not whole; everything is then as it was.
        """
        meters = load_meters(state, lambda name: self.meters[name].fresh() if name in self.meters else None)
        missing = [name for name in self.meters if name not in meters]
        if missing:
            do = "Load what state_dict of the same tasks gave"
            raise StateError(describe("state_dict", f"no {', '.join(missing)}", "every task", do))
        self.meters = {name: meters[name] for name in self.meters}

    def __repr__(self) -> str:
        return f"Multitask({', '.join(f'{name}={meter!r}' for name, meter in self.meters.items())})"
