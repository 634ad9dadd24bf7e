"""What metrics of images have in common: one number an image, and its mean over the images."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import torch
from torch import Tensor

from assay.errors import ConfigError, DtypeError, describe
from assay.metrics.base import Examples, Metric
from assay.metrics.exact_arithmetic import means, result
from assay.metrics.per_sample import SampleTerms
from assay.native.quotients import StateQuotient
from assay.tally.base import Batch, BatchLayout, Tally
from assay.tally.rows.image_terms import MEAN_BITS, ImageTerm
from assay.tally.state_quotients import state_quotient
from assay.tally.sums.polynomials import MEAN_OF_ROWS, QuotientOfSums
from assay.tally.sums.row_sums import RowSums, RowTotals

_LEAST = {"window_size": 1, "block_size": 2, "kernel_size": 2, "p": 1, "norm_order": 1}
"""Arguments that are integers, and the smallest that each may be."""


@dataclass(frozen=True, kw_only=True)
class ImageMetric(Metric):
    """The mean over images of a number of each.

    Shapes: `preds` and `target` are images `(N, C, H, W)` or volumes `(N, C, D, H, W)` of one shape, of any real dtype.
    Batches may have different sizes; an image of any size counts once. Weights are `(N,)`.

    Rounding: the number of an image is computed in float32 (float64 where an argument is float64), with the same bits
    for any size of batch. The mean over the images is exact, rounded once.

    Returns:
        float64 of shape `()`; NaN without data.

    Raises:
        ConfigError: an argument that is out of range.
        ShapeError: `preds` and `target` of different shapes, or too small.
        DtypeError: integers with a `data_range` of 1 or less.
        InvalidValuesError: by `compute`, for images with values that are NaN or infinite.
    """

    family = "image"
    inputs = "images"
    exact_terms: ClassVar[bool] = False
    higher_is_better: ClassVar[bool | None] = False
    examples: ClassVar[Examples] = ({},)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("data_range", "sigma", "sigma_n_sq", "ratio"):
            value = getattr(self, name, None)
            if value is not None and not 0 < value < math.inf:
                do = {"data_range": "Give 255 for 8-bit images, 1 for images from 0 to 1"}.get(
                    name, f"Leave {name} out"
                )
                raise ConfigError(describe(name, value, "a finite number above 0", do))
        for name, least in _LEAST.items():
            value = getattr(self, name, None)
            if value is not None and value < least:
                raise ConfigError(describe(name, value, f"{least} or more", f"Leave {name} out"))

    def check(self, layout: BatchLayout) -> None:
        """Raise a `DtypeError` for integers that `data_range` has no room for."""
        data_range = getattr(self, "data_range", None) if "data_range" in self.__dict__ else None
        if data_range is None or data_range > 1:
            return
        for name, images in (("preds", layout.preds), ("target", layout.target)):
            if images is not None and not images.dtype.is_floating_point and images.dtype != torch.bool:
                expected = f"floats, as data_range={data_range:g} is the span of the values"
                do = "Pass data_range=255 for 8-bit images, or divide the images by 255"
                raise DtypeError(describe(name, images.dtype, expected, do))

    @property
    @abstractmethod
    def term(self) -> ImageTerm:
        """What is measured of an image."""

    def tally(self, weighted: bool) -> Tally:
        return RowSums(self.term, weighted)

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return MEAN_OF_ROWS

    def reading(self, tally: Tally) -> StateQuotient | None:
        quotient = state_quotient(tally, self.quotient_of_sums)
        return quotient.through(_without_unit) if quotient is not None and self.term.bounded else quotient

    def compute(self, counts: RowTotals) -> Tensor:
        (mean,) = means(counts)
        return result([mean * Fraction(1, 1 << MEAN_BITS) if self.term.bounded and mean == mean else mean])

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        return SampleTerms.of(f"{self.term.name} of {self!r}", self.term.floats(batch))


def _without_unit(mean: float) -> float:
    """A mean that is counted in units of `2 ** -MEAN_BITS`."""
    return mean * 2.0**-MEAN_BITS
