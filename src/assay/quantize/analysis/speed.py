"""How large a model is, and how long batches of several sizes take."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from assay.devices.placement import move
from assay.evaluation.nested_batch import mapped, row_count, take
from assay.quantize.timing import in_turns

ROUNDS, LEAST_S, MOST_S = 5, 0.2, 2.0
"""Rounds at least, and seconds that the rounds of one model and one size of batch take at least and at most."""


def nbytes(model: Any) -> int:
    """The bytes of a model's parameters and buffers; what is shared counts once."""
    if not isinstance(model, nn.Module):
        return 0
    tensors = {id(each): each for each in (*model.parameters(), *model.buffers())}
    return sum(each.nbytes for each in tensors.values())


def paces(models: Mapping[str, Callable[[Any], Any]], batch: Any, size: int, device: torch.device) -> dict[str, float]:
    """The median of the seconds that models take for a batch of a size, by their names; they are run in turns.

    The batch is made of the rows of another, which are repeated.
    """
    rows = row_count(batch)
    assert rows, "a batch has rows"
    tensors = mapped(batch, lambda leaf: torch.as_tensor(leaf) if isinstance(leaf, list) else leaf)
    repeated = move(take(tensors, rows, [k % rows for k in range(size)]), device)

    def is_enough(rounds: int, seconds: float) -> bool:
        spent = seconds / len(models)
        return (rounds >= ROUNDS and spent >= LEAST_S) or (rounds >= 2 and spent >= MOST_S)

    with torch.inference_mode():
        for run in models.values():  # kernels are chosen, weights are packed, memory is given out
            run(repeated)
        calls = {name: lambda turn, run=run: run(repeated) for name, run in models.items()}
        times = in_turns(calls, device, is_enough)
    return {name: statistics.median(each) for name, each in times.items()}
