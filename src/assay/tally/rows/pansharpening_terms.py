"""How pansharpened images distort colours and details, by the universal image quality index.

`preds (N, C, H, W)` are fused images, the column `ms (N, C, h, w)` has the multispectral images of low resolution that
they are made of, `pan` the panchromatic ones of high resolution and `pan_lr` those of low resolution; panchromatic
images have one channel, or as many as the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.errors import ShapeError, describe
from assay.tally.base import Batch, BatchLayout, TensorLayout, shown
from assay.tally.layout_checks import check_weights
from assay.tally.rows.image_terms import (
    MEAN_BITS,
    UNDEFINED,
    ImageTerm,
    Similarity,
    centred,
    check_images,
    fixed_mean,
    row_mean,
)
from assay.tally.rows.windows import Window
from assay.tally.sums.float_terms import power

QUALITY = Similarity(Window(11, 1.5))
"""The universal image quality index, as `UniversalImageQualityIndex` has it."""


def _qualities(x: Tensor, y: Tensor, middle: Tensor) -> Tensor:
    """The index of each channel of centred images, `(N, C)`, in units of 2**-50."""
    light, structure = QUALITY(x + y, x - y, middle)
    return fixed_mean(light.mul_(structure).flatten(0, 1), 1).view(x.shape[:2])


def qualities_of_pairs(x: Tensor) -> Tensor:
    """The index of each pair of channels of an image."""
    pairs = ((x[:, k : k + 1].expand_as(x[:, k + 1 :]), x[:, k + 1 :]) for k in range(x.shape[1] - 1))
    return torch.cat([_qualities(*centred(*pair)) for pair in pairs], 1)


def _distortion(qualities: Tensor, others: Tensor, order: int, dtype: torch.dtype) -> Tensor:
    """`mean(|Q - Q'| ** order) ** (1 / order)` of each image; NaN where one is undefined."""
    undefined = (qualities == UNDEFINED).logical_or_(others == UNDEFINED)
    gaps = (qualities - others).abs_().to(dtype).mul_(2.0**-MEAN_BITS)
    return power(row_mean(power(gaps.masked_fill_(undefined, torch.nan), order)), 1 / order)


def _wide(*images: Tensor) -> torch.dtype:
    return torch.float64 if any(each.dtype == torch.float64 for each in images) else torch.float32


def _check_channels(name: str, column: TensorLayout) -> None:
    """Raise where there are no channels whose colours could be distorted."""
    if column.tail[0] < 2:
        got, expected = f"shape {shown(column.tail)}", "2 or more channels, whose pairs are compared"
        raise ShapeError(describe(name, got, expected, "Give multispectral images"))


class PansharpeningTerm(ImageTerm):
    """A number of fused images that is no mean of a bounded map."""

    bounded = False
    smallest = QUALITY.window.size


@dataclass(frozen=True)
class SpectralDistortion(PansharpeningTerm):
    """The mean over pairs of channels of how far their quality is from that in the other image: D-lambda."""

    p: int

    name = "spectral distortion"

    def check(self, layout: BatchLayout) -> None:
        preds, target = layout.preds, layout.target
        if target is None:
            raise ShapeError(describe("target", "nothing", "images with the channels of preds", "Pass target"))
        check_same_channels("preds", preds, "target", target, self.smallest)
        _check_channels("preds", preds)
        check_weights(layout.weights)

    def measure(self, preds: Tensor, target: Tensor) -> Tensor:
        return _distortion(qualities_of_pairs(preds), qualities_of_pairs(target), self.p, _wide(preds, target))


def check_same_channels(name: str, column: TensorLayout, other: str, images: TensorLayout, smallest: int) -> None:
    """Raise where one of two columns is no images of that size, or they differ in more than their resolution."""
    for each, layout in ((name, column), (other, images)):
        check_images(each, layout, smallest)
    if column.tail[0] != images.tail[0] or len(column.tail) != len(images.tail):
        got = f"shape {shown(images.tail)} with {name} of shape {shown(column.tail)}"
        raise ShapeError(describe(other, got, f"the channels of {name}", "Give the same bands in the same order"))


@dataclass(frozen=True)
class SpatialDistortion(PansharpeningTerm):
    """The mean over channels of how far the quality beside the panchromatic image is from that of low resolution: D-s.

    Without a `window` the column `pan_lr` has the panchromatic image of low resolution. Otherwise it is `pan`, averaged
    in windows and interpolated.
    """

    norm_order: int
    window: Window | None

    name = "spatial distortion"
    uses_target = False

    @property
    def columns(self) -> frozenset[str]:  # type: ignore[override]
        return frozenset({"ms", "pan", *(["pan_lr"] if self.window is None else [])})

    def check(self, layout: BatchLayout) -> None:
        preds, ms = layout.preds, layout.columns["ms"]
        check_same_channels("preds", preds, "ms", ms, self.smallest)
        if any(high % low for high, low in zip(preds.tail[1:], ms.tail[1:], strict=True)):
            got = f"shape {shown(ms.tail)} with preds of shape {shown(preds.tail)}"
            raise ShapeError(describe("ms", got, "sides that divide those of preds", "Crop or resize the images"))
        for name, like, sides in (("pan", "preds", preds.tail[1:]), ("pan_lr", "ms", ms.tail[1:])):
            if name in self.columns:
                _check_panchromatic(name, layout.columns[name], (like, preds.tail[0], sides))
        if self.window and self.window.size >= min(ms.tail[1:]):
            got, expected = f"shape {shown(ms.tail)}", f"more than window_size={self.window.size} pixels along a side"
            raise ShapeError(describe("ms", got, expected, "Give larger images, or a smaller window_size"))
        check_weights(layout.weights)

    def images(self, batch: Batch) -> tuple[Tensor, ...]:
        return batch.preds, *(batch.columns[name] for name in sorted(self.columns))

    def measure(self, preds: Tensor, ms: Tensor, pan: Tensor, pan_lr: Tensor | None = None) -> Tensor:
        given = (preds, ms, pan) if pan_lr is None else (preds, ms, pan, pan_lr)
        return _distortion(*self.qualities(*given), self.norm_order, _wide(*given))

    def qualities(self, preds: Tensor, ms: Tensor, pan: Tensor, pan_lr: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The index of each channel beside the panchromatic image, `(N, C)`: in low and in high resolution."""
        high = _qualities(*centred(preds, pan))
        low, other, middle = centred(ms, pan if pan_lr is None else pan_lr)
        if self.window is not None:
            other = _reduced(self.window.means(_padded(other, self.window.size), range(2, other.ndim)), low.shape[2:])
        return _qualities(low, other.expand_as(low), middle), high


