"""Numbers of pairs of point clouds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from assay.encode.base import raw_samples
from assay.encode.pairs import Floats, PairEncoder, as_batch
from assay.native import shapes as native
from assay.tally.ragged import Ragged


@dataclass(frozen=True)
class ProcrustesDistance(PairEncoder):
    """The squared distance of two clouds of corresponding points, after the best shift, scale and rotation."""

    takes: ClassVar[str] = "point clouds"
    shape: ClassVar[str] = "(M, D)"
    dims: ClassVar[int] = 2

    def number(self, preds: Floats, target: Floats) -> float:
        return float(_disparities(preds[None], target[None])[0])

    def encode(self, preds: Any, target: Any, columns: Mapping[str, Any]) -> Tensor | Ragged:
        batches = self.batches(*raw_samples(preds, target))
        if batches is not None:
            with suppress(ValueError):  # whose sample is named below
                return torch.from_numpy(_disparities(*(each.astype(np.float64) for each in batches))[:, None])
        return super().encode(preds, target, columns)

    def rows(self, preds: Sequence[Any], target: Sequence[Any] | None) -> Tensor:
        assert target is not None, "it was checked"
        by_shape: dict[tuple[int, ...], list[int]] = {}
        for k, cloud in enumerate(preds):
            by_shape.setdefault(tuple(cloud.shape), []).append(k)
        numbers = np.empty((len(preds), 1))
        try:
            for places in by_shape.values():
                numbers[places, 0] = _disparities(*(as_batch([side[k] for k in places]) for side in (preds, target)))
        except ValueError:
            return super().rows(preds, target)  # which names the sample
        return torch.from_numpy(numbers)


def _disparities(preds: Floats, target: Floats) -> Floats:
    """Of clouds of one shape, `(N, M, D)`."""
    if not native.takes_points(preds.shape[2]):
        return aligned_disparities(preds, target)
    found = native.disparities(preds, target)
    if (found < 0).any():
        raise ValueError(f"all points of {'preds' if found[found < 0][0] == -1 else 'the target'} are the same")
    return found


def aligned_disparities(preds: Floats, target: Floats) -> Floats:
    """The same without compiled code."""
    x, y = _standardized("preds", preds), _standardized("the target", target)
    left, values, right = np.linalg.svd(x @ y.swapaxes(1, 2))
    aligned = values.sum(1)[:, None, None] * (left @ right @ y)
    return _sums((x - aligned) ** 2)


def _standardized(name: str, points: Floats) -> Floats:
    """The points, as columns, around 0, with a sum of squares of 1."""
    points = np.ascontiguousarray(points.swapaxes(1, 2))
    points -= (points.min(2) * 0.5 + points.max(2) * 0.5)[..., None]
    points -= points.mean(2)[..., None]
    largest = np.abs(points).max((1, 2))
    if not largest.all():
        raise ValueError(f"all points of {name} are the same")
    points /= largest[:, None, None]
    points /= np.sqrt(_sums(points * points))[:, None, None]
    return points


def _sums(points: Floats) -> Floats:
    """Of the numbers of each cloud, in an order that the number of clouds does not change."""
    sums: Floats = points.reshape(len(points), -1).sum(1)
    return sums
