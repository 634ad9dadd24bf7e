"""A random sample of inputs with their predictions, and the margins of all predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.devices.placement import to_host
from assay.evaluation.data.batch import Arguments
from assay.evaluation.nested_batch import mapped, take


@dataclass(frozen=True)
class SampledPrediction:
    """One sample: its id, its inputs and its prediction, each a batch of one row."""

    id: int | str
    arguments: Arguments
    preds: Tensor


@dataclass
class PredictionSample:
    """A random sample of inputs with their predictions, and the margins of all predictions.

    Args:
        size: how many samples are kept.
        seed: of the generator that chooses them, which nothing else uses.
        process: the number of this process; each process keeps samples of its own.

    Attributes:
        seen: how many samples were predicted.
        margins: of each, by how much the largest score is above the second; empty where predictions are no scores of
            classes.
        failure: why inputs or predictions cannot be kept; the evaluation itself goes on.
    """

    size: int
    seed: int
    process: int = 0
    seen: int = 0
    margins: list[Tensor] = field(default_factory=list)
    failure: str = ""
    _kept: dict[int, SampledPrediction] = field(default_factory=dict)

    def note(self, arguments: Arguments, preds: Any, ids: Sequence[int | str] = ()) -> None:
        """Note a batch without a wait; each sample is kept with the same probability (reservoir sampling).

        Args:
            arguments: what the model was given.
            preds: its predictions; nothing is noted where they are no tensor.
            ids: of the samples; their numbers, from 0, where none are given.
        """
        if self.failure or not isinstance(preds, Tensor) or not preds.ndim:
            return
        try:
            self._note(arguments, preds, ids)
        except Exception as error:
            self.failure = in_one_line(error)

    def _note(self, arguments: Arguments, preds: Tensor, ids: Sequence[int | str]) -> None:
        rows = len(preds)
        preds = preds.detach()
        for row, place in self._chosen(rows).items():
            only = slice(row, row + 1)  # a view: a list of rows would be copied to the device first
            name = ids[row] if ids else self.seen + row
            kept = _each(take(arguments, rows, only), _copied)
            self._kept[place] = SampledPrediction(name, kept, preds[only].clone())
        if has_classes(preds):
            self.margins.append(_margins(preds))
        self.seen += rows

    def _chosen(self, rows: int) -> dict[int, int]:
        """The rows of a batch that are kept, with their places; of two at one place the later one."""
        random = np.random.default_rng((self.seed, self.process, self.seen))
        places = random.integers(0, self.seen + 1 + np.arange(rows))
        first = np.arange(self.seen, self.seen + rows)
        places = np.where(first < self.size, first, places)
        by_place = {int(place): row for row, place in enumerate(places) if place < self.size}
        return {row: place for place, row in by_place.items()}

    @property
    def kept(self) -> list[SampledPrediction]:
        """The samples that are kept, in host memory."""
        return [
            SampledPrediction(each.id, _each(each.arguments, _on_host), to_host(each.preds))
            for each in self._kept.values()
        ]


def in_one_line(error: Exception) -> str:
    """The type of an error with its message, cut to a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def has_classes(preds: Tensor) -> bool:
    """Whether predictions are scores of classes, a row a sample."""
    return preds.ndim == 2 and preds.shape[1] > 1 and preds.is_floating_point()


def _margins(preds: Tensor) -> Tensor:
    first, second = preds.topk(2, 1).values.to(torch.float32).unbind(1)  # 16 bits would round the difference
    return first - second


def _each(arguments: Arguments, change: Callable[[Any], Any]) -> Arguments:
    args, kwargs = mapped(arguments, change)
    return args, kwargs


def _copied(leaf: Any) -> Any:
    """What a later batch cannot write into."""
    if isinstance(leaf, Tensor):
        return leaf.detach().clone()
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _on_host(leaf: Any) -> Any:
    return to_host(leaf) if isinstance(leaf, Tensor) else leaf
