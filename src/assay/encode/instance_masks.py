"""Masks of detected instances: their areas, and how much those of detections and truths of an image overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.devices.placement import to_host
from assay.devices.policies import reads_compiled
from assay.errors import DtypeError, InvalidValuesError, ShapeError, describe
from assay.tally.inputs import type_name
from assay.tally.stores.sample_store import WHOLE

Size: TypeAlias = tuple[int, int]
Indices: TypeAlias = NDArray[np.int64]

_PIXELS = 1 << 18  # that are multiplied at once: a product of float32 counts up to 2**24 exactly
_EXPECTED = "a tensor (n, H, W), or a list of RLE dictionaries {'size': [H, W], 'counts': ...}"


@dataclass(frozen=True, eq=False)
class PixelCounts:
    """Pixels of the masks of an image, int64.

    Args:
        detections: how many each detection has, `(D,)`.
        truths: how many each truth has, `(T,)`.
        both: how many are in both, `(D, T)`.
    """

    detections: Tensor
    truths: Tensor
    both: Tensor


def check_masks(place: str, masks: Any, count: int) -> Size | None:
    """The height and width of the masks of an image, or None.

    Raises:
        ShapeError, DtypeError: they are not `count` masks of one size.
    """
    if isinstance(masks, Tensor):
        if not len(masks) and not count:
            return None
        if masks.dtype not in WHOLE:
            raise DtypeError(describe(place, masks.dtype, "bool, or integers", f"Pass {place} > 0.5"))
        if masks.ndim != 3 or len(masks) != count:
            got = f"shape {tuple(masks.shape)}"
            raise ShapeError(describe(place, got, f"shape ({count}, H, W)", "Give one mask a label"))
        if count and 0 in masks.shape:
            got = f"shape {tuple(masks.shape)}"
            raise ShapeError(describe(place, got, "masks of one pixel or more", "Give masks of the size of the image"))
        return masks.shape[1], masks.shape[2]
    if not isinstance(masks, list | tuple):
        raise ShapeError(describe(place, type_name(masks), _EXPECTED, "Give the masks of the image"))
    if len(masks) != count:
        raise ShapeError(describe(place, f"{len(masks)} masks", f"{count}, as many as labels", "Give one a label"))
    sizes = {_size(f"{place}[{k}]", mask) for k, mask in enumerate(masks)}
    if len(sizes) > 1:
        raise ShapeError(describe(place, f"sizes {sorted(sizes)}", "one size", "Give masks of one image"))
    return next(iter(sizes), None)


def _size(place: str, mask: Any) -> Size:
    size = mask.get("size") if isinstance(mask, Mapping) else None
    whole = isinstance(size, Sequence) and len(size) == 2 and all(isinstance(each, int) and each > 0 for each in size)
    if not whole or "counts" not in mask:
        got = f"size {size!r} and keys {', '.join(map(str, mask))}" if isinstance(mask, Mapping) else type_name(mask)
        raise ShapeError(describe(place, got, "{'size': [H, W], 'counts': ...}", "Give the RLE dictionary of a mask"))
    assert size is not None, "it is whole"
    return size[0], size[1]


def count_pixels(names: tuple[str, str], detections: Any, truths: Any) -> PixelCounts:
    """The pixels of masks that were checked, counted where they are: in memory by runs, on a device by products.

    Args:
        names: what messages call both arguments.
        detections: the masks of an image.
        truths: the others of the same image.
    """
    sides = [each for each in (detections, truths) if len(each)]
    if all(isinstance(each, Tensor) for each in sides) and not all(reads_compiled(each.device) for each in sides):
        return _products(detections, truths)
    encoded = any(not isinstance(each, Tensor) for each in sides)
    own, true = (_runs(name, each, encoded) for name, each in zip(names, (detections, truths), strict=True))
    return PixelCounts(*map(torch.from_numpy, (own.areas, true.areas, own.intersections(true))))


def _products(detections: Any, truths: Any) -> PixelCounts:
    """The same by products of matrices, so that no value is read; sums of 0 and 1 are exact in float32."""
    pixels = max(each.shape[1:].numel() for each in (detections, truths) if len(each))
    own, true = (each.reshape(len(each), pixels) != 0 for each in (detections, truths))
    both = torch.zeros(len(own), len(true), dtype=torch.int64, device=own.device)
    with torch.autocast(own.device.type, enabled=False):
        for start in range(0, pixels, _PIXELS):
            block = slice(start, start + _PIXELS)
            both += (own[:, block].float() @ true[:, block].float().T).to(torch.int64)
    return PixelCounts(own.sum(1), true.sum(1), both)


@dataclass(frozen=True, eq=False)
class MaskRuns:
    """Masks as runs of pixels in one order: for each, where a run begins, where it ends, where the next begins ...

    Args:
        bounds: those of all masks, one after the other; two a run.
        starts: where each mask begins among them, and where the last ends.
    """

    bounds: Indices
    starts: Indices

    @cached_property
    def areas(self) -> Indices:
        """How many pixels each mask has."""
        return self._sums(self.bounds)

    def intersections(self, other: MaskRuns) -> Indices:
        """How many pixels each mask shares with each of the other ones."""
        columns = [self._sums(other.pixels_before(k, self.bounds)) for k in range(len(other.starts) - 1)]
        return np.stack(columns, 1) if columns else np.zeros((len(self.starts) - 1, 0), np.int64)

    def pixels_before(self, mask: int, positions: Indices) -> Indices:
        """How many pixels of a mask lie before each position."""
        bounds = self.bounds[self.starts[mask] : self.starts[mask + 1]]
        whole = np.append(0, np.cumsum(bounds[1::2] - bounds[::2]))
        before = np.searchsorted(bounds, positions, "right")
        inside = before % 2 == 1  # of a run
        last = bounds[np.maximum(before - 1, 0)] if len(bounds) else before
        return np.asarray(whole[before // 2] + np.where(inside, positions - last, 0))

    def _sums(self, values: Indices) -> Indices:
        """The sums over the runs of each mask of the value at their end less that at their beginning."""
        totals = np.append(0, np.cumsum(values[1::2] - values[::2]))[self.starts // 2]
        return np.diff(totals)


def _runs(name: str, masks: Any, by_column: bool) -> MaskRuns:
    """The runs of masks; by column as RLE has them, or else row by row."""
    if not len(masks):
        found = []
    elif isinstance(masks, Tensor):
        inside = to_host(masks if masks.dtype == torch.bool else masks != 0)
        inside = inside.transpose(1, 2) if by_column else inside
        found = [_run_bounds(each.reshape(-1).numpy()) for each in inside]
    else:
        found = [_decoded(f"{name}[{k}]", mask) for k, mask in enumerate(masks)]
    starts = np.append(0, np.cumsum([len(each) for each in found], dtype=np.int64))
    return MaskRuns(np.concatenate(found) if found else np.zeros(0, np.int64), starts)


def _run_bounds(inside: NDArray[np.bool_]) -> Indices:
    """Where the runs of one mask begin and end; mask by mask, so that they stay in the cache."""
    changes = np.flatnonzero(inside[1:] != inside[:-1]) + 1
    return np.concatenate([[0] * bool(inside[0]), changes, [len(inside)] * bool(inside[-1])]).astype(np.int64)


def _decoded(place: str, mask: Mapping[str, Any]) -> Indices:
    """Where the runs of an RLE mask begin and end."""
    height, width = mask["size"]
    given = mask["counts"]
    try:
        counts = _decompressed(given) if isinstance(given, str | bytes) else np.asarray(given, np.int64).reshape(-1)
        ends = np.cumsum(counts)
        right = bool((counts >= 0).all()) and len(ends) > 0 and int(ends[-1]) == height * width
    except (TypeError, ValueError, OverflowError, UnicodeEncodeError):
        right = False
    if not right:
        expected = f"runs of pixels that add up to {height} x {width}"
        got = f"{type_name(given)} of length {len(given)}" if hasattr(given, "__len__") else type_name(given)
        do = "Give the counts that pycocotools.mask.encode gives, or a list of integers"
        raise InvalidValuesError(describe(f"{place}['counts']", got, expected, do))
    return ends[: len(ends) // 2 * 2]


def _decompressed(counts: str | bytes) -> Indices:
    """COCO's string of counts: digits of 5 bits from the lowest, with a sign, from the third on less the last but one.

    Example:
        >>> _decompressed(b"04P3").tolist()
        [0, 4, 96]
    """
    digits = np.frombuffer(counts.encode("ascii") if isinstance(counts, str) else counts, np.uint8).astype(np.int64)
    digits = digits - 48
    if not len(digits) or digits.min() < 0 or digits.max() > 63 or digits[-1] & 32:
        raise ValueError
    last = np.flatnonzero(digits & 32 == 0)
    first = np.append(0, last[:-1] + 1)
    place = np.arange(len(digits)) - np.repeat(first, last - first + 1)
    if place.max() > 9:
        raise ValueError
    values = np.add.reduceat((digits & 31) << 5 * place, first)
    values -= (digits[last] & 16 != 0).astype(np.int64) << 5 * (last - first + 1)
    values[1::2] = np.cumsum(values[1::2])
    values[2::2] = np.cumsum(values[2::2])
    return np.asarray(values)
