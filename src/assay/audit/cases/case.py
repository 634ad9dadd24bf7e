"""A metric as the audit runs it: how to build it, feed it, move it and read it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from assay.audit.tensor_trees import mapped, tensors_of
from assay.audit.watching.observations import USAGES


def _move(metric: Any, device: Any) -> Any:
    """By ``to``; the tensors of an object without it are moved one by one, as if it had made them there."""
    if not hasattr(metric, "to"):
        for name, value in vars(metric).items():
            setattr(metric, name, mapped(value, lambda tensor: tensor.to(device)))
        return metric
    moved = metric.to(device)
    return metric if moved is None else moved


@dataclass(frozen=True)
class Case:
    """One metric with inputs, ready to be run on any device.

    The five callables say how this kind of object is used. What stands here fits an object with ``update``,
    ``compute`` and ``to``; pass others where a library does it otherwise.

    Args:
        name: what the metric is called in findings, such as ``"torchmetrics.classification.BinaryAccuracy"``.
        build: makes a fresh metric, on the CPU.
        batches: the positional arguments of each update: trees (tuples, lists, dictionaries) of CPU tensors.
        update: ``(metric, batch)``; feeds one batch.
        compute: ``(metric)``; computes the value.
        move: ``(metric, device)``; gives the metric on the device, as users of the library move it.
        states: ``(metric)``; what the metric keeps, by name. May nest.
        sync: ``(metric)``; computes the value over all processes, where that is not ``compute``.
        computes_on_cpu: whether the value is on the CPU by design; else it should be where the inputs are.
        usages: ways in which it is used: ``"moved first"`` to the device, ``"not moved"``, or both.
        why_not: why it cannot be run here (a download, a package); it is then listed and not run.

    Example:
        >>> import torch
        >>> class Total:
        ...     def __init__(self):
        ...         self.sum = torch.zeros(())
        ...     def update(self, values):
        ...         self.sum = self.sum + values.sum()
        ...     def compute(self):
        ...         return self.sum
        >>> case = Case("Total", Total, batches=((torch.ones(3),), (torch.ones(2),)))
        >>> metric = case.build()
        >>> for batch in case.batches:
        ...     case.update(metric, batch)
        >>> case.compute(metric), case.states(metric)
        (tensor(5.), {'sum': tensor(5.)})
    """

    name: str
    build: Callable[[], Any]
    batches: tuple[tuple[Any, ...], ...] = ()
    update: Callable[[Any, tuple[Any, ...]], Any] = lambda metric, batch: metric.update(*batch)
    compute: Callable[[Any], Any] = lambda metric: metric.compute()
    move: Callable[[Any, Any], Any] = _move
    states: Callable[[Any], dict[str, Any]] = tensors_of
    sync: Callable[[Any], Any] | None = None
    computes_on_cpu: bool = False
    usages: tuple[str, ...] = USAGES
    why_not: str = ""
