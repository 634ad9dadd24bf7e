"""Slices of two runs, compared on their own samples."""

from __future__ import annotations

import re

import numpy as np
import pytest
from scipy import stats

from assay.errors import ConfigError
from assay.render.html import to_html
from assay.report import Comparison, Report, Samples, Section, Slice, Value, compare
from assay.report.inference.evidence import MEAN
from assay.stats.hypothesis_tests import mcnemar
from assay.stats.paired_shares import paired_proportions
from pages import Page
from report.runs import column, run


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


def test_two_slices_of_one_report_are_compared_as_two_runs():
    report = sliced("main", a=0.9, b=0.6)
    day, night = report.of_slice("part = a"), report.of_slice("part = b")
    delta = compare(day, night, names=["a", "b"]).delta("accuracy")
    right = [column(report, "correct")[start : start + 100] for start in (0, 100)]
    assert delta.difference == pytest.approx(right[1].mean() - right[0].mean())
    assert (delta.paired, delta.counts) == (False, (100, 100))
    table = [[part.sum(), 100 - part.sum()] for part in right]
    assert delta.p == pytest.approx(stats.chi2_contingency(table, correction=False).pvalue, rel=0.2)
    assert delta.verdict == "worse"
    itself = compare(day, report.of_slice("part = a"), names=["a", "again"]).delta("loss")
    assert (itself.difference, itself.paired) == (0.0, True)
    with pytest.raises(ConfigError, match=r"'part = d'.*'part = a'.*Correct the name"):
        report.of_slice("part = d")
