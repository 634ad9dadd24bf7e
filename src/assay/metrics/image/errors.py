"""Errors of the pixels of images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

from torch import Tensor

from assay.metrics.base import number
from assay.metrics.exact_arithmetic import quotient_of, quotient_of_rows, result, rounded, sums_or_means
from assay.metrics.image.base import ImageMetric
from assay.metrics.output_metrics import MEAN_SQUARED_ERROR, SQUARED_ERROR, SQUARES, WEIGHT
from assay.metrics.per_sample import SampleTerms
from assay.native.quotients import StateQuotient
from assay.tally.base import Batch, Tally
from assay.tally.rows.image_terms import (
    BlockedPeakRatio,
    ImageTerm,
    PeakRatio,
    RelativeGlobalError,
    SpectralAngle,
    Variation,
    WindowError,
    WindowSpectralError,
)
from assay.tally.rows.windows import Window
from assay.tally.state_quotients import state_quotient
from assay.tally.sums.polynomials import Polynomial, QuotientOfSums
from assay.tally.sums.row_sums import RowTotals
from assay.tally.sums.sums import Sums
from assay.tally.sums.totals import Totals

_LARGEST_SPAN = 256
"""Of the numerator and denominator of a `data_range` whose ratio compiled code reads."""


@lru_cache
def _peak_ratio(square: int) -> QuotientOfSums:
    """So many times the number of values, over the sum of squared errors."""
    above: Polynomial = WEIGHT
    for bit in f"{square:b}"[1:]:
        above = above + above + WEIGHT if bit == "1" else above + above
    return QuotientOfSums(above, SQUARED_ERROR)


def _decibels(ratio: float, unit: float) -> float:
    """`10 log10(ratio unit)`, for a power of two as the unit; NaN where a product of both may be rounded."""
    return 10 * math.log10(ratio * unit) if 1e-290 < ratio < 1e290 else math.nan


@dataclass(frozen=True, kw_only=True)
class PeakSignalNoiseRatio(ImageMetric):
    """Peak signal-to-noise ratio in decibels.

    `10 log10(data_range² / MSE)`, where MSE is the mean over all pixels of all images; with `per_image=True` the mean
    over the images of the ratio of each.

    Shapes: `preds` and `target` of one shape; with `per_image=True` images `(N, C, H, W)` or volumes `(N, C, D, H, W)`.

    Rounding: the mean squared error of all pixels is exact, and the logarithm is taken of it in float64. That of an
    image is computed in float32 (float64 where an argument is float64).

    Returns:
        float64 of shape `()`; infinite where images are equal (with `per_image`, where those of one pair are). NaN
        without data.

    Raises:
        ConfigError: a `data_range` that is not above 0.
        DtypeError: integers with a `data_range` of 1 or less.
        InvalidValuesError: by `compute`, with `per_image`, for images with values that are NaN or infinite.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[0.0, 1.0], [2.0, 3.0]]), torch.tensor([[3.0, 2.0], [1.0, 0.0]])
        >>> PeakSignalNoiseRatio(data_range=3)(preds, target)
        tensor(2.5527, dtype=torch.float64)

    Source: scikit-image, `skimage.metrics.peak_signal_noise_ratio`.
    """

    higher_is_better = True
    unchanged_by = frozenset({"swap"})
    examples = ({"data_range": 16.0, "per_image": True}, {"data_range": 16.0})

    data_range: Annotated[
        float, "the span of the values that pixels may have: 255 for 8-bit images, 1 for images from 0 to 1."
    ]
    per_image: Annotated[bool, "the mean over images of the ratio of each; otherwise the ratio of all pixels."] = False

    @property
    def term(self) -> ImageTerm:
        return PeakRatio(self.data_range)

    @property
    def scale(self) -> str:
        return "" if self.per_image else "decibels"

    def tally(self, weighted: bool) -> Tally:
        return super().tally(weighted) if self.per_image else Sums(SQUARES, None, weighted)

    def reading(self, tally: Tally) -> StateQuotient | None:
        if self.per_image:
            return super().reading(tally)
        span = Fraction(self.data_range)
        if span.numerator > _LARGEST_SPAN or span.denominator > _LARGEST_SPAN:
            return None
        ratio, unit = state_quotient(tally, _peak_ratio(span.numerator**2)), 1 / span.denominator**2
        return None if ratio is None else ratio.through(lambda value: _decibels(value, unit))

    def compute(self, counts: RowTotals | Totals) -> Tensor:
        if isinstance(counts, RowTotals):
            return super().compute(counts)
        error = quotient_of(MEAN_SQUARED_ERROR, counts, 0)
        if isinstance(error, float):
            return number(error)
        if not error:
            return number(math.inf)
        ratio = Fraction(self.data_range) ** 2 / error
        if 0 < rounded(ratio) < math.inf:
            return number(10 * math.log10(rounded(ratio)))
        return number(10 * (math.log10(ratio.numerator) - math.log10(ratio.denominator)))

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return super().per_sample(batch) if self.per_image else None


@dataclass(frozen=True, kw_only=True)
class PeakSignalNoiseRatioWithBlockedEffect(ImageMetric):
    """Peak signal-to-noise ratio of block-coded images (PSNR-B), in decibels.

    `10 log10(data_range² / (MSE + BEF))` of each image, and its mean over the images. The blocking effect factor BEF is
    `log2(block_size) / log2(shortest side) * (D_b - D_i)` where that is above 0, else 0: `D_b` is the mean squared
    difference of the neighbours in `preds` that lie in two blocks, `D_i` of those in one block, of all channels. Blocks
    are counted from the first pixel.

    Returns:
        float64 of shape `()`; infinite where a pair is equal and has no blocking effect. NaN without data.

    Raises:
        ConfigError: a `data_range` that is not above 0, or a `block_size` below 2.
        ShapeError: `preds` and `target` of different shapes, or with a side shorter than a block.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[1.0, 1.0, 3.0, 3.0]] * 4).reshape(1, 1, 4, 4)
        >>> metric = PeakSignalNoiseRatioWithBlockedEffect(data_range=4, block_size=2)
        >>> metric(preds, preds), metric(preds, torch.full_like(preds, 2.0))
        (tensor(12.0412, dtype=torch.float64), tensor(9.0309, dtype=torch.float64))

    Source: Yim, Bovik, Quality assessment of deblocked images, IEEE Transactions on Image Processing 20 (2011).
    """

    higher_is_better = True
    examples = ({"data_range": 16.0}, {"data_range": 16.0, "block_size": 4})

    data_range: Annotated[
        float, "the span of the values that pixels may have: 255 for 8-bit images, 1 for images from 0 to 1."
    ]
    block_size: Annotated[int, "pixels along a side of a block."] = 8

    @property
    def term(self) -> ImageTerm:
        return BlockedPeakRatio(self.data_range, self.block_size)


@dataclass(frozen=True, kw_only=True)
class SpectralAngleMapper(ImageMetric):
    """Mean angle, in radians, between the vectors of the channels of each pixel.

    `acos(<x, y> / (|x| |y|))`, and its mean over the pixels and the images, computed so that small angles lose no
    digits. A pixel that is 0 in all channels has no direction: its angle to another such pixel is 0, and to any other
    pi / 2.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([1.0, 1.0]), torch.tensor([1.0, 0.0])
        >>> SpectralAngleMapper()(preds.reshape(1, 2, 1, 1), target.reshape(1, 2, 1, 1))
        tensor(0.7854, dtype=torch.float64)

    Source: Yuhas, Goetz, Boardman, Discrimination among semi-arid landscape endmembers using the spectral angle mapper
    algorithm, JPL Airborne Geoscience Workshop 1992.
    """

    unchanged_by = frozenset({"swap", "scale"})
    term = SpectralAngle()


@dataclass(frozen=True, kw_only=True)
class TotalVariation(ImageMetric):
    """Total variation: the absolute differences of neighbouring pixels, added up along each dimension.

    `sum |x[i + 1, j] - x[i, j]| + sum |x[i, j + 1] - x[i, j]|`, and its sum or mean over the images.

    Shapes: `preds` are images `(N, C, H, W)` or volumes `(N, C, D, H, W)`; there is no target. Weights are `(N,)`.

    Example:
        >>> import torch
        >>> TotalVariation()(torch.tensor([[0.0, 1.0], [2.0, 4.0]]).reshape(1, 1, 2, 2))
        tensor(8., dtype=torch.float64)

    Source: Rudin, Osher, Fatemi, Nonlinear total variation based noise removal algorithms, Physica D 60 (1992).
    """

    inputs = "pictures"
    higher_is_better = None
    unchanged_by = frozenset({"shift"})
    examples = ({"reduction": "mean"}, {})

    reduction: Annotated[Literal["sum", "mean"], '"sum" over the images, or "mean".'] = "sum"
    term = Variation()

    @property
    def estimates(self) -> bool:
        return self.reduction == "mean"

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return quotient_of_rows(self.reduction)

    def compute(self, counts: RowTotals) -> Tensor:
        return result(sums_or_means(counts, self.reduction))

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return super().per_sample(batch) if self.reduction == "mean" else None


@dataclass(frozen=True, kw_only=True)
class ErrorRelativeGlobalDimensionlessSynthesis(ImageMetric):
    """Relative global error of synthesis (ERGAS).

    `100 / ratio * sqrt(mean((RMSE / mean(target))²))` over the channels of an image, and its mean over the images.

    Raises:
        ConfigError: a `ratio` that is not above 0.
        InvalidValuesError: by `compute`, for images with values that are NaN or infinite, and where a channel of the
            target has a mean of 0.

    Example:
        >>> import torch
        >>> target = torch.arange(1.0, 17).reshape(1, 1, 4, 4)
        >>> ErrorRelativeGlobalDimensionlessSynthesis(ratio=4)(target * 0.75, target)
        tensor(7.1100, dtype=torch.float64)

    Source: Wald, Quality of high resolution synthesised images, Fusion of Earth Data 2000.
    """

    ratio: Annotated[float, "how many pixels of the high resolution are one of the low, along a side."] = 4.0

    @property
    def term(self) -> ImageTerm:
        return RelativeGlobalError(self.ratio)


@dataclass(frozen=True, kw_only=True)
class WindowedError(ImageMetric):
    """A metric of the errors in windows."""

    window_size: Annotated[int, "pixels along a side of the window."] = 8

    examples: ClassVar = ({}, {"window_size": 3})


@dataclass(frozen=True, kw_only=True)
class RootMeanSquaredErrorUsingSlidingWindow(WindowedError):  # noqa: N818 - no exception
    """Mean over windows of the root of the mean squared error in each.

        mean over windows of sqrt(mean((preds - target)²))

    Of every window that lies inside of the image, and every channel; then the mean over the images.

    Example:
        >>> import torch
        >>> target = torch.arange(16.0).reshape(1, 1, 4, 4)
        >>> RootMeanSquaredErrorUsingSlidingWindow(window_size=3)(target + 0.5, target)
        tensor(0.5000, dtype=torch.float64)

    Source: TorchMetrics, `RootMeanSquaredErrorUsingSlidingWindow`.
    """

    unchanged_by = frozenset({"swap"})

    @property
    def term(self) -> ImageTerm:
        return WindowError(Window(self.window_size))


@dataclass(frozen=True, kw_only=True)
class RelativeAverageSpectralError(WindowedError):
    """Relative average spectral error (RASE), in percent.

    `100 / mean(target) * sqrt(mean(MSE))` over the channels, in every window that lies inside of the image; its mean
    over the windows, and over the images.

    Raises:
        ConfigError: a `window_size` below 1.
        InvalidValuesError: by `compute`, for images with values that are NaN or infinite, and where a window of the
            target has a mean of 0.

    Example:
        >>> import torch
        >>> target = torch.full((1, 1, 9, 9), 10.0)
        >>> RelativeAverageSpectralError()(target + 1, target)
        tensor(10., dtype=torch.float64)

    Source: Gonzalez-Audicana et al., Fusion of multispectral and panchromatic images, IEEE Transactions on Geoscience
    and Remote Sensing 42 (2004).
    """

    @property
    def term(self) -> ImageTerm:
        return WindowSpectralError(Window(self.window_size))
