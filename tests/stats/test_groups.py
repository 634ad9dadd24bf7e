"""Groups that cannot be told apart, against all subsets; and the places that follow."""

from itertools import combinations

import numpy as np
import pytest

from assay.stats.groups import groups_of, places


@pytest.mark.parametrize("seed", range(12))
def test_groups_are_the_largest_sets_without_a_pair_told_apart(seed):
    rng, count = np.random.default_rng(seed), 6
    apart = [pair for pair in combinations(range(count), 2) if rng.random() < seed / 12]
    subsets = [frozenset(c) for n in range(1, count + 1) for c in combinations(range(count), n)]
    whole = [each for each in subsets if not any({*pair} <= each for pair in apart)]
    assert set(groups_of(count, apart)) == {each for each in whole if not any(each < other for other in whole)}


def test_places_count_who_is_known_to_be_better_and_worse():
    assert places(4, []) == [(1, 4)] * 4
    assert places(4, [(0, 1), (0, 2), (0, 3), (2, 3)]) == [(1, 1), (2, 4), (2, 3), (3, 4)]
