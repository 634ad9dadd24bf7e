"""Random groups and digests of samples in compiled code, against Python's integers and NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.evaluation.observe import sample_hashes
from assay.native.library import MISSING, in_torch, library
from assay.native.samples import sample_digests, sample_groups
from assay.stats import sampling
from assay.stats.sampling import SampleDigest

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)

WORD = 2**64
NUMBERS = st.integers(-(2**63), 2**63 - 1)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, st.integers(0, 5)), max_size=700)


def mixed(number: int) -> int:
    """SplitMix64, as its paper has it."""
    number = (number + 0x9E3779B97F4A7C15) % WORD
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 % WORD
    number = (number ^ number >> 27) * 0x94D049BB133111EB % WORD
    return number ^ number >> 31


@given(st.lists(NUMBERS, max_size=700), NUMBERS, st.sampled_from([1, 2, 3, 32, 100, 128]))
def test_groups_are_hashes_of_numbers_with_a_salt(numbers, seed, count):
    salt = mixed(seed % WORD)
    expected = [mixed((each + salt) % WORD) % count for each in numbers]
    array = np.array(numbers, np.int64)
    assert sample_groups(array, salt, count).tolist() == expected
    assert sample_hashes.groups_of(array, seed, count).tolist() == expected
    assert sampling.groups_of(array, seed, count).tolist() == expected


@pytest.mark.parametrize("has_targets", [True, False])
@given(ROWS)
def test_digests_are_sums_of_hashes(has_targets, rows):
    expected = [[0, 0, 0, 0] for _ in range(6)]
    for number, target, code in rows:
        of, own = expected[code], mixed(number % WORD)
        of[0] += 1
        of[1] = (of[1] + own) % WORD
        of[2] ^= own
        of[3] = (of[3] + mixed((own + target) % WORD)) % WORD if has_targets else 0
    ids, targets, codes = (np.array([row[k] for row in rows], np.int64) for k in range(3))
    given_targets = targets if has_targets else None
    assert sample_digests(ids, given_targets, codes, 6).tolist() == expected
    found = sample_hashes.digests_by_code(ids, given_targets, codes)
    assert list(found) == sorted(set(codes.tolist()))
    assert found == SampleDigest.by_code(ids, given_targets, codes)


@given(st.lists(st.tuples(NUMBERS, NUMBERS), max_size=300))
def test_the_digest_of_all_samples(rows):
    ids, targets = (np.array([row[k] for row in rows], np.int64) for k in range(2))
    assert sample_hashes.digest_of(ids, targets) == SampleDigest.of(ids, targets)
    assert sample_hashes.digest_of(ids) == SampleDigest.of(ids, None)


@pytest.mark.parametrize("largest", [3, 2**16 - 1, 2**16, 2**62])
def test_codes_of_any_size_and_columns_that_are_not_contiguous(largest):
    table = np.random.default_rng(0).integers(-(2**62), 2**62, (500, 2))
    codes = np.where(np.arange(500) % 3, 1, largest)
    ids, targets = table.T
    found = sample_hashes.digests_by_code(ids, targets, codes)
    assert found == SampleDigest.by_code(ids.copy(), targets.copy(), codes)
    with in_torch():
        assert sample_hashes.digests_by_code(ids.copy(), targets.copy(), codes) == found
        assert sample_hashes.digest_of(ids.copy()) == SampleDigest.of(ids.copy(), None)
        assert sample_hashes.groups_of(ids, 7, 32).tolist() == sampling.groups_of(ids, 7, 32).tolist()
