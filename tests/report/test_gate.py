"""The gate: pass, fail and not enough evidence, and that whatever is in doubt never passes."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from rich.console import Console

from assay.errors import ConfigError
from assay.render.terminal import show
from assay.report import Gate, GateRule, Report, Samples, Section, Slice, Value, gate
from assay.report.gating.gate_result import EXIT_CODES, KINDS
from assay.report.gating.gate_view import condition
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.tests_and_intervals import interval_of
from assay.stats.hypothesis_tests import mcnemar
from assay.stats.intervals import clopper_pearson
from assay.stats.paired_shares import paired_proportions


def run(
    right: int,
    n: int,
    *,
    name: str = "accuracy",
    section: str = "test",
    title: str = "run",
    higher_is_better: bool | None = True,
) -> Report:
    """The first ``right`` of ``n`` samples are right."""
    correct = np.arange(n) < right
    samples = Samples.pack(range(n), {"correct": correct}, data="made up")
    value = Value(name, right / n, numerator="correct", higher_is_better=higher_is_better)
    return Report(title, [Section(section, [value], samples=samples)])


def stored(
    value: float, lower: float | None, upper: float | None, level: float | None = 0.95, name: str = "m"
) -> Report:
    return Report("stored", [Section("test", [Value(name, value, lower, upper, confidence_level=level)])])


def outcome(report: Report, kind: str, bound: float, baseline: Report | None = None, **more: object) -> str:
    metric = report.sections[0].values[0].name
    return gate(report, {kind: {metric: bound}}, baseline, **more).outcome


@pytest.mark.parametrize(
    ("kind", "bound", "expected"),
    [
        ("min", 0.90, "pass"),
        ("min", 0.92, "pass"),
        ("min", 0.93, "not enough evidence"),
        ("min", 0.96, "not enough evidence"),
        ("min", 0.97, "fail"),
        ("max", 0.97, "pass"),
        ("max", 0.96, "pass"),
        ("max", 0.93, "not enough evidence"),
        ("max", 0.92, "not enough evidence"),
        ("max", 0.91, "fail"),
    ],
)
def test_the_whole_interval_must_be_within_the_bound(kind, bound, expected):
    found = gate(stored(0.94, 0.92, 0.96), {kind: {"m": bound}})
    assert found.outcome == expected
    assert found.exit_code == EXIT_CODES[expected]


@pytest.mark.parametrize(
    ("kind", "bound", "expected"),
    [("min", 0.94, "pass"), ("min", 0.95, "fail"), ("max", 0.95, "pass"), ("max", 0.93, "fail")],
)
def test_by_the_number_alone(kind, bound, expected):
    assert outcome(stored(0.94, None, None), kind, bound, point=True) == expected


def test_intervals_come_from_the_samples():
    (check,) = gate(run(450, 500), {"min": {"accuracy": 0.85}}, confidence_level=0.9).checks
    assert (check.lower, check.upper) == pytest.approx(clopper_pearson(450, 500, 0.9))
    assert check.outcome == "pass"
    assert outcome(run(9, 10), "min", 0.85) == "not enough evidence"


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (
            stored(0.94, None, None),
            "no interval: neither samples nor an interval are stored; judge by the number",
        ),
        (stored(0.94, 0.93, 0.95, None), "no interval: the level of the stored interval is not known"),
        (stored(0.94, 0.93, 0.95, 0.8), "no interval: the stored interval is of confidence level 0.8, not 0.95"),
        (stored(0.94, math.nan, 0.95), "no interval: the stored interval is undefined"),
    ],
)
def test_without_an_interval_there_is_not_enough_evidence(report, reason):
    (check,) = gate(report, {"min": {"m": 0.1}}).checks
    assert check.outcome == "not enough evidence"
    assert check.reason.startswith(reason)


def test_a_wider_stored_interval_will_do():
    assert outcome(stored(0.94, 0.92, 0.96, 0.99), "min", 0.9) == "pass"


def test_a_perfect_recall_has_the_interval_of_a_share():
    positive = np.arange(300) < 100
    samples = Samples.pack(range(300), {"hit": positive, "positive": positive})
    report = Report(
        "r", [Section("s", [Value("recall", 1.0, numerator="hit", denominator="positive")], samples=samples)]
    )
    (check,) = gate(report, {"min": {"recall": 0.95}}).checks
    assert (check.lower, check.upper) == clopper_pearson(100, 100)
    assert check.outcome == "pass"
    assert gate(report, {"min": {"recall": 0.97}}).outcome == "not enough evidence"


def test_samples_that_are_all_the_same_say_nothing_of_others():
    samples = Samples.pack(range(3), {"loss": [0.0, 0.0, 0.0]})
    report = Report("r", [Section("s", [Value("loss", 0.0, numerator="loss")], samples=samples)])
    (check,) = gate(report, {"max": {"loss": 0.5}}).checks
    assert (check.outcome, check.reason[:46]) == (
        "not enough evidence",
        "no interval: all samples contribute the same, ",
    )


@pytest.mark.parametrize("point", [False, True])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind", ["min", "max"])
def test_what_is_not_finite_fails(kind, value, point):
    (check,) = gate(stored(value, 0.0, 1.0), {kind: {"m": 0.5}}, point=point).checks
    assert (check.outcome, check.reason) == ("fail", "undefined or infinite")


@pytest.mark.parametrize("point", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_metric_fails(kind, point):
    found = gate(run(9, 10), {kind: {"f1": 0.5}}, run(9, 10), point=point)
    assert found.exit_code == 1
    reason = "missing: the report has no slices" if kind.startswith("worst") else "missing: there is test/accuracy"
    assert found.checks[0].reason == reason


@pytest.mark.parametrize("point", [False, True])
@pytest.mark.parametrize(
    ("baseline", "reason"),
    [
        (None, "no baseline was given"),
        (run(9, 10, name="f1"), "in the baseline: missing"),
        (run(9, 10, section="dev"), "in the baseline: missing"),
        (
            Report("b", [Section("test", [Value("accuracy", 0.9), Value("accuracy", 0.8)])]),
            "in the baseline: 2 metrics of this name",
        ),
        (
            Report("b", [Section("test", [Value("accuracy", 0.9, higher_is_better=False)])]),
            "the baseline has another metric of this name: lower values are better in one, higher values in the other",
        ),
        (Report("b", [Section("test", [Value("accuracy", math.nan)])]), "undefined or infinite"),
    ],
)
def test_a_baseline_that_does_not_serve_fails(baseline, reason, point):
    (check,) = gate(run(9, 10), {"max-drop": {"accuracy": 1.0}}, baseline, point=point).checks
    assert (check.outcome, check.reason) == ("fail", reason)


def test_drops_and_rises_are_paired_with_the_baseline():
    baseline, new = run(450, 500, title="main", higher_is_better=None), run(440, 500, higher_is_better=None)
    lower, upper = paired_proportions(10, 0, 500)
    (check,) = gate(new, {"max-drop": {"accuracy": 0.05}}, baseline).checks
    assert (check.value, check.lower, check.upper) == pytest.approx((-0.02, lower, upper))
    assert mcnemar(10, 0) < 0.01
    for bound, expected in [(0.05, "pass"), (-lower, "pass"), (0.02, "not enough evidence"), (0.001, "fail")]:
        assert outcome(new, "max-drop", bound, baseline) == expected
        assert outcome(baseline, "max-rise", bound, new) == expected
    assert outcome(new, "max-drop", 0.02, baseline, point=True) == "fail"  # 0.88 - 0.9 is a little less than -0.02
    assert outcome(new, "max-drop", 0.021, baseline, point=True) == "pass"
    assert outcome(new, "max-rise", 0.0, baseline) == "pass"
    assert outcome(new, "max-drop", -0.01, baseline) == "fail"  # that is: it must rise


def test_the_same_run_passes_where_there_are_samples_enough():
    assert outcome(run(450, 500), "max-drop", 0.01, run(450, 500, title="main")) == "pass"
    assert outcome(run(9, 10), "max-drop", 0.01, run(9, 10, title="main")) == "not enough evidence"


def test_drops_that_cannot_be_paired_say_so():
    (check,) = gate(run(440, 500), {"max-drop": {"accuracy": 0.2}}, run(450, 501)).checks
    assert check.outcome == "pass"
    assert check.reason == "not paired: 1 sample is in the first only, 0 in the second only"


def sliced(*counts: tuple[int, int], name: str = "accuracy") -> Report:
    """Slices of so many right among so many samples."""
    flags = np.concatenate([np.arange(n) < k for k, n in counts])
    belongs = np.repeat(np.arange(len(counts)), [n for _, n in counts])
    slices = [
        Slice.of(f"part {i}", [Value(name, k / n, numerator="correct")], belongs == i)
        for i, (k, n) in enumerate(counts)
    ]
    samples = Samples.pack(range(len(flags)), {"correct": flags})
    return Report(
        "r", [Section("test", [Value(name, float(flags.mean()), numerator="correct")], samples=samples, slices=slices)]
    )


def test_the_worst_slice_is_judged_and_named():
    report = sliced((190, 200), (80, 100), (170, 200), (2, 3))
    rule = {"worst-slice": {"accuracy": 0.7}}
    (check,) = gate(report, rule, min_slice_size=10).checks
    assert check.outcome == "pass"
    assert check.where == "test/accuracy in 'part 1' (n = 100)"
    assert check.reason == "3 of 3 slices: pass, this is the worst; 1 too small"
    assert (check.lower, check.upper) == pytest.approx(clopper_pearson(80, 100))
    (check,) = gate(report, rule).checks
    assert (check.outcome, check.where) == ("not enough evidence", "test/accuracy in 'part 3' (n = 3)")
    (check,) = gate(report, {"worst-slice": {"accuracy": 0.9}}).checks
    assert (check.outcome, check.where) == (
        "fail",
        "test/accuracy in 'part 1' (n = 100)",
    )  # part 3 is lower, in doubt
    assert check.reason == "2 of 4 slices: fail, this is the worst"
    (check,) = gate(report, {"worst-slice-max": {"accuracy": 0.9}}, min_slice_size=10).checks
    assert (check.outcome, check.where) == ("fail", "test/accuracy in 'part 0' (n = 200)")


def test_slices_that_do_not_serve_fail():
    report = sliced((190, 200), (2, 4))
    assert outcome(run(9, 10), "worst-slice", 0.1) == "fail"
    (check,) = gate(report, {"worst-slice": {"accuracy": 0.1}}, min_slice_size=1000).checks
    assert (check.outcome, check.reason) == ("fail", "none of 2 slices has 1000 samples")
    section = report.sections[0]
    for other, reason in (
        (Slice("empty", 5), "missing"),
        (Slice("nan", 5, [Value("accuracy", math.nan)]), "undefined or infinite"),
    ):
        with_gap = Report("r", [dataclasses.replace(section, slices=(*section.slices, other))])
        for point in (False, True):
            (check,) = gate(with_gap, {"worst-slice": {"accuracy": 0.1}}, point=point).checks
            assert check.outcome == "fail"
            assert check.reason.startswith(f"{reason}; 1 of 3 slices: fail")


def of_languages(title: str, min_slice_size: int = 1, **counts: tuple[int, int]) -> Report:
    """Slices ``language = xx`` of so many right among so many samples."""
    report = sliced(*counts.values())
    section = report.sections[0]
    slices = [
        dataclasses.replace(part, name=f"language = {name}") for name, part in zip(counts, section.slices, strict=True)
    ]
    return Report(title, [dataclasses.replace(section, slices=tuple(slices), min_slice_size=min_slice_size)])


@pytest.mark.parametrize(
    ("kind", "metric", "bound", "expected", "said"),
    [
        ("min", "accuracy[language = de]", 0.7, "pass", "test/accuracy in 'language = de' (n = 100) ≥ 0.7"),
        ("min", "test/accuracy [language = de]", 0.9, "fail", "(n = 100) ≥ 0.9"),
        ("max", "accuracy[language = de]", 0.9, "pass", "(n = 100) ≤ 0.9"),
        ("min", "accuracy[language = xx]", 0.9, "not enough evidence", "'language = xx' (n = 3)"),  # small, but named
        ("min", "accuracy[*]", 0.7, "pass", "'language = de' (n = 100)"),
        ("min", "accuracy[language = *]", 0.9, "fail", "'language = de' (n = 100)"),
        ("worst-slice", "accuracy[*e*]", 0.7, "pass", "'language = de' (n = 100)"),
        ("worst-slice", "accuracy", 0.7, "pass", "'language = de' (n = 100)"),
        ("min", "accuracy[language = fr]", 0.1, "fail", "missing: no slice 'language = fr'; there is 'language = en',"),
        ("min", "accuracy[region = *]", 0.1, "fail", "missing: no slice 'region = *'"),
        ("min", "f1[language = de]", 0.1, "fail", "in slices: missing: there is test/accuracy"),
        ("min", "accuracy[language = x*]", 0.1, "fail", "none of 1 slices has 20 samples"),
        ("min", "accuracy[]", 0.1, "fail", "missing"),
    ],
)
def test_a_rule_may_name_slices(kind, metric, bound, expected, said):
    report = of_languages("r", 20, en=(190, 200), de=(80, 100), xx=(2, 3))
    found = gate(report, {kind: {metric: bound}})
    assert found.outcome == expected
    assert said in f"{condition(found.checks[0])}; {found.checks[0].reason}"


def test_the_name_of_a_metric_may_hold_brackets():
    report = stored(0.94, 0.92, 0.96, name="top [5]")
    assert gate(report, {"min": {"top [5]": 0.9}}).outcome == "pass"


def test_a_drop_in_a_slice_is_paired_with_the_baseline():
    before = of_languages("main", en=(190, 200), de=(90, 100))
    after = of_languages("new", en=(195, 200), de=(80, 100))
    (check,) = gate(after, {"max-drop": {"accuracy[language = de]": 0.05}}, before).checks
    assert (check.outcome, check.value) == ("not enough evidence", pytest.approx(-0.1))
    assert (check.lower, check.upper) == pytest.approx(paired_proportions(10, 0, 100))
    (check,) = gate(after, {"max-drop": {"accuracy[*]": 0.05}}, before).checks
    assert check.where == "test/accuracy in 'language = de' (n = 100)"
    assert gate(after, {"max-drop": {"accuracy[*]": 0.2}}, before).outcome == "pass"
    assert (
        gate(after, {"max-rise": {"accuracy[*]": 0.01}}, before, point=True)
        .checks[0]
        .where.startswith("test/accuracy in 'language = en'")
    )


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ({"en": (195, 200), "fr": (90, 100)}, "in the baseline: no such slice; 2 of 3 slices: fail, this is the worst"),
        ({"en": (195, 200)}, "missing: the baseline has it; 1 of 2 slices: fail, this is the worst"),
    ],
)
def test_a_slice_that_came_or_went_fails(after, reason):
    before = of_languages("main", en=(190, 200), de=(90, 100))
    for point in (False, True):
        (check,) = gate(of_languages("new", **after), {"max-drop": {"accuracy[*]": 0.9}}, before, point=point).checks
        assert (check.outcome, check.reason) == ("fail", reason)
    without = gate(before, {"max-drop": {"accuracy[*]": 0.9}}).checks[0]
    assert without.reason.startswith("no baseline was given")


def test_names_are_found_with_or_without_their_section():
    two = Report("r", [*run(9, 10).sections, *run(8, 10, section="dev").sections])
    (check,) = gate(two, {"min": {"accuracy": 0.0}}).checks
    assert (check.outcome, check.reason) == ("fail", "ambiguous: name one of test/accuracy, dev/accuracy")
    (check,) = gate(two, {"min": {"dev/accuracy": 0.1}}).checks
    assert (check.where, check.value, check.outcome) == ("dev/accuracy", 0.8, "pass")
    assert outcome(run(9, 10, name="Accuracy"), "min", 0.1) == "pass"
    assert gate(run(9, 10, name="Accuracy"), {"min": {"ACCURACY": 0.1}}).outcome == "pass"
    both = Report("r", [Section("s", [Value("f1", 1.0), Value("F1", 0.0)])])
    assert gate(both, {"min": {"f1": 0.5}}, point=True).outcome == "pass"
    assert "ambiguous" in gate(both, {"min": {"S/f1": 0.5}}, point=True).checks[0].reason
    twice = Report("r", [Section("s", [Value("f1", 1.0), Value("f1", 1.0)])])
    assert gate(twice, {"min": {"f1": 0.5}}, point=True).checks[0].reason == "2 metrics of this name"


def test_one_failure_is_a_failure_and_one_doubt_is_a_doubt():
    report = stored(0.94, 0.92, 0.96)
    bounds = {"pass": 0.9, "not enough evidence": 0.94, "fail": 0.99}
    for outcomes in itertools.product(bounds, repeat=3):
        rules = [GateRule("min", "m", bounds[each]) for each in outcomes]
        found = gate(report, rules)
        assert [check.outcome for check in found.checks] == list(outcomes)
        assert found.outcome == next(each for each in ("fail", "not enough evidence", "pass") if each in outcomes)


@pytest.mark.exhaustive
def test_no_evidence_at_the_bound_is_rarely_a_pass():
    rng = np.random.default_rng(0)
    passed = sum(outcome(run(int(k), 200), "min", 0.9) == "pass" for k in rng.binomial(200, 0.899, 400))
    assert 0 < passed < 25  # 2.5 per cent of 400, and what chance allows


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gate(run(1, 2), {}), "gate: got no rule, expected one or more of min, max"),
        (lambda: gate(run(1, 2), {"least": {"x": 1}}), "GateRule.kind: got 'least', expected one of min, max"),
        (lambda: gate(run(1, 2), {"min": 0.9}), "min: got 0.9, expected metrics and their bounds"),
        (lambda: gate(run(1, 2), {"min": {"x": math.nan}}), "min x: got nan, expected a finite number"),
        (
            lambda: gate(run(1, 2), {"min": {"x": 1}}, confidence_level=1),
            "confidence_level: got 1, expected a number between 0 and 1",
        ),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


def test_the_stored_form():
    found = gate(run(440, 500), {"min": {"accuracy": 0.85}, "max-drop": {"accuracy": 0.0}}, run(450, 500, title="main"))
    data = json.loads(found.to_json())
    assert data["schema"] == "assay.gate/2"
    assert (data["outcome"], data["baseline"], data["point"]) == ("fail", "main", False)
    assert data["checks"][0]["rule"] == {"kind": "min", "metric": "accuracy", "bound": 0.85}
    del data["schema"], data["digest"]
    assert Gate.from_data(data, "gate") == found


def test_it_is_shown(capsys):
    found = gate(run(450, 500), {"min": {"accuracy": 0.5}, "max": {"f1": 1}, "max-drop": {"accuracy": 0.2}})
    show(found.to_document(), Console(width=150))
    _, title, _, *lines = (line.strip() for line in capsys.readouterr().out.splitlines())
    assert title == "run: fail"
    assert lines[0].startswith("pass  test/accuracy ≥ 0.5")
    assert "0.9000  [0.8703, 0.9249]; Clopper-Pearson interval" in lines[0]
    assert lines[1].startswith("FAIL  f1 ≤ 1")
    assert "missing: there is test/accuracy" in lines[1]
    assert lines[2].startswith("FAIL  test/accuracy drops by ≤ 0.2")
    assert lines[3] == "fail: 3 rules, by intervals of 95 %; exit code 1"
    markdown = found.to_markdown()
    assert "### run: fail" in markdown
    assert "| 🟢 pass | test/accuracy ≥ 0.5 | **0.9000** |" in markdown
    assert all(line.count("|") == 5 for line in markdown.splitlines() if line.startswith("|"))
    assert [condition(check) for check in found.checks][2] == "test/accuracy drops by ≤ 0.2"


def test_intervals_of_numbers_and_quotients():
    rng = np.random.default_rng(0)
    loss, weight = rng.exponential(1, 300), rng.integers(1, 4, 300)
    samples = Samples.pack(range(300), {"loss": loss, "weighted": loss * weight, "weight": weight})
    mean = interval_of(MeasuredValue(Value("loss", loss.mean(), numerator="loss"), samples), 0.95)
    assert mean.method.startswith("Student's interval")
    assert mean.lower < loss.mean() < mean.upper
    quotient = float((loss * weight).sum() / weight.sum())
    weighted = interval_of(
        MeasuredValue(Value("loss", quotient, numerator="weighted", denominator="weight"), samples), 0.95
    )
    drawn = rng.integers(300, size=(20_000, 300))
    means = (loss * weight)[drawn].sum(1) / weight[drawn].sum(1)
    assert (weighted.lower, weighted.upper) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.03)
