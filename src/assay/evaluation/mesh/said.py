"""What the caller says of processes: `mesh=` and `data_group=`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch.distributed as dist

from assay.errors import ConfigError, describe
from assay.evaluation.mesh.links import ROLES, SAME, STEP, Group, Links

EXPERTS = "ep"
_EXPECTED = 'a DeviceMesh with named dimensions, or what dimensions are by their names, such as {"x": "fsdp"}'


def roles_said(mesh: Any) -> dict[str, str]:
    """What dimensions mean, by their names: those of the model that a mapping names.

    Raises:
        ConfigError: it is no mapping of names to known names.
    """
    if mesh is None or is_mesh(mesh):
        return {}
    if not isinstance(mesh, Mapping):
        raise ConfigError(describe("mesh", type(mesh).__name__, _EXPECTED, 'Pass mesh={"x": "fsdp", "y": "tp"}'))
    return {str(name): role_of(str(role)) for name, role in mesh.items()}


def role_of(name: str) -> str:
    """What the processes along a dimension must have in common.

    Raises:
        ConfigError: the name is not known.
    """
    if name == EXPERTS:
        return STEP
    if name == "pp":
        do = "Gather the outputs of the last stage and evaluate those, with preds= as they are"
        raise ConfigError(describe("mesh", "a pipeline (pp)", "a model that each of its processes calls", do))
    if name not in ROLES:
        expected = ", ".join([*ROLES, EXPERTS])
        do = "Name it by what its processes do: tp and cp have the same samples, fsdp and ep their own, dp their own"
        raise ConfigError(describe("mesh", f"a dimension {name!r}", expected, do))
    return ROLES[name]


def links_said(mesh: Any, data_group: Any, rank: int, size: int) -> Links:
    """What a mesh or a group ties this process to.

    Args:
        mesh: a mesh with named dimensions; anything else ties to nothing.
        data_group: a process group whose members have different samples; None for none.
        rank: this process.
        size: how many there are.

    Raises:
        ConfigError: dimensions have no names, or unknown ones; or a group without this process.
    """
    same: set[Group] = set()
    step: set[Group] = set()
    found = []
    if is_mesh(mesh):
        if mesh.mesh_dim_names is None:
            raise ConfigError(describe("mesh", "dimensions without names", _EXPECTED, "Pass mesh_dim_names= to it"))
        place = mesh.get_coordinate()
        if place is None:
            raise ConfigError(describe("mesh", f"one without process {rank}", "one of all processes", "Name them all"))
        for number, name in enumerate(mesh.mesh_dim_names):
            group = tuple(sorted(mesh.mesh[tuple(_line(place, number))].tolist()))
            role = role_of(name)
            found.append(f"{name} ({role})")
            if len(group) > 1 and role in (SAME, STEP):
                (same if role == SAME else step).add(group)
    if data_group is not None:
        if not isinstance(data_group, dist.ProcessGroup):
            do = "Pass the group of processes that have different samples, as torch.distributed.new_group makes it"
            raise ConfigError(describe("data_group", type(data_group).__name__, "a process group", do))
        step.add(tuple(range(size)))  # whose forwards communicate is not known: of all, then
        found.append("data_group")
    return Links(frozenset(same), frozenset(step), tuple(found))


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


def _line(place: list[int], number: int) -> list[Any]:
    return [slice(None) if k == number else each for k, each in enumerate(place)]


def is_mesh(value: Any) -> bool:
    """Whether it is a `DeviceMesh`."""
    return type(value).__name__ == "DeviceMesh"
