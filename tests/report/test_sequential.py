"""Gates that may be run again whenever samples were added: their intervals, and what they refuse by name."""

from __future__ import annotations

import numpy as np
import pytest

from assay.errors import ConfigError
from assay.report import Gate, Report, Samples, Section, Slice, Value, gate
from assay.report.gating.stopping import StopWhen
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.sequential import ClusterSizes, SequentialIntervals
from assay.stats.betting import betting_interval, clustered_betting_interval


def run(right, ids=None, data="", **more):
    right = np.asarray(right)
    ids = np.arange(len(right)) if ids is None else ids
    samples = Samples.pack(ids, {"x": right}, target=np.asarray(ids) % 7, data=data, **more)
    value = Value("x", float(right.mean(dtype=np.float64)), numerator="x", higher_is_better=True)
    night = np.asarray(ids) % 2 == 0
    part = Slice.of("night", [Value("x", float(right[night].mean(dtype=np.float64)), numerator="x")], night)
    return Report("run", [Section("test", [value], samples=samples, slices=[part])])


def check(report, kind, bound, baseline=None, name="x", **more):
    (found,) = gate(report, {kind: {name: bound}}, baseline, sequential=True, **more).checks
    return found


def test_a_value_and_a_difference_have_the_interval_of_bets():
    first, second = (np.random.default_rng(seed).random(200) < 0.8 for seed in (1, 2))
    found = check(run(second), "min", 0.5)
    assert (found.lower, found.upper) == betting_interval(second.astype(float), 0, 1)
    assert (found.outcome, found.method) == ("pass", "betting interval, at any number of looks")
    found = check(run(second), "max-drop", 0.2, run(first))
    assert (found.lower, found.upper) == betting_interval(second.astype(float) - first, -1, 1)
    apart = betting_interval(second - 0.9 * first, -0.9, 1)
    found = check(run(second), "min-ratio", 0.9, run(first))
    assert found.lower == pytest.approx(0.9 + apart[0] / first.mean())


def test_the_baseline_may_have_more_samples_and_another_order():
    rng = np.random.default_rng(3)
    first, second = rng.random(300) < 0.8, rng.random(100) < 0.8
    chosen = rng.permutation(300)[:100]
    found = check(run(second, chosen, "of 100"), "max-drop", 0.5, run(first, data="of 300"))
    assert (found.lower, found.upper) == betting_interval(second.astype(float) - first[chosen], -1, 1)
    at_night = chosen % 2 == 0
    found = check(run(second, chosen, "of 100"), "max-drop", 0.9, run(first, data="of 300"), "x[night]")
    apart = second[at_night].astype(float) - first[chosen[at_night]]
    assert (found.lower, found.upper) == betting_interval(apart, -1, 1)


def test_numbers_take_their_range():
    values = np.random.default_rng(4).random(80) * 3
    assert check(run(values), "min", 0.5).reason.startswith("no interval: the range of what a sample adds to x")
    found = check(run(values), "min", 0.5, ranges={"x": (0, 4)})
    assert (found.lower, found.upper) == betting_interval(values, 0, 4)
    assert "beyond the range" in check(run(values), "min", 0.5, ranges={"x": (0, 2)}).reason
    found = check(run(values), "max-drop", 3, run(values[::-1].copy()), ranges={"x": (0, 4)})
    assert (found.lower, found.upper) == betting_interval(values - values[::-1], -4, 4)


