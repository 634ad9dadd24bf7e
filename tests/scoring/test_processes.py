"""Fragments counted by several processes, of which some end."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing import active_children

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assay.errors import AssayWarning, ConfigError, StateError
from assay.metrics import Accuracy, Mean
from assay.report import Report
from assay.scoring import Partial, count, merge, processes, score
from assay.scoring.counting import CountTask
from killing import BATCHES, KillingMean

OPTIONS = {"preds": "p", "target": "y", "slices": ["g"], "n_resamples": 25, "diagnostics": False}
ACCURACY = Accuracy(num_classes=2)


def contents(report: Report):
    section = report.sections[0]
    return section.values, section.slices, section.samples, section.resampling, section.tables[:2], report.notes


@pytest.fixture
def path(tmp_path):
    """A table of 20 fragments."""
    random = np.random.default_rng(5)
    rows = {"p": random.integers(0, 2, 400), "y": random.integers(0, 2, 400), "g": ["a", "b"] * 200}
    pq.write_table(pa.table(rows), tmp_path / "t.parquet", row_group_size=20)
    return tmp_path / "t.parquet"


class Starting:
    """The start of a process that has not started."""

    def done(self) -> bool:
        return False


class Pool:
    """A pool that counts in this process. It breaks at the tasks whose numbers are in `breaks`, counted from 0."""

    def __init__(self, breaks: set[int]) -> None:
        self.breaks, self.submitted = breaks, 0
        self.started: Starting | None = None

    def __call__(self, *arguments):
        return self

    def submit(self, task):
        future: Future[Partial | None] = Future()
        if not isinstance(task, CountTask):
            future.set_result(None)
            return self.started or future
        if self.submitted in self.breaks:
            future.set_exception(BrokenProcessPool())
        else:
            future.set_result(pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(task))())))
        self.submitted += 1
        return future

    def shutdown(self, cancel_futures):
        assert cancel_futures


@pytest.fixture
def pool(monkeypatch):
    def break_at(*tasks: int) -> Pool:
        broken = Pool(set(tasks))
        monkeypatch.setattr(processes, "ProcessPoolExecutor", broken)
        return broken

    return break_at


def test_processes_count_with_the_bits_of_one(path, pool):
    whole = pool()
    assert contents(score(path, ACCURACY, **OPTIONS, workers=2)) == contents(score(path, ACCURACY, **OPTIONS))
    assert whole.submitted == 8


def test_this_process_counts_while_the_others_start(path, pool, monkeypatch):
    counted = pool()
    calls = iter([True] * 3)
    monkeypatch.setattr(Starting, "done", lambda self: not next(calls, False))
    monkeypatch.setattr(counted, "started", Starting())
    parts = []
    merge = processes.merge
    monkeypatch.setattr(processes, "merge", lambda each: parts.extend(each) or merge(each))
    report = score(path, ACCURACY, **OPTIONS, workers=2)
    assert list(parts[0].fragments) == [f"t.parquet#{k}" for k in range(3)]
    assert counted.submitted == 8
    assert contents(report) == contents(score(path, ACCURACY, **OPTIONS))


def test_few_rows_are_counted_before_processes_have_started(path):
    before = set(active_children())
    assert contents(score(path, ACCURACY, **OPTIONS, workers=2)) == contents(score(path, ACCURACY, **OPTIONS))
    assert set(active_children()) <= before


def test_what_an_ended_process_had_is_counted_again(path, pool):
    broken = pool(3, 6, 7, 9)
    with pytest.warns(AssayWarning, match="A worker ended") as warned:
        report = score(path, ACCURACY, **OPTIONS, workers=2)
    assert broken.submitted == 8 + 3 + 1
    assert len(warned) == 2
    assert contents(report) == contents(score(path, ACCURACY, **OPTIONS))


def test_processes_that_always_end_are_an_error(path, pool):
    pool(*range(100))
    with pytest.warns(AssayWarning), pytest.raises(StateError, match="ended 3 times"):
        score(path, ACCURACY, **OPTIONS, workers=2)


def test_repeated_ids_are_found_across_tasks(tmp_path, pool):
    pool()
    table = pa.table({"p": [0, 1, 1, 0], "y": [0, 1, 0, 0], "id": [1, 2, 1, 3]})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=1)
    options = {"preds": "p", "target": "y", "ids": "id", "on_bad": "skip", "confidence_level": None}
    one, many = (score(tmp_path / "t.parquet", ACCURACY, **options, workers=n) for n in (1, 2))
    assert contents(many) == contents(one)
    assert many.sections[0].values[0].count == 3


def test_strings_that_look_like_numbers_are_read_alike(tmp_path, pool):
    pool()
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text("hyp,ref\n007,7\n8,8\n")
    options = {"preds": "hyp", "target": "ref", "confidence_level": None}
    one, many = (score(tmp_path, "word_error_rate", **options, workers=n) for n in (1, 2))
    assert contents(many) == contents(one)
    assert one.sections[0].values[0].value == 0.5


@pytest.mark.parametrize("workers", [0, 1.5])
def test_workers_that_are_no_count(path, workers):
    with pytest.raises(ConfigError, match="workers"):
        score(path, ACCURACY, **OPTIONS, workers=workers)


def test_a_table_in_memory_cannot_be_counted_by_other_processes():
    with pytest.raises(ConfigError, match="expected files, which other processes can read"):
        score(pa.table({"p": [0.5]}), Mean(), preds="p", workers=2)


@pytest.mark.slow
def test_a_killed_process_changes_no_bit(path, tmp_path, monkeypatch):
    (tmp_path / "noted").mkdir()
    metric = KillingMean(folder=str(tmp_path / "noted"), spared=os.getpid())
    options = {**OPTIONS, "target": None}
    monkeypatch.setattr(CountTask, "count_while", lambda task, goes_on, bar: (replace(task, fragments=())(), task))
    with pytest.warns(AssayWarning, match="A worker ended"):
        report = score(path, metric, **options, workers=2)
    assert len(os.listdir(tmp_path / "noted")) > BATCHES
    assert contents(report) == contents(score(path, metric, **options))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("metrics", ["accuracy:num_classes=2", "auroc", "mean"])
def test_partials_in_memory_that_cannot_be_written_are_merged(path, metrics):
    """As those that Ray shares between processes."""
    table = pq.read_table(path).set_column(0, "p", pa.array(np.linspace(0, 1, 400)))
    if "num_classes" in metrics:
        table = pq.read_table(path)
    options = {**OPTIONS, "target": None if metrics == "mean" else "y"}
    parts = [count(table.slice(k, 200), metrics, f"part {k}", **options) for k in (0, 200)]
    shared = []
    for part in parts:
        buffers = []
        data = pickle.dumps(part, protocol=5, buffer_callback=buffers.append)
        shared.append(pickle.loads(data, buffers=[bytes(buffer.raw()) for buffer in buffers]))
    manifest = ["part 0", "part 200"]
    expected = contents(merge(parts, manifest).report())
    assert contents(merge([Partial.from_bytes(each.to_bytes()) for each in shared], manifest).report()) == expected
    assert contents(merge(shared, manifest).report()) == expected
