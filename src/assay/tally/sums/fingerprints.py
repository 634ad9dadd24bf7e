"""Fingerprints: what a batch adds to a state, as a few integers that other operators compute than those that count.

Conservation laws do not see a count in the wrong cell, or the value of a sum. A fingerprint does. It adds up as the
state does, and the state on the CPU must have the same one:

* of a table: the sum of a mixed number for each place, modulo 2 ** 64. Mixing is one to one, so a count that is lost,
  doubled or in another cell changes it;
* of kept rows: the sum of a mixed number for all words of a row, modulo 2 ** 64;
* of the largest of some integers: the complement of the smallest complement;
* of an exact sum: its residue modulo the prime `2 ** 31 - 1`. A float is a significand of at most 24 bits times a power
  of two, and the residue of neither is 0, so a float that is lost, doubled or changed changes that of the sum.

The numbers are fixed: they find faults, and are no protection from somebody who knows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from assay.devices.placement import to_host
from assay.tally.sums import exact

PRIME = (1 << 31) - 1
_FIRST = 0x9E3779B97F4A7C15 - (1 << 64)
_SECOND = 0xBF58476D1CE4E5B9 - (1 << 64)
_SHIFT = 29
_MARK = 0x5DEECE66D
NO_KEY = torch.iinfo(torch.int64).min


class FingerprintSize(NamedTuple):
    """How many residues and keys a fingerprint has."""

    residues: int = 0
    keys: int = 0


@dataclass(frozen=True, eq=False)
class Fingerprint:
    """What was added to a state.

    Attributes:
        places: int64 of shape `()`, or what is known of a batch as an integer: the sum of the mixed places, modulo
            2 ** 64.
        residues: int64 `(sums,)`: sums of residues modulo `PRIME`, not reduced.
        keys: int64 `(keys,)`: the largest integers of each kind; None for a tally that has none.
    """

    places: Tensor | int
    residues: Tensor
    keys: Tensor | None = None

    @staticmethod
    def zero(size: FingerprintSize, device: torch.device) -> Fingerprint:
        """The fingerprint of nothing."""

        def full(number: int, *shape: int) -> Tensor:
            return torch.full(shape, number, dtype=torch.int64, device=device)

        return Fingerprint(full(0), full(0, size.residues), full(NO_KEY, size.keys) if size.keys else None)

    def add(self, other: Fingerprint) -> None:
        """Add that of a batch, in place."""
        assert isinstance(self.places, Tensor), "what adds up is on the device"
        self.places.add_(other.places)
        if len(self.residues):
            self.residues.add_(_folded(other.residues))  # each below 2 ** 32: there is room for 2 ** 31 batches
        if self.keys is not None and other.keys is not None:
            self.keys.copy_(torch.where(other.keys > self.keys, other.keys, self.keys))

    def on_host(self) -> Fingerprint | None:
        """A copy on the CPU; None where it did not arrive whole."""
        assert isinstance(self.places, Tensor), "what adds up is on the device"
        mark = self.places.new_full((1,), _MARK)
        keys = [] if self.keys is None else [self.keys]
        sent = to_host(torch.cat([mark, self.places.view(1), self.residues, *keys, mark]))
        if (int(sent[0]), int(sent[-1])) != (_MARK, _MARK):
            return None
        end = 2 + len(self.residues)
        return Fingerprint(sent[1], sent[2:end], None if self.keys is None else sent[end:-1])

    def difference(self, other: Fingerprint, of_sums: bool = True) -> str:
        """In which part two of them on the CPU differ, that of exact sums left out where asked; empty where they are
        equal."""
        if int(self.places) != int(other.places):
            return "places of its counts"
        if self.keys is not None and other.keys is not None and not torch.equal(self.keys, other.keys):
            return "largest of its values"
        differs = of_sums and bool((self.residues - other.residues).remainder(PRIME).any())
        return "residues of its exact sums" if differs else ""


def has_special(state: Mapping[str, object]) -> bool:
    """Whether a state on the CPU has counted infinities or NaN."""
    return any(isinstance(each, Tensor) and name.startswith("special") and each.any() for name, each in state.items())


def of_places(places: Tensor, counts: Tensor | None = None) -> Tensor:
    """The fingerprint of counts in places of a table: int64 of shape `()`.

    Args:
        places: int64, of any shape.
        counts: int64 of the same shape: what each place gets; 1 by default.
    """
    mixed = _mixed(places)
    return (mixed if counts is None else mixed * counts).sum()


def _mixed(numbers: Tensor) -> Tensor:
    """A number for each, which for small ones is one to one."""
    mixed = (numbers + 1) * _FIRST
    return (mixed ^ (mixed >> _SHIFT)) * _SECOND


def of_rows(columns: Sequence[Tensor]) -> Tensor:
    """The fingerprint of rows that are kept, by the bits of what each has in the columns: int64 of shape `()`.

    Args:
        columns: of shape `(rows, ...)`, of any real dtypes.
    """
    total, start = None, 0
    for column in columns:
        words = _words(column).reshape(len(column), -1)
        factors = _mixed(torch.arange(start, start + words.shape[1], device=words.device)) | 1
        part = (words * factors).sum(1)
        total, start = part if total is None else total + part, start + words.shape[1]
    assert total is not None, "a store has a column"
    return of_places(total)


def _words(x: Tensor) -> Tensor:
    """The bits of each number as int64."""
    if x.dtype.is_floating_point:
        x = x.contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])
    return x.to(torch.int64)


def largest(numbers: Tensor) -> Tensor:
    """The largest of int64 `(rows, ...)` along dimension 0, by another operator than `amax`."""
    return ~(~numbers).amin(0)


def of_table(counts: Tensor) -> Tensor:
    """The same of a table of counts on the CPU."""
    flat = counts.reshape(-1)
    places = flat.nonzero()[:, 0]
    return of_places(places, flat[places])


def of_equal_counts(cells: int, count: int) -> int:
    """The same of a table with this count in every cell, which is known on the CPU: an int64."""
    total = count * _sum_of_places(cells) + (1 << 63)
    return total % (1 << 64) - (1 << 63)


@lru_cache(maxsize=64)
def _sum_of_places(cells: int) -> int:
    return int(of_places(torch.arange(cells, device="cpu")))


def of_table_at(counts: Tensor) -> Tensor:
    """The same of a small table, zeros included: no value is read."""
    flat = counts.reshape(-1)
    return of_places(torch.arange(len(flat), device=flat.device), flat)


def of_counts_with_weights(counts: Tensor, weights: Tensor | None) -> Fingerprint:
    """That of a table of counts on the CPU, and of the limbs of the weight in each cell, if there are any."""
    limbs = [] if weights is None else [of_limbs_at(weights.reshape(-1, weights.shape[-1])).view(1)]
    return Fingerprint(of_table(counts), torch.cat([counts.new_zeros(0), *limbs]))


def added(found: Sequence[Tensor]) -> Tensor:
    """The sum of residues of a few chunks."""
    return found[0] if len(found) == 1 else torch.stack([_folded(each) for each in found]).sum(0)


def residues(values: exact.Parts) -> Tensor:
    """Numbers modulo `PRIME`, in units of the first bit of their limbs, and below 2 ** 32 for each of their pieces."""
    offset = values.base - exact.origin(values.order)
    total = None
    for piece in values.pieces:
        shift = (piece.position + offset).remainder(31)
        folded = _folded(_folded(piece.significand) << shift)
        total = folded if total is None else total + folded
    assert total is not None, "a number has a piece"
    return total


def times(*factors: Tensor) -> Tensor:
    """The residues of products of numbers of order 1 from theirs: no product of significands is used.

    Those of one factor are taken as they are; of several, each must be below `PRIME`.
    """
    found = factors[0]
    for order, factor in enumerate(factors[1:], 1):
        unit = exact.origin(order) + exact.origin(1) - exact.origin(order + 1)
        found = _folded(_folded((found if order == 1 else found.remainder(PRIME)) * factor) << unit % 31)
    return found


def of_product(*factors: exact.Parts) -> Tensor:
    """The residues of products of numbers of order 1."""
    found = [residues(each) for each in factors]
    return times(*(found if len(found) == 1 else map(reduced, found)))


def reduced(found: Tensor) -> Tensor:
    """The same residues below `PRIME`, as factors are."""
    return found.remainder(PRIME)


def residues_at(found: Tensor, places: Tensor) -> Tensor:
    """The residue of the sum over all places of a number for each place times what goes there: int64 of shape `()`."""
    return _folded(_folded(found).remainder(PRIME) * _factor(places)).sum()


def of_limbs(limbs: Tensor) -> Tensor:
    """The residue of each sum on the CPU, of limbs `(..., words)`, canonical or not: int64 of shape `(...)`."""
    power = torch.arange(limbs.shape[-1], device="cpu").remainder(31)  # 2 ** 32 is 2
    return _folded(_folded(limbs) << power).sum(-1).remainder(PRIME)


def of_limbs_at(limbs: Tensor) -> Tensor:
    """`residues_at` of limbs `(places, words)` on the CPU."""
    found = of_limbs(limbs).view(-1)
    return _folded(found * _factor(torch.arange(len(found), device="cpu"))).sum()


def _factor(places: Tensor) -> Tensor:
    """A number below 2 ** 31 for each place, other ones for other places up to 2 ** 31."""
    return ((places + 1) * 48271).remainder(PRIME)


def _folded(x: Tensor) -> Tensor:
    """The same modulo `PRIME`, and small: of an absolute value below 2 ** 62 one below 2 ** 32."""
    return (x & PRIME) + (x >> 31)
