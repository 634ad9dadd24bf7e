"""Rules on the ratio of a value to that of the baseline."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from assay.errors import ConfigError
from assay.report import Report, Samples, Section, Value, gate
from assay.stats.intervals import clopper_pearson

RNG = np.random.default_rng(0)
BEFORE = 5 + RNG.normal(size=400)
AFTER = 0.99 * BEFORE + 0.05 * RNG.normal(size=400)


def report(numbers, higher_is_better=True):
    samples = Samples.pack(range(len(numbers)), {"score": numbers}, data="made up")
    value = Value("score", float(np.mean(numbers)), numerator="score", higher_is_better=higher_is_better)
    return Report("run", [Section("test", [value], samples=samples)])


def stored(value, half=0.01):
    return Report("run", [Section("test", [Value("m", value, value - half, value + half, confidence_level=0.95)])])


def outcome(kind, bound, after, before, **more):
    (check,) = gate(after, {kind: {after.sections[0].values[0].name: bound}}, before, **more).checks
    return check


def bounds_by_fieller():
    """The ratios r for which 0 is within Student's interval of the mean of ``b - r a``."""
    ratios = np.linspace(0.98, 1.0, 4001)
    p = np.array([stats.ttest_1samp(AFTER - r * BEFORE, 0).pvalue for r in ratios])
    return ratios[p > 0.05][[0, -1]]


@pytest.mark.exhaustive
def test_a_ratio_passes_and_fails_where_fiellers_interval_ends():
    lower, upper = bounds_by_fieller()
    after, before = report(AFTER), report(BEFORE)
    assert outcome("min-ratio", lower - 2e-4, after, before).outcome == "pass"
    assert outcome("min-ratio", (lower + upper) / 2, after, before).outcome == "not enough evidence"
    assert outcome("min-ratio", upper + 2e-4, after, before).outcome == "fail"
    check = outcome("min-ratio", 0.98, after, before)
    assert check.value == pytest.approx(AFTER.mean() / BEFORE.mean())
    assert (check.lower, check.upper) == pytest.approx((lower, upper), abs=5e-4)


def test_of_yes_or_no_and_of_stored_intervals():
    right = np.arange(2000)
    before, after = report(right < 1800), report(right < 1760)
    assert outcome("min-ratio", 0.95, after, before).outcome == "pass"
    assert outcome("min-ratio", 0.99, after, before).outcome == "fail"
    check = outcome("max-ratio", 1.2, stored(2.2), stored(2.0))
    assert (check.outcome, check.value) == ("pass", pytest.approx(1.1))
    half = np.hypot(0.01, 1.2 * 0.01) / 2
    assert (check.lower, check.upper) == pytest.approx((1.1 - half, 1.1 + half))


def test_equal_answers_of_few_samples_do_not_show_a_ratio():
    """Of 30 samples of which 15 are right in both, a loss of one right answer in 50 is not seen in most samplings."""
    right = np.arange(30) < 15
    assert outcome("min-ratio", 0.98, report(right), report(right)).outcome == "not enough evidence"
    right = np.arange(1000) < 500
    check = outcome("min-ratio", 0.98, report(right), report(right))
    assert (check.outcome, check.method) == ("pass", "score interval of the ratio")


def test_a_ratio_of_yes_or_no_of_other_samples():
    before, after = report(np.arange(400) < 380), report(np.arange(500) < 475)
    check = outcome("min-ratio", 0.9, after, before)
    (l1, u1), (l2, u2) = clopper_pearson(380, 400), clopper_pearson(475, 500)
    ends = 0.95 - 0.855 - np.hypot(0.95 - l2, 0.9 * (u1 - 0.95)), 0.95 - 0.855 + np.hypot(u2 - 0.95, 0.9 * (0.95 - l1))
    assert (check.outcome, check.method) == ("pass", "Newcombe's interval of Clopper-Pearson's")
    assert (check.lower, check.upper) == pytest.approx(tuple(0.9 + end / 0.95 for end in ends))


def test_by_the_numbers_alone_and_against_itself():
    assert outcome("min-ratio", 0.98, stored(0.98), stored(1.0), point=True).outcome == "pass"
    assert outcome("min-ratio", 0.99, stored(0.98), stored(1.0), point=True).outcome == "fail"
    assert outcome("min-ratio", 1.0, report(BEFORE), report(BEFORE)).outcome == "pass"


@pytest.mark.parametrize("baseline", [0.0, -1.0, float("inf"), float("nan")])
def test_a_baseline_that_is_not_positive_fails(baseline):
    check = outcome("min-ratio", 0.9, stored(1.0), stored(baseline))
    assert check.outcome == "fail"
    assert "ratios are of positive values" in check.reason


@pytest.mark.parametrize(
    ("kind", "higher", "instead"), [("min-ratio", False, "max-ratio"), ("max-ratio", True, "min-")]
)
def test_the_direction_must_fit(kind, higher, instead):
    with pytest.raises(ConfigError, match=f"{kind} score: .*Use {instead}"):
        outcome(kind, 1.0, report(AFTER, higher), report(BEFORE, higher))


@pytest.mark.parametrize(("kind", "instead"), [("min-ratio", "max-drop"), ("max-ratio", "max-rise")])
@pytest.mark.parametrize("bound", [0.0, -1.0, float("-inf")])
def test_a_ratio_that_nothing_can_miss_is_refused(kind, instead, bound):
    with pytest.raises(ConfigError, match=f"{kind} m: got .*above 0.*{instead}"):
        gate(stored(0.5), {kind: {"m": bound}}, stored(0.5))
