"""What the caller says of processes: `mesh=` and `data_group=`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import numpy as np
import torch.distributed as dist

from assay.errors import ConfigError, describe
from assay.evaluation.processes.links import ROLES, SAME, STEP, Group, Links

EXPERTS, STAGES = "ep", "pp"
_EXPECTED = "a DeviceMesh with named dimensions, or sizes or meanings of dimensions by their names"
_DO = 'Pass mesh={"dp": 2, "tp": 4} for 2 x 4 processes, or mesh={"x": "fsdp", "y": "tp"} for a mesh of the model'


def parsed_mesh(mesh: Any) -> Any:
    """What `mesh=` is: a `DeviceMesh`, sizes of dimensions or what they mean, by their names.

    Raises:
        ConfigError: it is nothing of that.

    Example:
        >>> parsed_mesh("dp=2,tp=4"), parsed_mesh({"x": "fsdp", "y": "tp"})
        ({'dp': 2, 'tp': 4}, {'x': 'fsdp', 'y': 'tp'})
    """
    if mesh is None or is_mesh(mesh):
        return mesh
    if isinstance(mesh, str):
        pairs = [each.partition("=") for each in mesh.split(",")]
        mesh = {name.strip(): int(value) if value.strip().isdigit() else value.strip() for name, _, value in pairs}
    if not isinstance(mesh, Mapping) or not mesh:
        raise ConfigError(describe("mesh", type(mesh).__name__, _EXPECTED, _DO))
    if len({isinstance(each, int) for each in mesh.values()}) != 1 or not all(mesh.values()):
        raise ConfigError(describe("mesh", repr(mesh), _EXPECTED, _DO))
    return {str(name): each if isinstance(each, int) else str(each) for name, each in mesh.items()}


def has_places(mesh: Any) -> bool:
    """Whether a mesh says where each process stands, and not only what the dimensions of the model's mesh mean."""
    return is_mesh(mesh) or (isinstance(mesh, Mapping) and all(isinstance(each, int) for each in mesh.values()))


def roles_said(mesh: Any) -> dict[str, str]:
    """What dimensions of the model's mesh mean, by their names.

    Raises:
        ConfigError: a meaning is not known.
    """
    if mesh is None or has_places(mesh):
        return {}
    return {name: role_of(role) for name, role in mesh.items()}


def role_of(name: str) -> str:
    """What the processes along a dimension must have in common.

    Raises:
        ConfigError: the name is not known.
    """
    if name == EXPERTS:
        return STEP
    if name == STAGES:
        return SAME
    if name not in ROLES:
        expected = ", ".join([*ROLES, STAGES, EXPERTS])
        do = "Name it by what its processes do: tp and cp have the same samples, fsdp and ep their own, dp their own"
        raise ConfigError(describe("mesh", f"a dimension {name!r}", expected, do))
    return ROLES[name]


def links_said(mesh: Any, data_group: Any, rank: int, size: int) -> Links:
    """What a mesh or a group ties this process to.

    Args:
        mesh: what `parsed_mesh` returns.
        data_group: a process group whose members have different samples; None for none.
        rank: this process.
        size: how many there are.

    Raises:
        ConfigError: dimensions have no names, or unknown ones; or a group without this process.
    """
    same: set[Group] = set()
    step: set[Group] = set()
    found = []
    has_outputs = True
    for name, group in _lines(mesh, rank, size):
        role = role_of(name)
        found.append(f"{name} ({role})")
        if name == STAGES:
            has_outputs = has_outputs and rank == group[-1]
        if len(group) > 1 and role in (SAME, STEP):
            (same if role == SAME else step).add(group)
    if data_group is not None:
        if not isinstance(data_group, dist.ProcessGroup):
            do = "Pass the group of processes that have different samples, as torch.distributed.new_group makes it"
            raise ConfigError(describe("data_group", type(data_group).__name__, "a process group", do))
        step.add(tuple(range(size)))  # whose forwards communicate is not known: of all, then
        found.append("data_group")
    return Links(frozenset(same), frozenset(step), tuple(found), has_outputs=has_outputs)


def same_by_groups(data_groups: list[Group]) -> frozenset[Group]:
    """The processes that have the same samples: those at the same place of their data-parallel groups.

    Args:
        data_groups: the group of each process, by rank.

    Raises:
        ConfigError: the groups are not equally large, or a process is not in its own.

    Example:
        >>> sorted(same_by_groups([(0, 2), (1, 3), (0, 2), (1, 3)]))
        [(0, 1), (2, 3)]
    """
    if len(set(map(len, data_groups))) != 1 or any(rank not in group for rank, group in enumerate(data_groups)):
        got = f"groups of {', '.join(str(len(group)) for group in data_groups)} processes"
        do = "Pass on each process the group of those with other samples than its own"
        raise ConfigError(describe("data_group", got, "groups of one size, each with its own process", do))
    by_place: dict[int, list[int]] = {}
    for rank, group in enumerate(data_groups):
        by_place.setdefault(group.index(rank), []).append(rank)
    return frozenset(tuple(ranks) for ranks in by_place.values())


def _lines(mesh: Any, rank: int, size: int) -> Iterator[tuple[str, Group]]:
    """The processes along each dimension of a mesh through this process, with the name of the dimension."""
    if not has_places(mesh):
        return
    if is_mesh(mesh):
        names, ranks = mesh.mesh_dim_names, mesh.mesh.numpy()
        if names is None:
            raise ConfigError(describe("mesh", "dimensions without names", _EXPECTED, "Pass mesh_dim_names= to it"))
    else:
        names, shape = tuple(mesh), tuple(mesh.values())
        if prod(shape) != size:
            got = f"{' x '.join(map(str, shape))} = {prod(shape)} processes"
            raise ConfigError(describe("mesh", got, f"as many as there are: {size}", _DO))
        ranks = np.arange(size).reshape(shape)
    places = np.argwhere(ranks == rank)
    if not len(places):
        raise ConfigError(describe("mesh", f"one without process {rank}", "one of all processes", _DO))
    for number, name in enumerate(names):
        at = tuple(slice(None) if k == number else each for k, each in enumerate(places[0].tolist()))
        yield name, tuple(sorted(ranks[at].tolist()))


def is_mesh(value: Any) -> bool:
    """Whether it is a `DeviceMesh`."""
    return type(value).__name__ == "DeviceMesh"
