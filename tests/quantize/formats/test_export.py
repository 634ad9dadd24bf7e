"""Quantized models in the formats of other libraries: each is read by that library, and by NumPy after its page."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from assay.errors import ConfigError, MissingDependencyError
from assay.quantize import export, plan, quantize_shards
from assay.quantize.files.file import load_folder, load_packed_weights
from assay.quantize.formats.folder_writer import write_folder
from language.models import llama

transformers = pytest.importorskip("transformers")

IDS = torch.tensor([[1, 2, 3, 40]])
SYMMETRIC = {"lm_head": "int8", "q_proj": "skip", "mlp.*_proj": "int8:g32", "*": "int4:g32:sym"}
BLOCKS = {
    "embedding:*": "int8:g32",
    "lm_head": "int8:g32",
    "q_proj": "int4:g32:asym",
    "k_proj": "int5:g32:sym",
    "v_proj": "int5:g32:asym",
    "down_proj": "skip",
    "*": "int4:g32:sym",
}


def quantized(folder, recipe, model=None, dtype=torch.bfloat16):
    """A Llama, quantized in files."""
    (model or llama()).to(dtype).save_pretrained(folder / "floats")
    return quantize_shards(folder / "floats", folder / "quantized", recipe).target


def floats(folder, dtype=torch.bfloat16):
    """What the canonical form says that the weights are."""
    return {name: weight.dequantize(dtype) for name, weight in load_packed_weights(folder).items()}


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


def unpacked(words, bits, width):
    """int32 words as the page of compressed-tensors lays them: integer k takes the bits from k · bits on."""
    data = np.ascontiguousarray(words.numpy()).view(np.uint8)
    row = np.unpackbits(data, axis=1, bitorder="little")[:, : width * bits].reshape(len(data), width, bits)
    return (row @ (1 << np.arange(bits))).astype(np.int64) - (1 << (bits - 1))


@pytest.mark.parametrize("recipe", [SYMMETRIC, {"lm_head": "skip", "*": "int2:g32:sym"}], ids=["mixed", "int2"])
def test_compressed_tensors_after_its_page(tmp_path, recipe):
    source = quantized(tmp_path, recipe)
    written = export(source, tmp_path / "out", "compressed-tensors")
    stored = load_file(tmp_path / "out" / "model.safetensors")
    weights = load_packed_weights(source)
    assert written.weights == len(weights)
    for name, weight in weights.items():
        bits, (rows, width) = weight.scheme.bits, weight.shape
        assert stored[f"{name}_shape"].tolist() == [rows, width]
        integers = unpacked(stored[f"{name}_packed"], bits, width)
        scales = stored[f"{name}_scale"].double().numpy()
        found = integers.reshape(rows, scales.shape[1], -1) * scales[:, :, None]
        assert np.array_equal(found.reshape(rows, width), weight.dequantize().double().numpy())
    groups = config_of(tmp_path / "out")["quantization_config"]["config_groups"].values()
    named = {layer: group["weights"] for group in groups for layer in group["targets"]}
    assert {f"{layer}.weight": (each["num_bits"], each["group_size"]) for layer, each in named.items()} == {
        name: (weight.scheme.bits, weight.scheme.group_size) for name, weight in weights.items()
    }


def test_layers_that_were_skipped_are_ignored(tmp_path):
    export(quantized(tmp_path, SYMMETRIC), tmp_path / "out", "compressed-tensors")
    config = config_of(tmp_path / "out")["quantization_config"]
    assert config["ignore"] == ["model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.q_proj"]
    assert "model.layers.0.self_attn.q_proj.weight" in load_file(tmp_path / "out" / "model.safetensors")


def test_compressed_tensors_as_that_library_reads_it(tmp_path):
    package = pytest.importorskip("compressed_tensors")
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationConfig

    source = quantized(tmp_path, SYMMETRIC)
    export(source, tmp_path / "out", "compressed-tensors")
    stored = load_file(tmp_path / "out" / "model.safetensors")
    config = QuantizationConfig.model_validate(config_of(tmp_path / "out")["quantization_config"])
    schemes = {layer: group for group in config.config_groups.values() for layer in group.targets}
    assert package.__version__
    for name, expected in floats(source).items():
        layer = name.removesuffix(".weight")
        parts = {key.removeprefix(f"{layer}."): stored[key] for key in stored if key.startswith(f"{layer}.")}
        compressor = BaseCompressor.get_value_from_registry(schemes[layer].format)
        assert torch.equal(compressor.decompress(parts, schemes[layer])["weight"], expected), name


def test_int8_of_dynamic_activations_is_int_quantized(tmp_path):
    source = quantized(tmp_path, {"lm_head": "skip", "*": "int8:dynamic"})
    export(source, tmp_path / "out", "compressed-tensors")
    config = config_of(tmp_path / "out")["quantization_config"]
    (group,) = config["config_groups"].values()
    assert config["format"] == group["format"] == "int-quantized"
    assert group["input_activations"] == {
        "num_bits": 8,
        "type": "int",
        "symmetric": True,
        "strategy": "token",
        "dynamic": True,
    }
    stored = load_file(tmp_path / "out" / "model.safetensors")
    for name, weight in load_packed_weights(source).items():
        assert stored[name].dtype == torch.int8
        assert torch.equal(stored[name].float() * stored[f"{name}_scale"].float(), weight.dequantize())


def test_torchao_as_that_library_reads_it(tmp_path):
    pytest.importorskip("torchao")
    from safetensors import safe_open
    from torchao.prototype.safetensors.safetensors_support import unflatten_tensor_state_dict

    source = quantized(tmp_path, SYMMETRIC)
    export(source, tmp_path / "out", "torchao")
    file = tmp_path / "out" / "model.safetensors"
    with safe_open(file, "pt") as handle:
        metadata = {key: value for key, value in handle.metadata().items() if key != "format"}
    found, left = unflatten_tensor_state_dict(load_file(file), metadata)
    assert not left
    for name, expected in floats(source).items():
        assert type(found[name]).__name__ == "IntxUnpackedToInt8Tensor"
        assert torch.equal(found[name].dequantize(), expected), name


def blocks_of(path):
    """The tensors of a GGUF file by its own package: the floats that they stand for, and their types."""
    gguf = pytest.importorskip("gguf")
    tensors = gguf.GGUFReader(path).tensors
    floats = {each.name: gguf.dequantize(each.data, each.tensor_type) for each in tensors}
    return floats, {each.name: each.tensor_type.name for each in tensors}


def test_gguf_as_its_package_reads_it(tmp_path):
    source = quantized(tmp_path, BLOCKS)
    written = export(source, tmp_path / "small.gguf", "gguf")
    found, types = blocks_of(tmp_path / "small.gguf")
    expected = {name: value.numpy() for name, value in floats(source, torch.float32).items()}
    assert written.weights == len(expected)
    exact = {
        "token_embd": ("model.embed_tokens", "Q8_0"),
        "output": ("lm_head", "Q8_0"),
        "blk.1.attn_output": ("model.layers.1.self_attn.o_proj", "Q4_0"),
        "blk.1.ffn_up": ("model.layers.1.mlp.up_proj", "Q4_0"),
    }
    for name, (ours, kind) in exact.items():
        assert types[f"{name}.weight"] == kind
        assert np.array_equal(found[f"{name}.weight"], expected[f"{ours}.weight"]), name
    # llama.cpp's order of the rows of a head: of 16 rows first 0, then 8, then 1, ...
    order = np.concatenate([16 * head + np.arange(16).reshape(2, 8).T.ravel() for head in range(2)])
    assert types["blk.0.attn_k.weight"] == "Q5_0"
    assert np.array_equal(found["blk.0.attn_k.weight"], expected["model.layers.0.self_attn.k_proj.weight"][order])
    # minimums are rounded to float16, by at most 2^-11 of them; the note says by how much at most
    assert types["blk.0.attn_v.weight"] == "Q5_1"
    change = np.abs(found["blk.0.attn_v.weight"] - expected["model.layers.0.self_attn.v_proj.weight"])
    smallest = np.abs(expected["model.layers.0.self_attn.v_proj.weight"]).max() * 2.0**-11
    assert 0 < change.max() <= smallest
    stated = float(written.notes[1].split("at most ")[1].split(" ")[0])
    assert change.max() <= stated * 1.05
    assert types["blk.0.ffn_down.weight"] == "BF16"
    assert types["output_norm.weight"] == "F32"
    stored = load_file(tmp_path / "floats" / "model.safetensors")
    down = stored["model.layers.0.mlp.down_proj.weight"].float().numpy()
    assert np.array_equal(found["blk.0.ffn_down.weight"], down)


def test_blocks_without_an_offset_are_exact_and_have_no_note(tmp_path):
    pytest.importorskip("gguf")
    source = quantized(tmp_path, {"lm_head": "int8:g32", "*": "int4:g32:sym"})
    assert len(export(source, tmp_path / "small.gguf", "gguf").notes) == 1


def test_a_file_for_qwen_keeps_the_order_of_rows(tmp_path):
    config = transformers.Qwen2Config(
        hidden_size=64,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        vocab_size=64,
    )
    torch.manual_seed(0)
    source = quantized(tmp_path, {"lm_head": "int8:g32", "*": "int4:g32:sym"}, transformers.Qwen2ForCausalLM(config))
    export(source, tmp_path / "small.gguf", "gguf")
    found, _ = blocks_of(tmp_path / "small.gguf")
    expected = floats(source, torch.float32)["model.layers.0.self_attn.q_proj.weight"]
    assert np.array_equal(found["blk.0.attn_q.weight"], expected.numpy())


FRESH = """
    import sys, torch, transformers
    folder, kinds = sys.argv[1], sys.argv[2:]
    for kind in kinds:
        where = (folder,) if kind == "gguf" else (f"{folder}/{kind}",)
        more = {"gguf_file": "small.gguf"} if kind == "gguf" else {}
        model, info = transformers.AutoModelForCausalLM.from_pretrained(*where, output_loading_info=True, **more)
        assert not any(info.values()), info
        with torch.no_grad():
            logits = model(torch.tensor([[1, 2, 3, 40]])).logits
        torch.save(logits, f"{folder}/{kind}.pt")
    assert not any(name.partition(".")[0] == "assay" for name in sys.modules)
