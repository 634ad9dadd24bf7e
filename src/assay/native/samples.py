"""The compiled form of random groups and digests of samples in `stats.sampling`: the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.native.library import call

Array = np.ndarray[Any, Any]


def sample_groups(numbers: Array, salt: int, count: int) -> Array:
    """`stats.sampling.groups_of`, with its salt instead of a seed.

    Args:
        numbers: int64 `(N,)`.
        salt: is added to each number, modulo 2^64.
        count: how many groups there are.
    """
    numbers, groups = np.ascontiguousarray(numbers), np.empty(len(numbers), np.int64)
    added = np.array([salt], np.uint64)
    call("sample_groups", len(numbers), numbers.ctypes.data, added.ctypes.data, count, groups.ctypes.data)
    return groups


def sample_digests(ids: Array, targets: Array | None, codes: Array | None, count: int) -> Array:
    """What `stats.sampling.SampleDigest.by_code` says of each code from 0: uint64 `(count, 4)`.

    Args:
        ids: int64 `(N,)`.
        targets: int64 `(N,)`; None where there are none, and then their column says nothing.
        codes: int64 `(N,)`, in `0 ... count - 1`; None where all are 0.
        count: how many codes there are.

    Returns:
        How many samples have the code, the sum and the exclusive or of the hashes of their ids, and the sum of those of
        ids with targets.
    """
    digests = np.zeros((count, 4), np.uint64)
    lists = [None if each is None else np.ascontiguousarray(each) for each in (ids, targets, codes)]
    call(
        "sample_digests", len(ids), *(None if each is None else each.ctypes.data for each in lists), digests.ctypes.data
    )
    return digests
