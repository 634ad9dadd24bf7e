"""Comparisons of tables by a column of many values: which groups changed, and by what they are judged."""

import math

import numpy as np
import pytest
from scipy.stats import fisher_exact

from assay.errors import ConfigError
from assay.report import Comparison, Report, Samples, Section, Value, compare, compare_training_runs, gate
from assay.report.grouped import GroupedMetric, GroupedValues
from assay.report.per_sample.packed_array import PackedArray


def metric(hits, sizes, name="accuracy", **fields):
    hits, sizes = np.array(hits), np.array(sizes)
    value = int(hits.sum()) / int(sizes.sum())
    packed = PackedArray.of(hits / np.maximum(sizes, 1)), PackedArray.of(sizes)
    options = {"kind": "share", "confidence_level": 0.95, "higher_is_better": True, **fields}
    return GroupedMetric(name, value, *packed, **options)


def report(title, *metrics, names=None, column="user", **fields):
    names = [f"u{k}" for k in range(len(metrics[0].means))] if names is None else names
    table = GroupedValues(column, PackedArray.of(names), metrics[0].sizes, metrics)
    values = [Value(each.name, each.value, higher_is_better=each.higher_is_better) for each in metrics]
    return Report(title, [Section("test", values, by=[table], **fields)])


SIZES = [40] * 30
BEFORE = [30] * 30
AFTER = [3, 38, *[30] * 28]


@pytest.fixture(scope="module")
def compared():
    return compare(report("main", metric(BEFORE, SIZES)), report("new", metric(AFTER, SIZES)))


def test_the_groups_that_changed_are_counted_and_listed_the_surest_first(compared):
    (found,) = compared.groups
    assert (found.column, found.metric, found.groups, found.tested) == ("user", "accuracy", 30, 30)
    assert (found.worse, found.better) == (1, 0)
    assert [each.group for each in found.worst] == ["u0"]
    assert [each.group for each in found.best] == ["u1"]
    worst = found.worst[0]
    assert (worst.baseline, worst.value, worst.counts) == (0.75, 0.075, (40, 40))
    assert worst.lower < worst.difference < worst.upper < 0
    assert worst.p == pytest.approx(fisher_exact([[30, 10], [3, 37]]).pvalue, rel=0.2)  # sums both tails
    assert worst.corrected == pytest.approx(30 * worst.p)
    assert Comparison.from_json(compared.to_json()).groups == compared.groups


def test_a_correction_of_a_table_does_not_touch_other_tests(compared):
    assert compared.family() == 0  # values without intervals
    few = compare(report("main", metric(BEFORE, SIZES)), report("new", metric(AFTER, SIZES)), correction="none")
    assert few.groups[0].worst[0].corrected == few.groups[0].worst[0].p
    assert (few.groups[0].worse, few.groups[0].better) == (1, 1)
    two = metric(BEFORE, SIZES), metric(BEFORE, SIZES, "recall")
    new = metric(AFTER, SIZES), metric(BEFORE, SIZES, "recall")
    both = compare(report("main", *two), report("new", *new)).groups[0].worst[0]
    assert both.corrected == pytest.approx(60 * both.p)


def test_equal_groups_are_seldom_called_different():
    random = np.random.default_rng(0)
    sizes = random.integers(1, 60, 300)
    runs = [[random.binomial(sizes, 0.7) for _ in range(2)] for _ in range(60)]
    found = [compare(report("a", metric(a, sizes)), report("b", metric(b, sizes))).groups[0] for a, b in runs]
    assert sum(each.worse + each.better > 0 for each in found) <= 6  # 5 % of 60, and chance


def test_groups_are_matched_by_their_value():
    names = [f"u{k}" for k in range(30)]
    order = np.random.default_rng(0).permutation(30)
    mixed = report("new", metric(np.array(AFTER)[order], SIZES), names=[names[k] for k in order])
    (found,) = compare(report("main", metric(BEFORE, SIZES)), mixed).groups
    assert [each.group for each in found.worst] == ["u0"]
    fewer = report("new", metric(AFTER[1:], SIZES[1:]), names=[*names[2:], "other"])
    (found,) = compare(report("main", metric(BEFORE, SIZES)), fewer).groups
    assert (found.groups, found.missing, found.new) == (28, 2, 1)


