"""Per-sample values of many samples are written to files while they are counted: the same report, in little memory."""

from __future__ import annotations

import dataclasses
import gc
import hashlib
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from assay import AUROC, Accuracy, evaluate
from assay.errors import StateError
from assay.metrics import LogLoss, MeanAbsoluteError
from assay.report import Report, compare
from evaluation.stopping import Stops
from ranks import processes
from thinning import one_of_each

pytest.importorskip("pyarrow")

ROWS = 300
OPTIONS = {
    "inputs": 0,
    "target": 1,
    "slices": {"part": 2},
    "device": "cpu",
    "n_resamples": 25,
    "max_kept_samples": 10_000,
}
METRICS = {"acc": Accuracy(num_classes=3), "loss": LogLoss(num_classes=3), "auroc": AUROC(num_classes=3)}


def limits(patch, segment=64, most=50):
    """As if `most` samples were too many for JSON, and files had `segment` samples or a few more."""
    for module in (
        "report.per_sample.sample_files",
        "evaluation.arguments.preparation",
        "evaluation.observe.per_sample",
    ):
        patch.setattr(f"assay.{module}.MOST_SAMPLES", most)
    patch.setattr("assay.evaluation.observe.per_sample.SEGMENT_ROWS", segment)
    for module in (
        "evaluation.observe.sample_segments",
        "report.per_sample.packed_array",
        "report.per_sample.sample_files",
    ):
        patch.setattr(f"assay.{module}.CHUNK_ROWS", 70)
    patch.setattr("assay.evaluation.observe.observers.FIRST_ROWS", 16)


@pytest.fixture
def temporary(monkeypatch, tmp_path):
    """Where temporary files are, with small limits."""
    limits(monkeypatch)
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def samples(rows=ROWS):
    random = np.random.default_rng(5)
    scores = torch.from_numpy(random.random((rows, 3)).astype(np.float32)).softmax(1)
    return TensorDataset(scores, torch.from_numpy(random.integers(0, 3, rows)), torch.arange(rows) % 4)


def measured(data=None, metrics=METRICS, **more):
    data = DataLoader(samples(), batch_size=16, shuffle=True) if data is None else data
    return evaluate(nn.Identity(), data, metrics, **{**OPTIONS, **more})


def saved(report, folder):
    """The bytes of a saved report, without what differs from run to run, and those of the file beside it."""
    (section,) = report.sections
    tables = [each for each in section.tables if each.name == "Every sample once"]
    report = Report("", [dataclasses.replace(section, tables=tables)], created="", environment={})
    report.save(folder / "report.json")
    return {each.name: each.read_bytes() for each in folder.iterdir()}


@pytest.fixture
def in_memory(monkeypatch):
    """Evaluate without segments."""

    def evaluated(**options):
        with monkeypatch.context() as patch:
            patch.setattr("assay.evaluation.observe.per_sample.SEGMENT_ROWS", 10**9)
            return measured(**options)

    return evaluated


class Named(IterableDataset):
    def __init__(self, name, rows=ROWS):
        self.name, self.rows = name, rows

    def __iter__(self):
        for (x, y, part), k in zip(samples(self.rows), np.random.default_rng(1).permutation(self.rows), strict=True):
            yield {"x": x, "y": y, "part": part, "id": self.name(int(k))}


BY_NAME = {"inputs": "x", "target": "y", "ids": "id", "slices": ["part"]}
CASES = {
    "index in order": lambda: {"data": DataLoader(samples(), batch_size=16)},
    "index": dict,
    "strings": lambda: {"data": DataLoader(Named("row {}é".format), batch_size=16), **BY_NAME},
    "integers": lambda: {"data": DataLoader(Named(lambda k: 3 * k - 7), batch_size=16), **BY_NAME},
    "numbers": lambda: {
        "preds": lambda x: x[:, 0],
        "target": lambda batch: batch[0][:, 1],
        "metrics": MeanAbsoluteError(),
    },
}


@pytest.mark.parametrize("case", CASES)
@one_of_each()
def test_the_report_is_the_one_of_values_in_memory(case, temporary, in_memory, tmp_path):
    expected = saved(in_memory(**CASES[case]()), tmp_path / "a")
    assert list(temporary.iterdir()) == []
    report = measured(**CASES[case]())
    assert len(list(temporary.iterdir())) == 1
    assert saved(report, tmp_path / "b") == expected
    assert any(name.endswith(".arrow") for name in expected)
    del report
    gc.collect()
    assert list(temporary.iterdir()) == []


