"""Models larger than memory: the bytes do not depend on kills, and bad sources and targets are refused."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from assay.errors import ConfigError, InvalidValuesError, StateError
from assay.quantize import QuantizedLinear, plan, quantize_weight
from assay.quantize.files.container import Container
from assay.quantize.files.file import load, load_folder, load_packed_weights
from assay.quantize.files.meta_models import meta_model
from assay.quantize.streaming.job import quantize_shards
from assay.quantize.streaming.source import HANDLE_BYTES


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(64, 128, dtype=torch.bfloat16)
        self.down = nn.Linear(128, 64, bias=False, dtype=torch.bfloat16)
        self.norm = nn.LayerNorm(64, dtype=torch.bfloat16)

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(50, 64, dtype=torch.bfloat16)
        self.layers = nn.Sequential(*(Block() for _ in range(3)))
        self.head = nn.Linear(64, 50, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        return self.head(self.layers(self.embed_tokens(x)))


@pytest.fixture
def model() -> Model:
    torch.manual_seed(0)
    return Model().eval()


@pytest.fixture
def source(tmp_path, model) -> Path:
    """A folder as Hugging Face writes it: two shards and an index, a configuration, a tokenizer."""
    folder = tmp_path / "source"
    folder.mkdir()
    names = sorted(model.state_dict())
    files = {name: f"model-0000{1 + k % 2}-of-00002.safetensors" for k, name in enumerate(names)}
    for file in set(files.values()):
        save_file({name: model.state_dict()[name] for name in names if files[name] == file}, folder / file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": files}))
    (folder / "config.json").write_text(json.dumps({"model_type": "own", "hidden_size": 64}))
    (folder / "tokenizer.json").write_text("{}")
    return folder


RECIPE = {"head": "skip", "up": "int4:g32", "down": "int8"}


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_the_integers_are_those_of_the_weights_in_memory(tmp_path, source, model):
    done = quantize_shards(source, tmp_path / "target", RECIPE, shard_bytes=20_000)
    assert done.quantized == 6
    assert done.skipped == {
        "embed_tokens": 'embedding; "embedding:*" in a recipe takes it',
        "head": "skipped by 'head'",
    }
    assert done.notes == ("linear layers and embeddings were recognized by their names and shapes",)
    assert done.bytes_after < done.bytes_before
    assert len(done.files) > 1
    found = load_packed_weights(tmp_path / "target")
    state = model.state_dict()
    assert sorted(found) == sorted(f"layers.{k}.{name}.weight" for k in range(3) for name in ("up", "down"))
    for name, integers in found.items():
        assert integers.equal(quantize_weight(state[name], RECIPE[name.split(".")[-2]]))


def test_a_model_takes_the_target(tmp_path, source, model):
    quantize_shards(source, tmp_path / "target", RECIPE)
    again = load(meta_model(Model), tmp_path / "target").eval()
    x = torch.arange(10)[None]
    for block in model.layers:
        block.up = QuantizedLinear(quantize_weight(block.up.weight, "int4:g32"), block.up.bias)
        block.down = QuantizedLinear(quantize_weight(block.down.weight, "int8"), None, torch.bfloat16)
    assert torch.equal(model(x), again(x))


def test_other_files_come_along_and_the_configuration_tells(tmp_path, source):
    quantize_shards(source, tmp_path / "target")
    assert sorted(path.name for path in (tmp_path / "target").iterdir()) == [
        "config.json",
        "quantized.safetensors",
        "tokenizer.json",
    ]
    config = json.loads((tmp_path / "target" / "config.json").read_text())
    assert config == {"model_type": "own", "hidden_size": 64, "quantization_config": {"quant_method": "assay"}}


@pytest.mark.parametrize("as_module", [False, True])
def test_a_model_says_what_is_linear(tmp_path, source, as_module):
    class Odd(Model):
        def __init__(self) -> None:
            super().__init__()
            self.layers[1].up = nn.Bilinear(1, 1, 1)  # names alone would take it for a linear layer
            self.layers[0].norm = nn.Identity()

    given = meta_model(Odd) if as_module else Odd
    done = quantize_shards(source, tmp_path / "target", "int8", model=given)
    assert done.quantized == 6
    assert "layers.1.up.weight" in load_file(tmp_path / "target" / "quantized.safetensors")
    assert done.notes == (
        "tensors that are not in the model were copied, 2 of them: layers.0.norm.weight, layers.0.norm.bias",
    )


@pytest.mark.parametrize("method", ["search", "hqq"])
def test_methods_and_one_file_as_the_source(method, tmp_path, model):
    save_file(model.state_dict(), tmp_path / "plain.safetensors")
    quantize_shards(tmp_path / "plain.safetensors", tmp_path / "target", "int4:g64", method=method, include=("up",))
    written = load_packed_weights(tmp_path / "target")
    expected = quantize_weight(model.state_dict()["layers.0.up.weight"], "int4:g64", method)
    assert written["layers.0.up.weight"].equal(expected)
    assert len(written) == 3
    plan(model, "int4:g64", device="cpu", method=method, include=("up",)).apply(model)
    assert all(model.get_submodule(name.removesuffix(".weight")).integers.equal(written[name]) for name in written)


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
from assay.quantize.streaming.source import HANDLE_BYTES
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


# Memory

PEAK = """
import sys
import torch
torch.set_num_threads(1)
from assay.quantize.streaming.source import HANDLE_BYTES
from assay.quantize.streaming.job import quantize_shards

