"""Comparisons and gates of samples in clusters."""

import math

import numpy as np
import pytest

from assay.errors import ConfigError
from assay.report import Report, Samples, Section, Slice, Value, compare, gate
from assay.report.inference.clusters import INDEPENDENT, with_clusters
from assay.stats.clusters import ClusteredMean
from assay.stats.hypothesis_tests import sign_flip

CODES = np.repeat(np.arange(20), 6)


def run(title, values, codes=CODES, *, name="x", ids=None, cluster="passage", slices=()):
    ids = [f"{code}/{k}" for k, code in enumerate(CODES[: len(values)])] if ids is None else ids
    samples = Samples.pack(ids, {name: values}, clusters=codes, cluster="" if codes is None else cluster)
    value = Value(name, float(np.mean(values)), numerator=name, higher_is_better=True)
    return Report(title, [Section("test", [value], samples=samples, slices=slices)])


def drawn(seed, right=False):
    random = np.random.default_rng(seed)
    values = random.standard_normal(20)[CODES] + 0.3 * random.standard_normal(120)
    return values > 0 if right else values


def test_numbers_of_clusters_are_compared_by_their_sums():
    a, b = drawn(1), drawn(2)
    delta = compare(run("a", a), run("b", b)).delta("x")
    sums = np.bincount(CODES, weights=b - a)
    assert delta.p == sign_flip(sums, 0)
    ends = ClusteredMean.of(sums, np.full(20, 6.0)).interval()
    assert (delta.lower, delta.upper) == pytest.approx(ends)
    plain = compare(run("a", a, None), run("b", b, None)).delta("x")
    assert delta.upper - delta.lower > 1.5 * (plain.upper - plain.lower)


@pytest.mark.parametrize("right", [False, True])
def test_clusters_of_one_report_and_those_that_ids_tell_are_the_same(right):
    a, b = drawn(3, right), drawn(4, right)
    whole = compare(run("a", a), run("b", b))
    by_one = compare(run("a", a), run("b", b, None))
    by_id = compare(run("a", a, None), run("b", b, None), cluster=r"^(\d+)/")
    for each in (by_one, by_id):
        assert (each.deltas[0].lower, each.deltas[0].p) == (whole.deltas[0].lower, whole.deltas[0].p)
    assert "120 samples in 20 clusters of passage" in whole.notes[0]
    assert compare(run("a", a, None), run("b", b, None)).notes == (INDEPENDENT,)


def test_a_shuffled_report_has_the_same_clusters():
    a, b = drawn(5, True), drawn(6, True)
    first = run("a", a)
    order = np.random.default_rng(0).permutation(120)
    ids = np.array(first.sections[0].samples.ids.values)[order].tolist()
    found = compare(first, run("b", b[order], CODES[order], ids=ids)).delta("x")
    assert found.p == compare(first, run("b", b)).delta("x").p


def test_other_clusters_in_the_two_are_refused():
    found = compare(run("a", drawn(1)), run("b", drawn(2), np.repeat(np.arange(40), 3))).delta("x")
    assert found.p is None
    assert "other clusters" in found.note


def test_below_six_clusters_nothing_is_said():
    codes = np.repeat(np.arange(5), 24)
    found = compare(run("a", drawn(1), codes), run("b", drawn(2), codes)).delta("x")
    assert (found.p, found.lower) == (None, None)
    assert "5 clusters of passage: fewer than 6" in found.note
    check = gate(run("b", drawn(2), codes), {"min": {"x": -9.0}}).checks[0]
    assert check.outcome == "not enough evidence"


def test_below_twelve_clusters_a_gate_does_not_decide():
    codes = np.repeat(np.arange(10), 12)
    check = gate(run("b", drawn(2, True), codes), {"min": {"x": 0.01}}).checks[0]
    assert (check.outcome, check.lower is None) == ("not enough evidence", False)


def test_equal_decisions_of_clusters_pass_no_narrow_gate():
    right = np.ones(120, bool)
    rules = {"max-drop": {"x": 0.05}, "min-ratio": {"x": 0.95}}
    outcomes = [check.outcome for check in gate(run("b", right), rules, run("a", right)).checks]
    assert outcomes == ["not enough evidence"] * 2
    plain = gate(run("b", right, None), rules, run("a", right, None))
    assert [check.outcome for check in plain.checks] == ["pass"] * 2


def test_slices_take_the_clusters_that_they_have():
    a, b, members = drawn(1, True), drawn(2, True), CODES < 12
    slices = [Slice.of("low", [Value("x", float(v[members].mean()), numerator="x")], members) for v in (a, b)]
    found = compare(run("a", a, slices=slices[:1]), run("b", b, slices=slices[1:])).delta("x", slice="low")
    apart = np.bincount(CODES[members], weights=b[members].astype(float) - a[members])
    assert found.p == sign_flip(apart, 0)
    assert "12 clusters of passage" in found.method


@pytest.mark.parametrize("right", [False, True])
def test_other_samples_of_the_same_clusters_are_compared_with_their_covariance(right):
    values = np.random.default_rng(0).standard_normal(20)[CODES] + 0.01 * np.random.default_rng(1).standard_normal(120)
    values = values > 0 if right else values
    even = np.arange(120) % 2 == 0
    parts = [run("part", values[some], CODES[some], ids=np.flatnonzero(some).tolist()) for some in (even, ~even)]
    found = compare(*parts).delta("x")
    assert not found.paired
    assert "Welch's test and interval of clusters" in found.method
    assert found.p > 0.2
    assert found.lower < 0 < found.upper


def test_clusters_that_come_later_take_the_intervals_of_other_values_away():
    value = Value("auc", 0.9, 0.8, 0.95, confidence_level=0.95)
    samples = Samples.pack(range(8), {})
    report = Report("run", [Section("test", [value], samples=samples)])
    check = gate(report, {"min": {"auc": 0.5}}, cluster=[0, 0, 1, 1, 2, 2, 3, 3]).checks[0]
    assert check.outcome == "not enough evidence"
    assert "evaluate with cluster=" in check.reason


@pytest.mark.parametrize(
    ("cluster", "part"),
    [
        ("^x", "'\\^x', which finds nothing in the id '0/0', expected one that finds the cluster in each id"),
        ("(", "a regular expression"),
        ([1, 2], "2 clusters"),
        ({"0/0": 1}, "None for the sample '0/1'"),
        (lambda name: math.nan, "nan for the sample '0/0'"),
        ([0] * 119 + [None], "None for the sample in place 119"),
        (np.where(np.arange(120) == 7, np.nan, 1.0), "nan for the sample in place 7"),
        ([np.datetime64("NaT")] * 120, "NaT for the sample in place 0"),
        (5, "5, expected a regular expression"),
    ],
)
def test_samples_without_a_cluster_are_refused(cluster, part):
    with pytest.raises(ConfigError, match=part.replace("(", r"\(")):
        with_clusters(run("a", drawn(1), None), cluster)


def test_clusters_stay_with_a_saved_report(tmp_path):
    report = run("a", drawn(1))
    report.save(tmp_path / "a.json")
    assert Report.load(tmp_path / "a.json").sections[0].samples.clusters.values.tolist() == CODES.tolist()
