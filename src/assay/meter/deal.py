"""Which group a sample belongs to: by chance, but always the same, and by nothing but what the sample is known by."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def numbers_of(ids: Iterable[Any]) -> NDArray[np.int64]:
    """Ids as whole numbers of 64 bits, the same in every process."""
    return np.array([key if isinstance(key, int) and abs(key) < 2**62 else _digest(str(key)) for key in ids], np.int64)


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers of 64 bits from others, as if by chance, but always the same.

    Source: SplitMix64 (G. Steele, D. Lea, C. Flood, Fast splittable pseudorandom number generators, OOPSLA 2014).
    """
    with np.errstate(over="ignore"):
        x = numbers + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return x ^ (x >> np.uint64(31))


def dealt(numbers: NDArray[np.int64], seed: int, count: int) -> NDArray[np.int64]:
    """The groups of samples: their numbers, mixed with a seed, modulo the number of groups.

    Args:
        numbers: whole numbers `(N,)`, one a sample.
        seed: another deal for each.
        count: how many groups.

    Example:
        >>> dealt(np.arange(6), seed=0, count=4)
        array([3, 3, 0, 2, 2, 3])
    """
    salt = mixed(np.array([seed % 2**64], np.uint64))
    with np.errstate(over="ignore"):
        salted = numbers.astype(np.int64).view(np.uint64) + salt
    return (mixed(salted) % np.uint64(count)).astype(np.int64)


def _digest(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)
