"""Means over the windows of images, by shifts and additions.

A convolution may choose its algorithm by the size of the batch, and so its bits. Here every element is computed by the
same additions and multiplications, wherever it lies.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Window:
    """A window of `size` pixels along each dimension: uniform, or Gaussian with the standard deviation `sigma`."""

    size: int
    sigma: float | None = None

    @property
    def weights(self) -> tuple[float, ...]:
        """What a pixel weighs along one dimension; they sum to 1."""
        if self.sigma is None:
            return (1 / self.size,) * self.size
        middle = (self.size - 1) / 2
        raw = [math.exp(-(((k - middle) / self.sigma) ** 2) / 2) for k in range(self.size)]
        return tuple(each / math.fsum(raw) for each in raw)

    def means(self, x: Tensor, dims: Iterable[int]) -> Tensor:
        """The weighted means over all windows that lie inside of `x`."""
        for dim in dims:
            x = _box_sums(x, self.size, dim).mul_(1 / self.size) if self.sigma is None else self._along(x, dim)
        return x

    def _along(self, x: Tensor, dim: int) -> Tensor:
        # Not `add_(alpha=)`, which rounds once in vector registers and twice beside them.
        size, weights = self.size, self.weights
        length = x.shape[dim] - size + 1
        total: Tensor | None = None
        for k in range(size // 2):
            pair = torch.add(x.narrow(dim, k, length), x.narrow(dim, size - 1 - k, length)).mul_(weights[k])
            total = pair if total is None else total.add_(pair)
        if size % 2:
            middle = x.narrow(dim, size // 2, length) * weights[size // 2]
            total = middle if total is None else total.add_(middle)
        assert total is not None, "a window has a pixel"
        return total


def _box_sums(x: Tensor, size: int, dim: int) -> Tensor:
    """The sums of `size` neighbours: of runs whose lengths are powers of two, each from the one of half its length."""
    length = x.shape[dim] - size + 1
    total: Tensor | None = None
    run, width, offset = x, 1, 0
    while width <= size:
        if size & width:
            part = run.narrow(dim, offset, length)
            total = part.clone() if total is None else total.add_(part)
            offset += width
        if 2 * width <= size:
            rest = run.shape[dim] - width
            run = run.narrow(dim, 0, rest) + run.narrow(dim, width, rest)
        width *= 2
    assert total is not None, "a window has a pixel"
    return total
