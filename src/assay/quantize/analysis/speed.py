"""How large a model is, and how many samples a second it predicts at several sizes of batches."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from assay.devices.cost import wait
from assay.devices.placement import move
from assay.evaluation.nested_batch import mapped, row_count, take

ROUNDS, LEAST_S, MOST_S = 5, 0.2, 2.0
"""Rounds at least, and seconds that the rounds of one model and one size of batch take at least and at most."""


def nbytes(model: Any) -> int:
    """The bytes of a model's parameters and buffers; what is shared counts once."""
    if not isinstance(model, nn.Module):
        return 0
    tensors = {id(each): each for each in (*model.parameters(), *model.buffers())}
    return sum(each.nbytes for each in tensors.values())


@dataclass(frozen=True)
class Pace:
    """How fast a model was.

    Attributes:
        model: its name.
        samples: in a batch.
        seconds: the median of one batch.
        rounds: how many batches that is the median of.
    """

    model: str
    samples: int
    seconds: float
    rounds: int

    @property
    def samples_per_second(self) -> float:
        """Samples a second."""
        return self.samples / self.seconds


def paces(
    models: Mapping[str, Callable[[Any], Any]], batch: Any, batch_sizes: Sequence[int], device: torch.device
) -> list[Pace]:
    """Time models on batches made of the rows of one, taking turns, so that what slows the machine slows all of them.

    Args:
        models: by name, functions that run one on a batch.
        batch: some samples; its rows are repeated.
        batch_sizes: how many samples at once.
        device: where they run.
    """
    result = []
    for size in batch_sizes:
        rows = row_count(batch)
        assert rows, "a batch has rows"
        repeated = move(take(_indexable(batch), rows, [k % rows for k in range(size)]), device)
        result += [
            Pace(name, size, statistics.median(times), len(times))
            for name, times in _times(models, repeated, device).items()
        ]
    return result


def _times(models: Mapping[str, Callable[[Any], Any]], batch: Any, device: torch.device) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in models}
    with torch.inference_mode():
        for run in models.values():  # kernels are chosen, weights are packed, memory is given out
            run(batch)
        start = time.perf_counter()
        while True:
            for name, run in models.items():
                wait(device)
                begin = time.perf_counter()
                run(batch)
                wait(device)
                times[name].append(time.perf_counter() - begin)
            spent = (time.perf_counter() - start) / len(models)
            rounds = len(next(iter(times.values())))
            if (rounds >= ROUNDS and spent >= LEAST_S) or (rounds >= 2 and spent >= MOST_S):
                return times


def _indexable(batch: Any) -> Any:
    """A batch whose lists of rows are tensors, so that rows can be repeated."""
    return mapped(batch, lambda leaf: torch.as_tensor(leaf) if isinstance(leaf, list) else leaf)
