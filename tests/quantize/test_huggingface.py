"""Quantized models of Transformers, saved with ``save_pretrained`` and read with ``from_pretrained``."""

from __future__ import annotations

import copy
import json
import subprocess
import sys

import pytest
import torch
from torch import nn

from assay.errors import MissingDependencyError, StateError
from assay.quantize import QuantizedEmbedding, QuantizedLinear, load, plan, register_with_transformers, save
from assay.quantize.files import huggingface
from assay.quantize.layers import QuantizedWeight
from language.models import llama

transformers = pytest.importorskip("transformers")

IDS = torch.tensor([[1, 2, 3, 40]])
ALL = {"embedding:*": "int8", "lm_head": "int8", "*": "int4:g64"}
MIXED = {"mlp.up_proj": "int3:g32", "mlp.down_proj": "int8", "embedding:*": "int4:g32:sym", "*": "int8:dynamic"}


def tied_llama(dtype=torch.float32):
    config = llama().config
    config.tie_word_embeddings, config.dtype = True, dtype
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM._from_config(config).eval()


def planned(model, recipe="int4:g32"):
    return plan(model, recipe, "cpu").apply(model)


def saved(folder, model, **options):
    model.save_pretrained(folder, **options)
    return folder


def opened(folder, **options):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True, **options)
    assert not any(info.values()), info
    return model.eval()


def assert_same(found, expected):
    mine, theirs = found.state_dict(), expected.state_dict()
    assert mine.keys() == theirs.keys()
    for name, tensor in mine.items():
        assert tensor.dtype == theirs[name].dtype, name
        assert torch.equal(tensor, theirs[name]), name
    assert torch.equal(found(IDS).logits, expected(IDS).logits)


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


def rewritten(folder, change):
    config = config_of(folder)
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


@pytest.mark.parametrize("recipe", ["int4:g32", "int8", MIXED], ids=str)
def test_every_bit_comes_back(tmp_path, recipe):
    model = planned(llama(), recipe)
    again = opened(saved(tmp_path, model))
    assert_same(again, model)
    assert isinstance(again.lm_head, QuantizedLinear)
    assert not again.training


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_tied_embeddings_are_stored_once_and_stay_tied(tmp_path, dtype):
    from safetensors import safe_open

    model = planned(tied_llama(dtype), ALL)
    assert model.lm_head.weight is model.model.embed_tokens.weight
    with safe_open(saved(tmp_path, model) / "model.safetensors", "pt") as file:
        names = set(file.keys())
    assert "model.embed_tokens.weight.packed" in names
    assert not any(name.startswith("lm_head") for name in names)
    again = opened(tmp_path)
    assert isinstance(again.model.embed_tokens, QuantizedEmbedding)
    assert again.lm_head.weight is again.model.embed_tokens.weight
    assert again.all_tied_weights_keys == model.all_tied_weights_keys
    assert_same(again, model)


def test_a_model_that_was_read_can_be_saved_again(tmp_path):
    model = planned(tied_llama(), ALL)
    first = opened(saved(tmp_path / "first", model))
    again = opened(saved(tmp_path / "again", first))
    assert_same(again, model)
    assert config_of(tmp_path / "again") == config_of(tmp_path / "first")


def test_embeddings_that_stay_floats_stay_tied(tmp_path):
    model = planned(tied_llama(), {"mlp": "int8", "self_attn": "int8"})
    again = opened(saved(tmp_path, model))
    assert again.lm_head.weight is again.model.embed_tokens.weight
    assert_same(again, model)


def test_biases_and_other_architectures(tmp_path):
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 256, "n_positions": 32}
    torch.manual_seed(0)
    config = transformers.GPT2Config(bos_token_id=1, eos_token_id=1, **sizes)
    model = planned(transformers.GPT2LMHeadModel(config).eval(), {"embedding:wte": "int8", "*": "int8"})
    assert isinstance(model.transformer.h[0].attn.c_attn, QuantizedLinear)  # a Conv1D, with a bias
    assert_same(opened(saved(tmp_path, model)), model)