@pytest.mark.parametrize("better", [True, False, None])
def test_which_side_is_worse_follows_from_the_metric(better):
    runs = [report(t, metric(hits, SIZES, higher_is_better=better)) for t, hits in (("a", BEFORE), ("b", AFTER))]
    found = compare(*runs)
    worst = [each.group for each in found.groups[0].worst]
    assert worst == (["u1"] if better is False else ["u0"])
    text = found.to_markdown()
    assert ("differs" in text) == (better is None)


def of_means(shift, names=30, n=20):
    means = np.linspace(1, 2, names)
    means[0] += shift
    sizes = np.full(names, n)
    spread = PackedArray.of(np.full(names, 0.5))
    of = PackedArray.of(means), PackedArray.of(sizes)
    return GroupedMetric("loss", float(means.mean()), *of, "mean", spread, 0.95, False)


def test_means_of_numbers_are_tested_from_12_samples_on():
    (found,) = compare(report("a", of_means(0)), report("b", of_means(3))).groups
    assert (found.worse, found.better, [each.group for each in found.worst]) == (1, 0, ["u0"])
    (found,) = compare(report("a", of_means(0, n=11)), report("b", of_means(3, n=11))).groups
    assert (found.tested, found.worst) == (0, ())


def test_what_is_not_compared_is_named():
    main = report("main", metric(BEFORE, SIZES), metric(BEFORE, SIZES, "f1", kind="ratio"))
    new = report("new", metric(AFTER, SIZES, confidence_level=None), metric(AFTER, SIZES, "f1", kind="ratio"))
    why = {each.metric: each.why for each in compare(main, new).unmatched}
    assert "clusters" in why["accuracy by user"]
    assert "quotient" in why["f1 by user"]
    other = report("new", metric(BEFORE, SIZES, "recall"), column="shop")
    why = {each.metric: each.why for each in compare(main, other).unmatched}
    assert why["by user"] == "missing in the run"
    assert why["by shop"] == "missing in the baseline"
    assert compare(main, new, slices=False).groups == ()


