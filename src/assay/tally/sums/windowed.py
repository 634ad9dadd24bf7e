"""Exact sums of floats for many cells, which have only the words that their numbers need.

`exact` keeps a sum in 70 words, enough for all floats. Losses of a model use a few of them, the same for all cells:
with 100,000 cells that is 4 MB instead of 56.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.tally.sums import exact

_MOST = 1 << 28
"""Numbers that are added before words are carried: each adds less than 2 ** 32 to a word."""

_DIGITS = 53


def _word(size: float, bits: int) -> int:
    """The word of the first bit of a positive number, or of one so many bits above it."""
    return (math.frexp(size)[1] + bits - exact.origin(1)) // exact.WORD


@dataclass
class WindowedSums:
    """Exact sums of finite float64, one a cell, on the CPU.

    Which words there are follows from the numbers that were added, in any order.

    Attributes:
        words: int64 of shape `(cells, words)`: word `k` weighs `2 ** (32 * (k + first) + exact.origin(1))`.
        first: the number of the first word among those of `exact`.
    """

    words: Tensor
    first: int = 0
    _added: int = 0

    @classmethod
    def zeros(cls, cells: int) -> WindowedSums:
        """Sums of nothing."""
        return cls(torch.zeros(cells, 0, dtype=torch.int64, device="cpu"))

    def reserve(self, cells: int) -> None:
        """Have room for so many cells."""
        if len(self.words) < cells:
            grown = self.words.new_zeros(max(cells, 2 * len(self.words)), self.words.shape[1])
            grown[: len(self.words)] = self.words
            self.words = grown

    def add(self, values: NDArray[np.float64], cells: NDArray[np.int64]) -> None:
        """Add finite numbers, each to the sum of its cell."""
        for start in range(0, len(values), exact.CHUNK_ROWS):
            own = slice(start, start + exact.CHUNK_ROWS)
            sizes = np.abs(values[own])
            sizes = sizes[sizes > 0]
            if len(sizes):
                parts = exact.parts(torch.from_numpy(values[own]))
                self._cover(_word(float(sizes.min()), -_DIGITS), _word(float(sizes.max()), 0) + 2)
                self._add(parts, torch.from_numpy(cells[own]))

    def _add(self, parts: exact.Parts, cells: Tensor) -> None:
        width, flat = self.words.shape[1], self.words.view(-1)
        start = cells * width
        for piece in parts.pieces:
            position = piece.position.to(torch.int64) + (parts.base - exact.origin(parts.order))
            shifted = piece.significand << (position & (exact.WORD - 1))
            place = start + ((position >> 5) - self.first).clamp_(0, width - 2)  # a piece that is 0 has any position
            flat.scatter_add_(0, place, shifted & exact.MASK)
            flat.scatter_add_(0, place + 1, shifted >> exact.WORD)
        self._note(len(parts.pieces) * len(cells))

    def _cover(self, first: int, stop: int) -> None:
        """Have the words from `first` on, below `stop`."""
        width = self.words.shape[1]
        if not width:
            self.first, own_stop = first, stop
        else:
            own_stop = max(stop, self.first + width)
            if self.first <= first and own_stop == self.first + width:
                return
        start = min(first, self.first)
        words = self.words.new_zeros(len(self.words), own_stop - start)
        words[:, self.first - start : self.first - start + width] = self.words
        self.words, self.first = words, start

    def _note(self, added: int) -> None:
        self._added += added
        if self._added > _MOST:
            exact.carry(self.words)
            self._added = 0

    def tensors(self, cells: int) -> dict[str, Tensor]:
        """The sums of the first cells, in the one form that they have however they were added."""
        words = self.words[:cells]
        if words.shape[1]:
            exact.carry(words)
            words = exact.canonical(words.contiguous())
        return {"words": words, "first": torch.tensor([self.first], device="cpu")}

    def add_tensors(self, tensors: dict[str, Tensor], cells: NDArray[np.int64]) -> None:
        """Add what `tensors` gave, whose cells are these here, no two the same."""
        first, words = int(tensors["first"]), tensors["words"]
        if not words.shape[1]:
            return
        self._cover(first, first + words.shape[1])
        own = self.words[:, first - self.first : first - self.first + words.shape[1]]
        own[torch.from_numpy(cells)] += words
        exact.carry(self.words)

    def integers(self, cells: int) -> tuple[list[int], int]:
        """The sums of the first cells as integers, and the power of two that is their unit."""
        if not self.words.shape[1]:
            return [0] * cells, exact.origin(1)
        values, unit = exact.integers(self.tensors(cells)["words"], 1)
        return values, unit + exact.WORD * self.first