def test_three_names_of_one_weight(tmp_path):
    torch.manual_seed(0)
    config = transformers.T5Config(
        d_model=64, d_kv=16, d_ff=128, num_layers=1, num_heads=4, vocab_size=96, decoder_start_token_id=0
    )
    model = planned(transformers.T5ForConditionalGeneration(config).eval(), {"embedding:*": "int8", "*": "int8"})
    model.save_pretrained(tmp_path)
    again, info = transformers.T5ForConditionalGeneration.from_pretrained(tmp_path, output_loading_info=True)
    assert not any(info.values()), info
    pair = {"input_ids": IDS, "decoder_input_ids": IDS}
    assert torch.equal(again.eval()(**pair).logits, model(**pair).logits)
    shared = again.shared.weight
    assert again.encoder.embed_tokens.weight is again.decoder.embed_tokens.weight is again.lm_head.weight is shared


def test_shards(tmp_path):
    model = planned(tied_llama(), ALL)
    saved(tmp_path, model, max_shard_size="20KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    assert_same(opened(tmp_path), model)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "auto"])
@pytest.mark.parametrize("stored", [torch.float32, torch.bfloat16], ids=str)
def test_integers_keep_their_bits_whatever_dtype_is_asked_for(tmp_path, stored, dtype):
    model = planned(tied_llama(stored), ALL)
    again = opened(saved(tmp_path, model), dtype=dtype)
    wanted = stored if dtype == "auto" else getattr(torch, dtype)
    layers = dict(again.named_modules())
    for name, module in model.named_modules():
        if isinstance(module, QuantizedLinear | QuantizedEmbedding):
            assert layers[name].integers.equal(module.integers)
            assert layers[name].integers.scales.dtype == module.integers.scales.dtype
            assert layers[name].weight.dtype == wanted
    assert again.model.norm.weight.dtype == wanted
    assert again(IDS).logits.dtype == wanted


def test_layers_that_a_model_keeps_in_float32_keep_their_scales(tmp_path):
    sizes = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 1, "num_heads": 4, "vocab_size": 96}
    kind = transformers.T5ForConditionalGeneration
    torch.manual_seed(0)
    saved(tmp_path / "floats", kind(transformers.T5Config(**sizes, decoder_start_token_id=0)))
    model = kind.from_pretrained(tmp_path / "floats", dtype=torch.float16)
    assert model.encoder.block[0].layer[1].DenseReluDense.wo.weight.dtype == torch.float32
    planned(model, "int8")
    again = kind.from_pretrained(saved(tmp_path / "small", model))
    mine, theirs = again.state_dict(), model.state_dict()
    assert all(torch.equal(mine[name], theirs[name]) and mine[name].dtype == theirs[name].dtype for name in theirs)
    before, after = (
        {name: module.dtype for name, module in each.named_modules() if isinstance(module, QuantizedWeight)}
        for each in (model, again)
    )
    assert after == before
    assert set(before.values()) == {torch.float16, torch.float32}


def test_what_is_written_is_what_the_model_holds_when_it_is_saved(tmp_path):
    model = planned(llama(), {"mlp": "int8"})
    planned(model, {"self_attn": "int4:g32"})
    model.to(torch.bfloat16)
    again = opened(saved(tmp_path, model))
    weights = config_of(tmp_path)["quantization_config"]["weights"]
    assert {weight["scheme"]["bits"] for weight in weights.values()} == {4, 8}
    assert again.model.layers[0].mlp.up_proj.weight.dtype == torch.bfloat16
    assert again.model.layers[0].mlp.up_proj.integers.equal(model.model.layers[0].mlp.up_proj.integers)


def test_a_model_inside_another_module(tmp_path):
    outer = nn.ModuleDict({"language": llama()})
    planned(outer)
    assert_same(opened(saved(tmp_path, outer["language"])), outer["language"])


def test_a_model_that_assay_loaded(tmp_path):
    model = planned(tied_llama(), ALL)
    save(model, tmp_path / "small.safetensors")
    again = load(tied_llama(), tmp_path / "small.safetensors")
    assert_same(opened(saved(tmp_path / "folder", again)), model)


def test_an_interrupted_plan_leaves_the_model_as_it_was(tmp_path):
    model = llama()
    made = plan(model, "int4:g32", "cpu")
    with torch.no_grad():
        model.lm_head.weight[0, 0] = float("nan")
    with pytest.raises(Exception, match="lm_head"):
        made.apply(model)
    assert getattr(model, "hf_quantizer", None) is None
    saved(tmp_path, model)
    assert "quantization_config" not in config_of(tmp_path)


