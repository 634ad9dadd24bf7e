"""An evaluation that was killed goes on with the same bits; files that cannot be gone on from are refused."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from assay import AUROC, Accuracy, F1Score
from assay.errors import ConfigError, StateError
from assay.evaluation import BatchError, evaluate
from assay.evaluation.resume.termination import saves_on_sigterm
from assay.meter import Meter
from assay.meter.file import checksum
from assay.report import Report
from evaluation import stopping
from evaluation.exact_products import classifier, sixteenths
from thinning import one_of_each

CLASSES = 3
METRICS = {
    "acc": Accuracy(num_classes=CLASSES),
    "auroc": AUROC(num_classes=CLASSES),
    "F1": F1Score(num_classes=CLASSES, average="macro"),
}
SLICES = {"class": 1}
SCRIPT = Path(__file__).with_name("resumable.py")
ENVIRONMENT = {
    **os.environ,
    "OMP_NUM_THREADS": "1",
    "PYTHONPATH": os.pathsep.join([str(SCRIPT.parents[1]), os.environ.get("PYTHONPATH", "")]),
}


def samples(count=60):
    generator = torch.Generator().manual_seed(7)
    return TensorDataset(
        sixteenths(count, 4, generator=generator), torch.randint(CLASSES, (count,), generator=generator)
    )


def model(seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return classifier(4, CLASSES)


class Stops(stopping.Stops):
    """The same with a network, which is what it predicts with."""

    def __init__(self, batches, seed=0):
        super().__init__(batches)
        self.net = model(seed)

    @property
    def rows(self):
        return self.counters.rows

    def forward(self, x):
        return self.net(super().forward(x))


def found(report):
    """What was measured, to the bit, and the proof."""
    (section,) = report.sections
    proof = next(each for each in section.tables if each.name == "Every sample once").rows
    return Report("", [dataclasses.replace(section, tables=())], created="", environment={}).to_json(), proof


def run(net, folder, data=None, **more):
    data = DataLoader(samples(), batch_size=7, shuffle=True) if data is None else data
    how = {"slices": SLICES, "checkpoint_every": 0.0, **more}
    return evaluate(net, data, METRICS, device="cpu", resume=folder, **how)


def whole(data=None, **more):
    """What an evaluation without interruption finds."""
    data = samples() if data is None else data
    return found(evaluate(model(), data, METRICS, device="cpu", **{"slices": SLICES, **more}))


@pytest.mark.parametrize("stops", [(1,), (0, 3, 2), (8,)])
@one_of_each()
def test_what_was_counted_is_not_counted_again(tmp_path, stops):
    expected = whole()
    rows = 0
    for batches in stops:
        net = Stops(batches)
        with pytest.raises(KeyboardInterrupt):
            run(net, tmp_path)
        rows += net.rows
    last = Stops(99)
    report = run(last, tmp_path)
    assert found(report) == expected
    assert rows + last.rows == 60
    again = Stops(0)
    assert found(run(again, tmp_path)) == expected
    table = dict(next(each for each in report.sections[0].tables if each.name == "Run").rows)
    assert table["samples from checkpoints"] == str(rows)


class EndsItself(Stops):
    """Sends the signal that ends a process, instead of the interrupt of a keyboard."""

    def forward(self, x):
        if not self.counters.left:
            os.kill(os.getpid(), signal.SIGTERM)
        return super().forward(x)


def test_sigterm_writes_a_checkpoint_and_ends_with_its_exit_code(tmp_path):
    with pytest.raises(SystemExit) as ended:
        run(EndsItself(3), tmp_path, checkpoint_every=99.0)
    assert ended.value.code == 143
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    last = EndsItself(99)
    assert found(run(last, tmp_path)) == whole()
    assert last.rows == 60 - 3 * 7


def test_sigterm_while_a_batch_is_counted_ends_the_run_behind_it(tmp_path, monkeypatch):
    count = Meter.count

    def counts_and_ends(self, arguments):
        count(self, arguments)
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(Meter, "count", counts_and_ends)
    with pytest.raises(SystemExit):
        run(Stops(99), tmp_path, checkpoint_every=99.0)
    monkeypatch.setattr(Meter, "count", count)
    last = Stops(99)
    assert found(run(last, tmp_path)) == whole()
    assert last.rows == 60 - 7


def test_sigterm_is_left_to_who_handles_it(tmp_path):
    signals = []
    before = signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            run(EndsItself(3), tmp_path)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert signals == [signal.SIGTERM]


def test_without_checkpoints_and_in_other_threads_no_handler_is_set():
    with saves_on_sigterm(False):
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    def handler():
        with saves_on_sigterm():
            return signal.getsignal(signal.SIGTERM)

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(handler).result() is signal.SIG_DFL
    assert handler() is not signal.SIG_DFL


class Stream(IterableDataset):
    def __iter__(self):
        data = samples()
        return ({"x": data[k][0], "y": data[k][1], "id": f"s{k}"} for k in [0, *range(60), 3, 4])


@pytest.mark.parametrize("ids", [None, "id"])
def test_streams_go_on_where_they_were(tmp_path, ids):
    loader = DataLoader(Stream(), batch_size=7)
    how = {"inputs": "x", "ids": ids, "slices": ["y"]}
    expected = whole(loader, **how)
    with pytest.raises(KeyboardInterrupt):
        run(Stops(4), tmp_path, loader, **how)
    last = Stops(99)
    assert found(run(last, tmp_path, loader, **how)) == expected
    assert last.rows == (33 if ids else 35)


def test_a_batch_that_failed_is_tried_again(tmp_path):
    with pytest.raises(BatchError):
        run(lambda x: model()(x) if len(x) == 7 else 1 / 0, tmp_path)
    (file,) = tmp_path.iterdir()
    with safe_open(file, framework="pt") as read:
        assert json.loads(read.metadata()["assay.checkpoint"])["rows"] == 56


@pytest.mark.parametrize("count", [2, 3])
@one_of_each()
def test_files_of_several_ranks_are_gone_on_from_by_one(tmp_path, count):
    expected = whole()[0]
    identity = checkpoint_of_everything(tmp_path / "identity")
    folder = tmp_path / "ranks"
    folder.mkdir()
    for rank in range(count):
        part = DataLoader(samples(), batch_size=4, sampler=range(rank * 10, rank * 10 + 10))
        run(Stops(99), tmp_path / f"part{rank}", part)
        rewrite(tmp_path / f"part{rank}" / "rank-0.safetensors", folder / f"rank-{rank}.safetensors", run=identity)
    net = Stops(99)
    assert found(run(net, folder))[0] == expected
    assert net.rows == 60 - 10 * count
    assert sorted(path.name for path in folder.iterdir()) == ["rank-0.safetensors"]


def checkpoint_of_everything(folder):
    run(Stops(99), folder)
    return said(folder / "rank-0.safetensors")["run"]


def said(file):
    with safe_open(file, framework="pt") as read:
        return json.loads(read.metadata()["assay.checkpoint"])


def rewrite(file, to, keep_sum=False, tensors=None, **changes):
    """The same file with other words in its description."""
    with safe_open(file, framework="pt") as read:
        metadata = read.metadata()
        held = tensors or {name: read.get_tensor(name) for name in read.keys()}  # noqa: SIM118
    about = json.dumps({**json.loads(metadata["assay.checkpoint"]), **changes}, sort_keys=True)
    digest = metadata["sha256"] if keep_sum else checksum(about, held)
    save_file(held, to, {"assay.checkpoint": about, "sha256": digest})


@pytest.fixture
def half(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Stops(4), tmp_path)
    return tmp_path / "rank-0.safetensors"


def test_a_file_that_was_cut_short_is_refused(half):
    whole = half.read_bytes()
    for length in (0, 7, len(whole) // 2, len(whole) - 1):
        half.write_bytes(whole[:length])
        with pytest.raises(StateError, match=r"rank-0\.safetensors: got no whole checkpoint .* Name another folder"):
            run(Stops(99), half.parent)


def test_a_file_whose_bytes_were_changed_is_refused(half):
    with safe_open(half, framework="pt") as read:
        tensors = {name: read.get_tensor(name) for name in read.keys()}  # noqa: SIM118
    tensors["counted"][0] ^= 1
    rewrite(half, half, keep_sum=True, tensors=tensors)
    with pytest.raises(StateError, match="got bytes that were changed, expected those of its checksum"):
        run(Stops(99), half.parent)


@pytest.mark.parametrize("name", ["schema", "assay", "torch"])
def test_other_versions_are_refused(half, name):
    rewrite(half, half, **{name: "0.0"})
    with pytest.raises(StateError, match=f"got a checkpoint of {name} 0.0, expected {name} .*, for the same bits"):
        run(Stops(99), half.parent)


@pytest.mark.parametrize(
    ("net", "more", "what"),
    [
        (Stops(99, seed=1), {}, "model"),
        (Stops(99), {"data": samples(59)}, "data"),
        (Stops(99), {"data": DataLoader(samples(), batch_size=7, sampler=range(50))}, "data"),
        (Stops(99), {"precision": "bfloat16"}, "precision"),
    ],
    ids=["weights", "size", "sampler", "precision"],
)
def test_another_evaluation_is_refused(half, net, more, what):
    with pytest.raises(StateError, match=f"got a checkpoint of other {what}, expected one of this evaluation"):
        evaluate(
            net,
            **{"data": samples(), "metrics": METRICS, "device": "cpu", "resume": half.parent, "slices": SLICES, **more},
        )


def test_other_metrics_are_refused(half):
    metrics = {"acc": Accuracy(num_classes=CLASSES)}
    with pytest.raises(StateError, match="got a checkpoint of other metrics, expected"):
        evaluate(Stops(99), samples(), metrics, device="cpu", resume=half.parent, slices=SLICES)


@pytest.mark.parametrize("more", [{"slices": None}, {"slices": {"other": 1}}, {"keep_samples": False}, {"seed": 1}])
def test_other_slices_samples_or_intervals_are_refused(half, more):
    with pytest.raises(StateError, match="got a checkpoint of other slices, samples, intervals or seed, expected"):
        run(Stops(99), half.parent, **more)


def test_files_that_overlap_are_refused_and_those_taken_over_are_left_out(half):
    rewrite(half, half.with_name("rank-1.safetensors"))
    expected = whole()[0]
    assert found(run(Stops(99), half.parent))[0] == expected  # the same samples: one took over the other
    with safe_open(half, framework="pt") as read:
        tensors = {name: read.get_tensor(name) for name in read.keys()}  # noqa: SIM118
    mask = np.zeros(60, bool)
    mask[:8] = True
    tensors["counted"] = torch.from_numpy(np.packbits(mask))
    rewrite(half, half.with_name("rank-1.safetensors"), tensors=tensors)
    mask[:] = True
    mask[:3] = False
    tensors["counted"] = torch.from_numpy(np.packbits(mask))
    rewrite(half, half, tensors=tensors)
    with pytest.raises(StateError, match="with samples that another file has, too, expected files of one evaluation"):
        run(Stops(99), half.parent)


def killed_at_random(folder, kills, seed):
    """Run the script until it ends, killing it at random: in a model, between batches, while a file is written."""
    draw = random.Random(seed)
    ended = 0
    for attempt in range(kills + 1):
        at = str(draw.randrange(1, 60)) if attempt < kills else "never"
        done = subprocess.run(
            [sys.executable, SCRIPT, folder, at], env=ENVIRONMENT, capture_output=True, text=True, timeout=120
        )
        if done.returncode == 0:
            ended += 1
            last = done.stdout
        else:
            assert done.returncode == -9, done.stderr
    return last, ended


def uninterrupted(folder):
    command = [sys.executable, SCRIPT, folder, "never"]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.exhaustive  # it starts processes
def test_killed_at_random_places_the_bits_are_those_of_a_run_without_interruption(tmp_path, kills):
    last, ended = killed_at_random(tmp_path / "killed", kills, seed=kills)
    assert ended >= 1
    assert last == uninterrupted(tmp_path / "whole")


def test_without_intervals_another_seed_is_gone_on_with(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        run(Stops(4), tmp_path, confidence_level=None)
    assert found(run(Stops(99), tmp_path, confidence_level=None, seed=1)) == whole(confidence_level=None)


def test_a_full_disk_is_told_and_gone_on_from(tmp_path, monkeypatch):
    def full(tensors, path, metadata):
        Path(path).write_bytes(b"the beginning")
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    with pytest.raises(KeyboardInterrupt):
        run(Stops(3), tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("safetensors.torch.save_file", full)
        with pytest.raises(
            StateError, match=r"rank-0\.safetensors: got .*No space left on device.*, expected a checkpo"
        ):
            run(Stops(99), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["rank-0.safetensors"]
    assert found(run(Stops(99), tmp_path)) == whole()


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"resume: got .*within, which cannot be made \(Not a directory\), expected"):
        run(Stops(99), tmp_path / "file" / "within")


def test_a_file_in_place_of_the_folder_is_told(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"resume: got .*file, which is no folder, expected a folder for checkpoints"):
        run(model(), tmp_path / "file")
