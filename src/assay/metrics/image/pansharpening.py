"""Metrics of pansharpened images, which have no reference: a panchromatic image sharpens a multispectral one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from assay.errors import ConfigError, describe
from assay.metrics.image.base import ImageMetric
from assay.tally.rows.image_terms import ImageTerm
from assay.tally.rows.pansharpening_terms import SpatialDistortion, SpectralDistortion, UnreferencedQuality
from assay.tally.rows.windows import Window


@dataclass(frozen=True, kw_only=True)
class SpectralDistortionIndex(ImageMetric):
    r"""Spectral distortion index (D-lambda): how much the relations of channels differ in two images.

    `mean(|Q(preds[i], preds[j]) - Q(target[i], target[j])| ** p) ** (1 / p)` over the pairs of channels of an image,
    and its mean over the images. `Q` is `UniversalImageQualityIndex`.

    Shapes: `preds` are images `(N, C, H, W)` or volumes with 2 or more channels, such as fused ones, and `target` the
    multispectral images with the same channels, in the same or another resolution. Weights are `(N,)`.

    Raises:
        ConfigError: a `p` below 1.
        ShapeError: other channels in `preds` and `target`, one channel, or a side below 11 pixels.

    Example:
        >>> import torch
        >>> target = torch.arange(512.0).reshape(1, 2, 16, 16).sin() + 2
        >>> SpectralDistortionIndex()(target ** 2, target)
        tensor(0.0147, dtype=torch.float64)

    Source: Alparone et al., Multispectral and panchromatic data fusion assessment without reference, Photogrammetric
    Engineering & Remote Sensing 74 (2008).
    """

    unchanged_by = frozenset({"swap"})
    examples = ({}, {"p": 2})

    p: Annotated[int, "the exponent: large differences count more with larger ones."] = 1

    @property
    def term(self) -> ImageTerm:
        return SpectralDistortion(self.p)


@dataclass(frozen=True, kw_only=True)
class PansharpeningMetric(ImageMetric):
    """A metric of fused images beside the images that they are made of.

    Shapes: `preds` are fused images `(N, C, H, W)`. The columns are `ms (N, C, h, w)`, the multispectral images of low
    resolution, whose sides divide those of `preds`; `pan (N, 1, H, W)`, the panchromatic images; and with
    `window_size=None` `pan_lr (N, 1, h, w)`, the panchromatic images of low resolution. Panchromatic images may have
    `C` channels, too. There is no target. Weights are `(N,)`.

    Raises:
        ConfigError: an argument that is out of range, or a column that is missing.
        ShapeError: images whose shapes do not fit, or a side of `ms` of at most `window_size` or below 11 pixels.
        InvalidValuesError: by `compute`, for images with values that are NaN or infinite.
    """

    inputs = "fused images"

    norm_order: Annotated[int, "the exponent: large differences count more with larger ones."] = 1
    window_size: Annotated[
        int | None,
        "pixels along a side of the windows whose means give the panchromatic image of low resolution; None where "
        "`pan_lr` is given.",
    ] = 7

    @property
    def window(self) -> Window | None:
        """The windows whose means are taken."""
        return None if self.window_size is None else Window(self.window_size)


@dataclass(frozen=True, kw_only=True)
class SpatialDistortionIndex(PansharpeningMetric):
    """Spatial distortion index (D-s): how much the details of fused images differ from those of panchromatic ones.

    `mean(|Q(ms[c], pan_lr) - Q(preds[c], pan)| ** norm_order) ** (1 / norm_order)` over the channels of an image, and
    its mean over the images. `Q` is `UniversalImageQualityIndex`. Without `pan_lr`, it is the mean of `pan` in windows
    with mirrored borders, interpolated bilinearly at the centres of the larger pixels.

    Example:
        >>> import torch
        >>> pan = (torch.arange(1024.0) / 50).sin().reshape(1, 1, 32, 32) + 2
        >>> ms = torch.nn.functional.avg_pool2d(pan, 2)
        >>> SpatialDistortionIndex()(pan * 0.75, ms=ms, pan=pan)
        tensor(0.2900, dtype=torch.float64)

    Source: Alparone et al., Multispectral and panchromatic data fusion assessment without reference, Photogrammetric
    Engineering & Remote Sensing 74 (2008); windows and interpolation as in TorchMetrics.
    """

    examples = ({}, {"norm_order": 2, "window_size": None})

    @property
    def term(self) -> ImageTerm:
        return SpatialDistortion(self.norm_order, self.window)


@dataclass(frozen=True, kw_only=True)
class QualityWithNoReference(PansharpeningMetric):
    """Quality of fused images without a reference (QNR).

    `(1 - D_lambda) ** alpha (1 - D_s) ** beta` of each image, and its mean over the images, where `D_lambda` is
    `SpectralDistortionIndex` of `preds` and `ms`, and `D_s` is `SpatialDistortionIndex`, both with the exponent
    `norm_order`. A distortion above 1 counts as 1.

    Example:
        >>> import torch
        >>> pan = (torch.arange(1024.0) / 50).sin().reshape(1, 1, 32, 32) + 2
        >>> ms = torch.nn.functional.avg_pool2d(pan, 2).expand(1, 2, 16, 16)
        >>> QualityWithNoReference()(pan.expand(1, 2, 32, 32) * 0.75, ms=ms, pan=pan)
        tensor(0.7100, dtype=torch.float64)

    Source: Alparone et al., Multispectral and panchromatic data fusion assessment without reference, Photogrammetric
    Engineering & Remote Sensing 74 (2008).
    """

    higher_is_better = True
    examples = ({}, {"alpha": 2.0, "beta": 0.5, "window_size": None})

    alpha: Annotated[float, "how much the spectral distortion counts."] = 1.0
    beta: Annotated[float, "how much the spatial distortion counts."] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("alpha", "beta"):
            exponent = getattr(self, name)
            if not 0 <= exponent < math.inf:
                raise ConfigError(describe(name, exponent, "a finite number of 0 or more", f"Leave {name} out for 1"))

    @property
    def term(self) -> ImageTerm:
        return UnreferencedQuality(self.norm_order, self.window, self.alpha, self.beta)
