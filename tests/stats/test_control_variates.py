"""Estimates of less variance, against least squares and against simulated truth."""

import numpy as np
import pytest

from assay.stats.control_variates import ControlledMean, stratified_interval
from assay.stats.intervals import student_interval, wilson


def test_the_estimate_is_the_line_of_least_squares_at_the_mean_of_all():
    rng = np.random.default_rng(0)
    controls = rng.standard_normal(40)
    values = 2 * controls + rng.standard_normal(40)
    slope, start = np.polyfit(controls, values, 1)
    found = ControlledMean.of(values, controls, 0.3, 200)
    assert found.mean == pytest.approx(start + slope * 0.3)
    rest = values - start - slope * controls
    assert found.residuals == pytest.approx(rest)
    variance = rest @ rest / 38
    assert found.error**2 == pytest.approx(variance / 40 + (values.var(ddof=1) - variance) / 200)
    assert found.variance_ratio == pytest.approx(found.error**2 / (values.var(ddof=1) / 40))


def test_a_control_that_says_nothing_leaves_students_interval():
    rng = np.random.default_rng(1)
    values, controls = rng.standard_normal((2, 5000))
    found = ControlledMean.of(values, controls - controls.mean(), 0.0, 10**9)
    assert found.interval() == pytest.approx(student_interval(values), abs=1e-3)


@pytest.mark.parametrize("yes", [False, True])
def test_intervals_cover_and_are_narrower(yes):
    rng, covered, ratios = np.random.default_rng(2), 0, []
    for _ in range(500):
        hard = rng.standard_normal((2, 600))
        control, values = hard[0] + rng.standard_normal(600) / 3, hard[0] + rng.standard_normal(600) / 3
        control, values = (control > -0.5, values > 0.0) if yes else (control, values)
        found = ControlledMean.of(values[:150].astype(float), control[:150].astype(float), control.mean(), 600)
        lower, upper = found.interval()
        covered += lower <= (0.5 if yes else 0.0) <= upper
        ratios.append(found.variance_ratio)
    assert 0.93 <= covered / 500 <= 0.97
    assert np.mean(ratios) < (0.9 if yes else 0.5)


def test_strata_add_up_their_squares():
    ends = [wilson(80, 100), wilson(30, 60)]
    mean, (lower, upper) = stratified_interval([0.25, 0.75], [0.8, 0.5], ends)
    assert mean == pytest.approx(0.25 * 0.8 + 0.75 * 0.5)
    assert lower == pytest.approx(mean - np.hypot(0.25 * (0.8 - ends[0][0]), 0.75 * (0.5 - ends[1][0])))
    assert upper == pytest.approx(mean + np.hypot(0.25 * (ends[0][1] - 0.8), 0.75 * (ends[1][1] - 0.5)))
    assert stratified_interval([1.0], [0.8], ends[:1])[1] == pytest.approx(ends[0])
