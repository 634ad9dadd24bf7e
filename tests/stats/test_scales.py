"""Functions of a mean: they are inverse to each other, their slopes are derivatives, and ends keep their order."""

from __future__ import annotations

import numpy as np
import pytest

from assay.stats.scales import SCALES


@pytest.mark.parametrize("name", SCALES)
def test_values_and_means_are_inverse_and_slopes_are_derivatives(name):
    scale, means = SCALES[name], np.array([0.03, 0.7, 2.0, 11.0])
    assert scale.mean(scale.of(means)) == pytest.approx(means)
    assert scale.slope(means) == pytest.approx((scale.of(means + 1e-6) - scale.of(means - 1e-6)) / 2e-6, rel=1e-5)
    assert np.all((scale.slope(means) < 0) == scale.falls)
    lower, upper = scale.ends(0.5, 2.0)
    assert lower < upper
    assert {lower, upper} == {float(scale.of(0.5)), float(scale.of(2.0))}
    assert scale.end("lower") == ("upper" if scale.falls else "lower")
    assert (scale.end("both"), scale.end("")) == ("both", "")
    around = scale.around(means, 2.0)
    assert around[2] == pytest.approx(scale.of(2.0))


def test_ends_that_no_mean_can_have_are_the_nearest_values():
    assert SCALES["root"].ends(-0.5, 4.0) == (0, 2)
    assert SCALES["decibels"].ends(-0.5, 0.01) == (pytest.approx(20), np.inf)
    assert SCALES["exponential"].ends(-np.inf, np.inf) == (0, np.inf)
