"""Random groups and digests of samples, by compiled code where there is some: the numbers of `stats.sampling`."""

from __future__ import annotations

import numpy as np

from assay.evaluation.observe.observers import Array
from assay.native import samples as native
from assay.native.library import library
from assay.stats import sampling
from assay.stats.sampling import SampleDigest, group_salt

_MOST_CODES = 1 << 16
"""Codes below have a place in a table."""


def groups_of(numbers: Array, seed: int, count: int) -> Array:
    """See `stats.sampling.groups_of`."""
    if library() is None:
        return sampling.groups_of(numbers, seed, count)
    return native.sample_groups(numbers.astype(np.int64, copy=False), group_salt(seed), count)


def digest_of(ids: Array, targets: Array | None = None) -> SampleDigest:
    """See `SampleDigest.of`."""
    return digests_by_code(ids, targets, None).get(0, SampleDigest(targets=None if targets is None else 0))


def digests_by_code(ids: Array, targets: Array | None, codes: Array | None) -> dict[int, SampleDigest]:
    """See `SampleDigest.by_code`; without codes all samples have code 0."""
    last = 0 if codes is None else int(codes.max(initial=0))
    if library() is None or last >= _MOST_CODES:
        return SampleDigest.by_code(ids, targets, np.zeros(len(ids), np.int64) if codes is None else codes)
    digests = native.sample_digests(ids, targets, codes, last + 1)
    present = np.flatnonzero(digests[:, 0]).tolist()
    of_codes = zip(present, digests[present].tolist(), strict=True)
    return {
        code: SampleDigest(count, total, xor, None if targets is None else pairs)
        for code, (count, total, xor, pairs) in of_codes
    }
