"""Metrics that TorchMetrics computes from sums over all images: pansharpening, and PSNR with blocking effects."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.compat.for_torchmetrics.families import Arguments, ColumnSums, Family
from assay.compat.for_torchmetrics.images import ImageBatch
from assay.integrations.optional_packages import import_package
from assay.metrics.base import number
from assay.tally.base import BatchLayout, TensorLayout
from assay.tally.rows.image_terms import row_sum
from assay.tally.rows.pansharpening_terms import SpatialDistortion, check_same_channels, qualities_of_pairs
from assay.tally.rows.windows import Window

_colours: Any = import_package("torchmetrics.functional.image.d_lambda", "metrics of its names")
_details: Any = import_package("torchmetrics.functional.image.d_s", "metrics of its names")
_blocks: Any = import_package("torchmetrics.functional.image.psnrb", "metrics of its names")

_SMALLEST = SpatialDistortion.smallest


def _layout(images: Tensor) -> TensorLayout:
    return TensorLayout(images.dtype, tuple(images.shape[1:]))


def _spectral_rows(preds: Tensor, target: Tensor) -> Tensor:
    """The quality of each pair of channels of both images; of one channel there is no pair, and nothing is apart."""
    preds, target = _colours._spectral_distortion_index_update(preds, target)
    check_same_channels("preds", _layout(preds), "target", _layout(target), _SMALLEST)
    if preds.shape[1] == 1:
        return torch.zeros(len(preds), 2, dtype=torch.int64, device=preds.device)
    return torch.cat([qualities_of_pairs(preds.detach()), qualities_of_pairs(target.detach())], 1)


def _spatial_rows(window_size: int, preds: Tensor, target: Mapping[str, Tensor]) -> Tensor:
    """The quality of each channel beside the panchromatic image, in low and in high resolution."""
    for name in ("ms", "pan"):
        if name not in target:
            raise ValueError(f"Expected `target` to have key `{name}`. Got target: {target.keys()}.")
    ms, pan, pan_lr = target["ms"], target["pan"], target.get("pan_lr")
    preds, ms, pan, pan_lr = _details._spatial_distortion_index_update(preds, ms, pan, pan_lr)
    if window_size >= min(ms.shape[-2:]):
        got = f"Got window_size: {window_size}."
        raise ValueError(f"Expected `window_size` to be smaller than dimension of `ms`. {got}")
    term = SpatialDistortion(1, Window(window_size) if pan_lr is None else None)
    given = {"ms": ms, "pan": pan} if pan_lr is None else {"ms": ms, "pan": pan, "pan_lr": pan_lr}
    term.check(BatchLayout(_layout(preds), None, None, {name: _layout(each) for name, each in given.items()}))
    return torch.cat(term.qualities(preds.detach(), **{name: each.detach() for name, each in given.items()}), 1)


@dataclass(frozen=True)
class FusedBatch:
    """Fused images and those that they are made of.

    Args:
        window_size: of the windows whose means give the panchromatic image of low resolution; None where only colours
            are compared.
        colours: whether they are, too.
    """

    window_size: int | None
    colours: bool

    def __call__(self, preds: Tensor, target: Any) -> dict[str, Any]:
        rows = []
        if self.colours:
            rows.append(_spectral_rows(preds, target if self.window_size is None else target["ms"]))
        if self.window_size is not None:
            rows.append(_spatial_rows(self.window_size, preds, target))
        return {"preds": torch.cat(rows, 1)}


def _gaps(qualities: Tensor) -> Tensor:
    """How far apart the first and the second half of the mean qualities are."""
    first, second = qualities.chunk(2)
    return (first - second).abs()


def _spectral(gaps: Tensor, order: int) -> Tensor:
    return torch.pow(torch.pow(gaps, order).mean(), 1 / order)


def _spatial(gaps: Tensor, order: int, reduction: str) -> Tensor:
    powers = torch.pow(gaps, order)
    if reduction != "none":
        powers = powers.sum() if reduction == "sum" else powers.mean()
    return torch.pow(powers, 1 / order)


def _without_reference(value: Tensor, arguments: Arguments) -> Tensor:
    order = arguments["norm_order"]
    pairs = _pairs_among(len(value))
    colours = _spectral(_gaps(value[: 2 * pairs]), order)
    details = _spatial(_gaps(value[2 * pairs :]), order, arguments["reduction"])
    return torch.pow(1 - colours, arguments["alpha"]) * torch.pow(1 - details, arguments["beta"])


def _pairs_among(columns: int) -> int:
    """How many pairs so many channels have that there are `columns` of both; one channel has a pair of its own."""
    channels = 1
    while 2 * max(1, channels * (channels - 1) // 2) + 2 * channels < columns:
        channels += 1
    return max(1, channels * (channels - 1) // 2)


@dataclass(frozen=True)
class BlockBatch:
    """The squared error of each image; the first one has the blocking effect of the batch, which TorchMetrics adds."""

    images: ImageBatch
    block_size: int

    def __call__(self, preds: Tensor, target: Tensor) -> dict[str, Any]:
        preds, target = self.images(preds, target).values()
        effect = _blocks._compute_bef(preds, block_size=self.block_size)
        errors = row_sum((preds - target).square())
        effects = torch.zeros_like(errors)
        effects[:1] = effect
        return {"preds": torch.stack([errors, effects, torch.full_like(errors, target[0].numel())], 1)}


def _block_batch(arguments: Arguments) -> BlockBatch:
    limits = arguments["data_range"]
    return BlockBatch(ImageBatch(limits=limits if isinstance(limits, tuple) else None), arguments["block_size"])


def _peak_ratio(value: Tensor, arguments: Arguments) -> Tensor:
    limits = arguments["data_range"]
    span = limits[1] - limits[0] if isinstance(limits, tuple) else limits
    errors, effects, pixels = value.tolist()
    error = errors / pixels + effects
    return number(10 * (2 * math.log10(span) - math.log10(error)) if error else math.inf)


def _construct_ratio(metric: Any, *args: Any, **kwargs: Any) -> None:
    metric.original.__init__(metric, *args, **kwargs)
    metric.clamping_fn = None  # which cannot be pickled, and batches are clamped before


def _columns(name: str, batch: Any, value: Any) -> Family:
    return Family(name, lambda all: ColumnSums(fixed=True), batch, value, by_shape="width")


OF_COLUMNS: Mapping[str, Family] = {
    "PeakSignalNoiseRatioWithBlockedEffect": Family(
        "PeakSignalNoiseRatioWithBlockedEffect",
        lambda all: ColumnSums(width=3, reduction="sum"),
        _block_batch,
        _peak_ratio,
        construct=_construct_ratio,
    ),
    "QualityWithNoReference": _columns(
        "QualityWithNoReference", lambda all: FusedBatch(all["window_size"], True), _without_reference
    ),
    "SpatialDistortionIndex": _columns(
        "SpatialDistortionIndex",
        lambda all: FusedBatch(all["window_size"], False),
        lambda value, all: _spatial(_gaps(value), all["norm_order"], all["reduction"]),
    ),
    "SpectralDistortionIndex": _columns(
        "SpectralDistortionIndex",
        lambda all: FusedBatch(None, True),
        lambda value, all: _spectral(_gaps(value), all["p"]),
    ),
}