def test_clusters_are_the_observations_of_a_change():
    """Three copies of each sample as a cluster say as much as one each; the baseline knows which clusters are whole."""
    random = np.random.default_rng(6)
    before, after = random.random(80) < 0.7, random.random(80) < 0.8
    codes, copies = np.repeat(np.arange(80), 3), {"cluster": "passage"}
    baseline = run(np.repeat(before, 3), clusters=codes, **copies)
    half = slice(0, 121)  # of the last cluster one sample is there
    found = check(run(np.repeat(after, 3)[half], clusters=codes[half], **copies), "max-drop", 0.5, baseline)
    expected = betting_interval(after[:40].astype(float) - before[:40], -1, 1)
    assert (found.lower, found.upper) == pytest.approx(expected)
    mixed = np.arange(240) % 3 < 2
    ids = np.flatnonzero(mixed)
    mixed = run(np.repeat(after, 3)[ids], ids, clusters=codes[ids], **copies)
    assert "80 clusters are incomplete" in check(mixed, "max-drop", 0.5, baseline).reason
    alone = run(np.repeat(after, 3)[half])
    assert "one side only" in check(alone, "max-drop", 0.5, baseline).reason
    others = run(np.repeat(after, 3)[half], clusters=codes[half] + 100, **copies)
    assert "in other clusters" in check(others, "max-drop", 0.5, baseline).reason


def test_clusters_of_known_sizes_are_the_observations_of_a_value():
    codes = np.repeat(np.arange(60), 1 + np.arange(60) % 4)
    right = np.random.default_rng(7).random(len(codes)) < 0.7
    sizes, part = ClusterSizes.of(codes), slice(0, 102)
    assert codes[101] == codes[102]  # the last cluster is incomplete
    section = run(right[part], clusters=codes[part], cluster="passage").sections[0]
    found = SequentialIntervals(0.95, {}, sizes).of(MeasuredValue.of(section, "x"))
    whole = codes[part] < codes[101]
    sums, counts = np.bincount(codes[part][whole], right[part][whole]), np.bincount(codes[part][whole])
    expected = clustered_betting_interval(sums, counts.astype(float), 4, 0, 1)
    assert (found.lower, found.upper) == pytest.approx(expected)
    scattered = np.arange(len(codes)) % 2 == 0
    section = run(right[scattered], clusters=codes[scattered], cluster="passage").sections[0]
    assert "are incomplete" in SequentialIntervals(0.95, {}, sizes).of(MeasuredValue.of(section, "x")).note
    others = SequentialIntervals(0.95, {}, ClusterSizes.of(codes + 1))
    section = run(right[part], clusters=codes[part], cluster="passage").sections[0]
    assert "in other clusters" in others.of(MeasuredValue.of(section, "x")).note


def test_what_has_no_such_interval_is_refused_by_name():
    right = np.random.default_rng(5).random(60) < 0.8
    clustered = run(right, clusters=np.arange(60) // 3, cluster="passage")
    assert "bound the change against a baseline" in check(clustered, "min", 0.1).reason
    with pytest.raises(ConfigError, match="the largest of which must be known"):
        StopWhen({"min": {"x": 0.1}}).outcome(clustered)
    stored = Report("run", [Section("test", [Value("x", 0.9, 0.8, 0.95, confidence_level=0.95, count=100)])])
    assert "no mean over kept samples" in check(stored, "min", 0.1).reason
    others = run(right[:40], np.arange(40) + 30)
    assert "10 samples of the run are not in the baseline" in check(others, "max-drop", 0.9, run(right)).reason
    assert check(others, "max-drop", 0.9, run(right)).outcome == "not enough evidence"
    with pytest.raises(ConfigError, match="two finite numbers"):
        check(run(right), "min", 0.5, ranges={"x": (1, 1)})
    with pytest.raises(ConfigError, match="without sequential"):
        gate(run(right), {"min": {"x": 0.5}}, ranges={"x": (0, 1)})
    with pytest.raises(ConfigError, match="sequential and point"):
        check(run(right), "min", 0.5, point=True)


def test_a_gate_says_that_it_holds_at_any_number_of_looks(tmp_path):
    found = gate(run([True] * 50), {"min": {"x": 0.5}}, sequential=True)
    assert "at any number of looks" in found.to_markdown()
    assert Gate.load(found.save(tmp_path / "gate.json")).sequential
    once = gate(run([True] * 50), {"min": {"x": 0.5}})
    assert "any number" not in once.to_markdown()
    assert "sequential" not in once.to_json()