"""


def test_a_process_without_assay_loads_them(tmp_path):
    for package in ("compressed_tensors", "torchao", "gguf", "accelerate"):
        pytest.importorskip(package)
    kinds = ["transformers", "compressed-tensors", "torchao", "gguf"]
    source = quantized(tmp_path, {"lm_head": "int8:g32", "*": "int4:g32:sym"}, dtype=torch.float32)
    for kind in kinds:
        export(source, tmp_path / ("small.gguf" if kind == "gguf" else kind), kind)
    program = textwrap.dedent(FRESH)
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path), *kinds], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with torch.no_grad():
        expected = load_folder(source)(IDS).logits
    for kind in kinds:
        assert torch.allclose(torch.load(tmp_path / f"{kind}.pt"), expected, atol=2e-5), kind


def test_floats_are_the_values_of_the_quantized_model(tmp_path):
    source = quantized(tmp_path, {"lm_head": "int8", "embedding:*": "int8", "*": "int3:g32"})
    export(source, tmp_path / "out", "transformers")
    stored = load_file(tmp_path / "out" / "model.safetensors")
    for name, expected in floats(source).items():
        assert torch.equal(stored[name], expected), name
    assert "quantization_config" not in config_of(tmp_path / "out")


def test_floats_of_a_conv1d_are_turned_back(tmp_path):
    config = transformers.GPT2Config(n_embd=64, n_layer=1, n_head=2, vocab_size=64, n_positions=32)
    torch.manual_seed(0)
    source = quantized(tmp_path, "int8", transformers.GPT2LMHeadModel(config))
    with pytest.raises(ConfigError, match=r"Conv1D.*transformers"):
        export(source, tmp_path / "out", "compressed-tensors")
    export(source, tmp_path / "out", "transformers")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    name = "transformer.h.0.attn.c_attn.weight"
    assert torch.equal(again.state_dict()[name], floats(source)[name].t())


def test_a_model_in_memory(tmp_path):
    model = llama()
    plan(model, "int4:g32:sym", device="cpu").apply(model)
    export(model, tmp_path / "out", "compressed-tensors")
    name = "model.layers.0.mlp.up_proj"
    packed = load_file(tmp_path / "out" / "model.safetensors")[f"{name}.weight_packed"]
    assert np.array_equal(unpacked(packed, 4, 64), model.get_submodule(name).integers.values().numpy())


def test_several_files_have_an_index(tmp_path):
    from assay.quantize.formats import export as module

    source = module.open_source(quantized(tmp_path, SYMMETRIC))
    for kind in ("compressed-tensors", "torchao"):
        files = write_folder(source, tmp_path / kind, module.folder_format(kind), shard_bytes=40_000)
        assert len(files) > 2
        index = json.loads((tmp_path / kind / "model.safetensors.index.json").read_text())["weight_map"]
        assert index == {name: file for file in files for name in load_file(tmp_path / kind / file)}
    pytest.importorskip("torchao")
    again = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "torchao")
    expected = floats(source.folder)["model.layers.1.mlp.up_proj.weight"]
    assert torch.equal(again.model.layers[1].mlp.up_proj.weight.dequantize(), expected)


@pytest.mark.parametrize(
    ("format", "recipe", "message"),
    [
        ("compressed-tensors", "int4:g32", r"zero points.*choose int4:g32:sym"),
        ("compressed-tensors", "int3:g32:sym", r"3 bits.*choose int4:sym or int8"),
        ("compressed-tensors", {"embedding:*": "int8", "*": "int8"}, "no quantized embedding"),
        ("compressed-tensors", "int4:g32:sym:dynamic", "int8:dynamic"),
        ("torchao", "int4:g32", r"zero points.*choose int4:g32:sym"),
        ("torchao", "int8:dynamic", r"activations.*choose int8:sym"),
        ("transformers", "int8:dynamic", "without :dynamic"),
        ("gguf", "int4:g64:sym", r"choose one of int4:g32:sym \(Q4_0\)"),
        ("gguf", "int8", r"int8:g32 \(Q8_0\)"),
        ("onnx", "int8", "transformers or compressed-tensors"),
    ],
    ids=str,
)
def test_what_a_format_cannot_express_is_refused_before_anything_is_written(tmp_path, format, recipe, message):
    source = quantized(tmp_path, recipe)
    with pytest.raises(ConfigError, match=message):
        export(source, tmp_path / ("out.gguf" if format == "gguf" else "out"), format)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["floats", "quantized"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "mpt"}, "a model of type mpt"),
        ({"hidden_act": "gelu"}, "the activation gelu"),
        ({"sliding_window": 64}, "a sliding window"),
        ({"rope_parameters": {"rope_type": "yarn"}}, "positions scaled as yarn"),
    ],
    ids=str,
)
def test_gguf_refuses_models_that_it_would_read_as_others(change, message):
    pytest.importorskip("gguf")
    from assay.quantize.formats.gguf_file import architecture_of

    config = {"model_type": "llama", "hidden_act": "silu"}
    assert architecture_of(config) == "llama"
    with pytest.raises(ConfigError, match=message):
        architecture_of(config | change)


def test_targets(tmp_path):
    source = quantized(tmp_path, "int8")
    with pytest.raises(ConfigError, match=r"Name .*out\.gguf"):
        export(source, tmp_path / "out", "gguf")
    with pytest.raises(ConfigError, match="Name a folder"):
        export(source, tmp_path / "out.gguf", "torchao")
    with pytest.raises(ConfigError, match="the source"):
        export(source, source, "transformers")
    with pytest.raises(ConfigError, match=r"with model\.safetensors"):
        export(source, tmp_path / "floats", "transformers")
    with pytest.raises(ConfigError, match="a quantized model of Transformers"):
        export(tmp_path, tmp_path / "out", "transformers")
    with pytest.raises(ConfigError, match="a model of Transformers"):
        export(nn.Linear(4, 4), tmp_path / "out", "transformers")


def test_a_scale_beyond_float16_is_refused_by_its_name(tmp_path):
    pytest.importorskip("gguf")
    from assay.errors import InvalidValuesError

    model = llama()
    with torch.no_grad():
        model.model.layers[0].mlp.up_proj.weight[3, 5] = 3e6
    source = quantized(tmp_path, {"lm_head": "int8:g32", "*": "int4:g32:sym"}, model)
    with pytest.raises(InvalidValuesError, match=r"layers\.0\.mlp\.up_proj"):
        export(source, tmp_path / "small.gguf", "gguf")
    assert not list(tmp_path.glob("*small*"))


def test_without_the_package_gguf_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    source = quantized(tmp_path, {"lm_head": "int8:g32", "*": "int4:g32:sym"})
    with pytest.raises(MissingDependencyError, match=r"assay\[gguf\]"):
        export(source, tmp_path / "small.gguf", "gguf")
