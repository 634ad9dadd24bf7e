"""Distances between the surfaces of masks, by exact Euclidean distance transforms."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.devices.placement import to_host
from assay.encode.base import Encoder
from assay.errors import DtypeError, InvalidValuesError, ShapeError, describe

Distances = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class SurfaceEncoder(Encoder):
    """A row an image: the number of each class, 0 where it does not count, and then 1 for each class that counts.

    Args:
        num_classes: how many classes there are.
        include_background: whether class 0 counts.
        spacing: how far pixels are apart along each dimension; empty for 1.
        directed: only the distances of the surface of preds to that of the target.
        ignore_missing: a class does not count where one of both masks is empty.
    """

    num_classes: int
    include_background: bool
    spacing: tuple[float, ...]
    directed: bool
    ignore_missing: bool

    takes: ClassVar[str] = "masks"
    absent: ClassVar[float] = np.inf
    """The number where one of both masks is empty."""

    @property
    def width(self) -> int:
        """How many classes count."""
        return self.num_classes - (not self.include_background)

    def check(self, preds: Sequence[Any], target: Sequence[Any]) -> None:
        for k, (own, true) in enumerate(zip(preds, target, strict=True)):
            for name, mask in (("preds", own), ("target", true)):
                self._check_mask(f"{name}[{k}]", mask)
            if own.shape != true.shape:
                got = f"shape {tuple(true.shape)} with preds of shape {tuple(own.shape)}"
                raise ShapeError(describe(f"target[{k}]", got, "the shape of preds", "Give both in one resolution"))

    def _check_mask(self, name: str, mask: Any) -> None:
        if not isinstance(mask, Tensor | np.ndarray):
            do = f"Pass {name.partition('[')[0]} as a list of tensors"
            raise ShapeError(describe(name, type(mask).__name__, "a tensor with the class of each pixel", do))
        if 0 in mask.shape:
            got = f"shape {tuple(mask.shape)}"
            raise ShapeError(describe(name, got, "one pixel or more", "Leave the image out of preds and target"))
        dims = len(self.spacing)
        if mask.ndim < 1 or (dims and mask.ndim != dims):
            expected = f"{dims} dimensions, as many as spacing has numbers" if dims else "one dimension or more"
            do = "Pass the index of the class of each pixel, for example scores.argmax(0)"
            raise ShapeError(describe(name, f"shape {tuple(mask.shape)}", expected, do))
        kind = mask.dtype
        integer = (
            not (kind.is_floating_point or kind.is_complex) if isinstance(mask, Tensor) else mask.dtype.kind in "biu"
        )
        if not integer:
            raise DtypeError(describe(name, kind, "an integer or bool dtype", "Pass scores.argmax(0), or mask.long()"))

    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor:
        sides = zip(self._labels("preds", preds), self._labels("target", target), strict=True)
        rows = [self._row(own, true) for own, true in sides]
        return torch.tensor(rows, dtype=torch.float64, device="cpu").reshape(len(rows), 2 * self.width)

    def _labels(self, name: str, masks: Sequence[Any]) -> Iterator[NDArray[Any]]:
        """Masks on the CPU, where distances are computed: this waits once for the device of each tensor."""
        for k, mask in enumerate(masks):
            labels = to_host(mask).numpy() if isinstance(mask, Tensor) else np.asarray(mask)
            low, high = int(labels.min()), int(labels.max())
            if low < 0 or high >= self.num_classes:
                got, expected = f"labels from {low} to {high}", f"0 to {self.num_classes - 1}"
                raise InvalidValuesError(describe(f"{name}[{k}]", got, expected, "Check num_classes"))
            yield labels

    def _row(self, preds: NDArray[Any], target: NDArray[Any]) -> list[float]:
        values, counted = [], []
        for label in range(not self.include_background, self.num_classes):
            own, true = preds == label, target == label
            has = bool(own.any()), bool(true.any())
            counts = all(has) or (any(has) and not self.ignore_missing)
            values.append((self.number(*self._distances(own, true)) if all(has) else self.absent) if counts else 0.0)
            counted.append(float(counts))
        return [*values, *counted]

    def _distances(self, preds: NDArray[np.bool_], target: NDArray[np.bool_]) -> Distances:
        """How far each pixel of one surface is from the other, both ways; in the part of the image that has both."""
        from scipy import ndimage

        places = [np.flatnonzero((preds | target).any(tuple(set(range(preds.ndim)) - {k}))) for k in range(preds.ndim)]
        box = tuple(slice(each[0], each[-1] + 1) for each in places)
        own, true = (mask & ~ndimage.binary_erosion(mask) for mask in (preds[box], target[box]))
        sampling = self.spacing or None
        forth = ndimage.distance_transform_edt(~true, sampling)[own]
        return forth, forth[:0] if self.directed else ndimage.distance_transform_edt(~own, sampling)[true]

    def number(self, forth: NDArray[np.float64], back: NDArray[np.float64]) -> float:
        """The number of a class, from the distances of each surface to the other."""
        raise NotImplementedError


@dataclass(frozen=True)
class Hausdorff(SurfaceEncoder):
    """The largest distance, or a percentile of them, the larger one of both ways."""

    percentile: float = 100.0

    def number(self, forth: NDArray[np.float64], back: NDArray[np.float64]) -> float:
        ways = [way for way in (forth, back) if len(way)]
        return max(float(np.percentile(way, self.percentile)) for way in ways)


@dataclass(frozen=True)
class AverageDistance(SurfaceEncoder):
    """The mean of the distances, of both ways together."""

    def number(self, forth: NDArray[np.float64], back: NDArray[np.float64]) -> float:
        return float(np.concatenate([forth, back]).mean())


@dataclass(frozen=True)
class WithinTolerance(SurfaceEncoder):
    """The share of the pixels of both surfaces whose distance to the other is at most the tolerance."""

    tolerance: float = 1.0

    absent = 0.0

    def number(self, forth: NDArray[np.float64], back: NDArray[np.float64]) -> float:
        return float((np.concatenate([forth, back]) <= self.tolerance).mean())
