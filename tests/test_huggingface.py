from __future__ import annotations

import builtins
import json
import shutil

import pytest
import torch

from assay.errors import ConfigError, InvalidValuesWarning, MissingDependencyError, StateError
from assay.huggingface import open_model, open_tokenizer
from assay.language import generate, perplexity, tokens_of
from language.models import TEXT, folder, llama


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return folder(tmp_path_factory.mktemp("model"))


def values(report):
    return {value.name: value.value for value in report.sections[0].values}


def test_a_model_comes_back_with_its_tokenizer(saved):
    model, tokenizer = open_model(saved)
    assert not model.training
    assert tokenizer.start == (0,)
    assert (tokenizer.stop, tokenizer.unknown) == (1, None)
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    assert len(tokenizer.encode(TEXT)) < len(TEXT.encode()) / 2


def test_with_a_token_for_the_beginning_every_byte_is_predicted(saved):
    model, tokenizer = open_model(saved)
    tokens = tokens_of(TEXT, tokenizer)
    assert tokens.ids[0] == 0
    assert tokens.num_bytes == len(TEXT.encode())
    report = perplexity(model, TEXT, tokenizer=tokenizer, window=64, device="cpu")
    assert report.sections[0].values[0].count == len(tokenizer.encode(TEXT))


def test_without_one_the_bytes_of_the_first_token_are_left_out(tmp_path):
    folder(tmp_path, start=False)
    tokenizer = open_tokenizer(tmp_path)
    assert tokenizer.start == ()
    first = tokenizer.decode(tokenizer.encode(TEXT)[:1])
    assert tokens_of(TEXT, tokenizer).num_bytes == len(TEXT.encode()) - len(first.encode())


def test_the_library_s_own_loss_agrees(saved):
    model, tokenizer = open_model(saved)
    ids = tokens_of(TEXT, tokenizer).ids[:101]
    with torch.no_grad():
        expected = float(model(ids[None], labels=ids[None]).loss)
    found = values(perplexity(model, ids, window=100, device="cpu"))
    assert found["nats per token"] == pytest.approx(expected, rel=1e-6)


def test_text_is_gone_on_with(saved):
    model, tokenizer = open_model(saved)
    found = generate(model, "The 3rd", 8, tokenizer=tokenizer, device="cpu")
    assert 1 <= len(found.ids) <= 8
    assert found.prompt_tokens == 1 + len(tokenizer.encode("The 3rd"))


def test_a_folder_without_a_tokenizer_has_none(tmp_path):
    llama().save_pretrained(tmp_path)
    assert open_model(tmp_path)[1] is None


def test_a_model_cut_short_is_refused(tmp_path):
    folder(tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(StateError, match="expected a model that can be read"):
        open_model(tmp_path)


def test_missing_weights_are_not_made_up(tmp_path):
    from safetensors.torch import load_file, save_file

    folder(tmp_path)
    weights = tmp_path / "model.safetensors"
    tensors = load_file(weights)
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, weights, {"format": "pt"})
    with pytest.raises(StateError, match=r"no fitting weights for model\.layers\.1\.mlp\.up_proj\.weight"):
        open_model(tmp_path)


def test_weights_that_the_model_has_no_place_for_are_told(tmp_path):
    folder(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 1}))
    with pytest.warns(InvalidValuesWarning, match=r"weights that the model has no place for: model\.layers\.1\."):
        open_model(tmp_path)


def test_a_configuration_of_another_size_is_refused(tmp_path):
    folder(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "intermediate_size": 64}))
    with pytest.raises(StateError, match="down_proj"):
        open_model(tmp_path)


def test_a_damaged_tokenizer_is_refused(tmp_path):
    folder(tmp_path)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(StateError, match="expected a tokenizer that can be read"):
        open_model(tmp_path)


def test_a_place_without_a_model_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"which is no folder, expected a local folder with config\.json"):
        open_model(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"without config\.json"):
        open_model(tmp_path)


def test_without_the_package_the_extra_is_named(saved, monkeypatch):
    found = builtins.__import__

    def absent(name, *args, **options):
        if name == "transformers":
            raise ImportError(name)
        return found(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(MissingDependencyError, match=r'pip install "assay\[hf\]"'):
        open_model(saved)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """Folders of one quantized model: by assay, and by Transformers."""
    from assay.quantize import plan, quantize_shards

    path = tmp_path_factory.mktemp("small")
    made = plan(open_model(folder(path / "floats"))[0], {"embedding:*": "int8", "*": "int4:g32"}, "cpu")
    quantize_shards(path / "floats", path / "assay", made)
    model, tokenizer = open_model(path / "floats")
    made.apply(model).save_pretrained(path / "transformers")
    tokenizer._tokenizer.save_pretrained(path / "transformers")
    return path


@pytest.mark.parametrize("writer", ["assay", "transformers"])
@pytest.mark.parametrize("dtype", ["auto", "bfloat16"])
def test_quantized_folders_are_opened(small, writer, dtype):
    from assay.quantize import load_folder

    model, tokenizer = open_model(small / writer, dtype=dtype)
    expected = load_folder(small / "assay")
    assert not model.training
    assert tokenizer.decode(tokenizer.encode(TEXT)) == TEXT
    theirs = expected.state_dict()
    for name, tensor in model.state_dict().items():
        if name.endswith(".packed"):
            assert torch.equal(tensor, theirs[name])
    ids = torch.tensor([[1, 2, 3]])
    assert model(ids).logits.dtype == (torch.float32 if dtype == "auto" else torch.bfloat16)
    found, right = (values(perplexity(each, TEXT, tokenizer=tokenizer, window=64)) for each in (model, expected))
    tolerance = 1e-3 if dtype == "auto" else 2e-2  # the scales of a file are bfloat16, those in memory float32
    assert found["nats per token"] == pytest.approx(right["nats per token"], rel=tolerance)


def test_a_dtype_that_there_is_not_is_refused(small):
    with pytest.raises(ConfigError, match="float11"):
        open_model(small / "assay", dtype="float11")


@pytest.mark.parametrize("writer", ["assay", "transformers"])
def test_a_quantized_folder_that_is_cut_short_is_refused(small, writer, tmp_path):
    shutil.copytree(small / writer, tmp_path / "copy")
    weights = next((tmp_path / "copy").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1000])
    with pytest.raises(StateError, match="copy"):
        open_model(tmp_path / "copy")
