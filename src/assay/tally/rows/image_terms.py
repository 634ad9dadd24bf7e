"""What single images give: a frozen description of each number, computed on the device of the images.

Numbers that are means of bounded maps are summed in fixed point, so they do not depend on the order of pixels.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.errors import ShapeError, describe
from assay.tally.base import Batch, BatchLayout, TensorLayout, shown
from assay.tally.layout_checks import check_as_preds, check_real, check_weights
from assay.tally.rows.windows import Window
from assay.tally.sums.float_terms import as_float, difference, power
from assay.tally.sums.row_sums import RowTerm, RowValues, sum_each_row

PIXEL_BITS, MEAN_BITS = 30, 50
"""How many binary places a pixel of a bounded map has, and the mean over its pixels."""
_CACHED = 1 << 17  # pixels of the images that are computed together


class ImageTerm(RowTerm):
    """A number of each image; or, where `bounded`, the fixed-point mean of a map of it, int64 in units of 2**-50."""

    chunk_scale = 64
    rounding = 2.0**-10  # of windows that are nearly constant few digits are left
    bounded: bool = True
    name: str
    """What the number is called, for the columns of per-sample values."""
    smallest: int = 1
    """How many pixels an image has at least along each dimension."""
    invalid = ("images have values that are NaN, infinite or too large, or give a number that is",)

    def check(self, layout: BatchLayout) -> None:
        check_images("preds", layout.preds, self.smallest)
        if self.uses_target:
            check_as_preds("target", layout.target, layout.preds)
        check_weights(layout.weights)

    def __call__(self, batch: Batch) -> RowValues:
        values = self.numbers(batch)
        if batch.compiled and batch.terms is None:  # nothing is to be said of the rows where all of them are right
            numbers = values.numpy()
            if (numbers != UNDEFINED).all() if self.bounded else np.isfinite(numbers).all():
                return RowValues(values)
        fine = values != UNDEFINED if self.bounded else (values - values) == 0
        return RowValues(values, counted=fine, invalid=[~fine])

    def numbers(self, batch: Batch) -> Tensor:
        """The number of each image, `(N,)`."""
        parts = [self.measure(*images) for images in _split(batch, self.images(batch))]
        return torch.cat(parts) if len(parts) > 1 else parts[0]

    def images(self, batch: Batch) -> tuple[Tensor, ...]:
        """What `measure` takes of a batch."""
        return (batch.preds, batch.needed_target) if self.uses_target else (batch.preds,)

    def floats(self, batch: Batch) -> Tensor:
        """The same as floats, and NaN where it is undefined."""
        values = self.numbers(batch)
        if not self.bounded:
            return values
        return (values.float() * 2.0**-MEAN_BITS).masked_fill_(values == UNDEFINED, math.nan)

    @abstractmethod
    def measure(self, *images: Any, **nothing: Any) -> Tensor:
        """The number of each image, `(N,)`, from real tensors of any dtype: those that `images` gives."""


UNDEFINED = -(1 << 62)


def check_images(name: str, column: TensorLayout, smallest: int) -> None:
    """Raise where an argument is no images or volumes with so many pixels along each side."""
    check_real(name, column)
    tail = column.tail
    if len(tail) not in (3, 4) or min(tail) < 1 or min(tail[1:]) < smallest:
        expected = f"(N, C, H, W) or (N, C, D, H, W) with {smallest} or more pixels along each side"
        do = "Add a channel dimension with unsqueeze(1)" if len(tail) == 2 else "Give larger images"
        raise ShapeError(describe(name, f"shape {shown(tail)}", expected, do))


def _split(batch: Batch, tensors: tuple[Tensor, ...]) -> Iterator[tuple[Tensor, ...]]:
    preds = batch.preds
    images = max(1, _CACHED // max(1, preds[0].numel())) if len(preds) else 1
    images *= max(1, batch.cache_elements >> 15)
    if len(preds) <= images:  # as small batches are: nothing is split
        return iter([tensors])
    return zip(*(torch.split(each, images) for each in tensors), strict=True)


def fixed_mean(values: Tensor, bound: float) -> Tensor:
    """The mean of each row of a map whose values are in `[-bound, bound]`, in units of 2**-50; else `UNDEFINED`.

    A value is rounded to 2**-30. The sum of integers has no order, so the mean has the same bits on every device that
    computes the same map.
    """
    flat = values.flatten(1)
    fine = flat.abs().amax(1) <= bound + 1e-3  # NaN is not
    total = (flat * 2.0**PIXEL_BITS).round_().to(torch.int64).sum(1)
    total = torch.where(fine, total, 0)
    count, more = flat.shape[1], MEAN_BITS - PIXEL_BITS
    whole = total.div(count, rounding_mode="floor")
    rest = total - whole * count
    mean = (whole << more) + (rest << more).div(count, rounding_mode="floor")
    return torch.where(fine, mean, UNDEFINED)


def row_mean(values: Tensor) -> Tensor:
    """The mean of each row of a map that is not bounded, in floating point."""
    return row_sum(values) / math.prod(values.shape[1:])


def row_sum(values: Tensor) -> Tensor:
    """The sum of each row, in floating point."""
    return sum_each_row(values.flatten(1).contiguous())[:, 0]


def as_floats(preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both as float32, or float64 where one is."""
    wide = torch.float64 if torch.float64 in (preds.dtype, target.dtype) else torch.float32
    return preds.to(wide), target.to(wide)


