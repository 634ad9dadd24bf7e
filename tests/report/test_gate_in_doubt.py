"""Whatever is in doubt does not pass a gate: each route on which it once did, and random reports."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from assay.errors import ConfigError
from assay.report import Report, Samples, Section, Slice, Value, compare, gate
from assay.report.inference.tests_and_intervals import BIASED
from assay.report.per_sample.packed_array import PackedArray
from assay.report.per_sample.resampling import Resampling
from assay.stats.bootstrap import poisson_draws
from assay.stats.intervals import FEWEST
from thinning import one_of_each

DOUBT = "not enough evidence"


def loss_report(
    title: str, values: object, *, higher_is_better: bool | None = False, weights: object = None, **more: object
) -> Report:
    """One metric, the mean of these numbers."""
    numbers = np.asarray(values)
    columns, over, mean = {"loss": numbers}, "", float(numbers.mean(dtype=np.float64))
    if weights is not None:
        columns = {"loss": numbers * weights, "weight": np.asarray(weights)}
        over, mean = "weight", float((numbers * weights).sum() / np.sum(weights))
    samples = Samples.pack(range(len(numbers)), columns, data="made up", **more)
    return Report(
        title,
        [
            Section(
                "test",
                [Value("loss", mean, numerator="loss", denominator=over, higher_is_better=higher_is_better)],
                samples=samples,
            )
        ],
    )


def value(report: Report) -> Value:
    (only,) = report.sections[0].values
    return only


def stored(
    value: float, lower: float | None, upper: float | None, level: float | None = 0.95, **more: object
) -> Report:
    return Report("stored", [Section("test", [Value("loss", value, lower, upper, confidence_level=level, **more)])])


def judged(report: Report, kind: str, bound: float, baseline: Report | None = None, **more: object) -> tuple[str, str]:
    (check,) = gate(report, {kind: {"loss": bound}}, baseline, **more).checks
    return check.outcome, check.reason


@pytest.mark.parametrize("count", [2, 50])
def test_a_constant_difference_says_nothing_of_other_samples(count):
    before = np.random.default_rng(0).normal(size=count)
    outcome, reason = judged(loss_report("b", before + 0.1), "max-rise", 0.2, loss_report("a", before))
    assert (outcome, "all samples differ by the same" in reason) == (DOUBT, True)
    other = Samples.pack(range(count + 1), {"loss": np.ones(count + 1)}, data="made up")
    constant = Report("c", [Section("test", [Value("loss", 1.0, numerator="loss")], samples=other)])
    assert judged(loss_report("b", np.full(count, 1.1)), "max-rise", 0.2, constant)[0] == DOUBT


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float32", "float64"])
def test_zeros_and_ones_are_yes_or_no_whatever_their_dtype(dtype):
    right = np.arange(10) < 9
    expected = gate(loss_report("r", right, higher_is_better=None), {"min": {"loss": 0.58}}).checks[0]
    found = gate(loss_report("r", right.astype(dtype), higher_is_better=None), {"min": {"loss": 0.58}}).checks[0]
    assert (found.outcome, found.lower, found.method) == (DOUBT, expected.lower, "Clopper-Pearson interval")
    mixed = gate(loss_report("r", right.astype(dtype)), {"max-rise": {"loss": 0.9}}, loss_report("a", ~right)).checks[0]
    assert mixed.method == "McNemar mid-p, wider of Tango and Bonett-Price intervals"


def test_ones_that_may_be_numbers_are_not_yes_or_no():
    assert judged(loss_report("r", np.zeros(1000)), "max", 0.5)[0] == DOUBT
    assert judged(loss_report("r", np.zeros(1000, bool)), "max", 0.5)[0] == "pass"


@pytest.mark.parametrize(
    ("report", "part"),
    [
        (stored(0.2, 0.85, 0.95), "does not contain the value"),
        (stored(0.9, 0.95, 0.85), "does not contain the value"),
        (stored(0.9, 0.9, 0.9), "is a point"),
        (stored(0.9, 0.85, 0.95, count=FEWEST - 1), "too few samples"),
        (stored(0.9, 0.85, 0.95, level=0.9), "level 0.9"),
        (stored(0.9, 0.85, math.nan), "undefined"),
    ],
)
def test_stored_intervals_that_cannot_be_trusted(report, part):
    outcome, reason = judged(report, "min", 0.8)
    assert (outcome, part in reason) == (DOUBT, True)


@pytest.mark.parametrize(
    "before",
    [stored(0.9, 0.9, 0.9), stored(0.2, 0.85, 0.95), stored(0.9, -math.inf, 0.95), stored(0.9, 0.8, 0.95, count=3)],
)
def test_drops_from_stored_intervals_that_cannot_be_trusted(before):
    after = stored(0.9, 0.899, 0.901)
    assert judged(after, "max-drop", 0.8, before)[0] == DOUBT
    assert judged(before, "max-rise", 0.8, after)[0] == DOUBT
    assert judged(after, "max-drop", 0.8, stored(0.9, 0.89, 0.91))[0] == "pass"


@pytest.mark.parametrize(
    ("kind", "better", "instead"),
    [
        ("max-drop", "lower", "max-rise"),
        ("worst-slice", "lower", "worst-slice-max"),
        ("max-rise", "higher", "max-drop"),
        ("worst-slice-max", "higher", "worst-slice"),
    ],
)
@pytest.mark.parametrize("point", [False, True])
def test_a_rule_in_the_direction_that_is_no_loss_is_refused(kind, better, instead, point):
    def report(title, mean):
        value = Value("loss", mean, mean - 0.1, mean + 0.1, confidence_level=0.95, higher_is_better=better == "higher")
        return Report(title, [Section("test", [value], slices=[Slice("night", 50, [value])])])

    for metric in ("loss", "loss[*]"):
        with pytest.raises(ConfigError, match=f"{kind} .*{better} is better.*Use {instead},"):
            gate(report("new", 10.0), {kind: {metric: 0.5}}, report("main", 1.0), point=point)


def test_the_direction_of_the_baseline_counts_where_the_report_has_none():
    with pytest.raises(ConfigError, match="Use max-rise"):
        gate(
            loss_report("b", [10.0] * 20, higher_is_better=None),
            {"max-drop": {"loss": 1}},
            loss_report("a", [1.0] * 20),
        )


def test_a_weight_on_few_samples_is_few_samples():
    rng = np.random.default_rng(1)
    values, weights = rng.normal(1, 0.1, 500), np.full(500, 1e-6)
    weights[:3] = 1e6
    outcome, reason = judged(loss_report("r", values, weights=weights), "max", 1.5)
    assert (outcome, "too few samples" in reason) == (DOUBT, True)
    assert judged(loss_report("r", values, weights=np.ones(500)), "max", 1.5)[0] == "pass"


def test_the_end_on_the_side_of_a_long_tail_decides_nothing_but_the_other_does():
    values = np.random.default_rng(2).lognormal(size=20)
    outcome, reason = judged(loss_report("r", values), "max", 1e6)
    assert (outcome, "how skewed they are: the upper end" in reason) == (DOUBT, True)
    assert judged(loss_report("r", values), "max", 1e-6)[0] == "fail"
    assert judged(loss_report("r", values), "min", 1e-6)[0] == "pass"
    assert judged(loss_report("r", values), "max", 1e6, point=True)[0] == "pass"


LOSSES = {
    "lognormal": (lambda rng, shape: rng.lognormal(size=shape), math.exp(0.5)),
    "cross-entropy of a good model": (lambda rng, shape: np.logaddexp(0, -rng.normal(3, 2, size=shape)), 0.182009),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n", [20, 50])
@one_of_each()
def test_a_bound_just_below_the_mean_loss_rarely_passes(name, n):
    draw, mean = LOSSES[name]
    drawn = draw(np.random.default_rng(3), (400, n))
    passed = sum(judged(loss_report("r", values), "max", mean - 1e-6)[0] == "pass" for values in drawn)
    assert passed <= stats.binom.ppf(0.999, 400, 0.025)


def root_report(title: str, errors: np.ndarray) -> Report:
    """The root of a mean of squared errors."""
    squares = errors**2
    samples = Samples.pack(range(len(errors)), {"squares": squares}, data="made up")
    value = Value("loss", float(np.sqrt(squares.mean())), numerator="squares", scale="root", higher_is_better=False)
    return Report(title, [Section("test", [value], samples=samples)])


def test_a_root_is_judged_by_the_ends_of_its_mean():
    errors = np.random.default_rng(0).normal(size=200)
    root, mean = root_report("r", errors), loss_report("m", errors**2)
    (of_root,), (of_mean,) = (gate(each, {"max": {"loss": 1.5}}).checks for each in (root, mean))
    assert (of_root.lower, of_root.upper) == pytest.approx((of_mean.lower**0.5, of_mean.upper**0.5))
    assert of_root.method == "Student's interval, corrected for skewness (root of both ends)"
    long = np.random.default_rng(0).standard_t(3, 60)
    assert judged(root_report("r", long), "max", 1e6) == judged(loss_report("m", long**2), "max", 1e6)
    assert Report.from_json(root.to_json()) == root
    assert "scale" not in mean.to_json()  # readers that do not know it can read the report
    with pytest.raises(ConfigError, match="the root of the mean of 'squares'"):
        Section("test", [dataclasses.replace(value(root), value=1.0)], samples=root.sections[0].samples)


@pytest.mark.parametrize("n", [30, 100])
@one_of_each()
def test_a_bound_just_below_the_root_of_squares_with_long_tails_rarely_passes(n):
    truth = math.sqrt(5 / 3)
    drawn = np.random.default_rng(5).standard_t(5, (300, n))
    passed = sum(judged(root_report("r", errors), "max", 0.999 * truth)[0] == "pass" for errors in drawn)
    assert passed <= stats.binom.ppf(0.999, 300, 0.025)


def test_roots_of_the_same_samples_are_paired():
    rng = np.random.default_rng(6)
    errors = rng.normal(size=400)
    before, after = root_report("a", errors), root_report("b", errors + 0.1 * rng.normal(size=400))
    delta = compare(before, after).delta("loss")
    assert delta.paired
    assert delta.lower < delta.difference < delta.upper
    assert judged(after, "max-rise", 0.2, before)[0] == "pass"
    other = dataclasses.replace(value(after), scale="", value=value(after).value ** 2)
    mean = Report("m", [Section("test", [other], samples=after.sections[0].samples)])
    assert "root in one, mean in the other" in compare(before, mean).unmatched[0].why


def test_a_gate_decides_by_the_safe_ends_of_a_stored_interval():
    def report(**safe):
        return stored(0.9, 0.85, 0.95, count=100, **safe)

    assert judged(report(), "min", 0.8)[0] == "pass"
    assert judged(report(safe_lower=0.75, safe_upper=0.95), "min", 0.8)[0] == DOUBT
    outcome, reason = judged(report(safe_lower=-math.inf, safe_upper=0.95), "min", 0.8)
    assert (outcome, "the lower end may miss" in reason) == (DOUBT, True)
    assert judged(report(safe_lower=0.75, safe_upper=0.95), "min", 0.97)[0] == "fail"


def of_predictions(title: str, *, decision: object, value: float = 0.8, **columns: object) -> Report:
    """A metric that is no mean over samples, on all of them and on a slice without an interval."""
    samples = Samples.pack(range(30), columns, decision=decision, target=[0, 1] * 15, data="made up")
    whole = Value("AUROC", value, value - 0.1, value + 0.05, confidence_level=0.95, higher_is_better=True)
    part = Slice.of("night", [Value("AUROC", value - 0.2, higher_is_better=True)], np.arange(30) < 15)
    return Report(title, [Section("test", [whole], samples=samples, slices=[part])])


def drop_of(report: Report, baseline: Report, metric: str) -> str:
    return gate(report, {"max-drop": {metric: 0.0}}, baseline).outcome


def test_equal_inputs_have_no_difference():
    losses, labels = np.linspace(0, 1, 30), [0, 1, 1] * 10
    main = of_predictions("main", decision=labels, loss=losses)
    again = of_predictions("again", decision=labels, loss=losses)
    (check, in_slice) = gate(again, {"max-drop": {"AUROC": 0.0, "AUROC[night]": 0.0}}, main).checks
    for each in (check, in_slice):
        assert (each.outcome, each.lower, each.upper, each.method) == ("pass", 0, 0, "equal inputs")
    for other in (
        of_predictions("other", decision=labels, loss=losses + 1e-9),
        of_predictions("other", decision=labels[::-1], loss=losses),
        of_predictions("other", decision=labels, loss=losses, value=0.80001),
    ):
        assert drop_of(other, main, "AUROC") == DOUBT


@pytest.mark.parametrize(
    "columns",
    [
        {"correct": np.arange(30) < 29},
        {"errors": np.arange(30) % 3.0},
        {"share of words": np.arange(30) % 4 / 3},
    ],
)
def test_samples_without_scores_are_no_equal_inputs(columns):
    """Different models often decide the same, and their few counts and shares agree: that says nothing of others."""
    main, again = (of_predictions(title, decision=[0, 1, 1] * 10, **columns) for title in ("main", "again"))
    assert drop_of(again, main, "AUROC") == DOUBT
    assert drop_of(again, main, "AUROC[night]") == DOUBT
    assert drop_of(main, main, "AUROC[night]") == "pass"  # the same report


def test_equal_decisions_are_not_equal_inputs():
    same = [
        loss_report(title, np.arange(20) < 18, higher_is_better=True, decision=[0, 1] * 10, target=[0, 1] * 10)
        for title in ("main", "again")
    ]
    assert judged(same[1], "max-drop", 0.0, same[0])[0] == DOUBT
    assert judged(same[1], "max-drop", 0.1, same[0])[0] == DOUBT
    assert judged(same[1], "max-drop", 0.2, same[0])[0] == "pass"
    assert judged(same[1], "max-drop", 0.0, same[1])[0] == "pass"


@pytest.mark.parametrize(("n", "drop"), [(10, 0.05), (30, 0.02), (100, 0.01)])
def test_worse_models_with_equal_decisions_rarely_pass(n, drop):
    rng = np.random.default_rng(4)
    main = loss_report("main", np.ones(n, bool), higher_is_better=True, decision=np.ones(n, int))
    for _ in range(50):
        right = rng.random(n) >= drop
        new = loss_report("main", right, higher_is_better=True, decision=right.astype(int))
        assert judged(new, "max-drop", 0.0, main)[0] != "pass"


NUMBERS = st.floats(-100, 100) | st.sampled_from([0.0, 1.0, math.nan, math.inf, -math.inf])
TERMS = st.lists(NUMBERS, max_size=40) | st.lists(st.booleans(), max_size=40)
ENDS = st.none() | NUMBERS


@st.composite
def reports(draw: st.DrawFn) -> Report:
    """One metric, from samples or with a stored interval, plausible or not."""
    terms, weighted = draw(TERMS), draw(st.booleans())
    higher_is_better = draw(st.sampled_from([None, False]))
    if draw(st.booleans()) and terms:
        weights = np.array(draw(st.lists(st.floats(0, 10), min_size=len(terms), max_size=len(terms))))
        with np.errstate(all="ignore"):
            usable = weighted and np.isfinite(terms).all() and weights.sum() > 1e-3
            return loss_report("r", terms, higher_is_better=higher_is_better, weights=weights if usable else None)
    value, lower, upper = draw(NUMBERS), draw(ENDS), draw(ENDS)
    level, count = draw(st.sampled_from([None, 0.5, 0.95, 0.99])), draw(st.none() | st.integers(0, 100))
    return stored(value, lower, upper, level, count=count, higher_is_better=higher_is_better)


@settings(max_examples=300, deadline=None)
@given(reports(), reports(), st.sampled_from(["min", "max", "max-rise"]), NUMBERS.filter(math.isfinite))
@pytest.mark.exhaustive
def test_no_random_report_passes_against_its_own_value_or_by_too_few_samples(report, baseline, kind, bound):
    (check,) = gate(report, {kind: {"loss": bound}}, baseline).checks
    (value,) = report.sections[0].values
    if check.outcome != "pass":
        return
    number = value.value - (baseline.sections[0].values[0].value if kind == "max-rise" else 0.0)
    assert number >= bound if kind == "min" else number <= bound
    assert check.lower is not None
    assert check.upper is not None
    assert check.lower <= number + 1e-4 * abs(number)
    assert check.upper >= number - 1e-4 * abs(number)
    samples = report.sections[0].samples
    if samples is not None and "equal" not in check.method and "Pearson" not in check.method:
        is_share = "McNemar" in check.method or "Newcombe" in check.method
        assert is_share or len(samples) >= FEWEST


def test_a_pattern_of_many_stars_takes_no_time():
    report = Report("r", [Section("test", [], slices=[Slice("a" * 5000, 50, [Value("loss", 0.5)])])])
    (check,) = gate(report, {"min": {f"loss[{'*a' * 2000}b]": 0.1}}).checks
    assert check.outcome == "fail"
    with pytest.raises(ConfigError, match="min_slice_size: got -1"):
        gate(report, {"min": {"loss[*]": 0.1}}, min_slice_size=-1)


def resampled(lost: int) -> Report:
    """1,000 samples in 128 groups, of which so many lost one sample each."""
    draws, moves = poisson_draws(400, 128, seed=0), np.zeros(128)
    moves[:lost] = -1 / 1000
    replicates = PackedArray.of((draws @ moves * 128 / draws.sum(1) - moves.sum()).astype(np.float32))
    value = Value("m", 0.9 + moves.sum(), replicates=replicates, count=1000, higher_is_better=True)
    resampling = Resampling(0, 128, 128, 1000, "made up", "made up")
    return Report("run", [Section("test", [value], resampling=resampling)])


def biased(report: Report, **fields: object) -> Report:
    """The same value, of which few samples give higher ones."""
    (section,) = report.sections
    value = replace(section.values[0], biased_upwards=True, **fields)
    return Report(report.title, [replace(section, values=[value])])


def test_a_gate_moves_both_ends_of_differences_of_values_that_are_biased_upwards():
    """The worse detector gains more by few images, so a drop comes out too small; docs/coverage.md has how often."""
    main, new = resampled(0), resampled(60)
    (plain,) = gate(new, {"max-drop": {"m": 0.1}}, main).checks
    (moved,) = gate(biased(new), {"max-drop": {"m": 0.1}}, biased(main)).checks
    apart = new.sections[0].values[0].replicates.values - main.sections[0].values[0].replicates.values
    error = np.std(apart, ddof=1) * np.sqrt(128 / 127)
    assert (moved.lower, moved.upper) == pytest.approx((plain.lower - error, plain.upper + error))
    assert "few samples give higher values" in moved.reason
    (first,), (second,) = (compare(*each).deltas for each in ((main, new), (biased(main), biased(new))))
    assert (first.lower, first.upper, first.p) == (second.lower, second.upper, second.p)
    assert (BIASED in second.note, BIASED in first.note) == (True, False)


def test_a_gate_moves_the_ends_of_unpaired_values_by_the_error_of_each():
    """Those of the run make the difference too large, those of the baseline too small."""
    of = {"lower": 0.7, "upper": 0.9, "confidence_level": 0.95, "replicates": None}
    main, new = biased(resampled(0), **of), biased(resampled(0), **{**of, "lower": 0.8, "upper": 0.95})
    plain = [
        Report(each.title, [Section("test", [replace(each.sections[0].values[0], biased_upwards=False)])])
        for each in (main, new)
    ]
    (before,), (now,) = (gate(b, {"max-drop": {"m": 0.5}}, a).checks for a, b in (plain, (main, new)))
    z = 1.959964
    assert now.lower == pytest.approx(before.lower - 2 * 0.15 / (2 * z))
    assert now.upper == pytest.approx(before.upper + 2 * 0.2 / (2 * z))


def test_few_samples_that_make_the_difference_of_resampled_values_do_not_decide():
    """Of 10 lost samples that are expected, 5 or fewer are drawn in 7 %: Student's end passes them all."""
    (few,) = gate(resampled(5), {"max-drop": {"m": 0.01}}, resampled(0)).checks
    assert few.outcome == DOUBT
    assert -0.005 - 2 * np.sqrt(5) / 1000 > -0.01  # Student's end
    assert few.lower < -0.01
    (more,) = gate(resampled(5), {"max-drop": {"m": 0.03}}, resampled(0)).checks
    assert (more.outcome, "lower" in more.reason) == (DOUBT, True)
    (many,) = gate(resampled(60), {"max-drop": {"m": 0.1}}, resampled(0)).checks
    assert many.outcome == "pass"
