"""Folders that other programs quantized, written here after their specification or by their libraries."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from assay.errors import AssayWarning, ConfigError, MissingDependencyError, StateError
from assay.huggingface import open_model
from assay.language import perplexity
from assay.quantize import export, quantize_shards
from assay.quantize.files.file import load_packed_weights
from language.models import TEXT, llama
from language.models import folder as folder_with_tokenizer

transformers = pytest.importorskip("transformers")

GROUP = 32
NAMES = ("self_attn.q_proj", "self_attn.k_proj", "mlp.up_proj", "mlp.down_proj")
LAYERS = [f"model.layers.{k}.{name}" for k in range(2) for name in NAMES]


def packed(integers, bits):
    """The rows of a matrix of unsigned integers as int32, least significant first: one big integer for each row."""
    rows = []
    for row in integers.tolist():
        number = sum(value << (place * bits) for place, value in enumerate(row))
        rows.append(np.frombuffer(number.to_bytes(len(row) * bits // 8, "little"), "<i4"))
    return torch.from_numpy(np.stack(rows).copy())


def drawn(shape, bits, seed):
    """Integers, zero points and scales of groups of a weight of shape (out, in)."""
    random = np.random.default_rng(seed)
    rows, width = shape
    integers = random.integers(0, 2**bits, shape)
    zeros = random.integers(0, 2**bits, (rows, width // GROUP))
    zeros[0, 0] = 0  # which the first convention of GPTQ stores as the largest number
    scales = random.uniform(0.005, 0.02, zeros.shape).astype(np.float16)
    return integers, zeros, scales


def foreign(folder, config, layer):
    """A Llama whose LAYERS are stored as ``layer(name, shape)`` says: their tensors, and their weights in float64.

    Returns the weights by name.
    """
    model = llama().to(torch.float16)
    model.config.dtype = torch.float16
    model.save_pretrained(folder)
    stored = load_file(folder / "model.safetensors")
    weights = {}
    for name in LAYERS:
        shape = tuple(stored.pop(f"{name}.weight").shape)
        tensors, weights[f"{name}.weight"] = layer(name, shape)
        stored |= {f"{name}.{part}": tensor.contiguous() for part, tensor in tensors.items()}
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"quantization_config": config}))
    return weights


def check(folder, weights):
    """The model of a folder has the weights, rounded once to float16, and all others as they were."""
    model, tokenizer = open_model(folder)
    found = dict(model.named_parameters())
    for name, weight in weights.items():
        expected = torch.from_numpy(np.asarray(weight, np.float32)).half()
        assert torch.equal(found[name].data, expected), name
    before = llama().half().state_dict()
    for name in ("model.embed_tokens.weight", "model.layers.0.self_attn.v_proj.weight", "model.norm.weight"):
        assert torch.equal(found[name].data, before[name]), name
    assert not model.training
    assert tokenizer is None
    return model


def gptq_layer(bits, is_first_convention=True, index=None):
    def layer(name, shape):
        integers, zeros, scales = drawn(shape, bits, len(name))
        groups = np.arange(shape[1]) // GROUP if index is None else index(shape[1])
        weight = scales.astype(np.float64)[:, groups] * (integers - zeros[:, groups])
        stored = (zeros - 1) % 2**bits if is_first_convention else zeros
        tensors = {
            "qweight": packed(integers, bits).t(),
            "qzeros": packed(stored.T, bits),
            "scales": torch.from_numpy(scales.T.copy()),
        }
        if index is not None:
            tensors["g_idx"] = torch.from_numpy(groups.astype(np.int32))
        return tensors, weight

    return layer


def shuffled(width):
    return np.random.default_rng(width).permutation(np.arange(width) // GROUP)


@pytest.mark.parametrize("bits", [2, 3, 4, 8])
@pytest.mark.parametrize("kind", ["gptq", "gptq_v2"])
def test_gptq_of_both_conventions(tmp_path, bits, kind):
    config = {"quant_method": "gptq", "bits": bits, "group_size": GROUP, "checkpoint_format": kind}
    check(tmp_path, foreign(tmp_path, config, gptq_layer(bits, kind == "gptq")))


def test_gptq_with_inputs_in_another_order(tmp_path):
    config = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": True}  # the first convention
    check(tmp_path, foreign(tmp_path, config, gptq_layer(4, index=shuffled)))


def test_a_layer_of_gptq_may_have_other_bits_than_the_configuration(tmp_path):
    def layer(name, shape):
        return gptq_layer(8 if "mlp" in name else 4, index=lambda width: np.arange(width) // GROUP)(name, shape)

    config = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "dynamic": {"+:.*mlp.*": {"bits": 8}}}
    check(tmp_path, foreign(tmp_path, config, layer))


def awq_words(integers):
    """int32 of eight integers of a row, interleaved as AutoAWQ does it."""
    order = (0, 2, 4, 6, 1, 3, 5, 7)
    eights = integers.reshape(len(integers), -1, 8)[..., order]
    return packed(eights.reshape(integers.shape), 4)


def awq_layer(name, shape):
    integers, zeros, scales = drawn(shape, 4, len(name))
    groups = np.arange(shape[1]) // GROUP
    weight = scales.astype(np.float64)[:, groups] * (integers - zeros[:, groups])
    return {
        "qweight": awq_words(integers.T),
        "qzeros": awq_words(zeros.T),
        "scales": torch.from_numpy(scales.T.copy()),
    }, weight


def test_awq(tmp_path):
    config = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm"}
    check(tmp_path, foreign(tmp_path, config, awq_layer))


def compressed(arguments, kind):
    """A layer as the package of compressed-tensors compresses it, and decompresses it again."""
    pytest.importorskip("compressed_tensors")
    from compressed_tensors.compressors import BaseCompressor
    from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme

    scheme = QuantizationScheme(targets=["Linear"], weights=QuantizationArgs(**arguments), format=kind)
    compressor = BaseCompressor.get_value_from_registry(kind)

    def layer(name, shape):
        torch.manual_seed(len(name))
        groups = {"group": shape[1] // GROUP, "channel": 1}.get(arguments["strategy"])
        sizes = (shape[0], groups) if groups else (1,)
        if arguments["strategy"] == "block":
            sizes = tuple(-(-size // block) for size, block in zip(shape, arguments["block_structure"], strict=True))
        state = {"weight": torch.randn(shape).half() * 0.05, "weight_scale": torch.rand(sizes).half() * 0.01 + 0.01}
        if not arguments["symmetric"]:
            state["weight_zero_point"] = torch.randint(-8, 8, sizes, dtype=torch.int8)
        stored = compressor.compress(state, scheme)
        again = compressor.decompress(stored, scheme)["weight"]
        # the library multiplies in float16: one rounding, as ours from float32
        return stored, again.float().numpy()

    return layer


INTEGERS = {"type": "int", "dynamic": False}


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("pack-quantized", {"num_bits": 4, "symmetric": True, "strategy": "group", "group_size": GROUP}),
        ("pack-quantized", {"num_bits": 4, "symmetric": False, "strategy": "group", "group_size": GROUP}),
        ("pack-quantized", {"num_bits": 8, "symmetric": False, "strategy": "channel"}),
        ("pack-quantized", {"num_bits": 3, "symmetric": True, "strategy": "channel"}),
        ("int-quantized", {"num_bits": 8, "symmetric": True, "strategy": "channel"}),
        ("naive-quantized", {"num_bits": 8, "symmetric": True, "strategy": "tensor"}),
        ("float-quantized", {"num_bits": 8, "symmetric": True, "strategy": "channel", "type": "float"}),
        ("float-quantized", {"num_bits": 8, "symmetric": True, "strategy": "block", "type": "float"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(map(str, value.values())),
)
def test_compressed_tensors(tmp_path, kind, arguments):
    arguments = INTEGERS | arguments
    if arguments["strategy"] == "block":
        arguments["block_structure"] = [48, 40]  # which does not divide every weight
    group = {"targets": ["Linear"], "weights": arguments, "format": kind}
    config = {"quant_method": "compressed-tensors", "format": kind, "config_groups": {"group_0": group}}
    check(tmp_path, foreign(tmp_path, config, compressed(arguments, kind)))


def test_rounded_activations_are_left_out_with_a_warning(tmp_path):
    arguments = INTEGERS | {"num_bits": 8, "symmetric": True, "strategy": "channel"}
    group = {"targets": ["Linear"], "weights": arguments, "input_activations": {"num_bits": 8, "dynamic": True}}
    config = {"quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"group_0": group}}
    weights = foreign(tmp_path, config, compressed(arguments, "int-quantized"))
    with pytest.warns(AssayWarning, match="activations"):
        check(tmp_path, weights)


@pytest.mark.parametrize("kind", ["compressed-tensors", "torchao", "transformers"])
def test_what_was_exported_is_read_again(tmp_path, kind):
    if kind == "torchao":
        pytest.importorskip("torchao")
    llama().to(torch.bfloat16).save_pretrained(tmp_path / "floats")
    quantize_shards(tmp_path / "floats", tmp_path / "small", {"lm_head": "int8", "*": "int4:g32:sym"})
    export(tmp_path / "small", tmp_path / "out", kind)
    model, _ = open_model(tmp_path / "out")
    for name, weight in load_packed_weights(tmp_path / "small").items():
        assert type(model.get_parameter(name).data) is torch.Tensor
        assert torch.equal(model.get_parameter(name).data, weight.dequantize(torch.bfloat16)), name


def test_torchao_as_that_library_quantizes(tmp_path):
    pytest.importorskip("torchao")
    from torchao.quantization import Int8WeightOnlyConfig, quantize_

    model = llama().to(torch.bfloat16)
    config = transformers.TorchAoConfig(Int8WeightOnlyConfig())
    model.save_pretrained(tmp_path / "floats")
    own = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "floats", quantization_config=config)
    own.save_pretrained(tmp_path / "torchao")
    quantize_(model, Int8WeightOnlyConfig(), lambda module, name: "proj" in name)
    found, _ = open_model(tmp_path / "torchao")
    for name in LAYERS:
        expected = model.get_parameter(f"{name}.weight").dequantize()
        assert torch.equal(found.get_parameter(f"{name}.weight").data, expected), name


def write_gguf(path, kinds):
    """A file whose tensors are of several types, by the package of llama.cpp; returns the floats of each."""
    gguf = pytest.importorskip("gguf")
    llama().save_pretrained(path.parent / "floats")
    quantize_shards(path.parent / "floats", path.parent / "small", {"lm_head": "int8:g32", "*": "int4:g32:sym"})
    export(path.parent / "small", path.parent / "start.gguf", "gguf")
    reader = gguf.GGUFReader(path.parent / "start.gguf")
    writer = gguf.GGUFWriter(path, "llama")
    for field in reader.fields.values():
        if not field.name.startswith(("GGUF.", "general.architecture")):
            writer.add_key_value(field.name, field.contents(), field.types[0])
    random = np.random.default_rng(0)
    floats = {}
    for tensor in reader.tensors:
        kind = next((kind for name, kind in kinds.items() if name in tensor.name), None)
        data = gguf.dequantize(tensor.data, tensor.tensor_type)
        kind = gguf.GGMLQuantizationType[kind] if kind else gguf.GGMLQuantizationType.F32
        if kind.name.endswith("_K"):
            size, nbytes = gguf.GGML_QUANT_SIZES[kind]
            data = random.integers(0, 64, (*data.shape[:-1], data.shape[-1] // size * nbytes), dtype=np.uint8)
        elif kind.name != "F32":
            data = gguf.quantize(data, kind)
        floats[tensor.name] = gguf.dequantize(data, kind)
        writer.add_tensor(tensor.name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return floats


def test_gguf(tmp_path):
    kinds = {"ffn_up": "Q8_0", "ffn_gate": "Q4_0", "ffn_down": "Q4_1", "attn_v": "Q5_0", "attn_output": "Q5_1"}
    floats = write_gguf(tmp_path / "other.gguf", kinds)
    model, tokenizer = open_model(tmp_path / "other.gguf")
    assert tokenizer is None
    names = {
        "ffn_up": "mlp.up_proj",
        "ffn_gate": "mlp.gate_proj",
        "ffn_down": "mlp.down_proj",
        "attn_v": "self_attn.v_proj",
    }
    for name, ours in names.items():
        found = model.get_parameter(f"model.layers.1.{ours}.weight").detach().numpy()
        assert np.array_equal(found, floats[f"blk.1.{name}.weight"]), name


def test_a_gguf_file_takes_the_tokenizer_beside_it(tmp_path):
    pytest.importorskip("gguf")
    folder_with_tokenizer(tmp_path / "floats")
    quantize_shards(tmp_path / "floats", tmp_path / "small", {"lm_head": "int8:g32", "*": "int4:g32:sym"})
    export(tmp_path / "small", tmp_path / "small" / "model.gguf", "gguf")
    model, tokenizer = open_model(tmp_path / "small" / "model.gguf")
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    of_file = perplexity(model, TEXT, tokenizer=tokenizer, window=64, device="cpu").sections[0].values[0].value
    ours, _ = open_model(tmp_path / "small")
    of_ours = perplexity(ours, TEXT, tokenizer=tokenizer, window=64, device="cpu").sections[0].values[0].value
    assert of_file == pytest.approx(of_ours, rel=1e-5)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "save it as gptq or gptq_v2"),
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "save it as gemm"),
        ({"quant_method": "awq", "bits": 8}, "8 bits"),
        ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, "nvfp4-pack-quantized"),
    ],
    ids=str,
)
def test_variants_that_are_not_read_are_named(tmp_path, config, message):
    foreign(tmp_path, config, awq_layer)
    with pytest.raises(ConfigError, match=message):
        open_model(tmp_path)


def test_tensors_that_do_not_belong_together_are_named(tmp_path):
    config = {"quant_method": "gptq", "bits": 4, "group_size": GROUP}
    foreign(tmp_path, config, gptq_layer(4))
    stored = load_file(tmp_path / "model.safetensors")
    name = "model.layers.0.mlp.up_proj.scales"
    save_file(stored | {name: stored[name][:, :5].contiguous()}, tmp_path / "model.safetensors")
    with pytest.raises(StateError, match=r"layers\.0\.mlp\.up_proj\.weight.*scales \(2, 5\)"):
        open_model(tmp_path)
    del stored[name]
    save_file(stored, tmp_path / "model.safetensors")
    with pytest.raises(StateError, match=r"KeyError.*scales"):
        open_model(tmp_path)


def test_integers_of_an_unknown_width_are_not_guessed(tmp_path):
    arguments = INTEGERS | {"num_bits": 4, "symmetric": True, "strategy": "group", "group_size": GROUP}
    group = {"targets": ["Linear"], "weights": arguments | {"num_bits": 3}}
    config = {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0": group}}
    foreign(tmp_path, config, compressed(arguments, "pack-quantized"))
    with pytest.raises(StateError, match=r"\[3\] bits in config\.json"):
        open_model(tmp_path)


def test_without_the_package_gguf_it_says_what_to_install(tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "gguf", None)
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(MissingDependencyError, match=r"assay\[gguf\]"):
        open_model(tmp_path / "model.gguf")


def test_a_file_that_is_no_gguf(tmp_path):
    pytest.importorskip("gguf")
    (tmp_path / "model.gguf").write_bytes(b"GGUF" * 10)
    with pytest.raises(StateError, match=r"model\.gguf"):
        open_model(tmp_path / "model.gguf")