def centred(preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Both without the middle of their range, channel by channel, as floats; and that middle, `(N, C, 1, ...)`.

    Without an offset, squares and products lose no digits to it. Integers are subtracted as integers.
    """
    if preds.dtype.is_floating_point or target.dtype.is_floating_point:
        preds, target = as_floats(preds, target)
    else:
        preds, target = preds.to(torch.int64), target.to(torch.int64)
    ends = [end(x.flatten(2), -1) for x in (preds, target) for end in (torch.amin, torch.amax)]
    low, high = torch.minimum(ends[0], ends[2]), torch.maximum(ends[1], ends[3])
    whole = not low.dtype.is_floating_point
    middle = (low + high).div(2, rounding_mode="floor") if whole else low * 0.5 + high * 0.5
    middle = middle.reshape(*middle.shape, *[1] * (preds.ndim - 2))
    x, y = as_floats(preds - middle, target - middle)
    return x, y, middle.to(x.dtype)


def central(squares: Tensor, squared_mean: Tensor) -> Tensor:
    """The variance in each window; 0 where it may be the rounding of a constant."""
    variance = squares - squared_mean
    return torch.where(variance <= squares * (16 * torch.finfo(squares.dtype).eps), 0, variance)


@dataclass(frozen=True)
class Similarity:
    """The luminance and the structure of SSIM, pixel by pixel.

    They are computed as `1 - (mx - my)² / (mx² + my² + c1)` and `1 - var(x - y) / (var(x) + var(y) + c2)`, which lose
    no digits for images that are nearly equal. Where a denominator is 0, the factor is 1.
    """

    window: Window
    c1: float = 0.0
    c2: float = 0.0
    unbiased: bool = False

    def __call__(self, total: Tensor, error: Tensor, middle: Tensor, luminance: bool = True) -> tuple[Tensor, Tensor]:
        """Both factors, from the sum and the difference of the centred images and the middle of their range."""
        dims = range(2, total.ndim)
        mean, gap = self.window.means(total, dims), self.window.means(error, dims).square_()
        both = self._variance(total, mean.square())
        apart = self._variance(error, gap)
        structure = apart / (both + apart).mul_(0.5).add_(self.c2)
        structure = (1 - structure) if self.c2 else torch.where(apart == 0, 1, 1 - structure)
        if not luminance:
            return structure, structure
        size = (mean + 2 * middle).square_().add_(gap).mul_(0.5).add_(self.c1)
        light = 1 - gap / size
        return (light if self.c1 else torch.where(gap == 0, 1, light)), structure

    def _variance(self, x: Tensor, squared_mean: Tensor) -> Tensor:
        squares = self.window.means(x * x, range(2, x.ndim))
        variance = (squares - squared_mean).clamp_(min=0) if self.c2 else central(squares, squared_mean)
        if self.unbiased:
            pixels = self.window.size ** (x.ndim - 2)
            variance = variance * (pixels / (pixels - 1))
        return variance


@dataclass(frozen=True)
class StructuralSimilarity(ImageTerm):
    """The mean of SSIM over the windows that lie inside of an image, and its channels."""

    similarity: Similarity

    name = "structural similarity"

    @property
    def smallest(self) -> int:  # type: ignore[override]
        return self.similarity.window.size

    def measure(self, preds: Tensor, target: Tensor) -> Tensor:
        x, y, middle = centred(preds, target)
        light, structure = self.similarity(self.windows(x + y), self.windows(x - y), middle)
        return fixed_mean(light.mul_(structure), 1)

    def windows(self, x: Tensor) -> Tensor:
        """The image that the windows lie in."""
        return x


@dataclass(frozen=True)
class MultiscaleSimilarity(ImageTerm):
    """The product over scales of the mean structure to a power; at the coarsest, of SSIM."""

    similarity: Similarity
    betas: tuple[float, ...]

    name = "multi-scale structural similarity"

    @property
    def smallest(self) -> int:  # type: ignore[override]
        return self.similarity.window.size << (len(self.betas) - 1)

    def measure(self, preds: Tensor, target: Tensor) -> Tensor:
        x, y, middle = centred(preds, target)
        total, error = x + y, x - y
        logs, fine = None, None
        last = len(self.betas) - 1
        for k, beta in enumerate(self.betas):
            if k == last:
                total, error = self.coarsest(total), self.coarsest(error)
            light, structure = self.similarity(total, error, middle, luminance=k == last)
            mean = fixed_mean(light.mul_(structure) if k == last else structure, 1)
            known = mean != UNDEFINED
            factor = power((mean.to(x.dtype) * 2.0**-MEAN_BITS).clamp(min=0), beta)
            logs = factor if logs is None else logs * factor
            fine = known if fine is None else fine & known
            if k < last:
                total, error = _halved(total), _halved(error)
        assert logs is not None
        assert fine is not None
        value = (logs * 2.0**MEAN_BITS).round_().to(torch.int64)
        return torch.where(fine, value, UNDEFINED)

    def coarsest(self, x: Tensor) -> Tensor:
        """The image of the coarsest scale that the windows lie in."""
        return x


def _halved(x: Tensor) -> Tensor:
    """Means of 2 x 2 pixels (2 x 2 x 2 of volumes); a last odd one is left out."""
    for dim in range(2, x.ndim):
        pairs = torch.unflatten(x.narrow(dim, 0, x.shape[dim] // 2 * 2), dim, (-1, 2))
        x = (pairs.select(dim + 1, 0) + pairs.select(dim + 1, 1)).mul_(0.5)
    return x


@dataclass(frozen=True)
class SpectralAngle(ImageTerm):
    """The mean over the pixels of the angle between the vectors that the channels are."""

    name = "spectral angle"

    def measure(self, preds: Tensor, target: Tensor) -> Tensor:
        x, y = (_directions(side) for side in as_floats(preds, target))
        # The half angle has |x - y| as its sine and |x + y| as its cosine, up to a factor: exact for small angles too.
        return fixed_mean(_arc_tangent(_channel_norm(x - y), _channel_norm(x + y)).mul_(2), math.pi)


def _directions(x: Tensor) -> Tensor:
    """The vectors of the channels with a length of 1; where all are 0, 0."""
    largest = x.abs().amax(1, keepdim=True)
    x = x / torch.where(largest == 0, 1, largest)
    return x / torch.where(largest == 0, 1, _channel_norm(x))


def _channel_norm(x: Tensor) -> Tensor:
    """The length of the vector of the channels at each pixel; added up in their order."""
    total = x[:, :1].square()
    for k in range(1, x.shape[1]):
        total = total + x[:, k : k + 1].square()
    return total.sqrt_()


def _arc_tangent(sine: Tensor, cosine: Tensor) -> Tensor:
    """The angle, in [0, pi / 2], whose sine and cosine are in this proportion.

    `atan` of torch has other bits in the last elements of a tensor, which do not fill a vector register.
    """
    large = sine > cosine
    longer = torch.maximum(sine, cosine)
    t = torch.minimum(sine, cosine) / torch.where(longer == 0, 1, longer)
    for _ in range(2):  # atan(t) = 2 atan(t / (1 + sqrt(1 + t²))): to 0.199 and less
        t = t / (1 + (1 + t * t).sqrt_())
    square, last = t * t, 25 if t.dtype == torch.float64 else 11
    series = torch.zeros_like(t)
    for k in range(last, 0, -2):
        series.mul_(-square).add_(1 / k)
    angle = series.mul_(t).mul_(4)
    return torch.where(large, math.pi / 2 - angle, angle)


@dataclass(frozen=True)
class Variation(ImageTerm):
    """The sum of the absolute differences of neighbouring pixels."""

    name = "total variation"
    uses_target = False
    bounded = False

    def measure(self, preds: Tensor) -> Tensor:
        return _sum_of_all([step.abs_() for step in _steps(preds)])


def _steps(x: Tensor) -> list[Tensor]:
    """The differences of neighbouring pixels along each dimension: floats, or int64 where pixels are integers."""
    x = as_float(x) if x.dtype.is_floating_point else x.to(torch.int64)
    return [x.diff(dim=dim) for dim in range(2, x.ndim)]


@dataclass(frozen=True)
class PeakRatio(ImageTerm):
    """`10 log10(range² / MSE)` of an image."""

    data_range: float

    name = "peak signal-to-noise ratio"
    bounded = False

    def __call__(self, batch: Batch) -> RowValues:
        values = self.numbers(batch)
        undefined = (values == -math.inf).logical_or_(values.isnan())  # infinite for equal images
        return RowValues(values, counted=~undefined, invalid=[undefined])

    def measure(self, preds: Tensor, target: Tensor) -> Tensor:
        return self.decibels(self.squared_error(preds, target))

    def squared_error(self, preds: Tensor, target: Tensor) -> Tensor:
        """The mean squared error of each image, in units of the range."""
        return row_mean(difference(preds, target).mul_(1 / self.data_range).square_())

    def decibels(self, error: Tensor) -> Tensor:
        """The ratio of such an error."""
        return error.log_().mul_(-10 / math.log(10))


@dataclass(frozen=True)
class BlockedPeakRatio(PeakRatio):
    """The same, with the blocking effect of `preds` added to the error: PSNR-B."""

    block_size: int

    name = "peak signal-to-noise ratio with blocked effect"

    @property
    def smallest(self) -> int:  # type: ignore[override]
        return self.block_size

    def measure(self, preds: Tensor, target: Tensor) -> Tensor:
        return self.decibels(self.squared_error(preds, target) + self._effect(preds))

    def _effect(self, x: Tensor) -> Tensor:
        """How much larger the mean squared step is between blocks than inside of them."""
        steps = [step.movedim(dim, -1) for dim, step in enumerate(_steps(x), 2)]
        squares = [as_float(step).mul(1 / self.data_range).square_() for step in steps]
        edges = [each[..., self.block_size - 1 :: self.block_size] for each in squares]
        pairs, all_pairs = (sum(math.prod(each.shape[1:]) for each in maps) for maps in (edges, squares))
        between = _sum_of_all(edges)
        if not pairs:
            return between
        for each in edges:
            each.zero_()
        excess = (between / pairs - _sum_of_all(squares) / (all_pairs - pairs)).clamp_(min=0)
        return excess.mul_(math.log(self.block_size) / math.log(min(x.shape[2:])))


def _sum_of_all(maps: list[Tensor]) -> Tensor:
    """The sum of each row of several maps."""
    return row_sum(torch.cat([each.flatten(1) for each in maps], 1))


@dataclass(frozen=True)
class RelativeGlobalError(ImageTerm):
    """`100 / ratio sqrt(mean over channels of MSE / mean(target)²)`: ERGAS."""

    ratio: float

    name = "relative global error"
    bounded = False

    def measure(self, preds: Tensor, target: Tensor) -> Tensor:
        error = difference(preds, target).square_()
        _, reference = as_floats(preds, target)
        errors, means = row_mean(torch.stack([error, reference]).flatten(0, 2)).view(2, *error.shape[:2])
        return row_mean(errors / means.square_()).sqrt_().mul_(100 / self.ratio)


@dataclass(frozen=True)
class WindowTerm(ImageTerm):
    """A number of an image from windows that lie inside of it."""

    window: Window

    bounded = False

    @property
    def smallest(self) -> int:  # type: ignore[override]
        return self.window.size


@dataclass(frozen=True)
class WindowError(WindowTerm):
    """The mean over windows and channels of the root of the mean squared error in a window."""

    name = "windowed root mean squared error"

    def measure(self, preds: Tensor, target: Tensor) -> Tensor:
        error = difference(preds, target)
        return row_mean(self.window.means(error.square_(), range(2, error.ndim)).sqrt_())


@dataclass(frozen=True)
class WindowSpectralError(WindowTerm):
    """The mean over windows of `100 / mean(target) sqrt(mean over channels of MSE)`: RASE."""

    name = "relative average spectral error"

    def measure(self, preds: Tensor, target: Tensor) -> Tensor:
        error = difference(preds, target)
        _, reference = as_floats(preds, target)
        dims = range(2, error.ndim)
        errors, means = self.window.means(error.square_(), dims), self.window.means(reference, dims)
        root = _channel_mean(errors).sqrt_()
        return row_mean(root / _channel_mean(means)).mul_(100)


def _channel_mean(x: Tensor) -> Tensor:
    total = x[:, :1]
    for k in range(1, x.shape[1]):
        total = total + x[:, k : k + 1]
    return total / x.shape[1]


@dataclass(frozen=True)
class HighPassCorrelation(ImageTerm):
    """The mean over windows and channels of the correlation of both images behind a Laplace filter."""

    window: Window

    name = "spatial correlation"

    @property
    def smallest(self) -> int:  # type: ignore[override]
        return self.window.size + 2

    def measure(self, preds: Tensor, target: Tensor) -> Tensor:
        x, y, _ = centred(preds, target)
        return correlation_in_windows(high_pass(x), high_pass(y), self.window)


def high_pass(x: Tensor) -> Tensor:
    """Inner pixels behind a Laplace filter: as many times the pixel as the window has pixels, less their sum."""
    dims = range(2, x.ndim)
    return (_inner(x) - Window(3).means(x, dims)) * float(3 ** len(dims))


def correlation_in_windows(x: Tensor, y: Tensor, window: Window) -> Tensor:
    """The fixed-point mean over windows of the correlation in each; 0 where one of both is constant."""
    dims = range(2, x.ndim)
    mean_x, mean_y = window.means(x, dims), window.means(y, dims)
    xx, yy = (central(window.means(side * side, dims), mean * mean) for side, mean in ((x, mean_x), (y, mean_y)))
    xy = window.means(x * y, dims) - mean_x * mean_y
    size = xx.sqrt_() * yy.sqrt_()
    return fixed_mean(torch.where(size == 0, 0, xy / size).clamp_(-1, 1), 1)


def _inner(x: Tensor) -> Tensor:
    for dim in range(2, x.ndim):
        x = x.narrow(dim, 1, x.shape[dim] - 2)
    return x
