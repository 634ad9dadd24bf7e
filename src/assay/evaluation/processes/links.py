"""Which processes a model ties this one to, as its parameters and modules show it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch.distributed as dist
from torch import nn

from assay.errors import ConfigError, describe
from assay.meter.processes.distributed_tensors import is_distributed

Group: TypeAlias = tuple[int, ...]
"""Processes, by their ranks in the default group."""

SAME, STEP, APART = "same samples", "equal numbers of forwards", "nothing"
ROLES = {
    "tp": SAME,
    "sp": SAME,
    "cp": SAME,
    "fsdp": STEP,
    "dp_shard": STEP,
    "dp": APART,
    "dp_replicate": APART,
    "tensor_parallel": SAME,  # the last two are those of Lightning
    "data_parallel": APART,
}
"""What the processes along a dimension of a mesh must have in common, by its name."""

SAY = (
    'Pass mesh= with a name for each dimension, such as mesh={"x": "fsdp", "y": "tp"}, or data_group=, the process '
    "group whose members have different samples"
)


@dataclass(frozen=True)
class Links:
    """The processes that this one is tied to.

    Attributes:
        same: groups that must be given the same samples.
        step: groups whose forwards communicate with each other, so all must call the model equally often.
        found: what that was read from, in words.
        has_distributed_tensors: parameters are of type `DTensor`.
        has_outputs: this process has outputs of the model: of a pipeline the last one.
    """

    same: frozenset[Group] = frozenset()
    step: frozenset[Group] = frozenset()
    found: tuple[str, ...] = ()
    has_distributed_tensors: bool = False
    has_outputs: bool = True

    @property
    def any(self) -> bool:
        """Whether there are some."""
        return bool(self.same or self.step)


@dataclass(frozen=True)
class _Roles:
    """What dimensions mean."""

    by_name: Mapping[str, str]
    unknown: str | None

    def of(self, label: str, name: str, mesh: Any) -> str:
        """What a dimension of the mesh of a parameter means."""
        role = self.by_name.get(label, self.unknown)
        if role is None:
            got = f"parameter {name!r} on a mesh with the dimensions {', '.join(mesh.mesh_dim_names)}"
            expected = f"names such as {', '.join(ROLES)}"
            raise ConfigError(describe("model", f"{got}; {label!r} is not known", expected, SAY))
        return role


@dataclass(frozen=True)
class _Dimension:
    """A dimension of the mesh of a parameter."""

    name: str
    role: str
    group: Group


def links_of(modules: Sequence[nn.Module], roles: Mapping[str, str] | None = None, unknown: str | None = None) -> Links:
    """The links that fully sharded modules and parameters of type `DTensor` show.

    Args:
        modules: all modules of the model.
        roles: what dimensions of the mesh mean, by their names, where they are not those of `ROLES`.
        unknown: what any other dimension means; None to raise.

    Raises:
        ConfigError: a dimension of a mesh is not known, or a module keeps a process group that no parameter explains.
    """
    dimensions: set[_Dimension] = set()
    has_distributed_tensors, has_outputs = False, True
    known = _Roles({**ROLES, **(roles or {})}, unknown)
    sharded = _inside_fsdp(modules)
    for module in modules:
        if type(module).__name__ == "FullyShardedDataParallel":
            dimensions.add(_of_fsdp1(module))
        elif isinstance(module, nn.parallel.DistributedDataParallel) and module.broadcast_buffers:
            ranks = tuple(sorted(dist.get_process_group_ranks(module.process_group)))
            dimensions.add(_Dimension("DistributedDataParallel", STEP, ranks))  # a forward broadcasts them
        elif type(module).__name__ == "PipelineModel":
            stages: Any = module.group
            dimensions.add(_Dimension("pipeline", SAME, tuple(sorted(dist.get_process_group_ranks(stages)))))
            has_outputs = has_outputs and bool(module.has_outputs)
        for name, tensor in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
            if is_distributed(tensor):
                has_distributed_tensors = True
                dimensions |= set(_of_tensor(name, tensor, id(module) in sharded, known))
    dimensions = {each for each in dimensions if len(each.group) > 1}
    same = frozenset(each.group for each in dimensions if each.role == SAME)
    step = frozenset(each.group for each in dimensions if each.role == STEP)
    found = tuple(sorted({f"{each.name} ({each.role})" for each in dimensions if each.role != APART}))
    return Links(same, step, found, has_distributed_tensors, has_outputs)


def check_kept_groups(modules: Sequence[nn.Module], links: Links) -> None:
    """Raise where a module of the user's communicates in a way that no parameter explains.

    Raises:
        ConfigError: names its class and attribute.
    """
    for module in modules:
        if type(module).__module__.startswith("torch."):
            continue
        for name, value in vars(module).items():
            if isinstance(value, dist.ProcessGroup):
                ranks = tuple(sorted(dist.get_process_group_ranks(value)))
                unexplained = len(ranks) > 1 and ranks not in links.same | links.step
            else:
                is_mesh = type(value).__name__ == "DeviceMesh" and value.size() > 1
                unexplained = is_mesh and not links.has_distributed_tensors
            if unexplained:
                got = f"{type(module).__qualname__}.{name}, a {type(value).__name__}"
                expected = "parameters of type DTensor, FSDP, or word of which processes need the same samples"
                raise ConfigError(describe("model", got, expected, SAY))


def _inside_fsdp(modules: Sequence[nn.Module]) -> set[int]:
    """The ids of all modules in those that `fully_shard` took; their parameters take their sharded form again."""
    inside: set[int] = set()
    for module in modules:
        if any(base.__name__ == "FSDPModule" for base in type(module).__mro__):
            module.reshard()  # type: ignore[operator]  # after a forward the outermost one keeps whole parameters
            inside |= {id(each) for each in module.modules()}
    return inside


def _of_fsdp1(module: Any) -> _Dimension:
    for parameter in module.parameters():
        if any(each is not None for each in getattr(parameter, "_param_extensions", None) or ()):
            got = "FullyShardedDataParallel around parameters of type DTensor"
            raise ConfigError(describe("model", got, "fully_shard for a model that is tensor parallel", SAY))
    return _Dimension(
        "FullyShardedDataParallel", STEP, tuple(sorted(dist.get_process_group_ranks(module.process_group)))
    )


def _of_tensor(name: str, tensor: Any, is_sharded: bool, roles: _Roles) -> Iterator[_Dimension]:
    mesh = tensor.device_mesh
    place = mesh.get_coordinate()
    if place is None:
        got = f"parameter {name!r} on processes other than this one"
        raise ConfigError(describe("model", got, "a part of each parameter on every process", SAY))
    for number in range(mesh.ndim):
        at = [slice(None) if k == number else each for k, each in enumerate(place)]
        group = tuple(sorted(mesh.mesh[tuple(at)].tolist()))
        if len(group) == 1:
            continue
        if mesh.mesh_dim_names is not None:
            label = mesh.mesh_dim_names[number]
            role = roles.of(label, name, mesh)
            if role == APART and tensor.placements[number].is_shard():
                role = STEP  # fully sharded over a dimension that is called dp
            yield _Dimension(label, role, group)
        elif mesh.ndim == 1:
            yield _Dimension("fully_shard", STEP, group) if is_sharded else _Dimension("tensor parallel", SAME, group)
        else:
            got = f"parameter {name!r} on a mesh of {tuple(mesh.mesh.shape)} processes whose dimensions have no names"
            raise ConfigError(describe("model", got, f"names such as {', '.join(ROLES)}", SAY))
