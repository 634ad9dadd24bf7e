"""Disks, targets, sources, weights and arguments that are refused."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import pytest
from safetensors.torch import save_file
from torch import nn

from assay.errors import ConfigError, InvalidValuesError, StateError
from assay.quantize.streaming.job import quantize_shards
from quantize.streaming.models import RECIPE, Model, contents


def test_a_full_disk_is_told_before_the_work(tmp_path, source, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(
        StateError, match=r"got no space left on device, expected room for 0\.\d MB. Make room, or name"
    ):
        quantize_shards(source, tmp_path / "target", RECIPE)
    assert list((tmp_path / "target").iterdir()) == []


LIMITED = """
import resource, signal, sys, json
import torch
from assay.errors import StateError
from assay.quantize.streaming.tensor_source import HANDLE_BYTES
from assay.quantize.streaming.job import quantize_shards

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    quantize_shards(sys.argv[1], sys.argv[2], "int4:g32", shard_bytes=10**9)
except StateError as error:
    print(error)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="the system has no limit for the size of files")
@pytest.mark.exhaustive  # it starts processes
def test_the_system_refuses_to_write(tmp_path, source):
    command = [sys.executable, "-c", LIMITED, str(source), str(tmp_path / "target"), "9000"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "quantized.safetensors.part: got file too large, expected room for 0.0 MB. Make room" in said
    assert list((tmp_path / "target").iterdir()) == []


def test_a_disk_that_fills_up_meanwhile(tmp_path, source, monkeypatch):
    real, left = os.fsync, [6]

    def fsync(file):
        left[0] -= 1
        if left[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(file)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(StateError, match=r"no space left on device.*run it again: what was written is kept"):
            quantize_shards(source, tmp_path / "target", RECIPE)
    done = quantize_shards(source, tmp_path / "target", RECIPE)
    quantize_shards(source, tmp_path / "whole", RECIPE)
    assert contents(done.target) == contents(tmp_path / "whole")


def test_targets_that_cannot_be(tmp_path, source):
    with pytest.raises(ConfigError, match=r"target: got .*source, expected another folder than that of the source"):
        quantize_shards(source, source, RECIPE)
    with pytest.raises(ConfigError, match="which is a file, expected a folder"):
        quantize_shards(source, tmp_path / "a.safetensors", RECIPE)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="expected a folder that can be written"):
        quantize_shards(source, tmp_path / "file" / "target", RECIPE)
    other = tmp_path / "other"
    other.mkdir()
    (other / "pytorch_model.bin").write_text("")
    with pytest.raises(ConfigError, match=r"other: got another model, expected a folder without a model"):
        quantize_shards(source, other, RECIPE)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_target_without_the_right_to_write(tmp_path, source):
    (tmp_path / "locked").mkdir(mode=0o500)
    with pytest.raises(ConfigError, match="permission denied, expected a folder that can be written"):
        quantize_shards(source, tmp_path / "locked", RECIPE)


def test_sources_that_cannot_be(tmp_path, source, model):
    with pytest.raises(ConfigError, match=r"source: got .*none, which is not there"):
        quantize_shards(tmp_path / "none", tmp_path / "target")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "pytorch_model.bin").write_text("")
    with pytest.raises(ConfigError, match=r"bin with pytorch_model.bin, expected model.safetensors or .* Save it with"):
        quantize_shards(tmp_path / "bin", tmp_path / "target")
    done = quantize_shards(source, tmp_path / "done", RECIPE)
    with pytest.raises(ConfigError, match="got a quantized model, expected one of floats"):
        quantize_shards(done.target / done.files[0], tmp_path / "target")
    with pytest.raises(ConfigError, match=r"done with quantized.safetensors, expected model.safetensors"):
        quantize_shards(done.target, tmp_path / "target")
    (source / "config.json").write_text('{"quantization_config": {"quant_method": "gptq"}}')
    with pytest.raises(ConfigError, match=r"a model that is quantized already \(gptq\), expected one of floats"):
        quantize_shards(source, tmp_path / "target")
    (source / "config.json").write_text("{")
    with pytest.raises(StateError, match=r"config.json: got no JSON"):
        quantize_shards(source, tmp_path / "target")
    (source / "config.json").unlink()
    first, second = sorted(source.glob("*.safetensors"))
    data = first.read_bytes()
    first.write_bytes(data[:-1])
    with pytest.raises(StateError, match=r"model-00001-of-00002.safetensors: got no whole safetensors file"):
        quantize_shards(source, tmp_path / "target")
    first.unlink()
    with pytest.raises(StateError, match=r"got no model-00001-of-00002.safetensors, expected every file of its index"):
        quantize_shards(source, tmp_path / "target")
    second.rename(first)
    second.write_bytes(data)
    with pytest.raises(StateError, match=r"embed_tokens.weight in model-00001-of-00002.safetensors, where it is not"):
        quantize_shards(source, tmp_path / "target")
    (source / "model.safetensors.index.json").write_text("[]")
    with pytest.raises(StateError, match="got no index"):
        quantize_shards(source, tmp_path / "target")
    assert not (tmp_path / "target").exists() or list((tmp_path / "target").iterdir()) == []


def test_weights_that_cannot_be(tmp_path, model):
    model.layers[1].down.weight.data[3, 5] = float("nan")
    save_file(model.state_dict(), tmp_path / "nan.safetensors")
    with pytest.raises(
        InvalidValuesError, match=r"layers.1.down.weight of nan.safetensors: weight: got 1 values that are NaN"
    ):
        quantize_shards(tmp_path / "nan.safetensors", tmp_path / "target", RECIPE)


def test_arguments_that_cannot_be(tmp_path, source):
    with pytest.raises(ConfigError, match="method: got 'gptq', expected 'nearest' or 'search' or 'hqq'"):
        quantize_shards(source, tmp_path / "target", method="gptq")
    with pytest.raises(ConfigError, match="shard_bytes: got 0"):
        quantize_shards(source, tmp_path / "target", shard_bytes=0)
    with pytest.raises(ConfigError, match="model: got 'all', expected a module, a factory"):
        quantize_shards(source, tmp_path / "target", model="all")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"exclude: got 'heads', which no layer matches"):
        quantize_shards(source, tmp_path / "target", exclude=("heads",))
    with pytest.raises(ConfigError, match="expected every weight of the model"):
        quantize_shards(source, tmp_path / "target", model=lambda: nn.Sequential(nn.Linear(128, 8)))
    with pytest.raises(ConfigError, match="plan: got nothing to quantize"):
        quantize_shards(source, tmp_path / "target", {"*": "skip"})

    class Larger(Model):
        def __init__(self) -> None:
            super().__init__()
            self.head = nn.Linear(64, 60, bias=False)

    with pytest.raises(ConfigError, match=r"got head.weight of shape \(50, 64\), expected shape \(60, 64\)"):
        quantize_shards(source, tmp_path / "target", "int8", model=Larger)
    assert not (tmp_path / "target").exists() or list((tmp_path / "target").iterdir()) == []