def _check_panchromatic(name: str, column: TensorLayout, like: tuple[str, int, tuple[int, ...]]) -> None:
    other, channels, sides = like
    check_images(name, column, 1)
    if column.tail[0] not in (1, channels) or column.tail[1:] != sides:
        got = f"shape {shown(column.tail)}"
        expected = f"1 or {channels} channels and the height and width of {other}, {tuple(sides)}"
        raise ShapeError(describe(name, got, expected, "Give the panchromatic image of the same scene"))


def _padded(x: Tensor, size: int) -> Tensor:
    """Images with mirrored borders, so that there are as many windows of this size as pixels."""
    for dim in range(2, x.ndim):
        before, after = size // 2, (size - 1) // 2
        parts = [x.narrow(dim, 0, before).flip(dim), x, x.narrow(dim, x.shape[dim] - after, after).flip(dim)]
        x = torch.cat(parts, dim)
    return x


def _reduced(x: Tensor, sides: torch.Size) -> Tensor:
    """Bilinear interpolation at the centres of pixels that are a whole number of times as large."""
    for dim, side in enumerate(sides, 2):
        factor = x.shape[dim] // side
        x = x.movedim(dim, 0)
        first = x[(factor - 1) // 2 :: factor]
        x = (first if factor % 2 else (first + x[factor // 2 :: factor]).mul_(0.5)).movedim(0, dim)
    return x


@dataclass(frozen=True)
class UnreferencedQuality(SpatialDistortion):
    """`(1 - D_lambda) ** alpha (1 - D_s) ** beta`: QNR. A distortion above 1 counts as 1."""

    alpha: float
    beta: float

    name = "quality with no reference"

    def check(self, layout: BatchLayout) -> None:
        super().check(layout)
        _check_channels("preds", layout.preds)

    def measure(self, preds: Tensor, ms: Tensor, pan: Tensor, pan_lr: Tensor | None = None) -> Tensor:
        spatial = super().measure(preds, ms, pan, pan_lr)
        spectral = _distortion(qualities_of_pairs(preds), qualities_of_pairs(ms), self.norm_order, spatial.dtype)
        details, colours = ((1 - each).clamp_(min=0) for each in (spatial, spectral))
        return power(colours, self.alpha) * power(details, self.beta)