def test_a_model_can_be_copied_and_pickled(tmp_path):
    model = planned(tied_llama(), ALL)
    torch.save(model, tmp_path / "whole.pt")
    for again in (copy.deepcopy(model), torch.load(tmp_path / "whole.pt", weights_only=False)):
        assert_same(again, model)
        assert_same(opened(saved(tmp_path / "folder", again)), model)


def test_models_of_others_are_not_marked():
    model = planned(nn.Sequential(nn.Linear(64, 32)))
    assert not hasattr(model, "hf_quantizer")


def damage_scheme(config):
    config["quantization_config"]["weights"]["lm_head"]["scheme"]["bits"] = 1


def damage_shape(config):
    config["quantization_config"]["weights"]["lm_head"]["shape"] = [1, 2]


def damage_scales(config):
    config["quantization_config"]["weights"]["lm_head"]["scales"] = "nothing"


def damage_kind(config):
    config["quantization_config"]["weights"]["lm_head"]["kind"] = "embedding"


def damage_entry(config):
    config["quantization_config"]["weights"]["lm_head"] = None


def one_entry_less(config):
    del config["quantization_config"]["weights"]["lm_head"]


def no_list(config):
    del config["quantization_config"]["weights"]


def damage_list(config):
    config["quantization_config"]["weights"] = ["lm_head"]


def other_layers(config):
    config["num_hidden_layers"] = 1


def other_sizes(config):
    config["intermediate_size"] = 64


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (damage_scheme, "lm_head"),
        (damage_shape, "lm_head"),
        (damage_scales, "lm_head"),
        (damage_kind, "lm_head"),
        (damage_entry, "lm_head"),
        (one_entry_less, "14 weights"),
        (no_list, "weights"),
        (damage_list, "weights"),
        (other_layers, "model.layers.1."),
        (other_sizes, "model.layers.0.mlp."),
    ],
)
def test_another_configuration_is_refused(tmp_path, change, named):
    saved(tmp_path, planned(llama(), "int8"))
    rewritten(tmp_path, change)
    with pytest.raises(StateError) as caught:
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert "config.json" in str(caught.value)
    assert named in str(caught.value)


@pytest.mark.parametrize("source", ["nowhere", "lm_head", "model.layers.0.mlp.up_proj"])
def test_a_tie_to_another_weight_is_refused(tmp_path, source):
    saved(tmp_path, planned(tied_llama(), ALL))
    rewritten(tmp_path, lambda config: config["quantization_config"]["weights"]["lm_head"].update(tied=source))
    with pytest.raises(StateError, match="lm_head"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)


def test_a_part_of_a_model_is_opened_by_its_own_class_only(tmp_path):
    saved(tmp_path, planned(llama(), "int8"))
    with pytest.raises(StateError, match="with the class that config"):
        transformers.LlamaModel.from_pretrained(tmp_path)


def test_scales_that_are_not_finite_are_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    saved(tmp_path, planned(llama(), "int8"))
    tensors = load_file(tmp_path / "model.safetensors")
    tensors["lm_head.weight.scales"][3] = float("nan")
    save_file(tensors, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(StateError, match=r"scales of lm_head\.weight"):
        transformers.AutoModelForCausalLM.from_pretrained(tmp_path)


def test_registering_twice_changes_nothing():
    from transformers.quantizers.auto import AUTO_QUANTIZER_MAPPING

    register_with_transformers()
    before = AUTO_QUANTIZER_MAPPING[huggingface.METHOD]
    register_with_transformers()
    assert AUTO_QUANTIZER_MAPPING[huggingface.METHOD] is before


def test_without_transformers_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.setitem(sys.modules, "transformers.quantizers.auto", None)
    monkeypatch.delitem(sys.modules, "assay.quantize.files.quantizer", raising=False)
    with pytest.raises(MissingDependencyError, match=r"assay\[hf\]"):
        register_with_transformers()
    planned(nn.Sequential(nn.Linear(64, 32)))


@pytest.mark.exhaustive  # it starts a process
def test_quantizing_other_models_does_not_import_transformers():
    code = (
        "import sys, torch; from assay.quantize import plan, register_with_transformers; "
        "model = torch.nn.Sequential(torch.nn.Linear(64, 32)); plan(model, 'int8', 'cpu').apply(model); "
        "print('transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
