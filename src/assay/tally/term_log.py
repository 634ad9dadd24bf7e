"""Terms that a device computes in floating point: recorded where it counts, and compared where the CPU counts again.

Counts are integers, so two devices have the same bits. Terms such as logarithms are rounded, and a sound device may
round them otherwise than the CPU. So a recount has two parts: the terms of the CPU and those of the device are equal
within the rounding that each declares, and everything that follows from the device's terms has the same bits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from assay.devices.placement import to_host

ROUNDING = 2.0**-14
"""How far apart two devices may compute a term, as a part of the largest one of the batch: some 500 ulp of float32. A
wrong element is further off."""
_NEAR_ENDS = 2.0**100
"""Beyond it, and below its inverse, one device may have infinity or 0 where another one has a number."""

Key = tuple[int, Hashable]


class TermTolerance(NamedTuple):
    """How far apart sound devices may compute a term.

    Attributes:
        rounding: as a part of the largest term of its column, or of 1 where inputs are no smaller; 0 for the same bits.
        is_of_inputs: as a part of the largest input, too.
        inputs: what the term was computed from.
    """

    rounding: float = 0.0
    is_of_inputs: bool = False
    inputs: Sequence[Tensor] = ()


EXACT = TermTolerance()
"""The same bits."""


class TermLog(ABC):
    """What `Batch.rounded` passes terms through.

    Attributes:
        tally: the number of the tally that counts now, as several may have a term of one name.
    """

    tally = 0

    @abstractmethod
    def passed(self, key: Hashable, terms: Sequence[Tensor], tolerance: TermTolerance) -> list[Tensor]:
        """The terms to count.

        Args:
            key: their name.
            terms: tensors whose dimension 0 counts rows, or samples.
            tolerance: how far apart two devices may compute them.
        """


class RecordedTerms(TermLog):
    """Keeps the terms, on their device."""

    def __init__(self) -> None:
        self.kept: dict[Key, list[list[Tensor]]] = {}

    def passed(self, key: Hashable, terms: Sequence[Tensor], tolerance: TermTolerance) -> list[Tensor]:
        self.kept.setdefault((self.tally, key), []).append([each.detach() for each in terms])
        return list(terms)

    @property
    def nbytes(self) -> int:
        return sum(each.nbytes for parts in self.kept.values() for terms in parts for each in terms)


class ReplayedTerms(TermLog):
    """Gives the terms that a device computed, row by row, and compares them with those of the CPU.

    Attributes:
        differs: for each tally, by its number, how the first term that is too far off reads.
    """

    def __init__(self, recorded: RecordedTerms) -> None:
        self._terms = {
            key: [torch.cat([to_host(each) for each in column]) for column in zip(*parts, strict=True)]
            for key, parts in recorded.kept.items()
        }
        self.differs: dict[int, str] = {}

    def passed(self, key: Hashable, terms: Sequence[Tensor], tolerance: TermTolerance) -> list[Tensor]:
        known = self._terms.get((self.tally, key))
        if known is None:
            return list(terms)
        here = [of_device[: len(own)] for own, of_device in zip(terms, known, strict=True)]
        self._terms[self.tally, key] = [each[len(own) :] for own, each in zip(terms, known, strict=True)]
        for own, of_device in zip(terms, here, strict=True):
            found = difference(own, of_device, tolerance)
            if found:
                self.differs.setdefault(self.tally, found)
        return here


def difference(own: Tensor, other: Tensor, tolerance: TermTolerance = EXACT) -> str:
    """How the first number that is too far off reads in two tensors on the CPU; empty where they agree."""
    if (own.shape, own.dtype) != (other.shape, other.dtype):
        return f"{other.dtype} of shape {tuple(other.shape)} for {own.dtype} of shape {tuple(own.shape)}"
    is_exact = own.dtype == torch.bool or not tolerance.rounding
    off = _bits(own) != _bits(other) if is_exact else _too_far(own.double(), other.double(), tolerance)
    place = off.view(-1).nonzero()[:1, 0].tolist()
    return f"{other.reshape(-1)[place[0]].item()!r} for {own.reshape(-1)[place[0]].item()!r}" if place else ""


def _bits(x: Tensor) -> Tensor:
    if not x.dtype.is_floating_point:
        return x
    x = torch.where(x.isnan(), torch.nan, x)  # of which there are many
    return x.contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])


def _too_far(own: Tensor, other: Tensor, tolerance: TermTolerance) -> Tensor:
    inputs = [_sizes(each) for each in tolerance.inputs]
    largest_input = max((float(each.max()) for each in inputs if each.numel()), default=0.0)
    sizes = torch.maximum(_sizes(own), _sizes(other))
    largest = sizes.amax(0) if len(sizes) else sizes.sum(0)  # of each column, as one may be counts and one fractions
    largest = largest.clamp(min=largest_input if tolerance.is_of_inputs else min(1.0, largest_input))
    far = (own - other).abs() > tolerance.rounding * largest
    same = (own == other) | (own.isnan() & other.isnan())
    near_ends = any(map(_is_near_ends, (*inputs, sizes)))
    return torch.where(own.isfinite() & other.isfinite(), far, ~same & (not near_ends))


def _sizes(x: Tensor) -> Tensor:
    """Absolute values, 0 where they are not finite."""
    return torch.where(x.isfinite(), x, 0).double().abs()


def _is_near_ends(sizes: Tensor) -> bool:
    return bool(((sizes > _NEAR_ENDS) | ((sizes < 1 / _NEAR_ENDS) & (sizes > 0))).any())
