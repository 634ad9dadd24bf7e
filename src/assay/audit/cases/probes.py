"""What no event shows: counters that stop, and tensors that a collective of the device's backend would refuse."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed
from torch import Tensor

from assay.audit.cases.case import Case
from assay.audit.tensor_trees import mapped, tensors_of
from assay.devices.kinds import KINDS
from assay.pretend.events import Frame, stack
from assay.pretend.session import PretendDevice

Tensors = dict[str, Tensor]
Note = Callable[..., None]
LARGEST = {torch.float32: 2**24, torch.bfloat16: 2**8, torch.float16: 2**11}  # integers held one by one up to here
RANKS = 2


# --- counters ------------------------------------------------------------------------------------------------------


def counters(case: Case, batches: tuple[Any, ...]) -> Iterator[tuple[str, Any, str]]:
    """States in float32 or less that count: they take whole steps up, and from some number on no step at all.

    Each candidate is set to that number in a fresh metric, which is updated once more: those that stand still are
    reported, with the path of the state, the metric that has it, and what happened. It takes at least two batches.
    """
    if len(batches) < 2:
        return
    metric, steps = case.build(), []
    for batch in batches:
        case.update(metric, mapped(batch, Tensor.clone))
        steps.append(_floats(metric))
    for path in steps[0].keys() & steps[-1].keys():
        if _counts([step[path] for step in steps if path in step]):
            what = _stands_still(case, batches, path)
            if what:
                yield path, metric, what


def _floats(metric: Any) -> Tensors:
    return {path: x.detach().clone() for path, x in tensors_of(metric).items() if x.dtype in LARGEST and x.numel()}


def _counts(values: list[Tensor]) -> bool:
    """Integers that only rise, each time somewhere."""
    if len({value.shape for value in values}) != 1 or any((value != value.round()).any() for value in values):
        return False
    steps = [after - before for before, after in pairwise(values)]
    rises = all((step >= 0).all() and (step > 0).any() for step in steps)
    return bool(steps) and rises and bool((values[0] >= 0).all())


def _stands_still(case: Case, batches: tuple[Any, ...], path: str) -> str:
    """Set the state where it should end, update once more, and see whether it moves."""
    metric = case.build()
    case.update(metric, mapped(batches[0], Tensor.clone))
    state = tensors_of(metric)[path]
    before = state.detach().clone()
    case.update(metric, mapped(batches[1], Tensor.clone))
    step = (tensors_of(metric)[path].detach() - before).max()
    start = LARGEST[state.dtype] * 2 ** (int(step.item()).bit_length() + 1)
    with torch.inference_mode():  # TorchEval's states are inference tensors, which change in inference mode only
        tensors_of(metric)[path].fill_(start)
    case.update(metric, mapped(batches[1], Tensor.clone))
    after = tensors_of(metric)[path].detach()
    if not bool((after == start).all()):
        return ""
    name = str(state.dtype).removeprefix("torch.")
    return (
        f"The state `{path}` counts in {name}, which holds integers one by one up to {LARGEST[state.dtype]:,}. "
        f"Set to {start:,}, it stood still when an update added {int(step):,}"
    )


# --- collectives ---------------------------------------------------------------------------------------------------


def collectives(case: Case, metric: Any, pretended: PretendDevice) -> list[tuple[tuple[Frame, ...], str]]:
    """The CPU tensors that a metric hands to collectives as one of two processes: the lines, and what happened.

    Collectives are answered as if the other process had the same data. Kinds of device without a backend of their own
    (``mps``) use gloo, which takes CPU tensors: for them there is nothing to find.
    """
    kind, backend = pretended.type, KINDS[pretended.type].backend
    if not backend:
        return []
    uses: list[tuple[tuple[Frame, ...], str]] = []

    def note(name: str, tensors: list[Tensor], group: Any = None) -> None:
        for tensor in tensors if _backend(group, backend) == backend else ():
            if tensor.device == torch.device("cpu"):
                shape = f"a CPU tensor of shape {tuple(tensor.shape)}"
                uses.append(
                    (stack(sys._getframe(2)), f"{name} is given {shape}; {backend} takes tensors of {kind} only")
                )

    with _two_processes(backend, note), _own_device(pretended):
        try:
            (case.sync or case.compute)(metric)
        except Exception as error:
            if uses:  # the first is the finding; what comes after it in a process group of two never happens
                return uses
            raise error
    return uses


@contextmanager
def _two_processes(backend: str, note: Note) -> Iterator[None]:
    """torch.distributed as process 0 of two sees it, when the other has the same data."""
    answers = {**_group(backend), **_operations(note)}
    homes = [torch.distributed, torch.distributed.distributed_c10d]
    with ExitStack() as opened:
        for home in homes:
            for name, answer in answers.items():
                if hasattr(home, name):
                    opened.enter_context(patch.object(home, name, answer))
        yield


@contextmanager
def _own_device(pretended: PretendDevice) -> Iterator[None]:
    """A process of several has chosen its device: what is made on the current one is then where it belongs."""
    before = torch.accelerator.current_device_index()
    torch.accelerator.set_device_index(pretended.device.index)
    try:
        yield
    finally:
        torch.accelerator.set_device_index(before)


@dataclass(frozen=True)
class _Group:
    """A group of processes that the metric made, such as one of gloo for CPU tensors."""

    backend: str


def _backend(group: Any, usual: str) -> str:
    return group.backend if isinstance(group, _Group) else usual


def _group(backend: str) -> dict[str, Callable[..., Any]]:
    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "get_backend": lambda group=None: _backend(group, backend),
        "get_rank": lambda group=None: 0,
        "get_world_size": lambda group=None: RANKS,
        "barrier": lambda *args, **kwargs: None,
        "new_group": lambda *args, **kwargs: _Group(kwargs.get("backend") or backend),
        "destroy_process_group": lambda *args, **kwargs: None,
    }


def _operations(note: Note) -> dict[str, Callable[..., Any]]:
    dist = torch.distributed

    def all_reduce(tensor: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None, **_: Any) -> Any:
        note("all_reduce", [tensor], group)
        if op == dist.ReduceOp.SUM:
            tensor.mul_(RANKS)
        elif op == dist.ReduceOp.PRODUCT:
            tensor.mul_(tensor.clone())
        return _FinishedWork()

    def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, **_: Any) -> Any:
        note("all_gather", [tensor, *tensor_list], group)
        for place in tensor_list:
            place.copy_(tensor)
        return _FinishedWork()

    def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, **_: Any) -> Any:
        note("all_gather_into_tensor", [input_tensor, output_tensor], group)
        output_tensor.copy_(torch.cat([input_tensor] * RANKS).view_as(output_tensor))
        return _FinishedWork()

    def all_gather_object(object_list: list[Any], obj: Any, *_: Any, **__: Any) -> None:
        object_list[:] = [obj] * RANKS

    def gather_object(obj: Any, object_gather_list: list[Any] | None = None, *_: Any, **__: Any) -> None:
        if object_gather_list is not None:
            object_gather_list[:] = [obj] * RANKS

    def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, *_: Any, group: Any = None, **__: Any) -> Any:
        note("gather", [tensor, *(gather_list or [])], group)
        for place in gather_list or []:
            place.copy_(tensor)
        return _FinishedWork()

    def same(name: str) -> Callable[..., Any]:
        def stays(tensor: Tensor, *_: Any, group: Any = None, **__: Any) -> Any:
            note(name, [tensor], group)
            return _FinishedWork()

        return stays

    def objects_stay(object_list: list[Any], *_: Any, **__: Any) -> None:
        pass

    return {
        "all_reduce": all_reduce,
        "all_gather": all_gather,
        "all_gather_into_tensor": all_gather_into_tensor,
        "all_gather_object": all_gather_object,
        "gather_object": gather_object,
        "gather": gather,
        "reduce": same("reduce"),
        "broadcast": same("broadcast"),
        "broadcast_object_list": objects_stay,
    }


class _FinishedWork:
    """The work of a collective that is over."""

    def wait(self) -> bool:
        return True
