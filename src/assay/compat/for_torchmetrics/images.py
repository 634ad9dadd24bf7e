"""Metrics of images as TorchMetrics defines them: which pixels count, and how images are put together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from assay.compat.for_torchmetrics.families import Arguments, Family, OfRows, reduced, without_counterpart
from assay.compat.for_torchmetrics.states import SQUARED_ERROR, Read, alone, as_float, count, count_of_rows, row_sum
from assay.integrations.optional_packages import import_package
from assay.metrics import (
    ErrorRelativeGlobalDimensionlessSynthesis,
    MultiScaleStructuralSimilarityIndexMeasure,
    PeakSignalNoiseRatio,
    RelativeAverageSpectralError,
    RootMeanSquaredErrorUsingSlidingWindow,
    SpatialCorrelationCoefficient,
    SpectralAngleMapper,
    StructuralSimilarityIndexMeasure,
    TotalVariation,
    UniversalImageQualityIndex,
    VisualInformationFidelity,
)
from assay.metrics.base import Metric
from assay.tally.rows.image_terms import (
    MEAN_BITS,
    HighPassCorrelation,
    MultiscaleSimilarity,
    Similarity,
    StructuralSimilarity,
    centred,
    correlation_in_windows,
    high_pass,
)
from assay.tally.sums.row_sums import RowTerm
from assay.tally.sums.totals import Totals

_ergas: Any = import_package("torchmetrics.functional.image.ergas", "metrics of its names")
_ssim: Any = import_package("torchmetrics.functional.image.ssim", "metrics of its names")
_sam: Any = import_package("torchmetrics.functional.image.sam", "metrics of its names")

_ALL_PIXELS = (1, 2, 3)


@dataclass(frozen=True)
class MirroredSimilarity(StructuralSimilarity):
    """The mean of SSIM over all pixels, also those at the borders, beyond which the image is mirrored."""

    @property
    def smallest(self) -> int:  # type: ignore[override]
        return self.similarity.window.size // 2 + 1

    def windows(self, x: Tensor) -> Tensor:
        return _mirrored(x, self.similarity)


@dataclass(frozen=True)
class MirroredMultiscale(MultiscaleSimilarity):
    """The same at the coarsest scale; at the others of the windows that lie inside of the image."""

    @property
    def smallest(self) -> int:  # type: ignore[override]
        size, scales = self.similarity.window.size, len(self.betas)
        coarsest = (size // 2 + 1) << (scales - 1)
        return max(coarsest, size << (scales - 2)) if scales > 1 else coarsest

    def coarsest(self, x: Tensor) -> Tensor:
        return _mirrored(x, self.similarity)


def _mirrored(x: Tensor, similarity: Similarity) -> Tensor:
    width = similarity.window.size // 2
    return pad(x, (width,) * 2 * (x.ndim - 2), mode="reflect")


@dataclass(frozen=True)
class PaddedCorrelation(HighPassCorrelation):
    """The correlation behind a Laplace filter in windows at all pixels, with zeros beyond the borders."""

    @property
    def smallest(self) -> int:  # type: ignore[override]
        return self.window.size

    def measure(self, preds: Tensor, target: Tensor) -> Tensor:
        x, y, _ = centred(preds, target)
        before = self.window.size // 2
        around = (before, self.window.size - 1 - before) * 2
        x, y = (pad(high_pass(pad(side, (1,) * 4, mode="replicate")), around) for side in (x, y))
        return correlation_in_windows(x, y, self.window)


_OTHER_TERMS: Mapping[type[Metric], Any] = {
    StructuralSimilarityIndexMeasure: lambda term: MirroredSimilarity(term.similarity),
    MultiScaleStructuralSimilarityIndexMeasure: lambda term: MirroredMultiscale(term.similarity, term.betas),
    SpatialCorrelationCoefficient: lambda term: PaddedCorrelation(term.window),
}


@dataclass(frozen=True, kw_only=True)
class OfImages(OfRows):
    """The mean, or the sum, over images of a number that is of the pixels at the borders, too."""

    @property
    def term(self) -> RowTerm:
        return _OTHER_TERMS[type(self.metric)](super().term)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class ImageBatch:
    """Images with values between limits, as floats.

    Args:
        limits: what smaller and larger values become; None for no limits.
        unit: whether both are divided by the larger one of their ranges in a batch.
    """

    limits: tuple[float, float] | None = None
    unit: bool = False

    def __call__(self, preds: Tensor, target: Tensor) -> dict[str, Any]:
        preds, target = (each if each.is_floating_point() else each.float() for each in (preds, target))
        if self.limits is not None:
            preds, target = preds.clamp(*self.limits), target.clamp(*self.limits)
        if self.unit:
            ranges = [each.max() - each.min() for each in (preds.detach(), target.detach())]
            span = torch.maximum(*ranges)
            preds, target = (each / torch.where(span == 0, 1, span) for each in (preds, target))
        return {"preds": preds, "target": target}


def _data_range(value: Any) -> tuple[float, ImageBatch]:
    """The range of the values of a metric, and what is done to images so that it is theirs."""
    if value is None:
        return 1.0, ImageBatch(unit=True)
    if isinstance(value, tuple):
        return float(value[1] - value[0]), ImageBatch(limits=value)
    return float(value), ImageBatch()


def _ranged_batch(arguments: Arguments) -> ImageBatch:
    return _data_range(arguments["data_range"])[1]


def _peak_ratio(arguments: Arguments) -> Metric:
    dim = arguments["dim"]
    span = _data_range(arguments["data_range"])[0]
    if dim is None:
        return PeakSignalNoiseRatio(data_range=span)
    if not isinstance(dim, Sequence) or tuple(dim) != _ALL_PIXELS:
        raise without_counterpart("dim", dim, "None or (1, 2, 3)")
    return reduced(PeakSignalNoiseRatio(data_range=span, per_image=True), arguments["reduction"])


def _of_pixels(read: Read) -> Read:
    """A state of sums over all pixels; none where each image has a ratio."""
    return lambda counts, metric: read(counts, metric) if isinstance(counts, Totals) else None


def _to_base(value: Tensor, arguments: Arguments) -> Tensor:
    return value * (math.log(10) / math.log(arguments["base"]))


@dataclass(frozen=True)
class CheckedBatch:
    """Batches that TorchMetrics checks: of one dtype and shape, and four dimensions.

    Args:
        check: raises for others.
        pixels: images weigh as much as they have windows of this size in each channel, or 0 where they weigh the same.
        channels: whether the channels count in that.
    """

    check: Any
    pixels: int = 0
    channels: bool = False

    def __call__(self, preds: Tensor, target: Tensor) -> dict[str, Any]:
        preds, target = self.check(preds, target)
        if not self.pixels:
            return {"preds": preds, "target": target}
        height, width = (size - self.pixels + 1 for size in preds.shape[2:4])
        windows = float(height * width * (preds.shape[1] if self.channels else 1))
        weights = torch.full((len(preds),), windows, device=preds.device, dtype=torch.float32)
        return {"preds": preds, "target": target, "weights": weights}


def _one_size(name: str, value: Any) -> Any:
    """A number for all dimensions."""
    if not isinstance(value, Sequence):
        return value
    if len(value) not in (2, 3) or len(set(value)) != 1:
        raise without_counterpart(name, value, "one number for all dimensions")
    return value[0]


def _similarity(arguments: Arguments) -> dict[str, Any]:
    """The arguments of a metric of structural similarity."""
    size, sigma = (_one_size(name, arguments[name]) for name in ("kernel_size", "sigma"))
    if size % 2 == 0 or size < 0 or sigma <= 0:
        raise without_counterpart("kernel_size, sigma", (size, sigma), "an odd number, and one above 0")
    gaussian = arguments["gaussian_kernel"]
    window = {"sigma": sigma} if gaussian else {"gaussian_kernel": False, "kernel_size": size}
    span = _data_range(arguments["data_range"])[0]
    return {**window, "data_range": span, "k1": arguments["k1"], "k2": arguments["k2"]}


def _ssim_metric(arguments: Arguments) -> Metric:
    for name in ("return_full_image", "return_contrast_sensitivity"):
        if arguments[name]:
            raise without_counterpart(name, True, "False")
    metric = StructuralSimilarityIndexMeasure(**_similarity(arguments))
    return reduced(metric, arguments["reduction"], OfImages)


def _multiscale(arguments: Arguments) -> Metric:
    if arguments["normalize"] != "relu":
        raise without_counterpart("normalize", arguments["normalize"], "'relu'")
    if arguments["data_range"] is None:  # there it is measured again at each scale of each batch
        raise without_counterpart("data_range", None, "a number")
    metric = MultiScaleStructuralSimilarityIndexMeasure(betas=arguments["betas"], **_similarity(arguments))
    return reduced(metric, arguments["reduction"], OfImages)


@dataclass(frozen=True)
class SimilarityBatch:
    """Images or volumes of one shape."""

    images: ImageBatch

    def __call__(self, preds: Tensor, target: Tensor) -> dict[str, Any]:
        return self.images(*_ssim._ssim_check_inputs(preds, target))


def _quality_index(arguments: Arguments) -> Metric:
    for name in ("kernel_size", "sigma"):
        if not isinstance(arguments[name], Sequence) or len(arguments[name]) != 2:
            raise without_counterpart(name, arguments[name], "two equal numbers")
    size, sigma = (_one_size(name, arguments[name]) for name in ("kernel_size", "sigma"))
    if size % 2 == 0 or size <= 1 or sigma <= 0:
        raise without_counterpart("kernel_size, sigma", (size, sigma), "an odd number above 1, and one above 0")
    options: dict[str, Any] = {"kernel_size": size, "sigma": sigma}
    return reduced(UniversalImageQualityIndex(**options), arguments["reduction"])


def _correlation(arguments: Arguments) -> Metric:
    if arguments["high_pass_filter"] is not None:
        raise without_counterpart("high_pass_filter", arguments["high_pass_filter"], "None")
    return OfImages(metric=SpatialCorrelationCoefficient(window_size=arguments["window_size"]))


def _with_channel(preds: Tensor, target: Tensor) -> dict[str, Any]:
    if preds.ndim == 3 and target.ndim == 3:
        preds, target = preds[:, None], target[:, None]
    return {"preds": preds.float(), "target": target.float()}


@dataclass(frozen=True)
class WindowBatch:
    """Images in which a window fits."""

    window_size: int

    def __call__(self, preds: Tensor, target: Tensor) -> dict[str, Any]:
        preds, target = _ergas._ergas_update(preds, target)
        cut = round(self.window_size / 2)
        if cut >= min(target.shape[2:]):
            got = f"is expected to be smaller than {min(target.shape[2:])} but got {cut}."
            raise ValueError(f"Parameter `round(window_size / 2)` {got}")
        return {"preds": preds, "target": target}


def _image_alone(img: Tensor) -> dict[str, Any]:
    if img.ndim != 4:
        raise RuntimeError(f"Expected input `img` to be an 4D tensor, but got {img.shape}")
    return {"preds": img}


_SIMILARITIES = {"similarity": row_sum(unit=Fraction(1, 1 << MEAN_BITS)), "total": as_float(count_of_rows)}
_ERRORS = {
    "sum_squared_error": _of_pixels(alone(SQUARED_ERROR)),
    "total": _of_pixels(count),
    "data_range": _of_pixels(lambda counts, metric: torch.tensor(metric.described().data_range, device="cpu")),
}

OF_IMAGES: Mapping[str, Family] = {
    "ErrorRelativeGlobalDimensionlessSynthesis": Family(
        "ErrorRelativeGlobalDimensionlessSynthesis",
        lambda all: reduced(ErrorRelativeGlobalDimensionlessSynthesis(ratio=all["ratio"]), all["reduction"]),
        lambda all: CheckedBatch(_ergas._ergas_update),
    ),
    "MultiScaleStructuralSimilarityIndexMeasure": Family(
        "MultiScaleStructuralSimilarityIndexMeasure",
        _multiscale,
        lambda all: SimilarityBatch(_ranged_batch(all)),
        states=_SIMILARITIES,
    ),
    "PeakSignalNoiseRatio": Family("PeakSignalNoiseRatio", _peak_ratio, _ranged_batch, _to_base, states=_ERRORS),
    "RelativeAverageSpectralError": Family(
        "RelativeAverageSpectralError",
        lambda all: RelativeAverageSpectralError(window_size=all["window_size"]),
        lambda all: CheckedBatch(_ergas._ergas_update),
    ),
    "RootMeanSquaredErrorUsingSlidingWindow": Family(
        "RootMeanSquaredErrorUsingSlidingWindow",
        lambda all: RootMeanSquaredErrorUsingSlidingWindow(window_size=all["window_size"]),
        lambda all: WindowBatch(all["window_size"]),
    ),
    "SpatialCorrelationCoefficient": Family("SpatialCorrelationCoefficient", _correlation, lambda all: _with_channel),
    "SpectralAngleMapper": Family(
        "SpectralAngleMapper",
        lambda all: reduced(SpectralAngleMapper(), all["reduction"]),
        lambda all: CheckedBatch(_sam._sam_update, 1),
        weighted=True,
    ),
    "StructuralSimilarityIndexMeasure": Family(
        "StructuralSimilarityIndexMeasure",
        _ssim_metric,
        lambda all: SimilarityBatch(_ranged_batch(all)),
        states=_SIMILARITIES,
    ),
    "TotalVariation": Family(
        "TotalVariation", lambda all: reduced(TotalVariation(), all["reduction"]), lambda all: _image_alone
    ),
    "UniversalImageQualityIndex": Family(
        "UniversalImageQualityIndex",
        _quality_index,
        lambda all: CheckedBatch(_ergas._ergas_update, _one_size("kernel_size", all["kernel_size"]), channels=True),
        weighted=True,
    ),
    "VisualInformationFidelity": Family(
        "VisualInformationFidelity",
        lambda all: reduced(VisualInformationFidelity(sigma_n_sq=all["sigma_n_sq"]), all["reduction"]),
    ),
}
