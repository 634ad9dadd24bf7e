"""How far the surfaces of masks are apart."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from torch import Tensor

from assay.encode.masks import AverageDistance, Hausdorff, SurfaceEncoder, WithinTolerance
from assay.errors import ConfigError, describe
from assay.metrics.base import NOT_NEGATIVE, SHARE, Change, Examples, Metric, number, vector
from assay.metrics.exact_arithmetic import quotient, rounded
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.rows.row_terms import RowNumbers
from assay.tally.sums.exact import Number
from assay.tally.sums.row_sums import RowSums, RowTotals


@dataclass(frozen=True, kw_only=True)
class SurfaceMetric(Metric):
    """The mean, over the classes of all images, of a number of the surfaces of their masks.

    The surface of a mask is its pixels that have one outside of it beside them, or the edge of the image. Distances
    are exact, by the Euclidean distance transform, on the CPU.

    A class that is in neither mask of an image does not count there. Where one of both masks is empty, the distance is
    infinite; with `ignore_missing=True` such a pair does not count.

    Shapes: `preds` and `target` are lists of integer tensors or arrays, one an image or volume of any size, with the
    index of the class of each pixel; `list(tensor)` of a tensor `(N, ...)`. Weights are `(N,)`.

    Rounding: distances are computed in float64; their mean is exact, rounded once.

    Returns:
        float64 of shape `()`; with `per_class=True` one number a class. NaN where no pair of masks counts.

    Raises:
        ConfigError: an argument that is out of range.
        ShapeError: masks of different shapes, or not of as many dimensions as `spacing` has numbers.
        DtypeError: floats.
        InvalidValuesError: indices of classes out of range; by `update`.
    """

    family = "segmentation"
    inputs = "mask lists"
    higher_is_better: ClassVar[bool | None] = False
    exact_terms = False
    defined_for = "masks that are not empty"
    examples: ClassVar[Examples] = (
        {"num_classes": 3, "ignore_missing": True},
        {"num_classes": 3, "ignore_missing": True, "per_class": True, "spacing": (0.5, 2.0)},
        {"num_classes": 3, "ignore_missing": True, "directed": True},
    )

    num_classes: Annotated[int, "how many classes there are, with the background; 2 for binary masks."]
    include_background: Annotated[bool, "whether class 0 counts."] = False
    spacing: Annotated[tuple[float, ...] | None, "how far pixels are apart along each dimension; None for 1."] = None
    directed: Annotated[bool, "only the distances from the surface of preds to that of the target."] = False
    ignore_missing: Annotated[bool, "a pair of masks one of which is empty does not count."] = False
    per_class: Annotated[bool, "one number a class, or the mean over all."] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_classes < 2 - self.include_background:
            do = "Count the background: binary masks have 2 classes"
            raise ConfigError(describe("num_classes", self.num_classes, "2 or more", do))
        if self.spacing is not None:
            spacing: Sequence[Any] = tuple(self.spacing)
            if not spacing or not all(isinstance(each, int | float) and 0 < each < math.inf for each in spacing):
                do = "Give the size of a pixel along each dimension, as (0.5, 0.5)"
                raise ConfigError(describe("spacing", repr(self.spacing), "finite numbers above 0", do))
            object.__setattr__(self, "spacing", tuple(float(each) for each in spacing))

    @property
    def unchanged_by(self) -> frozenset[Change]:  # type: ignore[override]
        """Changes of the data that change no bit of the value."""
        return frozenset() if self.directed else frozenset({"swap"})

    @property
    @abstractmethod
    def encoder(self) -> SurfaceEncoder:
        """What measures the masks of an image."""

    @property
    def _layout(self) -> tuple[int, bool, tuple[float, ...], bool, bool]:
        return self.num_classes, self.include_background, self.spacing or (), self.directed, self.ignore_missing

    def tally(self, weighted: bool) -> Tally:
        return RowSums(RowNumbers(2 * self.encoder.width), weighted)

    def compute(self, counts: RowTotals) -> Tensor:
        numbers, width = counts.sums[0], self.encoder.width
        values, counted = numbers[:width], numbers[width:]
        if self.per_class:
            return vector(rounded(_mean([value], [count])) for value, count in zip(values, counted, strict=True))
        return number(rounded(_mean(values, counted)))

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if self.per_class:
            return None
        values, counted = batch.preds.tensor_split(2, 1)
        return SampleTerms.of(f"{self!r}", values.sum(1), "classes of images", counted.sum(1))


def _mean(values: Sequence[Number], counted: Sequence[Number]) -> Number:
    total, count = sum(values), sum(counted)
    return total if isinstance(total, float) and count else quotient(total, count)


@dataclass(frozen=True, kw_only=True)
class HausdorffDistance(SurfaceMetric):
    """Mean Hausdorff distance: how far the surfaces of two masks are apart where they are farthest.

    `max(max_x min_y |x - y|, max_y min_x |x - y|)` over the pixels x and y of both surfaces; with `percentile=95` that
    percentile of the distances of each way instead of the largest (HD95).

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[0, 1, 1, 0, 0]]), torch.tensor([[0, 1, 1, 1, 1]])
        >>> HausdorffDistance(num_classes=2)([preds], [target])
        tensor(2., dtype=torch.float64)

    Source: Huttenlocher, Klanderman, Rucklidge, Comparing images using the Hausdorff distance, IEEE Transactions on
    Pattern Analysis and Machine Intelligence 15 (1993); percentiles as in MONAI, `compute_hausdorff_distance`.
    """

    value_range = NOT_NEGATIVE

    percentile: Annotated[float, "which percentile of the distances, from 0 to 100; 100 is the largest."] = 100.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.percentile <= 100:
            do = "Give 95 for the robust distance"
            raise ConfigError(describe("percentile", self.percentile, "a number from 0 to 100", do))

    @property
    def encoder(self) -> SurfaceEncoder:
        return Hausdorff(*self._layout, percentile=self.percentile)


@dataclass(frozen=True, kw_only=True)
class AverageSurfaceDistance(SurfaceMetric):
    """Mean distance of the pixels of the surface of each of two masks to that of the other.

    `(sum_x min_y |x - y| + sum_y min_x |x - y|) / (n_x + n_y)` over the pixels x and y of both surfaces; with
    `directed=True` only of those of preds.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[0, 1, 1, 0, 0]]), torch.tensor([[0, 1, 1, 1, 1]])
        >>> AverageSurfaceDistance(num_classes=2)([preds], [target])
        tensor(0.5000, dtype=torch.float64)

    Source: Heimann et al., Comparison and evaluation of methods for liver segmentation from CT datasets, IEEE
    Transactions on Medical Imaging 28 (2009).
    """

    value_range = NOT_NEGATIVE

    @property
    def encoder(self) -> SurfaceEncoder:
        return AverageDistance(*self._layout)


@dataclass(frozen=True, kw_only=True)
class SurfaceDice(SurfaceMetric):
    """Share of the surfaces of two masks that is within a tolerance of the other (normalized surface Dice).

    `(#{x: min_y |x - y| <= tolerance} + #{y: min_x |x - y| <= tolerance}) / (n_x + n_y)` over the pixels x and y of
    both surfaces. Where one of both masks is empty, it is 0.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[0, 1, 1, 0, 0]]), torch.tensor([[0, 1, 1, 1, 1]])
        >>> SurfaceDice(num_classes=2, tolerance=1)([preds], [target])
        tensor(0.8333, dtype=torch.float64)

    Source: Nikolov et al., Clinically applicable segmentation of head and neck anatomy, JMIR 23 (2021); pixels of the
    surface count one each, as in MONAI.
    """

    value_range = SHARE

    higher_is_better = True

    tolerance: Annotated[float, "in the unit of `spacing`."] = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.tolerance < math.inf:
            do = "Give the distance that does not matter"
            raise ConfigError(describe("tolerance", self.tolerance, "a finite number of 0 or more", do))

    @property
    def encoder(self) -> SurfaceEncoder:
        return WithinTolerance(*self._layout, tolerance=self.tolerance)
