"""Several tallies as one: what it needs of a batch is what any of them needs."""

from __future__ import annotations

from assay.metrics import Accuracy, InceptionScore, Mean
from assay.tally.composite import combine

WITH, WITHOUT = Accuracy().tally(False), Mean().tally(False)


def test_a_target_is_taken_where_one_tally_takes_it():
    other = InceptionScore(num_classes=3).tally(False)
    assert (WITH.uses_target, WITHOUT.uses_target) == (True, False)
    assert combine([WITH, WITHOUT]).uses_target
    assert combine([WITHOUT, WITH]).uses_target
    assert not combine([WITHOUT, other]).uses_target


def test_tallies_that_are_combined_are_leaves_and_equal_ones_are_counted_once():
    both = combine([WITH, WITHOUT])
    assert combine([both, WITH]).tallies == (WITH, WITHOUT, WITH)
    assert combine([both, WITH]).distinct == (WITH, WITHOUT)
