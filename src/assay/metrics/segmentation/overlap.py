"""How much of the masks of each class overlaps, image by image."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import SHARE, Examples, Metric
from assay.metrics.exact_arithmetic import quotient, result
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.rows.mask_terms import (
    QUOTIENT_BITS,
    ClassOverlap,
    GeneralizedDice,
    InputFormat,
    OverlapTerm,
    WeightType,
)
from assay.tally.sums.row_sums import RowSums, RowTotals


@dataclass(frozen=True, kw_only=True)
class OverlapMetric(Metric):
    """The mean over images of a number of their masks.

    A class that is neither in the target nor in the predictions of an image has no number there, and an image without
    any class does not count. `DiceScore` and `JaccardIndex` count the pixels of all images together.

    Shapes: `preds` and `target` are integers `(N, ...)`, the index of the class of each pixel; with
    `input_format="one-hot"` masks `(N, num_classes, ...)` of 0 and 1, which may overlap. Weights are `(N,)`.

    Rounding: the number of an image is computed from integer counts and cut at 2**-50; the mean over the images is
    exact, rounded once.

    Returns:
        float64 of shape `()`; with `per_class=True` one number a class, each the mean over the images that have it.
        NaN where no image counts.

    Raises:
        ConfigError: less than two classes (one with `input_format="one-hot"`), or an unknown argument.
        ShapeError: `preds` and `target` of different shapes.
        DtypeError: floats.
        InvalidValuesError: by `compute`, for images with indices out of range.
    """

    value_range = SHARE

    family = "segmentation"
    inputs = "masks"
    higher_is_better: ClassVar[bool | None] = True
    exact_terms = False
    unchanged_by = frozenset({"swap"})
    defined_for = "images that have one of the classes"
    examples: ClassVar[Examples] = (
        {"num_classes": 4},
        {"num_classes": 4, "per_class": True, "include_background": False},
    )

    num_classes: Annotated[int, "how many classes there are, with the background."]
    include_background: Annotated[bool, "whether class 0 counts."] = True
    per_class: Annotated[bool, "one number a class, or one of all."] = False
    input_format: Annotated[InputFormat, '"index": masks hold the index of a class; "one-hot": 0 and 1 of each.'] = (
        "index"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        fewest = 1 if self.input_format == "one-hot" and self.include_background else 2
        if self.num_classes < fewest:
            do = "Count the background, too"
            raise ConfigError(describe("num_classes", self.num_classes, f"{fewest} or more", do))

    @property
    @abstractmethod
    def term(self) -> OverlapTerm:
        """What is measured of an image."""

    @property
    def _layout(self) -> tuple[int, bool, bool, InputFormat]:
        return self.num_classes, self.include_background, self.per_class, self.input_format

    def tally(self, weighted: bool) -> Tally:
        return RowSums(self.term, weighted)

    def compute(self, counts: RowTotals) -> Tensor:
        values, defined = counts.sums
        unit = Fraction(1, 1 << QUOTIENT_BITS)
        quotients = [quotient(value * unit, count) for value, count in zip(values, defined, strict=True)]
        return torch.stack([result([each]) for each in quotients]) if self.per_class else result(quotients)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if self.per_class:
            return None
        rows = self.term(batch)
        values, defined = (each[:, 0] for each in rows.values)
        return SampleTerms.of(f"{self!r}", values.float() * 2.0**-QUOTIENT_BITS, "images with a class", defined.float())


@dataclass(frozen=True, kw_only=True)
class MeanIoU(OverlapMetric):
    """Mean over images of the intersection over union of their masks.

    `both / (preds + target - both)` in pixels, the mean over the classes that are in the image, and over the images.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[0, 1, 1], [0, 0, 0]]), torch.tensor([[0, 0, 1], [0, 0, 0]])
        >>> MeanIoU(num_classes=2)(preds, target)
        tensor(0.7500, dtype=torch.float64)

    Source: Everingham et al., The PASCAL visual object classes challenge, IJCV 111 (2015).
    """

    @property
    def term(self) -> OverlapTerm:
        return ClassOverlap(*self._layout)


@dataclass(frozen=True, kw_only=True)
class MeanDice(OverlapMetric):
    """Mean over images of the Dice coefficient of their masks.

    `2 both / (preds + target)` in pixels, the mean over the classes that are in the image, and over the images.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[0, 1, 1], [0, 0, 0]]), torch.tensor([[0, 0, 1], [0, 0, 0]])
        >>> MeanDice(num_classes=2)(preds, target)
        tensor(0.8333, dtype=torch.float64)

    Source: Dice, Ecology 26 (1945), 297-302.
    """

    @property
    def term(self) -> OverlapTerm:
        return ClassOverlap(*self._layout, dice=True)


@dataclass(frozen=True, kw_only=True)
class GeneralizedDiceScore(OverlapMetric):
    """Mean over images of the generalized Dice score, in which small classes weigh more.

    `2 sum(w both) / sum(w (preds + target))` over the classes of an image, where `w` is `1 / target²`, `1 / target` or
    1. A class that is not in the target weighs as much as the heaviest that is. With `per_class=True` the weights
    cancel.

    Rounding: the number of an image is computed in float32; the mean over the images is exact, rounded once.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[0, 1, 1, 1]]), torch.tensor([[0, 0, 0, 1]])
        >>> GeneralizedDiceScore(num_classes=2)(preds, target)
        tensor(0.5000, dtype=torch.float64)

    Source: Sudre et al., Generalised Dice overlap as a deep learning loss function, DLMIA 2017.
    """

    weight_type: Annotated[WeightType, 'what classes weigh: "square", "simple" or "linear".'] = "square"

    unchanged_by = frozenset()
    examples = ({"num_classes": 4}, {"num_classes": 4, "weight_type": "linear"})

    @property
    def term(self) -> OverlapTerm:
        return GeneralizedDice(*self._layout, self.weight_type)
