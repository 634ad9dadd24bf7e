"""Runs that are interrupted, and go on from their checkpoints, also on another number of processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from assay.evaluation.errors import RankError
from benchmarks.meshes.configuration import Configuration, evaluated
from benchmarks.meshes.models import fully_sharded, mesh, network, right, samples, tensor_parallel


class Left:
    """How many batches are left is no part of what a model is."""

    def __init__(self, left: int = 0) -> None:
        self.left = left

    def __reduce__(self):
        return Left, ()


class Stops(nn.Module):
    """Is interrupted after some batches."""

    def __init__(self, inner: nn.Module, batches: int) -> None:
        super().__init__()
        self.inner, self.batches = inner, Left(batches)

    def forward(self, x):
        if not self.batches.left:
            raise KeyboardInterrupt
        self.batches.left -= 1
        return self.inner(x)


def resumed(name: str, first: int, second: int, model: Callable[[int], Any], batches: int = 2):
    """An interrupted run, and one with another number of processes that goes on from there."""

    def run(rank: int, folder: Path, left: int, size: int) -> Any:
        try:
            place = str(folder / name.replace(" ", "_"))
            return evaluated(Stops(model(size), left), samples(101), resume=place, checkpoint_every=99.0)
        except KeyboardInterrupt:
            return "interrupted"

    stopped = f"{name} on {first} processes, interrupted"
    return (
        Configuration(stopped, first, lambda rank, folder: run(rank, folder, batches, first), "interrupted"),
        Configuration(
            f"{name}, the same on {second}",
            second,
            lambda rank, folder: run(rank, folder, 99, second),
            right(101),
            after=stopped,
        ),
    )


def resumed_pipeline(first: bool) -> Configuration:
    """An interrupted run of a pipeline, and one that goes on from there."""

    def run(rank: int, folder: Path) -> Any:
        left = (6, 4)[rank] if first else 26  # from the start it takes 27 calls, so that it is no run from the start
        layers = list(network())
        part = nn.Sequential(*layers[:2] if not rank else layers[2:])
        schedule = ScheduleGPipe(PipelineStage(Stops(part, left), rank, 2, torch.device("cpu")), 2)
        try:
            return evaluated(schedule, samples(101), resume=str(folder / "pipeline"), checkpoint_every=0.0)
        except (KeyboardInterrupt, RankError):  # the first stage may wait for the second one
            return "interrupted"

    names = ("pipeline on 2 processes, interrupted", "pipeline, the same")
    return Configuration(
        names[not first], 2, run, "interrupted" if first else right(101), after="" if first else names[0]
    )


CASES = (
    *resumed("FSDP2", 2, 3, lambda size: fully_sharded()),
    *resumed("whole model", 3, 2, lambda size: network()),
    resumed_pipeline(first=True),
    resumed_pipeline(first=False),
    *resumed("DP × TP", 4, 2, lambda size: tensor_parallel(mesh((size // 2, 2), "dp tp")["tp"])),
)
