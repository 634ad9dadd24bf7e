"""Numbers of pairs of point clouds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from assay.encode.pairs import Floats, PairEncoder


@dataclass(frozen=True)
class ProcrustesDistance(PairEncoder):
    """The squared distance of two clouds of corresponding points, after the best shift, scale and rotation."""

    takes: ClassVar[str] = "point clouds"
    shape: ClassVar[str] = "(M, D)"
    dims: ClassVar[int] = 2

    def number(self, preds: Floats, target: Floats) -> float:
        x, y = (_standardized(name, each) for name, each in (("preds", preds), ("the target", target)))
        left, values, right = np.linalg.svd(x.T @ y)
        aligned = values.sum() * y @ (left[:, : len(values)] @ right[: len(values)]).T
        return float(np.sum((x - aligned) ** 2))


def _standardized(name: str, points: Floats) -> Floats:
    """The points around 0, with a sum of squares of 1."""
    points = points - (points.min(0) * 0.5 + points.max(0) * 0.5)
    points = points - points.mean(0)
    largest = np.abs(points).max()
    if largest == 0:
        raise ValueError(f"all points of {name} are the same")
    points = points / largest
    standardized: Floats = points / np.linalg.norm(points)
    return standardized
