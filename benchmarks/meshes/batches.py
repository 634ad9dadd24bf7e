"""Streams of unequal length, batches that fail or do not fit into memory, and samples that are not the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.data import DataLoader, DistributedSampler

from benchmarks.meshes.configuration import Configuration, evaluated
from benchmarks.meshes.models import (
    BATCH,
    Broken,
    Stream,
    fully_sharded,
    network,
    parallel_on_two,
    right,
    samples,
    sharded_and_parallel,
)


def streams(name: str, model: Callable[[], Any], *parts: tuple[int, int], sharded: bool = True):
    """Each process has some batches of a stream; without ids there is no interval."""

    def act(rank: int, folder: Path) -> Any:
        return evaluated(model(), Stream(*parts[rank]), batch_size=None, sharded=sharded)

    sizes = ", ".join(str(stop - start) for start, stop in parts)
    return Configuration(f"{name}, streams of {sizes} batches", len(parts), act, right(101))


def broken(
    name: str,
    size: int,
    model: Callable[[], Any],
    act: Callable[[Any, Any], Any],
    right_: Any,
    at: int = 20,
    **more: Any,
):
    """Something happens when a sample is loaded."""

    def run(rank: int, folder: Path) -> Any:
        return evaluated(model(), Broken(at, act), on_error="skip")

    return Configuration(name, size, run, right_, **more)


def fails(x, y):
    raise ZeroDivisionError("by design")


def is_other(x, y):
    return x + dist.get_rank() / 10, y


class Scarce(nn.Module):
    """On the second process memory runs out with more than half a batch."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        if dist.get_rank() == 1 and len(x) > BATCH // 2:
            raise torch.OutOfMemoryError("by design")
        return self.inner(x)


def out_of_memory(name: str, model: Callable[[], Any], right_: float | str) -> Configuration:
    """Batches are halved where the model is whole on each process; else all processes end with an error."""

    def act(rank: int, folder: Path) -> Any:
        return evaluated(Scarce(model()), samples(101))

    return Configuration(
        f"{name}, memory runs out on rank 1, 101/{BATCH}", 2, act, right_, fails=isinstance(right_, str)
    )


def both() -> Any:
    return sharded_and_parallel((2, 2), "dp tp", "dp", "tp")


CASES = (
    Configuration(
        "TP, padded sampler, 101/8",
        2,
        lambda rank, folder: evaluated(
            parallel_on_two(), DataLoader(samples(101), BATCH, sampler=DistributedSampler(samples(101)))
        ),
        right(101),
    ),
    streams("FSDP2", fully_sharded, (0, 9), (9, 13)),
    streams("FSDP2", fully_sharded, (0, 13), (13, 13)),
    streams("FSDP2", fully_sharded, (0, 6), (6, 7), (7, 13)),
    streams("TP", parallel_on_two, (0, 13), (0, 13), sharded=False),
    streams("FSDP2 × TP 2 × 2", both, (0, 9), (0, 9), (9, 13), (9, 13)),
    streams("FSDP2 × TP 2 × 2", both, (0, 13), (0, 13), (13, 13), (13, 13)),
    broken("FSDP2, a batch that cannot be loaded", 2, fully_sharded, fails, 73 / 93),
    broken("TP, a batch that cannot be loaded", 2, parallel_on_two, fails, 73 / 93),
    broken("FSDP2 × TP 2 × 2, a batch that cannot be loaded", 4, both, fails, 73 / 93),
    out_of_memory("whole model", network, right(101)),
    out_of_memory("FSDP2", fully_sharded, "no memory for 8 samples"),
    out_of_memory("TP", parallel_on_two, "no memory for 8 samples"),
    broken("TP, random augmentation", 2, parallel_on_two, is_other, "other samples on rank"),
)
