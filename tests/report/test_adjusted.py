"""Values of less variance: which samples they take, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from assay.errors import ConfigError
from assay.report import Report, Samples, Section, Slice, Value, controlled, rogan_gladen, stratified
from assay.stats.control_variates import ControlledMean
from assay.stats.intervals import wilson
from assay.stats.misclassified_shares import JudgedShare

N = 400
HARD = np.random.default_rng(9).standard_normal(N)


def run(seed, ids=None, *, yes=True, **more):
    ids = np.arange(N) if ids is None else ids
    values = (HARD + np.random.default_rng(seed).standard_normal(N) / 2)[ids]
    values = values > -0.7 if yes else values
    samples = Samples.pack(ids, {"x": values}, target=ids % 3, **more)
    parts = {"low": ids < 100, "high": ids >= 100}
    slices = [Slice.of(k, [Value("x", float(values[m].mean()), numerator="x")], m) for k, m in parts.items() if m.any()]
    value = Value("x", float(values.mean()), numerator="x", higher_is_better=True)
    return Report(f"{seed}", [Section("test", [value], samples=samples, slices=slices)])


def column(report):
    return report.sections[0].samples.column("x").astype(float)


@pytest.mark.parametrize("yes", [False, True])
def test_a_part_of_the_samples_is_controlled_by_all(yes):
    ids = np.random.default_rng(3).permutation(N)[:120]
    small, main = run(1, ids, yes=yes), run(2, yes=yes)
    found = controlled(small, "x", main, 0.9)
    expected = ControlledMean.of(column(small), column(main)[ids], column(main).mean(), N)
    assert found.value == pytest.approx(expected.mean)
    assert (found.lower, found.upper) == pytest.approx(expected.interval(0.9))
    assert (found.count, found.confidence_level, found.numerator) == (120, 0.9, "")
    assert found.note.startswith("controlled by the baseline on 400 samples: ")


def test_a_judge_is_corrected_by_what_people_said_of_some():
    chosen = np.flatnonzero((np.arange(N) % 3 == 0) | ~column(run(1)).astype(bool))  # by what people said
    people, judge = run(1, chosen), run(2)
    found = rogan_gladen(judge, "test/x", people, 0.9)
    truth, said = column(people) > 0, column(judge)[chosen] > 0
    counts = (said & truth).sum(), truth.sum(), (~said & ~truth).sum(), (~truth).sum()
    share = JudgedShare(column(judge).sum(), N, *counts)
    assert found.value == share.value
    assert (found.lower, found.upper) == share.interval(0.9)
    assert found.lower < column(run(1)).mean() < found.upper
    assert f"sensitivity {counts[0] / counts[1]:.3f}" in found.note
    assert (found.count, found.confidence_level, found.numerator) == (N, 0.9, "")


@pytest.mark.parametrize(
    ("judge", "people", "message"),
    [
        (run(1, yes=False), run(2, yes=False), "numbers, not yes or no"),
        (run(1), run(2, np.arange(14)), "fewer than 12"),
        (run(1, np.arange(100)), run(2), "not paired"),
        (run(1), run(2, clusters=np.arange(N) // 4, cluster="passage"), "in clusters"),
    ],
)
def test_judges_that_say_nothing_are_refused(judge, people, message):
    with pytest.raises(ConfigError, match=message):
        rogan_gladen(judge, "x", people)


def test_a_judge_no_better_than_chance_is_refused():
    people = run(1)
    samples = Samples.pack(np.arange(N), {"x": column(people) < 1}, target=np.arange(N) % 3)
    value = Value("x", 1 - column(people).mean(), numerator="x")
    judge = Report("opposite", [Section("test", [value], samples=samples)])
    with pytest.raises(ConfigError, match="no better than chance"):
        rogan_gladen(judge, "x", people)


def test_known_shares_weight_slices():
    report = run(1)
    found = stratified(report, "test/x", {"low": 0.6, "high": 0.4})
    low, high = column(report)[:100], column(report)[100:]
    assert found.value == pytest.approx(0.6 * low.mean() + 0.4 * high.mean())
    ends = [wilson(each.sum(), len(each)) for each in (low, high)]
    below = np.hypot(0.6 * (low.mean() - ends[0][0]), 0.4 * (high.mean() - ends[1][0]))
    assert found.lower == pytest.approx(found.value - below)
    assert found.note == "stratified by known shares"


IDS = np.arange(120)


@pytest.mark.parametrize(
    ("report", "baseline", "message"),
    [
        (run(1), run(2), "fewer than all"),
        (run(1, np.arange(10)), run(2), "no fewer than 12"),
        (run(1, IDS + 280), run(2, np.arange(390)), "10 samples of the run are not in the baseline"),
        (run(1, IDS, clusters=IDS // 10, cluster="passage"), run(2), "clusters"),
        (run(1, IDS), Report("stored", [Section("test", [Value("x", 0.5, 0.4, 0.6)])]), "no mean over samples"),
    ],
)
def test_what_cannot_be_controlled_is_refused(report, baseline, message):
    with pytest.raises(ConfigError, match=message):
        controlled(report, "x", baseline)


def test_what_cannot_be_stratified_is_refused():
    for shares, message in (
        ({"low": 0.5, "high": 0.6}, "1 in all"),
        ({"low": 1.0}, "300 samples in no slice"),
        ({"low": 0.5, "night": 0.5}, "a slice 'night'"),
    ):
        with pytest.raises(ConfigError, match=message):
            stratified(run(1), "x", shares)
    with pytest.raises(ConfigError, match="clusters"):
        stratified(run(1, clusters=np.arange(N) // 10, cluster="passage"), "x", {"low": 0.5, "high": 0.5})
    rare = np.arange(N) < 5
    section = run(1, IDS).sections[0]
    few = replace(
        section,
        values=(Value("x", float(rare[:120].mean()), numerator="x"),),
        samples=Samples.pack(IDS, {"x": rare[:120]}),
        slices=(),
    )
    with pytest.raises(ConfigError, match="how skewed"):
        controlled(Report("rare", [few]), "x", run(2))
    with pytest.raises(ConfigError, match="ended early"):
        controlled(Report("early", [replace(section, stopped=True)]), "x", run(2))