def run(batches, folder, **more):
    data = DataLoader(samples(), batch_size=16, shuffle=True)
    return evaluate(Stops(batches), data, METRICS, **OPTIONS, resume=folder, checkpoint_every=0.0, **more)


def test_a_run_that_was_stopped_resumes_with_the_values_in_files(temporary, in_memory, tmp_path):
    expected = saved(in_memory(), tmp_path / "a")
    for batches in (7, 5):
        with pytest.raises(KeyboardInterrupt):
            run(batches, tmp_path / "run")
        gc.collect()
        assert list(temporary.iterdir()) == []
    assert len(list((tmp_path / "run").glob("samples-*.arrow"))) == 2
    with safe_open(tmp_path / "run" / "rank-0.safetensors", framework="pt") as file:
        in_memory_yet = [name for name in file.keys() if name.endswith("column correct")]  # noqa: SIM118 - not a mapping
        assert sum(len(file.get_tensor(name)) for name in in_memory_yet) < 70 < 12 * 16
    assert saved(run(99, tmp_path / "run"), tmp_path / "b") == expected


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_damaged_file_of_values_is_one_line(damage, temporary, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(7, tmp_path / "run")
    (file,) = (tmp_path / "run").glob("samples-*.arrow")
    content = file.read_bytes()
    file.unlink()
    if damage == "changed":
        file.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
    with pytest.raises(StateError, match=r"samples-[0-9a-f]+\.arrow: got") as raised:
        run(99, tmp_path / "run")
    assert "\n" not in str(raised.value)


def test_few_samples_of_a_stream_are_in_memory_after_all(temporary, monkeypatch):
    limits(monkeypatch, segment=64, most=1000)
    report = measured(DataLoader(Named("row {}".format), batch_size=16), **BY_NAME)
    assert list(temporary.iterdir()) == []
    assert not report.sections[0].samples.is_stored
    assert len(report.sections[0].samples) == ROWS


def test_samples_that_share_ids_are_not_kept(temporary):
    data = DataLoader(Named(lambda k: k // 2), batch_size=16)
    report = measured(data, **{**BY_NAME, "ids": None, "columns": {}})
    assert report.sections[0].samples is None


def test_more_samples_than_are_to_be_kept_leave_no_file(temporary):
    report = measured(DataLoader(Named("row {}".format), batch_size=16), **BY_NAME, max_kept_samples=200)
    assert report.sections[0].samples is None
    assert any("max_kept_samples" in note for note in report.notes)
    assert list(temporary.iterdir()) == []


def test_reports_are_compared_before_they_are_saved(temporary, in_memory):
    shifted = {"preds": lambda x: x.flip(1)}
    expected = compare(in_memory(), in_memory(**shifted))
    found = compare(measured(), measured(**shifted))
    assert found.deltas == expected.deltas
    report = measured()
    read = Report.from_json(report.to_json()).sections[0].samples
    assert read.column("log loss").tolist() == report.sections[0].samples.column("log loss").tolist()
    assert found.flips == expected.flips


def of_ranks(rank, size, folder, batches=99):
    with pytest.MonkeyPatch.context() as patch:
        limits(patch, segment=40)
        try:
            report = run(batches, f"{folder}/run")
        except KeyboardInterrupt:
            return None
        files = saved(report, Path(folder, f"saved by {rank} of {size}"))
        return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


@pytest.mark.slow
def test_two_processes_write_the_file_of_one_and_another_number_resumes(tmp_path):
    for each in ("one", "two", "killed"):
        (tmp_path / each).mkdir()
    expected = of_ranks(0, 1, tmp_path / "one")
    assert processes(partial(of_ranks, folder=str(tmp_path / "two")), 2, tmp_path / "two") == [expected] * 2
    assert (
        processes(partial(of_ranks, folder=str(tmp_path / "killed"), batches=6), 2, tmp_path / "killed") == [None] * 2
    )
    assert list((tmp_path / "killed" / "run").glob("samples-*.arrow"))
    assert of_ranks(0, 1, tmp_path / "killed") == expected
