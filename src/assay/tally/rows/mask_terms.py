"""What the masks of single images give: how much of each class overlaps, from integer counts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from assay.errors import DtypeError, ShapeError, describe
from assay.tally.base import Batch, BatchLayout, shown
from assay.tally.layout_checks import check_weights, shown_or_nothing
from assay.tally.sums.row_sums import RowTerm, RowValues, SumShape

QUOTIENT_BITS = 50
"""How many binary places a quotient has."""
InputFormat = Literal["index", "one-hot"]
WeightType = Literal["square", "simple", "linear"]


@dataclass(frozen=True)
class OverlapTerm(RowTerm):
    """A number of each image: of all classes together, or of each class; and whether it is defined.

    Args:
        num_classes: how many classes there are.
        include_background: whether class 0 counts.
        per_class: one number a class, or one of all.
        input_format: masks hold the index of a class, or have a dimension of the classes.
    """

    num_classes: int
    include_background: bool = True
    per_class: bool = False
    input_format: InputFormat = "index"

    @property
    def width(self) -> int:
        """How many numbers an image gives."""
        return self.num_classes - (not self.include_background) if self.per_class else 1

    @property
    def sums(self) -> tuple[SumShape, ...]:
        return SumShape(self.width), SumShape(self.width)

    @property
    def invalid(self) -> tuple[str, ...]:
        if self.input_format == "index":
            return (f"images have pixels that are not from 0 to {self.num_classes - 1}",)
        return ("images have pixels of one-hot masks that are neither 0 nor 1",)

    def check(self, layout: BatchLayout) -> None:
        preds, target = layout.preds, layout.target
        one_hot = self.input_format == "one-hot"
        right = target is not None and preds.tail == target.tail and len(preds.tail) >= 1 + one_hot
        if not right or 0 in preds.tail or (one_hot and preds.tail[0] != self.num_classes):
            got = f"shape {shown(preds.tail)} with target {shown_or_nothing(target)}"
            expected = f"both (N, {self.num_classes}, ...)" if one_hot else "both (N, ...), of indices of classes"
            do = "Pass preds.argmax(1), if preds are scores"
            if target is not None and len(preds.tail) == len(target.tail) and preds.tail != target.tail:
                do = "Resize both to one size; masks without interpolation"
            raise ShapeError(describe("preds", got, expected, do))
        assert target is not None, "it was compared"
        for name, column in (("preds", preds), ("target", target)):
            if column.dtype.is_floating_point or column.dtype.is_complex:
                do = f"Pass {name}.argmax(1) of scores, or {name}.long()"
                raise DtypeError(describe(name, column.dtype, "an integer or bool dtype", do))
        check_weights(layout.weights)

    def __call__(self, batch: Batch) -> RowValues:
        highest = self.num_classes - 1 if self.input_format == "index" else 1
        preds, target = (_holding(each, highest) for each in (batch.preds, batch.needed_target))
        wrong = torch.zeros(len(preds), dtype=torch.bool, device=preds.device)
        for side in (preds, target):
            if side.dtype != torch.bool:
                low, high = _ends(side.flatten(1), batch.compiled)
                wrong = wrong | (high > highest) | (low < 0)
        values, defined = self.measure(*self._counts(preds, target))
        return RowValues(values, defined.to(torch.int64), counted=~wrong, invalid=[wrong])

    def _counts(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How many pixels are of each class in both, in preds and in the target: int64 `(N, classes)`."""
        counts = []
        for label in range(not self.include_background, self.num_classes):
            if self.input_format == "index":
                own, true = preds == label, target == label
            else:
                own, true = preds[:, label] != 0, target[:, label] != 0
            counts.append([mask.flatten(1).sum(1) for mask in (own & true, own, true)])
        both, own, true = (torch.stack(each, 1) for each in zip(*counts, strict=True))
        return both, own, true

    @abstractmethod
    def measure(self, both: Tensor, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """The numbers `(N, width)`, in units of 2**-50 and 0 where they are undefined, and whether they are defined."""

    def _reduced(self, values: Tensor, defined: Tensor) -> tuple[Tensor, Tensor]:
        """One number a class, or the mean over the defined ones."""
        if self.per_class:
            return values, defined
        present = defined.sum(1, keepdim=True)
        return values.sum(1, keepdim=True).div(present.clamp(min=1), rounding_mode="floor"), present > 0


def _ends(rows: Tensor, compiled: bool) -> tuple[Tensor, Tensor]:
    """The smallest and the largest number of each row; in host memory by one operator, as `amin` is slow."""
    if compiled:
        low, high = rows.aminmax(dim=1)
        return low, high
    return rows.amin(1), rows.amax(1)


def _holding(mask: Tensor, highest: int) -> Tensor:
    """The mask in a dtype that holds `highest`: next to a number that it does not hold, a dtype wraps that number."""
    narrow = mask.dtype != torch.bool and torch.iinfo(mask.dtype).max < highest
    return mask.to(torch.int64) if narrow else mask


def fixed_quotient(above: Tensor, below: Tensor) -> Tensor:
    """`above / below`, of integers from 0 to 2**38 and not above 2**12, in units of 2**-50; 0 for 0 / 0."""
    below = below.clamp(min=1)
    half = QUOTIENT_BITS // 2
    whole = (above << half).div(below, rounding_mode="floor")
    rest = (above << half) - whole * below
    return (whole << half) + (rest << half).div(below, rounding_mode="floor")


@dataclass(frozen=True)
class ClassOverlap(OverlapTerm):
    """The intersection over union (`dice`: twice it over the sum of both) of the classes that are in an image."""

    dice: bool = False

    def measure(self, both: Tensor, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        total = preds + target
        quotient = fixed_quotient(2 * both, total) if self.dice else fixed_quotient(both, total - both)
        return self._reduced(quotient, total > 0)


@dataclass(frozen=True)
class GeneralizedDice(OverlapTerm):
    """`2 sum(w both) / sum(w (preds + target))` over classes that weigh 1, 1 / target or 1 / target²."""

    weight_type: WeightType = "square"

    def measure(self, both: Tensor, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        total = preds + target
        if self.per_class:  # the weights cancel
            return fixed_quotient(2 * both, total), total > 0
        weights = self._weights(target)
        above, below = ((weights * count.float()).unbind(1) for count in (2 * both, total))
        numerator, denominator = above[0], below[0]
        for k in range(1, len(above)):
            numerator, denominator = numerator + above[k], denominator + below[k]
        value = numerator / torch.where(denominator == 0, 1, denominator)
        return (value * 2.0**QUOTIENT_BITS).to(torch.int64)[:, None], (denominator != 0)[:, None]

    def _weights(self, target: Tensor) -> Tensor:
        """What the classes of an image weigh; one that is not in its target as much as the heaviest that is."""
        if self.weight_type == "linear":
            return torch.ones_like(target, dtype=torch.float32)
        size = target.clamp(min=1).float()
        weights = (size * size if self.weight_type == "square" else size).reciprocal()
        heaviest = torch.where(target > 0, weights, 0).amax(1, keepdim=True)
        heaviest = torch.where(heaviest == 0, 1, heaviest)
        return torch.where(target > 0, weights, heaviest)
