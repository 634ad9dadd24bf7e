"""Metrics of masks as TorchMetrics defines them: one-hot masks, indices or both, and its means over both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from assay.compat.for_torchmetrics.batches import NO_LABEL
from assay.compat.for_torchmetrics.families import Arguments, Family, batch_of, without_counterpart
from assay.errors import ConfigError, describe
from assay.integrations.optional_packages import import_package
from assay.metrics import HausdorffDistance
from assay.metrics.base import Metric, number, vector
from assay.metrics.exact_arithmetic import quotient, rounded
from assay.tally.base import Batch, Tally
from assay.tally.rows.mask_terms import (
    QUOTIENT_BITS,
    ClassOverlap,
    GeneralizedDice,
    InputFormat,
    OverlapTerm,
    WeightType,
    fixed_quotient,
)
from assay.tally.sums.row_sums import RowSums, RowTotals, RowValues, SumShape

_dice: Any = import_package("torchmetrics.functional.segmentation.dice", "metrics of its names")
_utils: Any = import_package("torchmetrics.functional.segmentation.utils", "metrics of its names")

_UNIT = Fraction(1, 1 << QUOTIENT_BITS)
_FIRST = 2  # classes, until the first batch says how many there are

Measure = Literal["iou", "dice", "pooled dice", "weighted dice", "generalized dice"]


@dataclass(frozen=True)
class PooledDice(OverlapTerm):
    """The Dice coefficient of the pixels of all classes of an image together."""

    def measure(self, both: Tensor, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        above, below = (each.sum(1, keepdim=True) for each in (2 * both, preds + target))
        return fixed_quotient(above, below), below > 0


@dataclass(frozen=True)
class WeightedDice(OverlapTerm):
    """The mean Dice coefficient of the classes of an image, which weigh as much as they have pixels in the target."""

    def measure(self, both: Tensor, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        total, size = preds + target, target.sum(1, keepdim=True)
        share = fixed_quotient(target, size).float() * 2.0**-QUOTIENT_BITS
        dice = fixed_quotient(2 * both, total).float()
        value = dice[:, :1] * share[:, :1]
        for k in range(1, dice.shape[1]):
            value = value + dice[:, k : k + 1] * share[:, k : k + 1]
        return value.to(torch.int64), (total > 0).any(1, keepdim=True)


@dataclass(frozen=True)
class GeneralizedDiceOrZero(GeneralizedDice):
    """The generalized Dice score of an image; 0 where it has none of the classes."""

    def measure(self, both: Tensor, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        value, defined = super().measure(both, preds, target)
        return torch.where(defined, value, 0), torch.ones_like(defined)


@dataclass(frozen=True)
class OverlapCounts(OverlapTerm):
    """The pixels of each class in both masks of an image, in preds and in the target."""

    @property
    def sums(self) -> tuple[SumShape, ...]:
        return (SumShape(self.num_classes - (not self.include_background)),) * 3

    def __call__(self, batch: Batch) -> RowValues:
        rows = super().__call__(batch)
        return RowValues(*self._counts(batch.preds, batch.needed_target), counted=rows.counted, invalid=rows.invalid)

    def measure(self, both: Tensor, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        return both[:, :1], both[:, :1] >= 0


_TERMS: Mapping[Measure, Any] = {
    "iou": ClassOverlap,
    "dice": partial(ClassOverlap, dice=True),
    "pooled dice": PooledDice,
    "weighted dice": WeightedDice,
}


@dataclass(frozen=True, kw_only=True)
class Overlap(Metric):
    """A number of the masks of each image, and its mean over the images, over these and the classes, or of each class.

    Args:
        num_classes: how many classes there are.
        measure: what is measured of an image.
        include_background: whether class 0 counts.
        per_class: a number of each class, and not of all.
        input_format: masks hold the index of a class, or have a dimension of the classes.
        weight_type: of the generalized Dice score.
        mean: over "images", or over the "pairs" of an image and a class in it.
    """

    num_classes: int
    measure: Measure
    include_background: bool = True
    per_class: bool = False
    input_format: InputFormat = "one-hot"
    weight_type: WeightType = "square"
    mean: Literal["images", "pairs"] = "images"

    inputs = "masks"

    @property
    def term(self) -> OverlapTerm:
        """What is measured of an image."""
        layout = self.num_classes, self.include_background, self.per_class or self.mean == "pairs", self.input_format
        if self.measure == "generalized dice":
            return GeneralizedDiceOrZero(*layout, self.weight_type)
        return _TERMS[self.measure](*layout)  # type: ignore[no-any-return]

    def tally(self, weighted: bool) -> Tally:
        return RowSums(self.term, weighted)

    def compute(self, counts: RowTotals) -> Tensor:
        values, defined = counts.sums
        if self.mean == "pairs" and not self.per_class:
            return number(rounded(quotient(sum(values) * _UNIT, sum(defined))))
        means = [rounded(quotient(value * _UNIT, count)) for value, count in zip(values, defined, strict=True)]
        return vector(means) if self.per_class else number(means[0])


@dataclass(frozen=True, kw_only=True)
class OverlapOfAll(Metric):
    """The Dice coefficient of the pixels of all images: of each class, or a mean over the classes.

    Args:
        num_classes: how many classes there are.
        include_background: whether class 0 counts.
        average: over the classes, as TorchMetrics names it.
        input_format: masks hold the index of a class, or have a dimension of the classes.
    """

    num_classes: int
    include_background: bool = True
    average: str | None = "macro"
    input_format: InputFormat = "one-hot"

    inputs = "masks"

    @property
    def term(self) -> OverlapTerm:
        """What is measured of an image."""
        return OverlapCounts(self.num_classes, self.include_background, input_format=self.input_format)

    def tally(self, weighted: bool) -> Tally:
        return RowSums(self.term, weighted)

    def compute(self, counts: RowTotals) -> Tensor:
        both, preds, target = (vector(map(float, each))[None] for each in counts.sums)
        return _of_counts(both, preds, target, self.average)[0]


def _of_counts(both: Tensor, preds: Tensor, target: Tensor, average: str | None) -> Tensor:
    """The Dice coefficient of counts of all images, `(1,)` or `(1, classes)`, as TorchMetrics computes it."""
    found: Tensor = _dice._dice_score_compute(2 * both, preds + target, average, "global", target)
    return found


@dataclass(frozen=True)
class MaskBatch:
    """Masks as TorchMetrics takes them: indices stay; else both become one-hot masks.

    Args:
        num_classes: how many classes there are; None where one-hot masks say it.
        input_format: as TorchMetrics has it.
        one_image: whether indices in two dimensions are one image, as `MeanIoU` takes them.
    """

    num_classes: int | None
    input_format: str
    one_image: bool = False

    def __call__(self, preds: Tensor, target: Tensor) -> dict[str, Any]:
        if self.one_image and self.input_format != "one-hot":
            preds, target = (each[None] if each.ndim == 2 else each for each in map(torch.atleast_2d, (preds, target)))
        if self.input_format == "index":
            _utils._check_same_shape(preds, target)
            return {"preds": preds, "target": target}
        mixed = self.input_format == "mixed"
        (_utils._check_mixed_shape if mixed else _utils._check_same_shape)(preds, target)
        with_classes = max((preds, target), key=lambda each: each.ndim)
        if with_classes.ndim < 3:
            text = f"Expected both `preds` and `target` to have at least 3 dimensions, but got {with_classes.ndim}."
            raise ValueError(text)
        classes = self.num_classes or with_classes.shape[1]
        sides = [each if each.ndim == with_classes.ndim else _channels(each, classes) for each in (preds, target)]
        return dict(zip(("preds", "target"), (_labelled(each, classes) for each in sides), strict=True))


def _channels(labels: Tensor, classes: int) -> Tensor:
    """One-hot masks of indices; a label of no class gives no mask of 0 and 1, and is invalid."""
    known = labels[:, None] == torch.arange(classes, device=labels.device).view(1, -1, *[1] * (labels.ndim - 1))
    return torch.where(known.any(1, keepdim=True), known.long(), NO_LABEL)


def _labelled(masks: Tensor, classes: int) -> Tensor:
    """One-hot masks; of scores, the class with the highest."""
    return one_hot(masks.argmax(1), classes).movedim(-1, 1) if masks.is_floating_point() else masks


def _layout(arguments: Arguments) -> dict[str, Any]:
    index = arguments["input_format"] == "index"
    classes, background = arguments["num_classes"], arguments["include_background"]
    if classes is not None and classes < 2 and (index or not background):
        raise without_counterpart("num_classes", classes, "2 or more")
    layout = {"num_classes": classes or _FIRST, "include_background": background}
    return {**layout, "input_format": "index" if index else "one-hot"}


def _batch(arguments: Arguments) -> MaskBatch:
    return MaskBatch(arguments["num_classes"], arguments["input_format"])


def _batch_of_iou(arguments: Arguments) -> MaskBatch:
    return replace(_batch(arguments), one_image=True)


def _iou(arguments: Arguments) -> Metric:
    return Overlap(measure="iou", per_class=arguments["per_class"], mean="pairs", **_layout(arguments))


def _classes_of_masks(preds: Tensor, arguments: Arguments) -> int:
    return arguments["num_classes"] or preds.shape[1]


def _absent_is_minus_1(value: Tensor, arguments: Arguments) -> Tensor:
    return value.nan_to_num(-1.0) if arguments["per_class"] else value


_DICE: Mapping[str | None, Measure] = {
    "micro": "pooled dice",
    "macro": "dice",
    "weighted": "weighted dice",
    "none": "dice",
    None: "dice",
}


def _dice_metric(arguments: Arguments) -> Metric:
    average = arguments["average"]
    if arguments["aggregation_level"] == "global":
        return OverlapOfAll(average=average, **_layout(arguments))
    return Overlap(measure=_DICE[average], per_class=average in ("none", None), **_layout(arguments))


def _generalized(arguments: Arguments) -> Metric:
    options = {name: arguments[name] for name in ("per_class", "weight_type")}
    return Overlap(measure="generalized dice", **options, **_layout(arguments))


def _of_images(metric: Any, arguments: Arguments, batch: Mapping[str, Any], given: Sequence[Any]) -> Tensor:
    """The number of each image, or of each class in each."""
    rows = metric.term(batch_of(metric.term, batch))
    if isinstance(metric, OverlapOfAll):
        both, preds, target = (each.double() for each in rows.values)
        return _of_counts(both, preds, target, arguments["average"])
    values, defined = rows.values
    numbers: Tensor = (values.float() * 2.0**-QUOTIENT_BITS).masked_fill(defined == 0, torch.nan)
    if metric.mean == "pairs" and not metric.per_class:
        numbers = numbers.nansum(1) / defined.sum(1)
    elif metric.measure == "iou":
        numbers = numbers.nan_to_num(-1.0)
    elif not metric.per_class:
        numbers = numbers[:, 0]
    return numbers


def _hausdorff(arguments: Arguments) -> Metric:
    if arguments["distance_metric"] != "euclidean":
        raise without_counterpart("distance_metric", arguments["distance_metric"], "'euclidean'")
    spacing = arguments["spacing"]
    spacing = None if spacing is None else tuple(map(float, spacing))
    if arguments["num_classes"] < 2 - arguments["include_background"]:
        raise ConfigError(describe("num_classes", arguments["num_classes"], "2 or more", "Count the background, too"))
    return HausdorffDistance(num_classes=2, spacing=spacing, directed=arguments["directed"])


@dataclass(frozen=True)
class SurfaceBatch:
    """The mask of each class of each image by itself."""

    masks: MaskBatch
    include_background: bool

    def __call__(self, preds: Tensor, target: Tensor) -> dict[str, Any]:
        batch = self.masks(preds, target)
        if self.masks.input_format == "index":
            classes = self.masks.num_classes or 0
            batch = {name: _channels(each, classes) for name, each in batch.items()}
        first = 0 if self.include_background else 1
        return {name: list(each[:, first:].flatten(0, 1)) for name, each in batch.items()}


def _of_masks(metric: Any, arguments: Arguments, batch: Mapping[str, Any], given: Sequence[Any]) -> Tensor:
    """The distance of each class in each image."""
    metric.encoder.check(batch["preds"], batch["target"])
    rows: Tensor = metric.encoder.rows(batch["preds"], batch["target"])
    classes = arguments["num_classes"] - (not arguments["include_background"])
    return rows[:, 0].masked_fill(rows[:, 1] == 0, torch.nan).view(-1, classes)


OF_MASKS: Mapping[str, Family] = {
    "DiceScore": Family("MeanDice", _dice_metric, _batch, rows=_of_images),
    "GeneralizedDiceScore": Family("GeneralizedDiceScore", _generalized, _batch, rows=_of_images),
    "HausdorffDistance": Family(
        "HausdorffDistance",
        _hausdorff,
        lambda all: SurfaceBatch(_batch(all), all["include_background"]),
        rows=_of_masks,
    ),
    "MeanIoU": Family(
        "MeanIoU",
        _iou,
        _batch_of_iou,
        _absent_is_minus_1,
        by_shape="num_classes",
        size=_classes_of_masks,
        rows=_of_images,
    ),
}
