"""Random groups of samples that depend on nothing but the ids of the samples and a seed: hashes of ids."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


def numbers_of(ids: Iterable[Any]) -> NDArray[np.int64]:
    """Ids as integers of 64 bits, the same in every process: small integers themselves, else a hash of the text.

    Example:
        >>> numbers_of([3, -7]), bool(numbers_of(["3"]) == numbers_of([2**70]))
        (array([ 3, -7]), False)
    """
    ids = list(ids)
    numbers = np.empty(len(ids), np.int64)
    small = [isinstance(key, int) and abs(key) < 2**62 for key in ids]
    is_small = np.array(small, bool)
    numbers[is_small] = [key for key, of in zip(ids, small, strict=True) if of]
    texts = [str(key).encode("utf-8", "surrogatepass") for key, of in zip(ids, small, strict=True) if not of]
    ends = np.cumsum([0, *map(len, texts)])
    numbers[~is_small] = numbers_of_texts(np.frombuffer(b"".join(texts), np.uint8), ends)
    return numbers


def numbers_of_texts(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """A hash of each text, as `numbers_of` gives it: `mixed` over its length and its words of eight bytes.

    Args:
        data: the texts as UTF-8, one after the other.
        offsets: integers `(N + 1,)`: where each text begins, and where the last one ends.
    """
    lengths, starts = np.diff(offsets), offsets[:-1]
    numbers = mixed(lengths.astype(np.uint64))
    words = np.lib.stride_tricks.sliding_window_view(np.concatenate([data, np.zeros(8, np.uint8)]), 8)
    rows, word = np.flatnonzero(lengths), 0
    while len(rows):
        values = words[starts[rows] + word].view("<u8")[:, 0] & _MASKS[np.minimum(lengths[rows] - word, 8)]
        numbers[rows] = mixed(numbers[rows] ^ values)
        word += 8
        rows = rows[lengths[rows] > word]
    return numbers.view(np.int64)


_MASKS = np.array([2 ** (8 * count) - 1 for count in range(9)], np.uint64)
"""By a number of bytes, that many lowest ones of a word."""


def label_numbers(labels: Iterable[Any]) -> NDArray[np.int64]:
    """Labels as integers of 64 bits: integers, and strings of their digits, themselves, else a hash of the text.

    Example:
        >>> label_numbers([3, "3", 3.0]), bool(label_numbers(["a"]) == label_numbers(["b"]))
        (array([3, 3, 3]), False)
    """
    return numbers_of([_integer(str(each)) for each in labels])


_DIGITS = re.compile(r"(-?(?:0|[1-9][0-9]{0,17}))(?:\.0)?")


def _integer(text: str) -> int | str:
    found = _DIGITS.fullmatch(text)
    return int(found[1]) if found else text


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of integers of 64 bits to integers of 64 bits.

    Source: SplitMix64 (G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, OOPSLA 2014).
    """
    x: NDArray[np.uint64] = np.add(numbers, np.uint64(0x9E3779B97F4A7C15))
    shifted = x >> np.uint64(30)
    for bits, factor in ((27, 0xBF58476D1CE4E5B9), (31, 0x94D049BB133111EB)):
        np.bitwise_xor(x, shifted, out=x)
        np.multiply(x, np.uint64(factor), out=x)
        np.right_shift(x, np.uint64(bits), out=shifted)
    np.bitwise_xor(x, shifted, out=x)
    return x


def groups_of(numbers: NDArray[np.int64], seed: int, count: int) -> NDArray[np.int64]:
    """The random group of each sample: its number, hashed with a seed, modulo the number of groups.

    Args:
        numbers: integers `(N,)`, one a sample; see `numbers_of`.
        seed: each seed assigns the samples in another way.
        count: how many groups.

    Example:
        >>> groups_of(np.arange(6), seed=0, count=4)
        array([3, 3, 0, 2, 2, 3])
    """
    with np.errstate(over="ignore"):
        salted = numbers.astype(np.int64).view(np.uint64) + np.uint64(group_salt(seed))
    hashes = mixed(salted)
    if count & (count - 1) == 0:  # a power of two, by which no division is needed
        return (hashes & np.uint64(count - 1)).view(np.int64)
    return (hashes % np.uint64(count)).view(np.int64)


def group_salt(seed: int) -> int:
    """What `groups_of` adds to the number of each sample before it is hashed, modulo 2^64."""
    return int(mixed(np.array([seed % 2**64], np.uint64))[0])


