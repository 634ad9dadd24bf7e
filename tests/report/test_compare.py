"""Comparing reports: what is paired, what is not and says so, what is refused, and how it is shown."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy import stats

from assay._records import seal
from assay.errors import ConfigError, StateError
from assay.report import Comparison, Report, Samples, Section, Value, compare
from assay.report.comparing.compare import short_names
from assay.report.inference.evidence import MEAN
from assay.stats.hypothesis_tests import mcnemar, two_proportions
from assay.stats.paired_shares import paired_proportions
from report.runs import column, run


def test_yes_or_no_is_paired_by_mcnemar():
    a, b = run("a", share=0.7), run("b", seed=1, share=0.85)
    delta = compare(a, b, correction="none").delta("accuracy")
    down, up = (
        int(x.sum())
        for x in (column(a, "correct") & ~column(b, "correct"), ~column(a, "correct") & column(b, "correct"))
    )
    below = stats.binom.cdf(min(up, down) - 1, up + down, 0.5)
    assert delta.p == pytest.approx(2 * below + stats.binom.pmf(min(up, down), up + down, 0.5))
    assert delta.corrected == delta.p
    assert delta.difference == pytest.approx((up - down) / 200)
    assert delta.lower < delta.difference < delta.upper
    assert (delta.effect, delta.scale) == (pytest.approx(up / down), "odds ratio")
    assert (delta.paired, delta.counts, delta.note) == (True, (200, 200), "")
    assert delta.verdict == "better"


def test_a_loss_is_paired_by_sign_flips():
    a, b = run("a"), run("b", shift=0.05)  # the same losses, all a little higher, but for the last ones
    loss = column(b, "loss").copy()
    loss[-50:] -= 0.1
    other = dataclasses.replace(b.sections[0].values[1], value=float(loss.mean()))
    samples = Samples.pack(range(200), {"correct": column(b, "correct"), "loss": loss})
    b = Report("b", [Section("test", (b.sections[0].values[0], other), samples=samples)])
    delta = compare(a, b).delta("loss")
    assert delta.p < 0.001  # an unpaired test sees nothing of it
    assert stats.ttest_ind(column(a, "loss"), loss, equal_var=False).pvalue > 0.5
    expected = stats.ttest_1samp(loss - column(a, "loss"), 0).confidence_interval()
    assert (delta.lower, delta.upper) == pytest.approx(tuple(expected), abs=0.005)
    assert (delta.verdict, delta.method) == ("worse", f"sign flips, {MEAN}")
    assert delta.note == "paired by ids alone: no targets, no name of the data"


def test_the_order_of_samples_does_not_matter():
    a, b = run("a"), run("b", seed=1)
    mixed = run("b", seed=1, order=np.random.default_rng(2).permutation(200))
    found = [compare(a, each) for each in (b, mixed)]
    for name in ("accuracy", "loss"):
        one, two = (each.delta(name) for each in found)
        assert two.difference == pytest.approx(one.difference)
        assert two.p == pytest.approx(one.p)
        assert (two.lower, two.upper) == pytest.approx((one.lower, one.upper))
    assert found[0].flips == found[1].flips


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (run("b", n=150, seed=1), "50 samples are in the first only, 0 in the second only"),
        (run("b", seed=1, data="v2"), "other data: 'v1' and 'v2'"),
    ],
)
def test_what_cannot_be_paired_is_compared_unpaired_and_says_so(other, why):
    a = run("a", data="v1")
    found = compare(a, other)
    accuracy, loss = found.delta("accuracy"), found.delta("loss")
    for delta in (accuracy, loss):
        assert not delta.paired
        assert delta.note == f"not paired: {why}"
    counts = [(int(column(r, "correct").sum()), len(column(r, "correct"))) for r in (a, other)]
    table = [[yes, n - yes] for yes, n in counts]
    assert accuracy.p == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue)
    assert accuracy.scale == "Cohen's h"
    assert loss.p == pytest.approx(stats.ttest_ind(column(a, "loss"), column(other, "loss"), equal_var=False).pvalue)
    assert not found.flips


def test_other_targets_under_the_same_ids_are_other_data():
    a, b = run("a"), run("b", seed=1)
    section = b.sections[0]
    target = section.samples.target.values.copy()
    target[17] += 1
    columns = {c.name: c.values.values for c in section.samples.columns}
    samples = Samples.pack(range(200), columns, target=target)
    b = Report("b", [dataclasses.replace(section, samples=samples)])
    assert compare(a, b).delta("accuracy").note == "not paired: 1 sample has another target, the first is 17"


def test_without_samples_the_stored_intervals_are_compared():
    delta = compare(run("a"), run("b", shift=1.0)).delta("AUROC")
    error = math.sqrt(2) * 0.1 / 2 / stats.norm.ppf(0.975)
    assert delta.p == pytest.approx(2 * stats.norm.sf(0.1 / error))
    assert (delta.lower, delta.upper) == pytest.approx((0.1 - 1.959964 * error, 0.1 + 1.959964 * error), abs=1e-6)
    assert delta.method == "z test of two intervals"
    assert delta.note.startswith("not paired: the baseline and the run have no replicates")


def test_without_anything_nothing_is_said():
    a, b = (Report(t, [Section("s", [Value("F1", v), Value("R2", math.nan)])]) for t, v in (("a", 0.5), ("b", 0.6)))
    found = compare(a, b)
    assert found.delta("F1").verdict == found.delta("R2").verdict == "cannot say"
    assert found.delta("F1").note == "not tested: neither samples nor an interval of a known level (the baseline)"
    assert found.delta("R2").note == "undefined or infinite on one side"
    assert (found.delta("F1").p, found.family()) == (None, 0)


def recalls(*shares: float, n: int = 400) -> list[Report]:
    """Runs with such shares of the same positives found."""
    rng = np.random.default_rng(0)
    positive = rng.random(n) < 0.3
    reports = []
    for i, share in enumerate(shares):
        hit = positive & (rng.random(n) < share)
        recall = Value(
            "recall", hit.sum() / positive.sum(), numerator="hit", denominator="positive", higher_is_better=True
        )
        samples = Samples.pack(range(n), {"hit": hit, "positive": positive}, data="made up")
        reports.append(Report(f"run {i}", [Section("s", [recall], samples=samples)]))
    return reports


def test_a_share_of_some_samples_is_compared_among_these():
    a, b = recalls(0.6, 0.9)
    delta = compare(a, b).delta("recall")
    first, second = column(a, "hit"), column(b, "hit")
    down, up = int((first & ~second).sum()), int((~first & second).sum())
    assert delta.p == pytest.approx(mcnemar(down, up))
    assert delta.counts == (int(column(a, "positive").sum()),) * 2
    assert (delta.lower, delta.upper) == paired_proportions(down, up, int(column(a, "positive").sum()))
    assert delta.verdict == "better"
    few = recalls(0.6, 0.9, n=300)[1]
    counts = (int(column(report, name).sum()) for report in (a, few) for name in ("hit", "positive"))
    apart = compare(a, few).delta("recall")
    assert (apart.p, (apart.lower, apart.upper)) == two_proportions(*counts)


def test_a_quotient_of_means_is_compared_sample_by_sample():
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 5, 400)
    terms, reports = [], []
    for title, scale in (("a", 1.0), ("b", 1.1)):
        loss = np.random.default_rng(1).exponential(scale, 400) + rng.normal(0, 0.1, 400)
        value = Value(
            "loss",
            (loss * weight).sum() / weight.sum(),
            numerator="weighted",
            denominator="weight",
            higher_is_better=False,
        )
        samples = Samples.pack(range(400), {"weighted": loss * weight, "weight": weight}, data="made up")
        reports.append(Report(title, [Section("s", [value], samples=samples)]))
        terms.append(loss * weight)
    delta = compare(*reports).delta("loss")
    drawn = rng.integers(400, size=(20_000, 400))
    apart = (terms[1] - terms[0])[drawn].sum(1) / weight[drawn].sum(1)
    assert (delta.lower, delta.upper) == pytest.approx(tuple(np.quantile(apart, [0.025, 0.975])), abs=0.008)
    assert (delta.verdict, delta.paired, delta.method) == ("worse", True, f"sign flips, {MEAN}")


def test_other_metrics_of_the_same_name_are_not_compared():
    a = Report(
        "a",
        [Section("s", [Value("loss", 0.5, higher_is_better=False), Value("x", 1.0), Value("x", 2.0), Value("y", 1)])],
    )
    b = Report(
        "b",
        [
            Section("s", [Value("loss", 0.6, higher_is_better=True), Value("x", 1.0), Value("z", 1)]),
            Section("t", [Value("y", 1)]),
        ],
    )
    found = compare(a, b)
    assert found.deltas == ()
    assert {(u.section, u.metric): u.why for u in found.unmatched} == {
        ("s", "loss"): "another metric of the same name: lower values are better in one, higher values in the other",
        ("s", "x"): "the baseline has 2 of this name, the run 1",
        ("s", "y"): "missing in the run",
        ("s", "z"): "missing in the baseline",
        ("t", "y"): "missing in the baseline",
    }


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (
            Value("m", 0.5, numerator="x"),
            Value("m", 0.5, numerator="flag"),
            "'x' is counted in one, 'flag' in the other",
        ),
        (
            Value("m", 0.5, numerator="x"),
            Value("m", 1.0, numerator="x", denominator="flag"),
            "'' is counted in one, 'flag' in the",
        ),
    ],
)
def test_metrics_of_other_columns_are_other_metrics(first, second, why):
    samples = Samples.pack(range(2), {"x": [0.25, 0.75], "flag": [True, False]})
    a, b = (Report(t, [Section("s", [v], samples=samples)]) for t, v in (("a", first), ("b", second)))
    (entry,) = compare(a, b).unmatched
    assert why in entry.why


def test_p_values_are_corrected_over_all_metrics_and_runs():
    found = compare(run("a"), run("b", seed=1), run("c", seed=2, share=0.95))
    assert found.family() == 6
    ps = [delta.p for delta in found.deltas]
    assert [delta.corrected for delta in found.deltas] == pytest.approx(
        [max(min(1, (6 - sorted(ps).index(q)) * q) for q in ps if q <= p) for p in ps]
    )
    assert [(d.run, d.metric) for d in found.deltas[:4]] == [
        ("b", "accuracy"),
        ("b", "loss"),
        ("b", "AUROC"),
        ("c", "accuracy"),
    ]
    assert compare(run("a"), run("b", seed=1), correction="bh").delta("loss").corrected <= found.deltas[1].corrected


def test_flips_are_counted_and_listed_by_id():
    a, b = run("a", share=0.7), run("b", seed=1, share=0.85)
    (flips,) = compare(a, b, flips=3).flips
    first, second = column(a, "correct"), column(b, "correct")
    assert (flips.up, flips.down) == (int((~first & second).sum()), int((first & ~second).sum()))
    assert (flips.yes, flips.no) == (int((first & second).sum()), int((~first & ~second).sum()))
    assert [row[0] for row in flips.downs] == np.flatnonzero(first & ~second)[:3].tolist()
    decisions = [r.sections[0].samples.decision.values for r in (a, b)]
    assert flips.changed == int((decisions[0] != decisions[1]).sum())
    for identity, target, before, now in flips.ups:
        assert (before, now) == (decisions[0][identity], decisions[1][identity])
        assert now == target
        assert before != target
    assert [name for name, _, _ in flips.groups()] == ["worse", "better"]
    lower = dataclasses.replace(flips, higher_is_better=False)
    assert [(name, count) for name, count, _ in lower.groups()] == [("worse", flips.up), ("better", flips.down)]
    unknown = dataclasses.replace(flips, higher_is_better=None)
    assert [name for name, _, _ in unknown.groups()] == ["from yes to no", "from no to yes"]


def test_a_run_against_itself_shows_no_difference():
    found = compare(run("a"), run("b"))
    for delta in found.deltas:
        assert delta.difference == 0
        assert delta.p == 1
        assert delta.verdict == "no evidence"
        assert (delta.lower, delta.upper, delta.method) == (0, 0, "equal inputs")


def test_samples_without_spread_or_with_infinities():
    def loss(title: str, *values: float) -> Report:
        mean = float(np.mean(values))
        samples = Samples.pack(range(len(values)), {"loss": values})
        return Report(title, [Section("s", [Value("loss", mean, numerator="loss")], samples=samples)])

    moved = compare(loss("a", 1.0, 2.0, 4.0), loss("b", 2.0, 3.0, 5.0)).delta("loss")
    assert (moved.lower, moved.upper, moved.p, moved.effect) == (None, None, 0.25, None)
    assert moved.note.startswith("all samples differ by the same")
    assert compare(loss("a", 1.0), loss("b", 2.0)).delta("loss").note.startswith("there are fewer than two samples")
    assert compare(loss("a", 1.0), loss("b", math.inf)).delta("loss").note == "undefined or infinite on one side"
    differs = compare(loss("a", *range(30)), loss("b", *range(9, 39))).delta("loss")
    assert differs.verdict == "differs"  # which is better is not known


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: compare(run("a"), run("b"), confidence_level=95),
            "confidence_level: got 95, expected a number between 0 and 1",
        ),
        (lambda: compare(run("a"), run("b"), correction="sidak"), "correction: got 'sidak', expected one of holm, bh"),
        (lambda: compare(run("a"), run("b"), names=["x"]), "names: got 1 names, expected 2, one for each report"),
        (
            lambda: compare(run("a"), run("b"), names=["x", "x"]),
            r"Comparison.runs: got \['x', 'x'\], expected a baseline",
        ),
        (
            lambda: compare(run("a"), run("b", section="dev")),
            r"the baseline: got 'test', expected one of the sections of 'b' \('dev'\). Give the sections that belong",
        ),
        (
            lambda: compare(run("a"), run("b")).delta("mAP"),
            "delta 'mAP': got 0 that fit, expected one of test/accuracy",
        ),
        (lambda: compare(run("a"), run("b"), run("c")).delta("loss"), "delta 'loss': got 2 that fit"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ConfigError, match=message):
        call()


def test_runs_are_named_by_their_titles_or_numbered():
    assert [r.name for r in compare(run("a"), run("b")).runs] == ["a", "b"]
    assert [r.name for r in compare(run("a"), run("a")).runs] == ["run 0", "run 1"]
    assert short_names(["x/a.json", "y/a.json"]) == ["x", "y"]
    assert short_names(["x/a/r.json", "x/b/r.json"]) == ["a", "b"]
    assert short_names(["a.json", "a.json"]) == ["a (0)", "a (1)"]
    assert short_names(["a.json", "x/a.json"]) == ["a", "x/a"]


def test_a_comparison_survives_json(tmp_path):
    found = compare(run("a"), run("b", seed=1, n=199), run("c", seed=2))
    assert Comparison.from_json(found.to_json()) == found
    assert Comparison.load(found.save(tmp_path / "c.json")) == found
    with pytest.raises(StateError, match=r"c.json: got JSON that ends or breaks at .* a whole comparison"):
        Comparison.from_json(found.to_json()[:-30], "c.json")
    with pytest.raises(StateError, match=r"'assay.comparison/6', expected schema 'assay.report/7'. Pass a report"):
        Report.from_json(found.to_json())
    with pytest.raises(StateError, match=r"Delta.verdict: got 'great', expected one of better, worse"):
        Comparison.from_json(json.dumps(seal(json.loads(found.to_json().replace('"no evidence"', '"great"')))))
    with pytest.raises(StateError, match=r"comparison: got digest '"):
        Comparison.from_json(found.to_json().replace('"no evidence"', '"better"'))
