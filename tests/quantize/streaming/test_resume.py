"""Runs that are killed, interrupted or repeated resume, and leave the same bytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

from assay.errors import ConfigError, StateError
from assay.quantize.files.container import Container
from assay.quantize.streaming.job import quantize_shards
from quantize.streaming.models import RECIPE, contents


def test_the_second_run_finds_all_done(tmp_path, source):
    first = quantize_shards(source, tmp_path / "target", RECIPE)
    before = contents(tmp_path / "target")
    second = quantize_shards(source, tmp_path / "target", RECIPE)
    assert (first.resumed, second.resumed) == (0, 6)
    assert contents(tmp_path / "target") == before
    assert str(second).startswith(f"{tmp_path / 'target'}: 6 weights quantized, 6 of them before; ")


# After an interruption

KILLED = """
import os, signal, sys, json
import torch
torch.set_num_threads(1)
from assay.quantize.streaming.tensor_source import HANDLE_BYTES
from assay.quantize.streaming.job import quantize_shards

source, base, recipe, points = sys.argv[1], sys.argv[2], json.loads(sys.argv[3]), json.loads(sys.argv[4])


def run(target, at):
    left = [at]

    def deadly(call):
        def dying(*args, **kwargs):
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            left[0] -= 1
            return call(*args, **kwargs)

        return dying

    for name in ("fsync", "replace", "truncate", "unlink"):
        setattr(os, name, deadly(getattr(os, name)))
    quantize_shards(source, target, recipe, shard_bytes=20_000)
    print("calls", at - left[0], flush=True)


for point in points:
    for _ in range(int(sys.argv[5])):  # what goes on is killed, too
        child = os.fork()
        if child == 0:
            run(os.path.join(base, str(point)), point)
            os._exit(0)
        print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def killed(tmp_path: Path, source: Path, points: list[int], times: int) -> list[str]:
    """Runs that are killed before their n-th call that makes something lasting, so many times for each n."""
    command = [
        sys.executable,
        "-c",
        KILLED,
        str(source),
        str(tmp_path),
        json.dumps(RECIPE),
        json.dumps(points),
        str(times),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def check_kills(tmp_path: Path, source: Path, points: list[int], times: int = 1) -> None:
    quantize_shards(source, tmp_path / "whole", RECIPE, shard_bytes=20_000)
    said = killed(tmp_path, source, points, times)
    assert said.count(f"status {-signal.SIGKILL}") >= len(points)
    for point in points:
        done = quantize_shards(source, tmp_path / str(point), RECIPE, shard_bytes=20_000)
        assert contents(done.target) == contents(tmp_path / "whole"), point


@pytest.mark.exhaustive  # it starts processes
def test_three_kills_leave_the_same_bytes(tmp_path, source):
    check_kills(tmp_path, source, [0, 14, 39])


@pytest.mark.slow
def test_twenty_kills_leave_the_same_bytes(tmp_path, source):
    calls = next(line for line in killed(tmp_path, source, [10**6], 1) if line.startswith("calls"))
    count = int(calls.split()[1])
    assert count > 40
    check_kills(tmp_path, source, [count * k // 20 for k in range(20)], times=2)


def interrupted(source: Path, target: Path, monkeypatch, at: str = "layers.1.up.weight.packed") -> None:
    """A run that ends before it writes a tensor."""
    real = Container.put

    def put(self, name, tensor):
        if name == at:
            raise KeyboardInterrupt
        return real(self, name, tensor)

    with monkeypatch.context() as patch:
        patch.setattr(Container, "put", put)
        with pytest.raises(KeyboardInterrupt):
            quantize_shards(source, target, RECIPE)


def test_a_run_goes_on_where_it_stopped(tmp_path, source, monkeypatch):
    target = tmp_path / "target"
    interrupted(source, target, monkeypatch)
    assert sorted(path.name for path in target.iterdir()) == [".assay-journal.jsonl", ".quantized.safetensors.part"]
    written: list[str] = []
    real = Container.put
    monkeypatch.setattr(
        Container, "put", lambda self, name, tensor: (written.append(name), real(self, name, tensor))[1]
    )
    done = quantize_shards(source, target, RECIPE)
    assert done.resumed == 5
    assert "layers.0.up.weight.packed" not in written
    quantize_shards(source, tmp_path / "whole", RECIPE)
    assert contents(target) == contents(tmp_path / "whole")


def test_what_was_damaged_meanwhile_is_done_again(tmp_path, source, monkeypatch):
    target = tmp_path / "target"
    interrupted(source, target, monkeypatch)
    part = target / ".quantized.safetensors.part"
    data = part.read_bytes()
    part.write_bytes(data[: len(data) // 3])
    quantize_shards(source, target, RECIPE)
    quantize_shards(source, tmp_path / "whole", RECIPE)
    assert contents(target) == contents(tmp_path / "whole")


def changed(source: Path, name: str) -> None:
    """Another value in one tensor; size and times of the file stay."""
    for file in source.glob("*.safetensors"):
        tensors = load_file(file)
        if name in tensors:
            stat = file.stat()
            tensors = {each: tensor.clone() for each, tensor in tensors.items()}
            tensors[name].view(-1)[0] += 1
            save_file(tensors, file)
            os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_source_that_changed_between_two_runs(tmp_path, source, monkeypatch):
    interrupted(source, tmp_path / "target", monkeypatch)
    changed(source, "layers.0.down.weight")
    with pytest.raises(StateError, match=r"got another layers.0.down.weight than before, expected the same source"):
        quantize_shards(source, tmp_path / "target", RECIPE)


def test_a_source_that_changed_after_all_was_done(tmp_path, source):
    quantize_shards(source, tmp_path / "target", RECIPE)
    changed(source, "layers.2.norm.weight")
    with pytest.raises(StateError, match=r"got another layers.2.norm.weight than before"):
        quantize_shards(source, tmp_path / "target", RECIPE)


def test_a_source_that_changes_while_it_is_read(tmp_path, source, monkeypatch):
    real = Container.put

    def put(self, name, tensor):
        os.utime(source / "model-00001-of-00002.safetensors", ns=(1, 1))
        return real(self, name, tensor)

    monkeypatch.setattr(Container, "put", put)
    with pytest.raises(StateError, match="than before, expected the same source"):
        quantize_shards(source, tmp_path / "target", RECIPE)


def test_another_job_in_the_same_folder(tmp_path, source, monkeypatch):
    interrupted(source, tmp_path / "target", monkeypatch)
    with pytest.raises(StateError, match="a job that was begun with another recipe or source, expected the same job"):
        quantize_shards(source, tmp_path / "target", "int8")
    with pytest.raises(StateError, match="a job that was begun with another method"):
        quantize_shards(source, tmp_path / "target", RECIPE, method="hqq")
    quantize_shards(source, tmp_path / "done", RECIPE)
    with pytest.raises(ConfigError, match="got a model that was quantized in another way, expected a folder without"):
        quantize_shards(source, tmp_path / "done", "int8")


def test_two_runs_at_once(tmp_path, source, monkeypatch):
    real = Container.put

    def put(self, name, tensor):
        with pytest.raises(StateError, match="a folder that another run writes into"):
            quantize_shards(source, tmp_path / "target", RECIPE)
        monkeypatch.setattr(Container, "put", real)
        return real(self, name, tensor)

    monkeypatch.setattr(Container, "put", put)
    quantize_shards(source, tmp_path / "target", RECIPE)
