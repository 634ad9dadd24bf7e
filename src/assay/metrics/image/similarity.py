"""How similar the structure of images is: SSIM and similar metrics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from assay.errors import ConfigError, describe
from assay.metrics.image.base import ImageMetric
from assay.tally.rows.fidelity_terms import VisualInformation
from assay.tally.rows.image_terms import (
    HighPassCorrelation,
    ImageTerm,
    MultiscaleSimilarity,
    Similarity,
    StructuralSimilarity,
)
from assay.tally.rows.windows import Window


@dataclass(frozen=True, kw_only=True)
class WindowedSimilarity(ImageMetric):
    """A metric of means, variances and covariances in windows."""

    higher_is_better: ClassVar[bool | None] = True
    unchanged_by = frozenset({"swap"})

    gaussian_kernel: Annotated[bool, "windows are Gaussian; otherwise all pixels of a window weigh the same."] = True
    sigma: Annotated[float, "the standard deviation of Gaussian windows, in pixels."] = 1.5
    kernel_size: Annotated[
        int | None, "pixels along a side of the window; None for `2 * round(3.5 * sigma) + 1` (uniform: 7)."
    ] = None
    data_range: Annotated[
        float, "the span of the values that pixels may have: 255 for 8-bit images, 1 for images from 0 to 1."
    ]
    k1: Annotated[float, "`c1 = (k1 data_range)²` is added to squared means."] = 0.01
    k2: Annotated[float, "`c2 = (k2 data_range)²` is added to variances."] = 0.03
    use_sample_covariance: Annotated[
        bool, "variances and covariances are those of a sample of the window's pixels."
    ] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.gaussian_kernel:
            do = "Pass kernel_size for the size of the window"
            self._refuse_without_effect("sigma", "windows that are not Gaussian", do)
        for name in ("k1", "k2"):
            k = getattr(self, name)
            if not 0 < k < math.inf:
                raise ConfigError(describe(name, k, "a finite number above 0", f"Leave {name} out"))

    @property
    def window(self) -> Window:
        """The windows whose means are taken."""
        if not self.gaussian_kernel:
            return Window(self.kernel_size or 7)
        return Window(self.kernel_size or 2 * int(3.5 * self.sigma + 0.5) + 1, self.sigma)

    @property
    def similarity(self) -> Similarity:
        """The factors of SSIM, with constants in proportion to the range of the values."""
        c1, c2 = (self.k1 * self.data_range) ** 2, (self.k2 * self.data_range) ** 2
        return Similarity(self.window, c1, c2, self.use_sample_covariance)


@dataclass(frozen=True, kw_only=True)
class StructuralSimilarityIndexMeasure(WindowedSimilarity):
    r"""Mean structural similarity of images (SSIM).

    $$ \frac{(2 \mu_x \mu_y + c_1)(2 \sigma_{xy} + c_2)}{(\mu_x^2 + \mu_y^2 + c_1)(\sigma_x^2 + \sigma_y^2 + c_2)} $$

    in every window that lies inside of the image, and its mean over the windows and channels. Images with an offset,
    such as CT, temperatures in Kelvin and depths, lose no digits to it.

    Rounding: the value of a window is computed in float32 (float64 where an argument is float64) and rounded to 2**-30;
    means over windows and images are exact up to 2**-50, with the same bits for any size of batch.

    Example:
        >>> import torch
        >>> target = torch.arange(256.0).reshape(1, 1, 16, 16)
        >>> StructuralSimilarityIndexMeasure(data_range=255)(target * 0.75, target)
        tensor(0.9240, dtype=torch.float64)

    Source: Wang, Bovik, Sheikh, Simoncelli, Image quality assessment, IEEE Transactions on Image Processing 13 (2004).
    """

    examples = ({"data_range": 16.0}, {"data_range": 16.0, "gaussian_kernel": False, "use_sample_covariance": True})

    @property
    def term(self) -> ImageTerm:
        return StructuralSimilarity(self.similarity)


@dataclass(frozen=True, kw_only=True)
class MultiScaleStructuralSimilarityIndexMeasure(WindowedSimilarity):
    """Structural similarity at several scales (MS-SSIM).

    `prod(structure[k] ** betas[k])` over scales, each half as large as the one before: `structure` is the mean over
    windows of `(2 cov + c2) / (var + var + c2)`, and at the last scale of SSIM. Negative means count as 0.

    Rounding: as for SSIM at each scale; the product is rounded in float32 (float64 where an argument is float64).

    Example:
        >>> import torch
        >>> target = torch.arange(1024.0).reshape(1, 1, 32, 32)
        >>> metric = MultiScaleStructuralSimilarityIndexMeasure(data_range=1023, betas=(0.5, 0.5))
        >>> metric(target * 0.75, target)
        tensor(0.9459, dtype=torch.float64)

    Source: Wang, Simoncelli, Bovik, Multiscale structural similarity, Asilomar Conference 2003.
    """

    betas: Annotated[tuple[float, ...], "the exponents, from the finest scale to the coarsest."] = (
        0.0448,
        0.2856,
        0.3001,
        0.2363,
        0.1333,
    )

    examples = ({"data_range": 16.0, "betas": (0.25, 0.75), "kernel_size": 3},)

    def __post_init__(self) -> None:
        super().__post_init__()
        betas = tuple(self.betas)
        object.__setattr__(self, "betas", betas)
        if not betas or not all(isinstance(beta, int | float) and 0 < beta < math.inf for beta in betas):
            do = "Leave betas out for those of the paper"
            raise ConfigError(describe("betas", repr(self.betas), "numbers above 0, one a scale", do))

    @property
    def term(self) -> ImageTerm:
        return MultiscaleSimilarity(self.similarity, self.betas)


@dataclass(frozen=True, kw_only=True)
class UniversalImageQualityIndex(WindowedSimilarity):
    """Universal image quality index: SSIM without constants.

    `2 mx my / (mx² + my²) * 2 cov / (var + var)` in every window that lies inside of the image, and its mean over the
    windows and channels. A factor of 0 / 0, as in windows where both images are constant, is 1.

    Example:
        >>> import torch
        >>> target = torch.arange(256.0).reshape(1, 1, 16, 16)
        >>> UniversalImageQualityIndex()(target * 0.75, target)
        tensor(0.9216, dtype=torch.float64)

    Source: Wang, Bovik, A universal image quality index, IEEE Signal Processing Letters 9 (2002).
    """

    examples = ({}, {"gaussian_kernel": False, "kernel_size": 8})

    data_range: ClassVar[float] = 1.0  # type: ignore[misc]
    k1: ClassVar[float] = 1.0  # type: ignore[misc]
    k2: ClassVar[float] = 1.0  # type: ignore[misc]
    use_sample_covariance: ClassVar[bool] = False  # type: ignore[misc]

    @property
    def term(self) -> ImageTerm:
        return StructuralSimilarity(Similarity(self.window))


@dataclass(frozen=True, kw_only=True)
class SpatialCorrelationCoefficient(ImageMetric):
    """Spatial correlation coefficient: the correlation of the edges of images.

        mean over windows of cov(hp, ht) / sqrt(var(hp) var(ht)),  h = x - mean of 3 x 3 pixels

    Each pixel less the mean of its neighbours and itself is a high-pass filter; the value is the mean over windows that
    lie inside of the image, and channels, of the correlation of both filtered images. It is 0 where one is constant.

    Example:
        >>> import torch
        >>> target = torch.arange(256.0).reshape(1, 1, 16, 16).sin()
        >>> SpatialCorrelationCoefficient()(2 * target + 1, target)
        tensor(1.0000, dtype=torch.float64)

    Source: Zhou, Civco, Silander, A wavelet transform method to merge Landsat TM and SPOT panchromatic data,
    International Journal of Remote Sensing 19 (1998).
    """

    higher_is_better = True
    unchanged_by = frozenset({"swap"})

    window_size: Annotated[int, "pixels along a side of the window."] = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window_size < 2:
            do = "Leave window_size out for 8"
            raise ConfigError(describe("window_size", self.window_size, "2 or more pixels", do))

    @property
    def term(self) -> ImageTerm:
        return HighPassCorrelation(Window(self.window_size))


@dataclass(frozen=True, kw_only=True)
class VisualInformationFidelity(ImageMetric):
    """Visual information fidelity in the pixel domain (VIF-P): the share of the target's information that is kept.

    In every window that lies inside of the image, `preds` are `g target` and a rest of variance `v`. The value is
    `sum(log(1 + g² var / (v + sigma_n_sq))) / sum(log(1 + var / sigma_n_sq))` over the windows of four scales, where
    `var` is the variance of the target; its mean over the channels, and over the images. A negative `g` counts as 0.
    Windows are Gaussian, of 17, 9, 5 and 3 pixels; a scale is every second pixel of the one before, smoothed.

    Returns:
        float64 of shape `()`; 1 for equal images, above 1 where contrast is enhanced. NaN without data.

    Raises:
        ConfigError: a `sigma_n_sq` that is not above 0.
        ShapeError: `preds` and `target` of different shapes, or with a side below 41 pixels.
        InvalidValuesError: by `compute`, for images with values that are NaN or infinite, and where a channel of the
            target is constant: it has no information.

    Example:
        >>> import torch
        >>> target = torch.arange(2500.0).reshape(1, 1, 50, 50) % 251
        >>> VisualInformationFidelity()(target * 0.75, target)
        tensor(0.9199, dtype=torch.float64)

    Source: Sheikh, Bovik, Image information and visual quality, IEEE Transactions on Image Processing 15 (2006), and
    the authors' implementation in the pixel domain.
    """

    inputs = "large images"
    higher_is_better = True

    sigma_n_sq: Annotated[
        float,
        "the variance of visual noise, in squared units of the pixels: 2 for images from 0 to 255; 2 / 255² for images "
        "from 0 to 1.",
    ] = 2.0

    @property
    def term(self) -> ImageTerm:
        return VisualInformation(self.sigma_n_sq)