def at(key):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key + ":")) * 1024

quantize_shards(sys.argv[2], sys.argv[3] + "-small", "int4")
open("/proc/self/clear_refs", "w").write("5")
before = at("VmHWM")
quantize_shards(sys.argv[1], sys.argv[3], "int4")
print(at("VmHWM") - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the system does not tell the peak since a moment")
def test_memory_is_bounded_by_the_largest_layer(tmp_path):
    side, layers = 1024, 48
    weight = torch.randn(side, side, dtype=torch.bfloat16)
    save_file({f"layers.{k}.weight": weight.clone() for k in range(layers)}, tmp_path / "large.safetensors")
    save_file({"layers.0.weight": weight}, tmp_path / "small.safetensors")
    files = [str(tmp_path / name) for name in ("large.safetensors", "small.safetensors", "target")]
    peak = int(subprocess.run([sys.executable, "-c", PEAK, *files], capture_output=True, text=True, check=True).stdout)
    assert HANDLE_BYTES + 12 * weight.nbytes < layers * weight.nbytes / 2
    assert peak < HANDLE_BYTES + 12 * weight.nbytes, f"{peak / 1e6:.1f} MB"


# What is refused


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
from assay.quantize.streaming.source import HANDLE_BYTES
from assay.quantize.streaming.job import quantize_shards

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    quantize_shards(sys.argv[1], sys.argv[2], "int4:g32", shard_bytes=10**9)
except StateError as error:
    print(error)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="the system has no limit for the size of files")
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


# Hugging Face's models


@pytest.mark.parametrize("name", ["Llama", "GPT2"])
@pytest.mark.parametrize("recipe", ["int8", {"embedding:*": "int8", "lm_head": "int8", "*": "int4:g32"}])
def test_models_of_transformers(tmp_path, name, recipe):
    transformers = pytest.importorskip("transformers")
    sizes = {
        "Llama": {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4},
        "GPT2": {"n_layer": 2, "n_embd": 64, "n_head": 4},
    }[name]
    config = getattr(transformers, f"{name}Config")(vocab_size=120, bos_token_id=1, eos_token_id=2, **sizes)
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).to(torch.bfloat16).eval()
    model.save_pretrained(tmp_path / "source")
    done = quantize_shards(tmp_path / "source", tmp_path / "target", recipe)
    assert done.notes == ()
    again = load_folder(tmp_path / "target")
    kinds = [type(module).__name__ for module in again.modules()]
    assert not {"Conv1D", "Linear"} & set(kinds) or (name == "GPT2" and recipe == "int8")
    assert ("QuantizedEmbedding" in kinds) == (recipe != "int8")
    x = torch.arange(10)[None]
    expected, found = model(x).logits.float(), again(x).logits.float()
    assert (found - expected).norm() < (0.03 if recipe == "int8" else 0.3) * expected.norm()
    with pytest.raises(OSError, match=r"no file named model\.safetensors"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "target")