def in_clusters(numbers: NDArray[np.int64], clusters: NDArray[np.int64]) -> NDArray[np.int64]:
    """The numbers of samples, hashed with those of their clusters: other ones where a sample is in another cluster."""
    with np.errstate(over="ignore"):
        return (mixed(numbers.view(np.uint64)) + clusters.view(np.uint64)).view(np.int64)


def row_numbers(rows: NDArray[Any]) -> NDArray[np.int64]:
    """An integer of 64 bits for each row of an array, which tells rows apart.

    Args:
        rows: `(N, ...)`, of numbers.
    """
    raw = np.ascontiguousarray(rows.reshape(len(rows), -1)).view(np.uint8)
    if raw.shape[1] % 8:
        raw = np.pad(raw, ((0, 0), (0, -raw.shape[1] % 8)))
    words = raw.view(np.uint64)
    factors = mixed(np.arange(words.shape[1], dtype=np.uint64)) | np.uint64(1)
    values: NDArray[np.uint64] = words[:, 0] * factors[0] if len(factors) == 1 else words @ factors
    return values.view(np.int64)


@dataclass(frozen=True)
class SampleDigest:
    """Which samples were counted, in any order: digests that add up.

    Args:
        count: how many.
        ids: the sum of the hashes of their ids, modulo 2^64.
        ids_xor: the exclusive or of the same.
        targets: the sum of hashes of id and target; None where samples have no targets that can be hashed.
    """

    count: int = 0
    ids: int = 0
    ids_xor: int = 0
    targets: int | None = 0

    @classmethod
    def of(cls, ids: NDArray[np.int64], targets: NDArray[np.int64] | None) -> SampleDigest:
        """The digest of some samples.

        Args:
            ids: integers `(N,)`, see `numbers_of`.
            targets: integers `(N,)`, see `row_numbers`.

        Example:
            >>> ids, targets = np.arange(4), np.array([1, 0, 0, 1])
            >>> first, second = SampleDigest.of(ids[:1], targets[:1]), SampleDigest.of(ids[1:], targets[1:])
            >>> second + first == SampleDigest.of(ids[::-1], targets[::-1])
            True
        """
        hashes = mixed(ids.view(np.uint64))
        total = int(hashes.sum(dtype=np.uint64))
        both = None
        if targets is not None:
            with np.errstate(over="ignore"):
                both = int(mixed(hashes + targets.view(np.uint64)).sum(dtype=np.uint64))
        return cls(len(ids), total, int(np.bitwise_xor.reduce(hashes)), both)

    @classmethod
    def by_code(
        cls, ids: NDArray[np.int64], targets: NDArray[np.int64] | None, codes: NDArray[np.int64]
    ) -> dict[int, SampleDigest]:
        """The digest of the samples of each code.

        Args:
            ids: see `of`.
            targets: see `of`.
            codes: integers `(N,)`, 0 or more.
        """
        if not len(codes):
            return {}
        if codes.min() == codes.max():
            return {int(codes[0]): cls.of(ids, targets)}
        order = np.argsort(codes.astype(np.uint16) if codes.max() < 2**16 else codes, kind="stable")  # or by radix
        ordered = codes[order]
        starts = np.flatnonzero(np.diff(ordered, prepend=-1))
        counts = np.diff(starts, append=len(ordered))
        hashes = mixed(ids.view(np.uint64))[order]
        totals, xors = np.add.reduceat(hashes, starts), np.bitwise_xor.reduceat(hashes, starts)
        both: list[int | None] = [None] * len(starts)
        if targets is not None:
            with np.errstate(over="ignore"):
                pairs = mixed(hashes + targets[order].view(np.uint64))
            both = np.add.reduceat(pairs, starts).tolist()
        parts = zip(ordered[starts].tolist(), counts.tolist(), totals.tolist(), xors.tolist(), both, strict=True)
        return {code: cls(count, total, xor, pair) for code, count, total, xor, pair in parts}

    def __add__(self, other: SampleDigest) -> SampleDigest:
        targets = None if self.targets is None or other.targets is None else (self.targets + other.targets) % 2**64
        ids, xor = (self.ids + other.ids) % 2**64, self.ids_xor ^ other.ids_xor
        return SampleDigest(self.count + other.count, ids, xor, targets)
