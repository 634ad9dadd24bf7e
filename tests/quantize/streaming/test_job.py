"""Models larger than memory: the bytes do not depend on kills, and bad sources and targets are refused."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from assay.quantize import QuantizedLinear, plan, quantize_weight
from assay.quantize.files.file import load, load_folder, load_packed_weights
from assay.quantize.files.meta_models import meta_model
from assay.quantize.streaming.job import quantize_shards
from assay.quantize.streaming.tensor_source import HANDLE_BYTES
from quantize.streaming.models import RECIPE, Model


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


# Memory

PEAK = """
import sys
import torch
torch.set_num_threads(1)
from assay.quantize.streaming.tensor_source import HANDLE_BYTES
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
@pytest.mark.exhaustive  # it starts processes
def test_memory_is_bounded_by_the_largest_layer(tmp_path):
    side, layers = 1024, 48
    weight = torch.randn(side, side, dtype=torch.bfloat16)
    save_file({f"layers.{k}.weight": weight.clone() for k in range(layers)}, tmp_path / "large.safetensors")
    save_file({"layers.0.weight": weight}, tmp_path / "small.safetensors")
    files = [str(tmp_path / name) for name in ("large.safetensors", "small.safetensors", "target")]
    peak = int(subprocess.run([sys.executable, "-c", PEAK, *files], capture_output=True, text=True, check=True).stdout)
    assert HANDLE_BYTES + 12 * weight.nbytes < layers * weight.nbytes / 2
    assert peak < HANDLE_BYTES + 12 * weight.nbytes, f"{peak / 1e6:.1f} MB"


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
