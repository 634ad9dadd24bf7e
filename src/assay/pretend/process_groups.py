"""The back end of ``torch.distributed`` that an adapter brings, such as ``hccl``: gloo does its work.

What the real one refuses is refused first: tensors of other devices, and dtypes and operators that its library cannot
add up (``[collectives]`` in ``devices/known/``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._pytree import tree_leaves

from assay.devices.capabilities import fact_file
from assay.devices.kinds import KINDS
from assay.pretend.events import Recorder
from assay.pretend.operand_checks import SCALAR_TYPES

REDUCTIONS = (
    "allreduce", "allreduce_coalesced", "reduce", "reduce_scatter", "_reduce_scatter_base",
    "reduce_scatter_tensor_coalesced",
)  # fmt: skip
"""The calls that add up; the others only move bytes."""
OTHERS = (
    "broadcast", "allgather", "_allgather_base", "allgather_coalesced", "allgather_into_tensor_coalesced", "gather",
    "scatter", "alltoall", "alltoall_base", "send", "recv", "recv_anysource",
)  # fmt: skip
"""Names that torch has given some of them since (``all_gather_single``) lead to these."""
TABLES = ("default_device_backend_map", "backend_type_map", "backend_capability", "_plugins")


@contextmanager
def registered(kind: str, recorder: Recorder) -> Iterator[None]:
    """Let ``init_process_group`` know the back end of an adapter while its device is pretended."""
    backend: Any = getattr(dist, "Backend", None)
    if backend is None:  # a build of torch without torch.distributed
        yield
        return
    name = KINDS[kind].backend
    tables, listed = {table: dict(getattr(backend, table)) for table in TABLES}, list(backend.backend_list)
    backend.register_backend(name, _group_of(kind, recorder), devices=[kind])
    try:
        yield
    finally:
        for table, entries in tables.items():
            getattr(backend, table).clear()
            getattr(backend, table).update(entries)
        backend.backend_list[:] = listed
        if hasattr(backend, name.upper()):
            delattr(backend, name.upper())


def _group_of(kind: str, recorder: Recorder) -> type[dist.ProcessGroup]:
    """The class of a process group for tensors of a kind of device."""
    facts, name = fact_file(kind)["collectives"], KINDS[kind].backend
    device, host = torch.device(kind), torch.device("cpu")

    class PretendGroup(dist.ProcessGroup):
        """A process group whose calls are checked, and then made by gloo."""

        _device_types = property(lambda self: [device])

        def __init__(self, store: Any, rank: int, size: int, timeout: Any) -> None:
            super().__init__(rank, size)  # type: ignore[call-arg]
            kinds: Any = dist.ProcessGroup.BackendType
            self.gloo = dist.ProcessGroupGloo(store, rank, size, timeout)
            for place, of in ((host, kinds.GLOO), (device, kinds.CUSTOM)):
                self._register_backend(place, of, self.gloo)
            self._set_default_backend(kinds.CUSTOM)  # torch 2.15 asks for it

    def refuse(call: str, tensor: Tensor, why: str) -> None:
        recorder.record("operator", f"c10d::{call}", str(tensor.device), why)
        raise RuntimeError(why)

    def check(group: Any, call: str, tensor: Tensor, operator: str) -> None:
        place = tensor.device.type
        if place != kind:
            config = dist.distributed_c10d._world.pg_backend_config.get(group, "")
            if f"{place}:" not in config:  # as in "cpu:gloo,npu:hccl"
                refuse(call, tensor, f"No backend type associated with device type {place}")
        elif call in REDUCTIONS:
            dtype = str(tensor.dtype).removeprefix("torch.")
            if operator in facts.get("refused_operators", ()):
                refuse(call, tensor, facts["operator_text"].format(operator=operator))
            if dtype not in facts["reduced"]:
                refuse(call, tensor, facts["text"].format(call=call, dtype=SCALAR_TYPES.get(dtype, dtype)))

    def agree(group: Any, call: str, tensor: Tensor) -> None:
        """Raise on every rank where ranks give tensors of different dtypes or sizes, at which gloo ends the process."""
        dtypes = list(SCALAR_TYPES)
        mine = torch.tensor([dtypes.index(str(tensor.dtype).removeprefix("torch.")), tensor.numel()])
        all_of_them = [torch.empty_like(mine) for _ in range(group.size())]
        group.gloo.allgather([all_of_them], [mine]).wait()
        given = [tuple(each.tolist()) for each in all_of_them]
        if len(set(given)) > 1:
            said = ", ".join(f"rank {rank} {dtypes[dtype]} × {count}" for rank, (dtype, count) in enumerate(given))
            refuse(call, tensor, f"{name} {call}: the ranks give tensors of different dtypes or sizes: {said}")

    def checked(call: str) -> Callable[..., Any]:
        original = getattr(dist.ProcessGroup, call)

        def run(group: Any, *args: Any, **kwargs: Any) -> Any:
            operator = _operator((*args, *kwargs.values()))
            tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
            for tensor in tensors:
                check(group, call, tensor, operator)
            if call in REDUCTIONS and tensors and tensors[0].device.type == kind:
                agree(group, call, tensors[0])
            return original(group, *args, **kwargs)

        run.__code__ = run.__code__.replace(co_name=call)  # by which pybind11 knows a method that calls its base's
        return run

    for call in (*REDUCTIONS, *OTHERS):
        if hasattr(dist.ProcessGroup, call):  # releases have other names for some
            setattr(PretendGroup, call, checked(call))
    return PretendGroup


def _operator(arguments: tuple[Any, ...]) -> str:
    """The name of the operator by which a call adds up."""
    operator = next((each.reduceOp for each in arguments if hasattr(each, "reduceOp")), None)
    return "" if operator is None else str(getattr(operator, "op", operator)).rpartition(".")[2]
