"""Panoptic quality: how well segments of things and stuff are recognized and segmented."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, NamedTuple

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import Examples, Metric, vector
from assay.metrics.exact_arithmetic import quotient, result, rounded
from assay.tally.base import Tally
from assay.tally.rows.mask_terms import QUOTIENT_BITS
from assay.tally.rows.panoptic_terms import SegmentMatches
from assay.tally.sums.exact import Number
from assay.tally.sums.row_sums import RowSums, RowTotals

_SPAN = 1 << 20  # ids of categories are looked up in a table


class Qualities(NamedTuple):
    """Panoptic quality and its two factors, of each category or the means over categories."""

    pq: Tensor
    sq: Tensor
    rq: Tensor


@dataclass(frozen=True, kw_only=True)
class PanopticMetric(Metric):
    """A quality of the segments of images: what is measured of each category, and the mean over categories.

    Shapes: `preds` and `target` are integers `(N, ..., 2)`, for images `(N, H, W, 2)`: the category and the instance id
    of each pixel. Ids may be any; those of stuff are not read. Weights are `(N,)`.

    Rounding: each IoU is cut at 2**-50; the sums are exact, and the quotient is rounded once.

    Returns:
        float64 of shape `()`; with `return_per_class=True` one number a category, those of `things` in increasing order
        and then those of `stuffs`, NaN for categories that do not occur. With `return_sq_and_rq=True` a named tuple
        `(pq, sq, rq)` of such.

    Raises:
        ConfigError: no category, one in both `things` and `stuffs`, or a limit below 1.
        ShapeError: anything but two integer tensors of equal shapes `(N, ..., 2)`.
        DtypeError: floats or bool.
        InvalidValuesError: by `compute`, for images of `preds` with other categories than these, unless they are
            allowed, and for images with more than `max_segments` segments.
    """

    family = "detection"
    inputs = "segments"
    higher_is_better: ClassVar[bool | None] = True
    exact_terms = False
    defined_for = "images that have one of the categories"
    examples: ClassVar[Examples] = (
        {"things": (0, 2), "stuffs": (5,), "allow_unknown_preds_category": True},
        {"things": (0, 2), "stuffs": (5, 9), "allow_unknown_preds_category": True, "return_per_class": True},
        {"things": (0,), "stuffs": (2, 5, 7, 9), "return_sq_and_rq": True},
    )
    modified: ClassVar[bool]

    things: Annotated[tuple[int, ...], "categories with instances; any collection of integers."]
    stuffs: Annotated[tuple[int, ...], "categories without instances, all of whose pixels in an image are one segment."]
    allow_unknown_preds_category: Annotated[bool, "pixels of `preds` may have other categories; see above."] = False
    return_sq_and_rq: Annotated[bool, "return (PQ, SQ, RQ), or PQ only."] = False
    return_per_class: Annotated[bool, "one number a category, or the mean over categories."] = False
    max_segments: Annotated[
        int, "how many segments an image has at most in preds and in target, for which memory is taken."
    ] = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("things", "stuffs"):
            object.__setattr__(self, name, _categories(name, getattr(self, name)))
        both = set(self.things) & set(self.stuffs)
        if both or not (self.things or self.stuffs):
            got = f"{sorted(both)} in things, too" if both else "no category, and none in things"
            raise ConfigError(describe("stuffs", got, "each category in one of both", "Give each category one kind"))
        low, high = min(self.things + self.stuffs), max(self.things + self.stuffs)
        if high - low >= _SPAN:
            do = "Number the categories from 0"
            raise ConfigError(describe("things and stuffs", f"{low} to {high}", f"less than {_SPAN} apart", do))
        if self.max_segments < 1:
            raise ConfigError(describe("max_segments", self.max_segments, "1 or more", "Leave max_segments out"))

    def tally(self, weighted: bool) -> Tally:
        unknown, most = self.allow_unknown_preds_category, self.max_segments
        return RowSums(SegmentMatches(self.things, self.stuffs, unknown, most, self.modified), weighted)

    def compute(self, counts: RowTotals) -> Any:
        sums, classes = counts.sums[0], len(self.things) + len(self.stuffs)
        qualities = [_qualities(*sums[k::classes]) for k in range(classes)]
        present = [each for each in qualities if each]
        if self.return_per_class:
            columns = [[each[k] if each else float("nan") for each in qualities] for k in range(3)]
            values = [_vector(column) for column in columns]
        else:
            values = [result([quotient(sum(each[k] for each in present), len(present))]) for k in range(3)]
        return Qualities(*values) if self.return_sq_and_rq else values[0]


@dataclass(frozen=True, kw_only=True)
class PanopticQuality(PanopticMetric):
    """Panoptic quality (PQ): the product of segmentation quality (SQ) and recognition quality (RQ).

    `PQ = sum(IoU of matched segments) / (TP + FP / 2 + FN / 2)` for each category, and the mean over the categories
    that are in `preds` or `target`; `SQ = sum(IoU) / TP`, 0 without matches, and `RQ = TP / (TP + FP / 2 + FN / 2)`.
    A segment is the pixels of one category and instance in an image. Two of a category match where their IoU is above
    1/2, compared in integers.

    Pixels whose category in the target is in neither `things` nor `stuffs` do not count: they are no part of an IoU,
    and a predicted segment without a match more than half of which lies there is no false positive. With
    `allow_unknown_preds_category=True`, pixels of `preds` of other categories belong to no segment: segments of the
    target there are missed.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[[1, 0], [1, 0], [1, 0], [7, 0], [7, 0]]])
        >>> target = torch.tensor([[[1, 4], [1, 4], [1, 4], [1, 4], [7, 0]]])
        >>> PanopticQuality(things=(1,), stuffs=(7,))(preds, target)
        tensor(0.3750, dtype=torch.float64)

    Source: Kirillov et al., Panoptic segmentation, CVPR 2019; panopticapi.
    """

    modified = False


@dataclass(frozen=True, kw_only=True)
class ModifiedPanopticQuality(PanopticMetric):
    """Panoptic quality whose stuff needs no match: PQ†.

    `PQ = sum(IoU of matched segments) / (TP + FP / 2 + FN / 2)` for categories of things, as in `PanopticQuality`, and
    `sum(IoU) / (number of images with the category in the target)` for those of stuff, at any IoU; the mean
    over the categories that occur, for stuff in the target.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[[1, 0], [1, 0], [1, 0], [7, 0], [7, 0]]])
        >>> target = torch.tensor([[[1, 4], [1, 4], [1, 4], [1, 4], [7, 0]]])
        >>> ModifiedPanopticQuality(things=(1,), stuffs=(7,))(preds, target)
        tensor(0.6250, dtype=torch.float64)

    Source: Porzi et al., Seamless scene segmentation, CVPR 2019.
    """

    modified = True


def _categories(name: str, values: Collection[int]) -> tuple[int, ...]:
    """Distinct integers in increasing order."""
    if not isinstance(values, Collection) or not all(isinstance(each, int) for each in values):
        raise ConfigError(describe(name, repr(values), "a collection of integers", f"Write {name}=(1, 2)"))
    return tuple(sorted(set(values)))


def _qualities(overlap: Number, hits: Number, alarms: Number, misses: Number) -> tuple[Number, Number, Number] | None:
    """PQ, SQ and RQ of a category; None where it does not occur."""
    total = hits + Fraction(alarms + misses) / 2
    if not total:
        return None
    overlap = overlap * Fraction(1, 1 << QUOTIENT_BITS)
    return overlap / total, (overlap / hits if hits else Fraction(0)), hits / total


def _vector(values: Sequence[Number]) -> Tensor:
    return vector(map(rounded, values))
