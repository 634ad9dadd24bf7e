"""Reports of many samples are compared some thousand at a time: what a comparison in memory finds."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from assay.report import Report, Samples, Section, Value, compare
from assay.report.per_sample import aligned_chunks, packed_array, sample_files
from assay.report.per_sample import samples as samples_module
from thinning import every_third

ROWS = 500


@pytest.fixture
def in_chunks(monkeypatch):
    """Compare as if 100 samples were too many for the memory."""

    def compared(*reports, **options):
        with monkeypatch.context() as patch:
            patch.setattr("assay.report.inference.measured_value.IN_MEMORY", 100)
            for module in (packed_array, aligned_chunks, samples_module, sample_files):
                patch.setattr(module, "CHUNK_ROWS", 90)
            return compare(*reports, **options)

    return compared


def run(title, seed, order=None, ids=None, **more):
    random = np.random.default_rng(seed)
    order = np.arange(ROWS) if order is None else order
    target = np.random.default_rng(9).integers(0, 4, ROWS)
    correct = random.random(ROWS) < 0.7
    columns = {
        "correct": correct,
        "loss": random.exponential(1, ROWS).astype(np.float32),
        "errors": random.integers(0, 5, ROWS),
        "words": np.random.default_rng(9).integers(4, 9, ROWS),
        **more,
    }
    means = {name: float(np.asarray(each, np.float64).mean()) for name, each in columns.items()}
    values = [
        Value("accuracy", means["correct"], numerator="correct", higher_is_better=True),
        Value("loss", means["loss"], numerator="loss", higher_is_better=False),
        Value("WER", means["errors"] / means["words"], numerator="errors", denominator="words", higher_is_better=False),
    ]
    ids = np.arange(ROWS) if ids is None else np.array(ids, object)
    samples = Samples.pack(
        ids[order],
        {name: each[order] for name, each in columns.items()},
        decision=np.where(correct, target, (target + 1) % 4)[order],
        target=target[order],
    )
    return Report(title, [Section("test", values, samples=samples)])


def is_close(found, expected):
    """Whether two values of plain data are equal, numbers up to rounding."""
    if isinstance(expected, float):
        return found == pytest.approx(expected, rel=1e-9, abs=1e-300)
    if isinstance(expected, tuple):
        return len(found) == len(expected) and all(map(is_close, found, expected))
    return found == expected


def check(found, expected):
    assert [delta.metric for delta in found.deltas] == [delta.metric for delta in expected.deltas]
    for first, second in zip(found.deltas, expected.deltas, strict=True):
        assert is_close(dataclasses.astuple(first), dataclasses.astuple(second)), (first, second)
    assert found.flips == expected.flips
    assert found.changes == expected.changes


@every_third
@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("ids", [None, [f"row {k}" for k in range(ROWS)]], ids=["numbers", "strings"])
@pytest.mark.parametrize("shuffled", [False, True])
def test_a_comparison_in_chunks_is_that_in_memory(shuffled, ids, is_stored, in_chunks, monkeypatch, tmp_path):
    order = np.random.default_rng(1).permutation(ROWS) if shuffled else None
    reports = [run("a", 1, ids=ids), run("b", 2, order=order, ids=ids)]
    expected = compare(*reports)
    assert all(delta.paired and delta.p is not None for delta in expected.deltas)
    assert expected.flips
    assert len(expected.changes) == 3
    if is_stored:
        pytest.importorskip("pyarrow")
        monkeypatch.setattr("assay.report.per_sample.sample_files.MOST_SAMPLES", 50)
        for report in reports:
            report.save(tmp_path / report.title / "report.json")
        reports = [Report.load(tmp_path / title) for title in "ab"]
    with monkeypatch.context() as patch:  # a test of signs becomes Student's from so many samples on, as of larger ones
        patch.setattr("assay.report.inference.tests_and_intervals.UP_TO", 100)
        expected = compare(*reports)
        check(in_chunks(*reports), expected)


def test_equal_samples_and_other_samples_are_recognised_in_chunks(in_chunks):
    first = run("a", 1)
    same, other = run("b", 1), run("c", 2, ids=[f"row {k}" for k in range(ROWS)])
    assert [delta.method for delta in in_chunks(first, same).deltas] == ["equal inputs"] * 3
    assert all("ids are numbers" in delta.note for delta in in_chunks(first, other).deltas)
    changed = run("d", 1)
    samples = changed.sections[0].samples
    target = samples.target.values.copy()
    target[[200, 450]] += 1
    columns = {each.name: each.values.values for each in samples.columns}
    samples = Samples.pack(np.arange(ROWS), columns, decision=samples.decision.values, target=target)
    changed = Report("d", [dataclasses.replace(changed.sections[0], samples=samples)])
    assert "2 samples have another target, the first is 200" in in_chunks(first, changed).deltas[0].note


def test_a_number_that_is_not_finite_is_found_in_any_chunk(in_chunks):
    loss = np.ones(ROWS)
    loss[333] = np.inf
    (_, delta, _) = in_chunks(run("a", 1), run("b", 2, loss=loss)).deltas
    assert delta.p is None
    assert "infinite" in delta.note or "finite" in delta.note
