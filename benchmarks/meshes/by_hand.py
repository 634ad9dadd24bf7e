"""Models whose forward communicates by itself: refused, or counted as the caller says that processes stand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch.distributed as dist

from benchmarks.meshes.configuration import Configuration, evaluated
from benchmarks.meshes.models import BATCH, Experts, HandWritten, mesh, right, samples


def groups_of(shape: tuple[int, int]) -> tuple[dist.ProcessGroup, dist.ProcessGroup]:
    """Of a grid of processes the group along its columns, which have different samples, and along its rows."""
    grid = mesh(shape, "columns rows")
    return grid.get_group("columns"), grid.get_group("rows")


def said(name: str, shape: tuple[int, int], how: Callable[[Any], dict[str, Any]], expected: Any = None):
    def act(rank: int, folder: Path) -> Any:
        columns, rows = groups_of(shape)
        return evaluated(HandWritten(rows), samples(101), **how(columns))

    value = right(101) if expected is None else expected
    return Configuration(f"written by hand, {name}, 101/{BATCH}", shape[0] * shape[1], act, value)


CASES = (
    Configuration(
        "written by hand, nothing said, 101/8",
        2,
        lambda rank, folder: evaluated(HandWritten(), samples(101)),
        "a forward that communicates with other processes",
    ),
    Configuration(
        "experts, nothing said, 101/8",
        2,
        lambda rank, folder: evaluated(Experts(), samples(101)),
        "a forward that communicates with other processes",
    ),
    Configuration(
        "experts, ep said, 101/8", 2, lambda rank, folder: evaluated(Experts(), samples(101), mesh="ep=2"), right(101)
    ),
    said("nothing said, 2 × 2", (2, 2), lambda columns: {}, "HandWritten.group, a ProcessGroup"),
    said("data_group=, 2 × 2", (2, 2), lambda columns: {"data_group": columns}),
    said('mesh="dp=2,tp=2"', (2, 2), lambda columns: {"mesh": "dp=2,tp=2"}),
)
