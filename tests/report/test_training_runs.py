"""Models that are compared by several training runs each: errors over runs and samples, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import assay.cli
from assay.errors import ConfigError
from assay.report import Report, Samples, Section, Slice, Value, compare, compare_training_runs
from assay.stats.crossed import CrossedDifference
from assay.stats.distributions import student_quantile

N = 300


def run(seed, shift=0.0, *, spread=0.05, yes=False, n=N, order=None, **more):
    rng = np.random.default_rng(seed)
    hard = np.random.default_rng(99).normal(size=n)
    values = hard + rng.normal(size=n) / 2 + rng.normal() * spread + shift
    values = values > -0.8 if yes else values
    rows = np.arange(n) if order is None else order
    samples = Samples.pack(rows, {"x": values[rows]}, target=rows % 3, **more)
    night = rows % 2 == 0
    part = Slice.of("night", [Value("x", float(values[rows][night].mean()), numerator="x")], night)
    value = Value("x", float(values.mean()), numerator="x", higher_is_better=True)
    return Report(f"seed {seed}", [Section("test", [value], samples=samples, slices=[part])])


def columns(reports):
    return np.array([each.sections[0].samples.column("x") for each in reports], np.float64)


@pytest.mark.parametrize("yes", [False, True])
def test_variances_over_samples_and_over_runs_add_up(yes):
    first, second = [run(k, yes=yes) for k in range(3)], [run(k, 0.1, yes=yes) for k in range(3, 7)]
    delta = compare_training_runs(first, second).delta("x")
    a, b = columns(first), columns(second)
    parts = [
        ((b.mean(0) - a.mean(0)).var(ddof=1) / N, N - 1),
        (a.mean(1).var(ddof=1) / 3, 2),
        (b.mean(1).var(ddof=1) / 4, 3),
    ]
    variance = sum(part for part, _ in parts)
    freedom = variance**2 / sum(part**2 / of for part, of in parts)
    half = math.sqrt(variance) * student_quantile(0.975, freedom)
    assert delta.difference == pytest.approx(b.mean() - a.mean())
    assert (delta.lower, delta.upper) == pytest.approx((delta.difference - half, delta.difference + half))
    assert delta.method == f"Student's test and interval of 3 and 4 runs crossed with {N} samples"
    assert delta.note.startswith("standard error ")
    assert delta.smallest > half


def test_a_difference_of_two_runs_may_be_one_of_seeds():
    first, second = [run(k, spread=0.5) for k in range(3)], [run(k, spread=0.5) for k in range(3, 6)]
    single = [compare(a, b).delta("x").verdict for a, b in zip(first, second, strict=True)]
    assert any(verdict != "no evidence" for verdict in single)
    found = compare_training_runs(first, second)
    assert found.delta("x").verdict == "no evidence"
    assert found.notes[0].startswith("Runs of a model are taken as independent draws")
    assert "could not have been seen" in found.to_markdown()


def test_samples_come_in_any_order_and_slices_are_compared():
    order = np.random.default_rng(1).permutation(N)
    first, second = [run(k) for k in range(2)], [run(k, 1.0) for k in range(2, 4)]
    other = [second[0], run(3, 1.0, order=order)]
    found, again = (compare_training_runs(first, each) for each in (second, other))
    assert again.delta("x").lower == pytest.approx(found.delta("x").lower)
    assert found.delta("x", slice="night").counts == (N // 2, N // 2)
    assert [each.slice for each in compare_training_runs(first, second, slices=False).deltas] == [""]


def test_clusters_take_the_place_of_samples():
    clusters = np.arange(N) // 10
    first, second = [run(k) for k in range(3)], [run(k, 0.1) for k in range(3, 6)]
    delta = compare_training_runs(first, second, cluster=clusters).delta("x")
    assert delta.method.endswith("30 clusters")
    apart = (columns(second).mean(0) - columns(first).mean(0)).reshape(30, 10).mean(1)
    assert delta.note.startswith(f"standard error {apart.std(ddof=1) / math.sqrt(30):.2g} over samples")


def test_what_cannot_be_said_is_not():
    def stored(value):
        return Report(f"{value}", [Section("test", [Value("x", value, value - 1, value + 1, confidence_level=0.95)])])

    delta = compare_training_runs([stored(1.0), stored(1.1)], [stored(2.0), stored(2.1)]).delta("x")
    assert (delta.verdict, delta.p) == ("cannot say", None)
    assert "neither per-sample values nor replicates" in delta.note
    others = [run(5), run(6, n=200)]
    assert "other samples" in compare_training_runs([run(1), run(2)], others).delta("x").note
    right = np.ones(N, bool)
    few = [
        Report(
            f"{k}",
            [
                Section(
                    "test", [Value("x", float(each.mean()), numerator="x")], samples=Samples.pack(range(N), {"x": each})
                )
            ],
        )
        for k, each in enumerate([right, right, np.arange(N) > 2, np.arange(N) > 1])
    ]
    assert "differ between the two" in compare_training_runs(few[:2], few[2:]).delta("x").note


def test_too_few_runs_are_refused():
    with pytest.raises(ConfigError, match="two or more, of different runs"):
        compare_training_runs([run(1)], [run(2), run(3)])
    with pytest.raises(ConfigError, match="stands twice"):
        compare_training_runs([run(1), again := run(2)], [again, run(3)])


def call(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["assay", "compare", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        assay.cli.main()
    return ended.value.code


def test_the_command_line_takes_runs(tmp_path, monkeypatch, capsys):
    paths = [str(run(k, 0.3 * (k > 2)).save(tmp_path / f"{k}.json")) for k in range(6)]
    assert not call(monkeypatch, "--runs", ",".join(paths[3:]), "--against", ",".join(paths[:3]))
    shown = capsys.readouterr().out
    assert "runs against baseline" in shown
    assert "3 and 3 runs" in " ".join(shown.split())
    assert call(monkeypatch, paths[0], "--runs", paths[1]) == 2
    assert "--against" in capsys.readouterr().err


@pytest.mark.parametrize("unit", [1e-250, 1e250])
def test_the_unit_of_numbers_changes_no_degrees_of_freedom(unit):
    plain, scaled = (CrossedDifference(0.2 * u, 0.1 * u, 99, (0.04 * u, 0.03 * u), (3, 4)) for u in (1.0, unit))
    assert scaled.freedom == pytest.approx(plain.freedom)
    assert scaled.p() == pytest.approx(plain.p())
