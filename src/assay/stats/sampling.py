"""Random groups of samples that depend on nothing but the ids of the samples and a seed: hashes of ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def numbers_of(ids: Iterable[Any]) -> NDArray[np.int64]:
    """Ids as integers of 64 bits, the same in every process."""
    return np.array([key if isinstance(key, int) and abs(key) < 2**62 else _digest(str(key)) for key in ids], np.int64)


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of integers of 64 bits to integers of 64 bits.

    Source: SplitMix64 (G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, OOPSLA 2014).
    """
    with np.errstate(over="ignore"):
        x = numbers + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


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
    salt = mixed(np.array([seed % 2**64], np.uint64))
    with np.errstate(over="ignore"):
        salted = numbers.astype(np.int64).view(np.uint64) + salt
    return (mixed(salted) % np.uint64(count)).astype(np.int64)


def _digest(text: str) -> int:
    return int.from_bytes(
        hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True
    )
