"""What the segments of single images give: how many of each category match, and how much those overlap."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from assay.errors import DtypeError, ShapeError, describe
from assay.tally.base import Batch, BatchLayout, shown
from assay.tally.layout_checks import check_weights, shown_or_nothing
from assay.tally.rows.mask_terms import fixed_quotient
from assay.tally.sums.row_sums import RowTerm, RowValues, SumShape

_CELLS = 1 << 18  # of the tables of images that are counted together, where 2**15 elements stay in the cache


@dataclass(frozen=True)
class SegmentMatches(RowTerm):
    """Of each image and category: the sum of the IoUs of matched segments, and how many segments match.

    A segment is the pixels of a category with one instance id; of stuff, all pixels of the category. The four sums of
    an image, each with one number a category in the order of `things` and then `stuffs`: IoUs in units of 2**-50,
    matched pairs, predicted segments without a match and segments of the target without one.

    Args:
        things: categories with instances.
        stuffs: categories without.
        unknown_preds: pixels of preds may have other categories.
        max_segments: how many segments an image has at most, in preds and in the target.
        modified: overlapping segments of stuff match at any IoU, and each of the target counts as a match.
    """

    things: tuple[int, ...]
    stuffs: tuple[int, ...]
    unknown_preds: bool
    max_segments: int
    modified: bool

    @property
    def classes(self) -> int:
        """How many categories there are."""
        return len(self.things) + len(self.stuffs)

    @property
    def sums(self) -> tuple[SumShape, ...]:
        return (SumShape(4 * self.classes),)

    @property
    def invalid(self) -> tuple[str, ...]:
        return (
            f"images have more segments than max_segments={self.max_segments}",
            "images of preds have pixels whose category is neither in things nor in stuffs",
        )

    def check(self, layout: BatchLayout) -> None:
        preds, target = layout.preds, layout.target
        right = target is not None and preds.tail == target.tail and len(preds.tail) >= 2 and preds.tail[-1] == 2
        if not right or 0 in preds.tail:
            got = f"shape {shown(preds.tail)} with target {shown_or_nothing(target)}"
            do = "Resize to one size, and stack each pixel as torch.stack((category, instance), -1)"
            raise ShapeError(describe("preds", got, "both of one shape (N, ..., 2)", do))
        assert target is not None, "it was compared"
        for name, column in (("preds", preds), ("target", target)):
            if column.dtype.is_floating_point or column.dtype.is_complex or column.dtype == torch.bool:
                raise DtypeError(describe(name, column.dtype, "an integer dtype", f"Pass {name}.long()"))
        check_weights(layout.weights)

    def __call__(self, batch: Batch) -> RowValues:
        most = min(self.max_segments, batch.preds[0].numel() // 2)
        images = max(1, _CELLS * max(1, batch.cache_elements >> 15) // (most + 1) ** 2)
        places = self._places(batch.preds.device)
        blocks = zip(torch.split(batch.preds, images), torch.split(batch.needed_target, images), strict=True)
        parts = [self._block(preds, target, places, most) for preds, target in blocks]
        values, wrong = zip(*parts, strict=True)
        bad = torch.cat(wrong)
        return RowValues(torch.cat(values).flatten(1), counted=~bad.any(1), invalid=bad.unbind(1))

    def _block(self, preds: Tensor, target: Tensor, places: Tensor, most: int) -> tuple[Tensor, Tensor]:
        """The sums of images `(N, 4, classes)`, and which of them are invalid in each way `(N, 2)`."""
        own, true = (self._segments(side.flatten(1, -2), places, most) for side in (preds, target))
        many = own.count.maximum(true.count) > most
        unknown = torch.zeros_like(many) if self.unknown_preds else (own.slot == 0).any(1)
        # Slot 0 is of pixels without a category; those of preds are as if nothing were predicted there.
        narrow = torch.int32 if own.slot.shape[1] < 1 << 29 else torch.int64  # twice as fast
        table = _counted(own.slot * (most + 1) + true.slot, (most + 1) ** 2, narrow).view(-1, most + 1, most + 1)
        own_area, true_area = (table.sum(dim, dtype=narrow) for dim in (2, 1))
        void = table[:, :, 0]
        union = (own_area - void)[:, :, None] + (true_area[:, None] - table)
        matched = 2 * table > union
        if self.modified:
            matched |= (own.category >= len(self.things))[:, :, None] & (table > 0)
        category = torch.where(true.present, true.category, -1)  # that of preds has no such number
        matched &= own.category[:, :, None] == category[:, None]
        both, partner = (table * matched).max(2)
        found = both > 0
        both, own_area, true_area, void = (each.to(torch.int64) for each in (both, own_area, true_area, void))
        overlap = fixed_quotient(both, own_area - void + true_area.gather(1, partner) - both)
        false_alarm = own.present & ~found & (2 * void <= own_area)
        missed = true.present & (matched.sum(1) == 0)
        sums = [(own, overlap), (own, found), (own, false_alarm), (true, missed)]
        values = torch.stack([self._by_category(side, values) for side, values in sums], 1)
        if self.modified:
            values = self._modified(values, self._by_category(true, true.present))
        return values, torch.stack([many, unknown], 1)

    def _modified(self, values: Tensor, segments: Tensor) -> Tensor:
        """The same where all segments of stuff in the target count as matched, and none as missed or false."""
        things = values.new_ones(len(self.things)), values.new_zeros(len(self.stuffs))
        thing = torch.cat(things).bool()
        overlaps, matches, alarms, misses = values.unbind(1)
        counts = torch.where(thing, matches, segments), *(torch.where(thing, each, 0) for each in (alarms, misses))
        return torch.stack([overlaps, *counts], 1)

    def _segments(self, pixels: Tensor, places: Tensor, most: int) -> _Segments:
        """The segments of images of pixels `(N, P, 2)`."""
        low, high = self._range
        ids = pixels[..., 0].to(torch.int64).clamp(low, high) - low
        category = places.index_select(0, ids.reshape(-1)).view_as(ids)
        unknown = category == self.classes
        instance = torch.where(category >= len(self.things), 0, pixels[..., 1].to(torch.int64))
        ids, distinct = _ranks(instance, most)
        # The table of categories and instances says which are there; their order in it numbers the segments from 1.
        width = self.classes * (most + 1)
        code = torch.where(unknown, width, category * (most + 1) + ids)
        present = _counted(code, width + 1)[:, :-1] > 0
        number = present.cumsum(1)
        slots = torch.where(present & (number <= most), number, 0)
        slot = torch.cat([slots, torch.zeros_like(slots[:, :1])], 1).gather(1, code)
        known = torch.arange(width, device=code.device).div(most + 1, rounding_mode="floor")
        categories = torch.zeros_like(slots[:, : most + 1]).scatter_add_(1, slots, torch.where(slots > 0, known, 0))
        places = torch.arange(most + 1, device=code.device)
        there = (places <= number[:, -1:]) & (places > 0)
        categories = torch.where(there, categories, self.classes)
        return _Segments(slot, categories, there, number[:, -1].maximum(distinct - 1))

    def _places(self, device: torch.device) -> Tensor:
        """The place of each category among `things` and then `stuffs`, from one below the lowest to one above the
        highest; for ids between them that are unknown, how many there are.
        """
        low, high = self._range
        places = torch.full((high - low + 1,), self.classes, dtype=torch.int64, device=device)
        for k, each in enumerate((*self.things, *self.stuffs)):
            places[each - low].fill_(k)  # to copy a list of numbers to a device synchronizes with it
        return places

    @property
    def _range(self) -> tuple[int, int]:
        known = (*self.things, *self.stuffs)
        return min(known) - 1, max(known) + 1

    def _by_category(self, segments: _Segments, values: Tensor) -> Tensor:
        """The sums of a number of each segment by category, `(N, classes)`."""
        zeros = torch.zeros(len(values), self.classes + 1, dtype=torch.int64, device=values.device)
        return zeros.scatter_add_(1, segments.category, values.to(torch.int64))[:, :-1]


@dataclass(frozen=True, eq=False)
class _Segments:
    """The segments of images, in slots from 1; slot 0 is of pixels of no category.

    Args:
        slot: that of each pixel, `(N, P)`.
        category: the place of the category of each slot, `(N, slots)`; where there is no segment, how many there are.
        present: whether there is a segment.
        count: how many segments each image has; where they are more than slots, a number above that.
    """

    slot: Tensor
    category: Tensor
    present: Tensor
    count: Tensor


def _ranks(values: Tensor, highest: int) -> tuple[Tensor, Tensor]:
    """The rank of each value among the distinct ones of its row, at most `highest`, and how many are distinct."""
    ordered, order = values.sort(1)
    steps = (ordered[:, 1:] != ordered[:, :-1]).cumsum(1)
    steps = torch.cat([torch.zeros_like(order[:, :1]), steps], 1)
    return torch.zeros_like(order).scatter_add_(1, order, steps.clamp(max=highest)), steps[:, -1] + 1


def _counted(index: Tensor, size: int, dtype: torch.dtype = torch.int64) -> Tensor:
    """How often each number below `size` is in each row."""
    zeros = torch.zeros(len(index), size, dtype=dtype, device=index.device)
    return zeros.scatter_add_(1, index, torch.ones_like(index, dtype=dtype))
