"""How processes stand to each other: from what each knows of its model, and what the caller says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch.distributed as dist
from torch import nn

from assay.evaluation.processes.links import STEP, Group, Links, check_kept_groups, links_of
from assay.evaluation.processes.place import Place, places
from assay.evaluation.processes.reachable import modules_of
from assay.evaluation.processes.said import has_places, is_mesh, links_said, parsed_mesh, roles_said, same_by_groups
from assay.meter.processes.distributed_tensors import is_distributed


@dataclass(frozen=True)
class Introduction:
    """What a process tells the others before they evaluate a model together.

    Attributes:
        links: which processes it is tied to.
        data_group: the processes whose samples are others; None where that was not said.
        is_said: the caller said how processes stand, or they are stages of a pipeline: parts may be plain tensors.
    """

    links: Links
    data_group: Group | None = None
    is_said: bool = False


def introduce(model: Any, mesh: Any, data_group: Any, rank: int, size: int) -> Introduction:
    """What this process knows.

    Args:
        model: what is evaluated.
        mesh: see `evaluate`.
        data_group: see `evaluate`.
        rank: this process.
        size: how many there are.

    Raises:
        ConfigError: the model is shared among processes in a way that is not understood.
    """
    mesh = parsed_mesh(mesh)
    said = links_said(mesh, data_group, rank, size)
    modules = modules_of(model)
    is_said = has_places(mesh) or data_group is not None
    links = links_of(modules, roles_said(mesh), STEP if is_said else None)
    if not is_said:
        check_kept_groups(modules, links)
    has_stages = any(type(module).__name__ == "PipelineModel" for module in modules)
    links = replace(
        links,
        same=links.same | said.same,
        step=links.step | said.step,
        found=tuple({*links.found, *said.found}),
        has_outputs=links.has_outputs if has_stages else said.has_outputs,
    )
    ranks = None if data_group is None else tuple(sorted(dist.get_process_group_ranks(data_group)))
    return Introduction(links, ranks, is_said or has_stages)


def arranged(introductions: Sequence[Introduction]) -> list[Place]:
    """The place of each process.

    Raises:
        ConfigError: the groups that were said do not fit each other.
    """
    links = [each.links for each in introductions]
    groups = [each.data_group for each in introductions if each.data_group is not None]
    if groups:
        same = same_by_groups(groups if len(groups) == len(links) else [])
        links = [replace(each, same=each.same | same) for each in links]
    return places(links)


def groups_of(model: Any, mesh: Any, data_group: Any) -> list[Any]:
    """The process groups in which a model communicates."""
    meshes: dict[int, Any] = {id(mesh): mesh} if is_mesh(mesh) else {}
    groups: list[Any] = [] if data_group is None else [data_group]
    for module in modules_of(model):
        tensors: list[Any] = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
        meshes |= {id(each.device_mesh): each.device_mesh for each in tensors if is_distributed(each)}
        groups += [value for value in vars(module).values() if isinstance(value, dist.ProcessGroup)]
        if type(module).__name__ == "FullyShardedDataParallel" and isinstance(module, nn.Module):
            groups.append(module.process_group)
    groups += [group for each in meshes.values() for group in each.get_all_groups()]
    if has_places(parsed_mesh(mesh)) or data_group is not None:
        groups.append(dist.group.WORLD)  # a model that is written by hand may use it
    return list({id(group): group for group in groups}.values())
