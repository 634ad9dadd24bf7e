"""Processes that are killed, stand still or fail: all others end with one error."""

from __future__ import annotations

import os
import signal
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import torch.distributed as dist
from torch import nn

from assay.evaluation import evaluate_model
from benchmarks.meshes.batches import both, broken
from benchmarks.meshes.configuration import TIMEOUT_S, Configuration, evaluated
from benchmarks.meshes.models import fully_sharded, network, parallel_on_two, samples
from benchmarks.meshes.pipelines import pipeline


def killed(rank: int):
    return lambda x, y: os.kill(os.getpid(), signal.SIGKILL) if dist.get_rank() == rank else (x, y)


def asleep(rank: int):
    def act(x, y):
        if dist.get_rank() == rank:
            time.sleep(4 * TIMEOUT_S)
        return x, y

    return act


class KilledInside(nn.Module):
    """One process ends between two layers."""

    def __init__(self, inner: nn.Module, rank: int, batches: int, at_end: bool = False) -> None:
        super().__init__()
        self.inner, self.rank, self.batches = inner, rank, batches

    def forward(self, x):
        hidden = self.inner[1](self.inner[0](x))
        self.batches -= 1
        if not self.batches and dist.get_rank() == self.rank:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.inner[2](hidden)


def killed_in_report(rank: int, folder: Path) -> Any:
    ends = mock.Mock(side_effect=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with mock.patch.object(evaluate_model, "build_report", ends) if rank == 1 else nullcontext():
        return evaluated(fully_sharded(), samples(64))


class Fails(nn.Module):
    """A stage that raises in its third batch of two microbatches; its process lives on."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.left = inner, 5

    def forward(self, x):
        if not self.left:
            raise ZeroDivisionError("by design")
        self.left -= 1
        return self.inner(x)


def failing_stage(size: int, bad: int) -> Configuration:
    def act(rank: int, folder: Path) -> Any:
        try:
            return evaluated(pipeline(around=Fails if rank == bad else nn.Sequential), samples(101), on_error="skip")
        finally:
            time.sleep(3 * TIMEOUT_S if rank == bad else 0)

    name = f"pipeline, the stage of rank {bad} fails and lives"
    return Configuration(name, size, act, "got ZeroDivisionError while predicting", fails=True)


CASES = (
    *(failing_stage(size, bad) for size, bad in ((2, 0), (2, 1), (3, 1))),
    broken("FSDP2, rank 0 killed while loading", 2, fully_sharded, killed(0), "RankError", dies=(0,)),
    broken("TP, rank 1 killed while loading", 2, parallel_on_two, killed(1), "RankError", dies=(1,)),
    broken("TP, rank 0 killed while loading", 2, parallel_on_two, killed(0), "RankError", dies=(0,)),
    broken("whole model, rank 2 killed while loading", 3, network, killed(2), "RankError", dies=(2,)),
    Configuration(
        "FSDP2, rank 2 killed inside a forward",
        3,
        lambda rank, folder: evaluated(KilledInside(fully_sharded(), 2, 2), samples(101)),
        "RankError",
        dies=(2,),
    ),
    Configuration(
        "FSDP2 × TP 2 × 2, rank 3 killed inside a forward",
        4,
        lambda rank, folder: evaluated(KilledInside(both(), 3, 2), samples(101)),
        "RankError",
        dies=(3,),
    ),
    Configuration("FSDP2, rank 1 killed while the report is made", 2, killed_in_report, "RankError", dies=(1,)),
    broken("TP, rank 1 asleep", 2, parallel_on_two, asleep(1), "RankError", dies=(1,)),
    broken("FSDP2 × TP 2 × 2, rank 2 asleep", 4, both, asleep(2), "RankError", at=12, dies=(2,)),
)
