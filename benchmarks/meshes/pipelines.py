"""Pipelines of `torch.distributed.pipelining`: each process has one stage, or several."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)

from benchmarks.meshes.configuration import Configuration, evaluated, simple
from benchmarks.meshes.models import BATCH, mesh, network, samples


def pipeline(on: Any = None, microbatches: int = 2, around: Any = nn.Sequential) -> ScheduleGPipe:
    """The network in as many stages as there are processes, two or three; `around` makes the one of this process."""
    group = None if on is None else on.get_group()
    place, size = dist.get_rank(group), dist.get_world_size(group)
    layers = list(network())
    parts = [layers[:2], layers[2:]] if size == 2 else [layers[:1], layers[1:2], layers[2:]]
    part = around(nn.Sequential(*parts[place]))
    stage = PipelineStage(part, place, size, torch.device("cpu"), group=group)
    return ScheduleGPipe(stage, microbatches)


def stages(kind: Any, microbatches: int = 2, *, is_folded: bool = False, loss: Any = None) -> Any:
    """The network in four stages on two processes, of which each has two; folded, the first process has the ends."""
    place, layers = dist.get_rank(), [*network(), nn.Identity()]
    own = (place, 3 - place if is_folded else place + 2)
    parts = [PipelineStage(layers[k], k, 4, torch.device("cpu")) for k in own]
    return kind(parts, microbatches, loss_fn=loss)


def with_a_loss() -> ScheduleGPipe:
    """A pipeline that was made for training."""
    place, layers = dist.get_rank(), list(network())
    stage = PipelineStage(nn.Sequential(*layers[2 * place : 2 * place + 2]), place, 2, torch.device("cpu"))
    return Schedule1F1B(stage, 2, loss_fn=nn.CrossEntropyLoss())


def _folded(kind: Any, microbatches: int, rank: int, folder: Path) -> Any:
    return evaluated(stages(kind, microbatches, is_folded=True, loss=nn.CrossEntropyLoss()), samples(101))


CASES = (
    simple("pipeline", 2, pipeline, 64),
    simple("pipeline", 2, pipeline, 101),
    simple("pipeline with a loss, Schedule1F1B", 2, with_a_loss, 101),
    *(
        simple(f"pipeline, {kind.__name__} of 2 stages each", 2, functools.partial(stages, kind, loss=loss), 101)
        for kind, loss in (
            (ScheduleInterleaved1F1B, None),
            (ScheduleLoopedBFS, None),
            (ScheduleInterleavedZeroBubble, nn.CrossEntropyLoss()),
        )
    ),
    *(
        Configuration(
            f"pipeline, {kind.__name__}, 101/{BATCH}",
            2,
            functools.partial(_folded, kind, microbatches),
            "expected a schedule that torch runs without gradients",
        )
        for kind, microbatches in ((ScheduleZBVZeroBubble, 2), (ScheduleDualPipeV, 4))
    ),
    simple("pipeline", 3, lambda: pipeline(microbatches=3), 101),
    simple("DP × pipeline 2 × 2", 4, lambda: pipeline(mesh((2, 2), "dp pp")["pp"]), 101),
)
