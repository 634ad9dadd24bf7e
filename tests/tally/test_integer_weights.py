"""Weights as integers of one unit: exact, of any size, and integers as they are."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.tally.sums.integer_weights import integer_weights


@given(st.lists(st.floats(0, 2.0**127, width=32), max_size=20))
def test_weights_are_integers_times_the_unit(weights):
    floats = np.array(weights, np.float32)
    whole, unit = integer_weights(floats)
    assert unit <= 0
    assert [int(w) * Fraction(2) ** unit for w in whole] == [Fraction(float(w)) for w in floats]
    again, same = integer_weights(floats.repeat(2).reshape(-1, 2))
    assert (again.tolist(), same) == ([[w, w] for w in whole], unit)


@given(st.lists(st.integers(0, 2**63 - 1), max_size=20))
def test_integers_stay_as_they_are(weights):
    whole, unit = integer_weights(np.array(weights, np.int64))
    assert (whole.tolist(), unit) == (weights, 0)
    assert int(whole.sum()) == sum(weights)


@pytest.mark.parametrize(("weights", "dtype"), [([0.25, 3.0], np.int64), ([2.0**61, 1.0], object), ([], np.int64)])
def test_they_are_int64_where_their_sum_fits(weights, dtype):
    assert integer_weights(np.array(weights))[0].dtype == dtype
