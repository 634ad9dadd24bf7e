"""Comparing reports: what is paired, what is not and says so, what is refused, and how it is shown."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from io import StringIO

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from assay._records import seal
from assay.errors import ConfigError, StateError
from assay.render.document import GridCell
from assay.render.html import to_html, whisker
from assay.render.terminal import show
from assay.report import Comparison, Report, Samples, Section, Slice, Value, compare
from assay.report.comparing import short_names
from assay.report.inference import MEAN
from assay.stats.hypothesis_tests import mcnemar, two_proportions
from assay.stats.intervals import paired_proportions
from pages import Page

EVIL = "</script><script>alert('x')</script>\x1b[31m |*[red]"


def run(
    title: str,
    n: int = 200,
    seed: int = 0,
    *,
    share: float = 0.8,
    shift: float = 0.0,
    order: np.ndarray | None = None,
    target: bool = True,
    data: str = "",
    section: str = "test",
) -> Report:
    """A made-up run: yes or no with some share of yes, a loss, and a rank metric with an interval."""
    rng = np.random.default_rng(seed)
    truth = np.random.default_rng(99).integers(3, size=n)
    correct, loss = rng.random(n) < share, rng.exponential(1, n) + shift
    decision = np.where(correct, truth, (truth + 1) % 3)
    rows = np.arange(n) if order is None else order
    samples = Samples.pack(
        rows,
        {"correct": correct[rows], "loss": loss[rows]},
        decision=decision[rows],
        target=truth[rows] if target else None,
        data=data,
    )
    values = (
        Value("accuracy", correct[rows].mean(), numerator="correct", higher_is_better=True),
        Value("loss", loss[rows].mean(), numerator="loss", higher_is_better=False),
        Value(
            "AUROC",
            0.8 + shift / 10,
            0.75 + shift / 10,
            0.85 + shift / 10,
            confidence_level=0.95,
            higher_is_better=True,
        ),
    )
    return Report(title, [Section(section, values, samples=samples)])


def column(report: Report, name: str) -> np.ndarray:
    return report.sections[0].samples.column(name)


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
    assert delta.note.startswith("not paired: the value is not stored as a mean over samples; intervals taken")


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
    with pytest.raises(StateError, match=r"'assay.comparison/4', expected schema 'assay.report/6'. Pass a report"):
        Report.from_json(found.to_json())
    with pytest.raises(StateError, match=r"Delta.verdict: got 'great', expected one of better, worse"):
        Comparison.from_json(json.dumps(seal(json.loads(found.to_json().replace('"no evidence"', '"great"')))))
    with pytest.raises(StateError, match=r"comparison: got digest '"):
        Comparison.from_json(found.to_json().replace('"no evidence"', '"better"'))


@pytest.fixture
def shown() -> Comparison:
    return compare(
        run("a", share=0.6),
        run("b", seed=1, share=0.9),
        run("c", seed=2, n=150),
        flips=2,
        names=["old", "new", "small"],
    )


def test_the_terminal_shows_it(shown):
    text = shown.to_text(120)
    (flips,) = shown.flips
    for word in (
        "new, small against old",
        "Intervals of 95 %; p corrected by Holm for 6 tests; seed 0.",
        "test · new",
        "odds ratio",
        "better",
        "paired: McNemar mid-p, Bonett-Price interval; n = 200.",
        "unpaired: score test, Newcombe's interval; not paired: 50 samples are in the first only",
        f"{flips.down} worse, {flips.up} better,",
        f"better: the first 2 of {flips.up} by id",
    ):
        assert word in text, word
    assert max(map(len, shown.to_text(80).splitlines())) <= 80
    assert "odds ratio" not in shown.to_text(80)
    assert "evidence" in shown.to_text(80)
    file = StringIO()
    show(shown.to_document(), Console(file=file, width=120, force_terminal=True, color_system="truecolor", _environ={}))
    assert "\x1b[32mbetter" in file.getvalue()


def test_markdown_is_a_table_for_a_pull_request(shown):
    text = shown.to_markdown()
    delta = shown.delta("accuracy", run="new")
    assert "#### test · new\n\n| metric | | old | new | difference | interval | p | effect |" in text
    assert f"| **+{delta.difference:.4f}** |" in text
    assert "| accuracy | 🟢 better |" in text
    assert text.count("<details>") == text.count("</details>") == 1
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) in (5, 9) for row in rows)


def test_the_page_shows_it(shown):
    page = Page(to_html(shown.to_document()))
    assert len(page.all("svg")) == 6
    assert "new, small against old" in page.text
    assert "not paired: 50 samples are in the first only" in page.text
    assert next(a["class"] for a in page.all("td") if "verdict" in (a["class"] or "")) == "text verdict"
    loads = [a.get("src") or a.get("href") or "" for _, a in page.elements]
    assert all(load.startswith("#") for load in loads if load)
    ids = [a["id"] for _, a in page.elements if "id" in a]
    assert len(set(ids)) == len(ids)


def test_whiskers_need_a_finite_interval(shown):
    assert whisker(GridCell()) is None
    assert whisker(GridCell(span=(-math.inf, 1.0, 0.5))) is None
    assert whisker(GridCell(span=(0.0, 0.0, 0.0))) is None
    delta = shown.deltas[0]
    placed = whisker(GridCell(span=(delta.lower, delta.upper, delta.difference)))
    assert 50 < placed["x1"] < placed["x"] < placed["x2"] == 98


def test_hostile_words_stay_words():
    ids = [f"{EVIL}{i}" for i in range(20)]
    reports = []
    for title, flags in ((EVIL, [True] * 20), ("b" + EVIL, [False] * 20)):
        samples = Samples.pack(ids, {EVIL: flags}, decision=ids, target=ids)
        value = Value(EVIL, float(np.mean(flags)), numerator=EVIL)
        slices = [Slice.of(EVIL, [value], [True] * 20), Slice.of(f"of {title}", [value], [True] * 20)]
        values = [value, Value(f"only in {title}", 1)]
        reports.append(Report(title, [Section(EVIL, values, samples=samples, slices=slices)], device=EVIL))
    found = compare(*reports)
    page = Page(to_html(found.to_document()))
    assert len(page.scripts) == 1
    assert page.text.count("<script>alert('x')</script>") > 20
    assert "\x1b" not in to_html(found.to_document()) + found.to_text(120) + found.to_markdown()
    assert "<script>" not in found.to_markdown()


def test_it_is_written_as_a_page(shown, tmp_path):
    path = shown.to_html(tmp_path / "c.html")
    assert path.read_text(encoding="utf-8") == to_html(shown.to_document())


def sliced(
    title: str,
    seed: int = 0,
    *,
    order: np.ndarray | None = None,
    min_slice_size: int = 20,
    best: int = -1,
    **shares: float,
) -> Report:
    """One hundred samples a slice, of which such shares are right, and slices of everything else."""
    n = 100 * len(shares)
    correct = np.random.default_rng(seed).random(n) < np.repeat(list(shares.values()), 100)
    loss = np.random.default_rng(seed + 50).exponential(1, n)
    part = np.repeat(np.arange(len(shares)), 100)
    rows = np.arange(n) if order is None else order
    correct, loss, part = correct[rows], loss[rows], part[rows]
    masks = {f"part = {name}": part == i for i, name in enumerate(shares)}
    masks |= {"tiny": rows < 3, "called": correct}

    def values(mask: np.ndarray) -> tuple[Value, ...]:
        return (
            Value("accuracy", correct[mask].mean(), numerator="correct", higher_is_better=True),
            Value("loss", loss[mask].mean(), numerator="loss", higher_is_better=False),
        )

    slices = [Slice.of(name, values(mask), mask) for name, mask in masks.items()]
    samples = Samples.pack(
        rows, {"correct": correct, "loss": loss}, decision=correct, target=np.ones(n, bool), data="made up"
    )
    everything = values(np.ones(n, bool))
    return Report(title, [Section("test", everything, samples=samples, slices=slices, min_slice_size=min_slice_size)])


@pytest.fixture
def by_slice() -> Comparison:
    return compare(sliced("main", a=0.7, b=0.9, c=0.5), sliced("new", seed=1, a=0.7, b=0.6, c=0.9), flips=2)


@pytest.mark.parametrize("order", [None, np.random.default_rng(3).permutation(300)])
def test_slices_are_compared_on_their_own_samples(order):
    a, b = sliced("main", a=0.7, b=0.9, c=0.5), sliced("new", seed=1, order=order, a=0.7, b=0.6, c=0.9)
    found = compare(a, b, correction="none")
    delta = found.delta("accuracy", slice="part = b")
    first = column(a, "correct")[100:200]
    second = column(b, "correct")[np.argsort(b.sections[0].samples.ids.values)][100:200]
    down, up = int((first & ~second).sum()), int((~first & second).sum())
    assert (delta.p, delta.lower, delta.upper) == pytest.approx((mcnemar(down, up), *paired_proportions(down, up, 100)))
    assert (delta.paired, delta.counts, delta.verdict) == (True, (100, 100), "worse")
    (flips,) = [each for each in found.flips if each.slice == "part = b"]
    assert (flips.down, flips.up) == (down, up)
    assert [row[0] for row in flips.downs] == (100 + np.flatnonzero(first & ~second))[:10].tolist()
    loss = found.delta("loss", slice="part = c")
    both = [column(r, "loss")[np.argsort(r.sections[0].samples.ids.values)][200:] for r in (a, b)]
    assert loss.difference == pytest.approx(float(np.mean(both[1] - both[0])))
    assert loss.paired


def test_slices_count_among_the_tests_that_are_corrected_for(by_slice):
    assert by_slice.family() == 2 * (1 + 3 + 1)  # all samples, three slices, and the one of other samples
    alone = compare(sliced("main", a=0.7, b=0.9, c=0.5), sliced("new", seed=1, a=0.7, b=0.6, c=0.9), slices=False)
    assert (alone.family(), {delta.slice for delta in alone.deltas}) == (2, {""})
    assert by_slice.delta("accuracy").corrected >= alone.delta("accuracy").corrected


def test_slices_that_cannot_be_compared_say_why(by_slice):
    assert {(each.slice, each.metric): each.why for each in by_slice.unmatched} == {
        ("tiny", ""): "3 samples, fewer than 20"
    }
    delta = by_slice.delta("loss", slice="called")
    assert (delta.paired, delta.note) == (False, "not paired: the slice holds other samples in the two")
    other = compare(sliced("main", a=0.7, b=0.9), sliced("new", seed=1, a=0.7, d=0.6))
    assert {each.slice: each.why for each in other.unmatched} == {
        "part = b": "missing in the run",
        "part = d": "missing in the baseline",
        "tiny": "3 samples, fewer than 20",
    }
    with pytest.raises(ConfigError, match=r"slices: got none that both have, expected one or more. Leave out slices="):
        compare(run("a"), run("b"), slices=True)
    with pytest.raises(ConfigError, match=r"delta 'loss' in 'night': got 0 that fit, .* Name a slice that both have"):
        by_slice.delta("loss", slice="night")


def test_slices_without_members_are_compared_by_their_intervals():
    def report(title: str, value: float) -> Report:
        part = Slice("night", 50, [Value("AUROC", value, value - 0.1, value + 0.1, confidence_level=0.95)])
        return Report(title, [Section("test", [Value("AUROC", 0.9)], slices=[part])])

    delta = compare(report("a", 0.8), report("b", 0.7)).delta("AUROC", slice="night")
    assert (delta.method, delta.difference) == ("z test of two intervals", pytest.approx(-0.1))


def test_the_worst_regressions_stand_on_top(by_slice, tmp_path):
    terminal, markdown = by_slice.to_text(120), by_slice.to_markdown()
    shown = re.findall(r"part = (\w) +(\w+)", terminal)
    assert shown[0] == ("b", "accuracy")
    assert ("c", "accuracy") not in shown  # the only improvement is the last of all
    assert "and 3 more: 1 better, 2 no evidence." in terminal
    assert "By slice: 1 worse, 1 better," in terminal
    assert "new: test in 'tiny': 3 samples, fewer than 20" in terminal
    folded = markdown.index("<summary>3 more</summary>")
    assert markdown.index("| part = b | accuracy |") < folded < markdown.index("| part = c | accuracy |")
    rows = [line for line in markdown.splitlines() if line.startswith("| part")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 10 for row in rows)
    page = Page(to_html(by_slice.to_document()))
    assert page.text.index("part = b") == min(page.text.index(f"part = {name}") for name in "abc")
    assert "accuracy in part = b, sample by sample" in page.text
    for text in (terminal, markdown, page.text):
        assert "loss in called" in " ".join(text.split())
        assert "not paired: the slice holds other samples in the two" in " ".join(text.split())
    assert Comparison.from_json(by_slice.to_json()) == by_slice
    assert max(map(len, by_slice.to_text(80).splitlines())) <= 80


def test_large_slices_are_not_drawn_from():
    rng = np.random.default_rng(0)
    first = np.arange(3000) < 1500

    def report(title: str, loss: np.ndarray) -> Report:
        parts = [("whole", np.ones(3000, bool)), ("first", first), ("tenth", np.arange(3000) < 300)]
        whole, *slices = (
            (name, [Value("loss", loss[mask].mean(), numerator="loss", higher_is_better=False)], mask)
            for name, mask in parts
        )
        samples = Samples.pack(range(3000), {"loss": loss}, data="made up")
        section = Section("s", whole[1], samples=samples, slices=[Slice.of(*each) for each in slices])
        return Report(title, [section])

    before, after = rng.exponential(1, 3000), rng.exponential(1.05, 3000)
    found = compare(report("a", before), report("b", after))
    assert {delta.slice: delta.method for delta in found.deltas} == {
        "": f"sign flips, {MEAN}",
        "first": f"paired t, {MEAN}",
        "tenth": f"sign flips, {MEAN}",
    }
    expected = stats.ttest_rel(after[first], before[first])
    delta = found.delta("loss", slice="first")
    assert delta.p == pytest.approx(expected.pvalue)
    assert (delta.lower, delta.upper) == pytest.approx(tuple(expected.confidence_interval()), rel=0.02)


def test_flips_name_the_classes():
    def report(title: str, decision: list[int]) -> Report:
        correct = np.array(decision) == [0, 1, 1]
        samples = Samples.pack(
            [5, 6, 7], {"correct": correct}, decision=decision, target=[0, 1, 1], classes=("cat", "dog")
        )
        return Report(title, [Section("s", [Value("accuracy", correct.mean(), numerator="correct")], samples=samples)])

    (flips,) = compare(report("a", [0, 0, 1]), report("b", [1, 1, 1])).flips
    assert flips.downs == ((5, "cat", "cat", "dog"),)
    assert flips.ups == ((6, "dog", "cat", "dog"),)