def test_samples_in_clusters_are_not_compared_group_by_group():
    def run(title):
        samples = Samples.pack(range(40), {"right": np.arange(40) % 3 > 0})
        return report(title, metric([13, 13], [20, 20]), samples=samples)

    found = compare(run("a"), run("b"), cluster=np.arange(40) // 4)
    assert found.groups == ()
    assert any(each.metric == "by user" for each in found.unmatched)


def test_training_runs_say_that_groups_are_not_compared():
    random = np.random.default_rng(0)

    def run(k):
        right = random.random(40) < 0.7
        samples = Samples.pack(range(40), {"right": right})
        value = Value("accuracy", float(right.mean()), numerator="right", higher_is_better=True)
        by = report("x", metric([13, 13], [20, 20])).sections[0].by
        return Report(f"seed {k}", [Section("test", [value], samples=samples, by=by)])

    found = compare_training_runs([run(0), run(1)], [run(2), run(3)])
    assert [each.metric for each in found.unmatched] == ["by user"]


def test_the_page_and_the_terminal_show_the_groups(compared):
    for text in (str(compared), compared.to_markdown(), compared.to_document().title + compared.to_json()):
        assert "u0" in text
    shown = str(compared).replace("\n  ", " ")
    assert "accuracy by user: 1 worse, 0 better of 30 groups" in shown
    assert "accuracy by user: 1 worse, 0 better of 30 groups." in shown.partition("test ─")[0], "above the tables"
    undirected = [
        report(title, metric(hits, SIZES, higher_is_better=None)) for title, hits in (("main", BEFORE), ("new", AFTER))
    ]
    assert "accuracy by user: 1 lower, 0 higher of 30 groups." in str(compare(*undirected)).partition("test ─")[0]
    same = compare(*[report(title, metric(BEFORE, SIZES)) for title in ("main", "new")])
    assert "by user:" not in str(same).partition("test ─")[0]


def check(rules, **options):
    (found,) = gate(report("main", metric(BEFORE, SIZES), of_means(0)), rules, **options).checks
    return found


def test_a_rule_over_groups_passes_where_each_of_them_is_within_its_exact_interval():
    found = check({"min": {"accuracy[user = *]": 0.5}})
    assert found.outcome == "pass"
    assert (found.lower, found.upper) == pytest.approx((0.5880, 0.8731), abs=1e-4)
    assert "30 of 30 groups" in found.reason
    assert check({"min": {"accuracy[user=*]": 0.6}}).outcome == "not enough evidence"
    assert check({"worst-slice": {"accuracy[user = u1*]": 0.5}}).reason.startswith("11 of 11 groups")
    assert check({"min": {"accuracy[user = u3]": 0.5}}).where == "test/accuracy in 'user = u3' (n = 40)"


def test_a_rule_over_groups_fails_by_an_interval_that_is_corrected_for_their_number():
    """30 of 40 are below 0.88 by their own interval, and not by one for 30 groups."""
    assert check({"min": {"accuracy[user = u3]": 0.88}}).outcome == "fail"
    assert check({"min": {"accuracy[user = *]": 0.88}}).outcome == "not enough evidence"
    assert check({"min": {"accuracy[user = *]": 0.97}}).outcome == "fail"


def test_bounds_from_above_are_mirrored():
    found = check({"max": {"accuracy[user = *]": 0.9}})
    assert found.outcome == "pass"
    assert found.lower < found.upper
    assert check({"max": {"accuracy[user = *]": 0.4}}).outcome == "fail"


def test_small_groups_are_left_out_unless_they_are_named():
    sizes = [40, 40, 5]
    whole = report("main", metric([35, 30, 1], sizes), min_slice_size=1)
    assert gate(whole, {"min": {"accuracy[user = *]": 0.5}}).outcome == "not enough evidence"
    (left,) = gate(whole, {"min": {"accuracy[user = *]": 0.5}}, min_slice_size=30).checks
    assert (left.outcome, "1 too small" in left.reason) == ("pass", True)
    assert gate(whole, {"min": {"accuracy[user = u2]": 0.8}}, min_slice_size=30).outcome == "fail"
    assert gate(whole, {"min": {"accuracy[user = *]": 0.5}}, min_slice_size=99).outcome == "fail"


def test_what_a_table_does_not_decide_is_not_passed():
    assert check({"max": {"loss[user = *]": 9}}).outcome == "not enough evidence"
    assert check({"max": {"loss[user = *]": 9}}, point=True).outcome == "pass"
    assert check({"min": {"accuracy[user = *]": 0.1}}, sequential=True).outcome == "not enough evidence"
    assert check({"max-drop": {"accuracy[user = *]": 0.5}}).outcome == "fail"
    assert check({"min": {"accuracy[user = nobody]": 0.1}}).outcome == "fail"
    assert check({"min": {"recall[user = *]": 0.1}}).outcome == "fail"
    assert (
        check({"min": {"accuracy[shop = *]": 0.1}}).reason
        == "missing: the report has no slices; its groups are by user"
    )
    with pytest.raises(ConfigError, match="worst-slice loss"):
        check({"worst-slice": {"loss[user = *]": 9}})


def test_a_rule_over_groups_that_does_not_hold_passes_in_few_cases():
    """One group of 20 is a hair below the bound, the others are far above: it is that one which decides."""
    random, passed = np.random.default_rng(1), 0
    for _ in range(400):
        hits = np.append(random.binomial(60, 0.97, 19), random.binomial(60, 0.8))
        rule = {"min": {"accuracy[user = *]": 0.8 + 1e-9}}
        passed += gate(report("x", metric(hits, [60] * 20)), rule).outcome == "pass"
    assert passed / 400 < 0.025 + 2 * math.sqrt(0.025 * 0.975 / 400)
