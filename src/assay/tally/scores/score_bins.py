"""Bins for scores: a map from floats to bin numbers that keeps their order, made of integer operations on their bits.

The bits of a positive float32, read as an integer, grow with its value. Without the last 13 of them there are 1,024
bins per octave (a factor of 2), which is one for every value that float16 or bfloat16 can hold; without the last 9
there are 16,384. The map takes the finer steps in the octaves where scores usually are, and the coarser ones elsewhere:

* probabilities are measured from the nearer end of [0, 1], so scores near 1 are distinguished as well as those near 0
  (`1 - p` is exact for p of 1/2 or more); the finer steps are those from 2 ** -26 to 1/2;
* logits are measured from 0, to both sides; the finer steps are those from 2 ** -6 to 2 ** 11. Infinities have bins.

That makes 1,026,049 bins for probabilities and 1,044,481 for logits. With `shift`, `2 ** shift` neighbours share a bin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from assay.native.bins import BinLayout

Array = np.ndarray[Any, Any]

_DROPPED, _FINE_DROPPED = 13, 9  # bits
_COARSE, _FINE = 1 << (23 - _DROPPED), 1 << (23 - _FINE_DROPPED)  # bins per octave
_EXTRA = _FINE - _COARSE
_BIAS = 127  # of the exponent of a float32
_INFINITY = 255  # exponent
_LATTICE_SHIFT = 10  # up to this shift the middle bin begins at a multiple of 2 ** shift
_ALL_BITS = 0x7FFFFFFF


@dataclass(frozen=True)
class ScoreBins:
    """Bins for probabilities or logits, in ascending order of the score.

    Args:
        logits: any real numbers; otherwise numbers in [0, 1].
        shift: `2 ** shift` neighbouring bins are one.
    """

    logits: bool = False
    shift: int = 0

    @property
    def count(self) -> int:
        """How many bins there are."""
        return (2 * self._middle >> self.shift) + 1

    @property
    def _octaves(self) -> tuple[int, int]:
        """The exponents of the first octave with fine steps, and of the first one above them."""
        return (_BIAS - 6, _BIAS + 11) if self.logits else (_BIAS - 26, _BIAS - 1)

    @property
    def _middle(self) -> int:
        """The key of 0 (logits) or of 1/2 (probabilities), which is the largest distance from the end."""
        first, above = self._octaves
        return (_INFINITY if self.logits else above) * _COARSE + (above - first) * _EXTRA

    @cached_property
    def layout(self) -> BinLayout:
        """The same for compiled code."""
        return BinLayout(self.logits, *self.description)

    @property
    def description(self) -> tuple[int, ...]:
        """The same for kernels in Triton: the numbers of `BinLayout` without the first."""
        lattice = self._below_lattice
        return *self._octaves, _DROPPED, _FINE_DROPPED, lattice, self._middle, self.count, self.shift

    def place(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """The bin of every score, and how many scores may share a bin with others.

        Args:
            scores: float32 or float64, of any shape. NaN is placed as 0, and numbers that are no
                probabilities fall into some bin.

        Returns:
            The bins as int64; and int64 of shape `(2,)`: how many scores are not *plain*, and how many are no float32.
            A plain score is one whose distance (to the nearer of 0 and 1, or to 0) has at most `10 - shift` bits after
            the first. No bin holds two of them; every float16 is plain for shift 0, every bfloat16 up to shift 3.
        """
        # On the CPU, torch.minimum gives NaN other bits in the last elements of a tensor: unlike for other splits.
        scores = scores.nan_to_num(0, math.inf, -math.inf)
        distance = scores if self.logits else torch.minimum(scores, 1 - scores)
        single = distance.float().contiguous()
        side = single if self.logits else (scores - 0.5).float()
        below = side.contiguous().view(torch.int32) >> 31  # -1 in the lower half, else 0
        bits = single.view(torch.int32) & _ALL_BITS
        from_middle = self._steps(bits) if self.logits else self._middle - self._steps(bits)
        key = ((from_middle ^ below) - below).add_(self._middle)
        return (key >> self.shift).clamp_(0, self.count - 1).to(torch.int64), self._unclear(scores, distance, bits)

    def _unclear(self, scores: Tensor, distance: Tensor, bits: Tensor) -> Tensor:
        plain_not = bits & self._below_lattice
        if scores.dtype != torch.float64:
            return F.pad(torch.count_nonzero(plain_not).view(1), (0, 1))
        plain_not |= torch.ne(distance.float().double(), distance)
        return torch.stack([torch.count_nonzero(plain_not), torch.count_nonzero(scores.float().double() != scores)])

    @property
    def _below_lattice(self) -> int:
        if self.shift > _LATTICE_SHIFT:
            return _ALL_BITS
        return (1 << (_DROPPED + self.shift)) - 1

    def _steps(self, bits: Tensor) -> Tensor:
        """How many bins lie below a float with these bits."""
        first, above = self._octaves
        coarse = bits >> _DROPPED
        fine = (bits >> _FINE_DROPPED) - first * _EXTRA
        return torch.clamp(fine, coarse, coarse + (above - first) * _EXTRA)

    def single(self, bins: Array, plain: bool, float32: bool) -> Array:
        """Whether a bin can hold only one value: when all scores are plain, and near 1 when all are float32.

        A float32 of 1/2 and more is 1 minus a multiple of 2 ** -24, so near 1 there are fewer values than bins.
        """
        if plain:
            return np.ones(len(bins), dtype=bool)
        if not float32 or self.logits or self.shift > _LATTICE_SHIFT:
            return np.zeros(len(bins), dtype=bool)
        return self._near_one[bins]

    @cached_property
    def _near_one(self) -> Array:
        """Whether each bin is so near to 1 that it can hold only one float32."""
        steps, upper = self._reflected(np.arange(self.count) << self.shift)
        return upper & (self._edge(steps) < 2.0 ** (-9 - self.shift))

    def thresholds(self, bins: Array, single: Array) -> Array:
        """A threshold for each bin, as float64: the one score of those that hold only one, else see `lowest`."""
        return np.where(single, self.values(bins), self.lowest(bins))

    def values(self, bins: Array) -> Array:
        """The one score of each bin that holds only one, as float64."""
        key = bins << self.shift
        steps, upper = self._reflected(key)
        edge = self._edge(steps)
        return np.where(upper, edge, -edge) if self.logits else np.where(upper, 1 - edge, edge)

    def lowest(self, bins: Array) -> Array:
        """A threshold for each bin, as float64: a float32 score reaches it exactly when its bin is this or a higher
        one.

        Float64 scores are placed after the distance was rounded to float32, so for them the threshold may be off by
        that.
        """
        key = bins << self.shift
        steps, upper = self._reflected(key)
        here = self._edge(steps)
        beyond = self._edge(np.minimum(steps + 1, self._middle))
        if self.logits:
            open_end, closed_end = -beyond, -here
            mirrored = ~upper | (steps == 0)  # the bin of 0 holds the smallest numbers of both signs
        else:
            open_end, closed_end = np.maximum(1 - beyond, np.nextafter(0.5, 0)), 1 - here
            mirrored = upper
        lowest = np.minimum(np.nextafter(open_end, np.inf), closed_end)
        return np.where(mirrored, lowest, here)

    def _reflected(self, key: Array) -> tuple[Array, Array]:
        """How many steps from the end (or from 0) a key is, and whether it is in the upper half."""
        upper = key >= self._middle
        if self.logits:
            return np.abs(key - self._middle), upper
        return np.where(upper, 2 * self._middle - key, key), upper

    def _edge(self, steps: Array) -> Array:
        """The smallest float with so many bins below it."""
        first, above = self._octaves
        low, high = first * _COARSE, first * _COARSE + (above - first) * _FINE
        fine = (steps + first * _EXTRA) << _FINE_DROPPED
        bits = np.where(steps < low, steps << _DROPPED, fine)
        bits = np.where(steps > high, (steps - (above - first) * _EXTRA) << _DROPPED, bits)
        return bits.astype(np.int32).view(np.float32).astype(np.float64)
