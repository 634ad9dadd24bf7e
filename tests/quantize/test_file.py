"""A model in a file: the same bits back for a model of that form, or a refusal that leaves all as it was."""

from __future__ import annotations

import copy
import json
import os
import struct
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from assay.errors import AssayWarning, ConfigError, StateError
from assay.pretend import pretend
from assay.quantize import QuantizedEmbedding, QuantizedLinear, Scheme, quantize_weight
from assay.quantize.files import file as files
from assay.quantize.files.container import Container
from assay.quantize.files.description import CHECKSUM, KEY
from assay.quantize.files.file import describe_file, is_quantized, load, load_packed_weights, save
from assay.quantize.files.meta_models import meta_model
from assay.quantize.layers import QuantizedWeight


class Model(nn.Module):
    """An embedding that its head shares, a linear layer with a bias, a norm, a counter."""

    def __init__(self, dtype: torch.dtype = torch.bfloat16, tied: bool = True) -> None:
        super().__init__()
        self.embed = nn.Embedding(40, 64, dtype=dtype)
        self.up = nn.Linear(64, 96, dtype=dtype)
        self.down = nn.Linear(96, 64, bias=False, dtype=dtype)
        self.norm = nn.LayerNorm(64, dtype=dtype)
        self.head = nn.Linear(64, 40, bias=False, dtype=dtype)
        self.register_buffer("steps", torch.tensor(7))
        if tied:
            self.head.weight = self.embed.weight

    def forward(self, x):
        h = self.embed(x)
        return self.head(self.norm(h + self.down(self.up(h))))


def quantized(dtype: torch.dtype = torch.bfloat16, tied: bool = True, head: bool = False) -> Model:
    torch.manual_seed(0)
    model = Model(dtype, tied)
    model.up = QuantizedLinear(quantize_weight(model.up.weight, "int4:g32"), model.up.bias)
    model.down = QuantizedLinear(quantize_weight(model.down.weight, "int8"), None, dtype)
    if head:
        weight = QuantizedWeight(quantize_weight(model.embed.weight, "int3:g64:sym"), dtype)
        model.embed = QuantizedEmbedding(weight)
        model.head = QuantizedLinear(weight)
    return model.eval()


def same_bits(a: nn.Module, b: nn.Module) -> bool:
    mine, theirs = a.state_dict(), b.state_dict()
    return mine.keys() == theirs.keys() and all(
        mine[name].dtype == theirs[name].dtype and torch.equal(mine[name], theirs[name]) for name in mine
    )


X = torch.arange(12).reshape(2, 6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("head", [False, True])
@pytest.mark.parametrize("target", ["folder", "model.safetensors"])
def test_what_is_loaded_has_the_bits_that_were_saved(tmp_path, dtype, head, target):
    model = quantized(dtype, head=head)
    path = save(model, tmp_path / target)
    again = Model(dtype).eval()
    assert load(again, path) is again
    assert same_bits(model, again)
    assert torch.equal(model(X), again(X))
    assert again.head.weight is again.embed.weight
    assert not again.up.training


@pytest.mark.parametrize("bits", range(2, 9))
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("group", [None, 32])
def test_integers_of_every_scheme_come_back(tmp_path, bits, symmetric, group):
    scheme = Scheme(bits, group, symmetric)
    torch.manual_seed(bits)
    given = {"a.weight": quantize_weight(torch.randn(5, 96), scheme), "b": quantize_weight(torch.eye(3, 32), scheme)}
    found = load_packed_weights(save(given, tmp_path / "weights.safetensors"))
    assert found.keys() == given.keys()
    assert all(found[name].equal(given[name]) for name in given)


def test_the_same_model_gives_the_same_bytes(tmp_path):
    first = save(quantized(), tmp_path / "a.safetensors")
    second = save(quantized(), tmp_path / "b.safetensors")
    assert first.read_bytes() == second.read_bytes()
    third = save(load(Model(), first), tmp_path / "c.safetensors")
    assert first.read_bytes() == third.read_bytes()


def test_shards_are_small_and_load_as_one(tmp_path):
    model = quantized()
    folder = save(model, tmp_path / "model", shard_bytes=4000)
    found = sorted(path.name for path in folder.iterdir())
    shards = [name for name in found if name.startswith("quantized-")]
    assert len(shards) > 2
    assert found == [*shards, "quantized.safetensors.index.json"]
    index = json.loads((folder / "quantized.safetensors.index.json").read_text())
    held = {name: file for file in shards for name in load_file(folder / file)}
    assert index["weight_map"] == held
    assert same_bits(model, load(Model(), folder))


def test_a_folder_that_is_saved_again_has_no_file_of_before(tmp_path):
    folder = save(quantized(), tmp_path / "model", shard_bytes=4000)
    save(quantized(head=True), folder)
    assert [path.name for path in folder.iterdir()] == ["quantized.safetensors"]
    load(Model(), folder)


def test_what_the_file_says_without_reading_its_tensors(tmp_path):
    path = save(quantized(head=True), tmp_path / "m.safetensors")
    found = describe_file(path)
    assert {name: str(weight.scheme) for name, weight in found.weights.items()} == {
        "embed.weight": "int3:g64:sym",
        "up.weight": "int4:g32",
        "down.weight": "int8",
    }
    assert dict(found.tied) == {"head.weight": "embed.weight"}
    assert sorted(found.unquantized()) == ["norm.bias", "norm.weight", "steps", "up.bias"]
    assert is_quantized(path)
    save_file({"a": torch.ones(1)}, tmp_path / "other.safetensors")
    assert not is_quantized(tmp_path / "other.safetensors")
    assert not is_quantized(tmp_path / "none")


def test_no_packed_layout_is_written(tmp_path):
    model = quantized()
    before = save(model, tmp_path / "a.safetensors").read_bytes()
    with torch.no_grad():
        model(X)
    model.up.weight.prepare()
    assert model.up.weight._packs
    assert save(model, tmp_path / "b.safetensors").read_bytes() == before


def test_a_model_without_weights_in_memory_takes_the_file(tmp_path):
    model = quantized(head=True)
    path = save(model, tmp_path / "m.safetensors")
    empty = meta_model(Model)
    assert {held.device.type for held in empty.parameters()} == {"meta"}
    assert empty.head.weight is empty.embed.weight
    assert same_bits(model, load(empty, path))
    assert torch.equal(model(X), empty.eval()(X))


def test_values_that_no_file_brings_are_missed(tmp_path):
    class Rotary(Model):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("frequencies", torch.ones(3), persistent=False)

    path = save(quantized(), tmp_path / "m.safetensors")
    load(meta_model(Rotary), path)
    with torch.device("meta"):
        model = Rotary()
    with pytest.raises(ConfigError, match=r"nothing for frequencies, expected values for what is on the meta device"):
        load(model, path)
    assert isinstance(model.up, nn.Linear)


def test_the_dtype_is_that_of_the_file(tmp_path):
    model = quantized(torch.bfloat16)
    path = save(model, tmp_path / "m.safetensors")
    again = load(Model(torch.float32), path)
    assert same_bits(model, again)
    assert again.up.weight.dtype == again.norm.weight.dtype == torch.bfloat16


def test_frozen_parameters_stay_frozen(tmp_path):
    path = save(quantized(), tmp_path / "m.safetensors")
    model = Model()
    model.norm.weight.requires_grad_(False)
    load(model, path)
    assert not model.norm.weight.requires_grad
    assert model.norm.bias.requires_grad


def test_a_quantized_model_takes_another_file(tmp_path):
    path = save(quantized(head=True), tmp_path / "m.safetensors")
    model = quantized(head=True)
    model.up = QuantizedLinear(quantize_weight(torch.ones(96, 64), "int2:g32"), model.up.bias)
    load(model, path)
    assert same_bits(model, quantized(head=True))


def test_ties_that_only_the_file_has_are_made(tmp_path):
    model = quantized(head=True)
    path = save(model, tmp_path / "m.safetensors")
    again = load(Model(tied=False), path)
    assert again.head.weight is again.embed.weight
    assert same_bits(model, again)


def test_ties_that_only_the_model_has_need_equal_values(tmp_path):
    untied = quantized(tied=False)
    path = save(untied, tmp_path / "a.safetensors")
    model = Model()
    with pytest.raises(StateError, match=r"different values for embed.weight and head.weight, expected the same"):
        load(model, path)
    assert isinstance(model.up, nn.Linear)
    untied.head.weight = nn.Parameter(untied.embed.weight.detach().clone())
    load(model, save(untied, tmp_path / "b.safetensors"))
    assert model.head.weight is model.embed.weight


# What is refused, and the model is as it was


def refused(path: Path, words: str, model: nn.Module | None = None, error: type[Exception] = StateError) -> None:
    """Loading raises these words, and changes nothing."""
    model = Model() if model is None else model
    before, modules = copy.deepcopy(model.state_dict()), list(model.modules())
    held = {name: id(each) for name, each in model.named_parameters()}
    with pytest.raises(error, match=words):
        load(model, path)
    assert list(model.modules()) == modules
    assert {name: id(each) for name, each in model.named_parameters()} == held
    assert all(torch.equal(before[name], each) for name, each in model.state_dict().items())


def rewritten(path: Path, change) -> Path:
    """The same file with other tensors or another description, as a valid safetensors file."""
    with safe_open(path, framework="pt") as handle:
        metadata = handle.metadata()
        tensors = {name: handle.get_tensor(name).clone() for name in handle.keys()}  # noqa: SIM118 - not a mapping
    change(tensors, metadata)
    save_file(tensors, path, metadata)
    return path


def said(change):
    """A change of the description, with a checksum that is right."""

    def apply(tensors, metadata):
        import hashlib

        description = json.loads(metadata[KEY])
        change(description)
        metadata[KEY] = json.dumps(description, sort_keys=True)
        metadata[CHECKSUM] = hashlib.sha256(metadata[KEY].encode()).hexdigest()

    return apply


@pytest.fixture
def path(tmp_path) -> Path:
    return save(quantized(), tmp_path / "m.safetensors")


@pytest.mark.parametrize("keep", [0.0, 0.0005, 0.01, 0.5, 0.999])
def test_files_cut_short(path, keep):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * keep)])
    refused(
        path, r"m.safetensors: got no whole safetensors file .* Copy all files of the model again, or save it again"
    )


def test_every_byte_of_the_tensors_counts(path):
    data = bytearray(path.read_bytes())
    start = 8 + struct.unpack("<Q", data[:8])[0]
    for place in range(start, len(data), 997):
        data[place] ^= 16
        path.write_bytes(data)
        refused(path, "other bytes of .*, expected those of its checksum")
        data[place] ^= 16
    path.write_bytes(data)
    load(Model(), path)


def test_a_description_that_was_changed(path):
    def other(tensors, metadata):
        metadata[KEY] = metadata[KEY].replace('"group_size": 32', '"group_size": 64')

    refused(rewritten(path, other), "a description that was changed")


def test_another_version(path):
    refused(
        rewritten(path, said(lambda description: description.update(version=2))),
        "version 2 of the form, expected version 1. Read it with the version of assay that wrote it",
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["weights"]["up.weight"].pop("shape"),
        lambda d: d["weights"]["up.weight"].update(kind="conv"),
        lambda d: d["weights"]["up.weight"].update(dtype="nn"),
        lambda d: d["weights"]["up.weight"]["scheme"].update(bits=12),
        lambda d: d["weights"]["up.weight"].update(shape=[96, 65]),
        lambda d: d.update(tensors=[]),
        lambda d: d.pop("tied"),
    ],
)
def test_a_description_that_cannot_be(path, change):
    refused(rewritten(path, said(change)), "a description that cannot be read")


def test_tensors_of_another_name(path):
    refused(
        rewritten(path, lambda tensors, _: tensors.update({"other": tensors.pop("steps")})),
        "also other, expected the tensors that it describes",
    )


def test_files_of_something_else(path, tmp_path):
    save_file({"a": torch.ones(2)}, tmp_path / "a.safetensors")
    refused(tmp_path / "a.safetensors", "a safetensors file of something else, expected a quantized model")
    refused(tmp_path / "none", "got nothing, expected what assay.quantize.save wrote")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", r"no quantized.safetensors and no quantized.safetensors.index.json")
    torch.save({"a": torch.ones(2)}, tmp_path / "pickle.safetensors")
    refused(tmp_path / "pickle.safetensors", "no whole safetensors file")


def test_shards_that_do_not_belong_together(tmp_path):
    folder = save(quantized(), tmp_path / "a", shard_bytes=4000)
    torch.manual_seed(5)
    other = quantized()
    nn.init.normal_(other.norm.weight)
    second = save(other, tmp_path / "b", shard_bytes=4000)
    shards = sorted(folder.glob("quantized-*"))
    refused(shards[1], "got one file of several, expected all files of one model")
    os.replace(second / shards[0].name, shards[0])
    refused(folder, f"got {shards[0].name} of another model than the rest")
    shards[0].unlink()
    refused(folder, f"got no {shards[0].name}, expected every file of its index")
    os.replace(shards[1], shards[0])
    refused(folder, f"got no {shards[1].name}")
    (folder / "quantized.safetensors.index.json").write_text("[]")
    refused(folder, "got no index")


def test_models_of_another_form(path):
    class More(Model):
        def __init__(self, **more: nn.Module) -> None:
            super().__init__()
            for name, module in more.items():
                setattr(self, name, module)

    refused(path, r"2 tensors of the model missing \(extra.bias, extra.weight\)", More(extra=nn.Linear(2, 2)))
    refused(path, r"1 tensors that the model has not \(up.bias\)", More(up=nn.Linear(64, 96, bias=False)))
    refused(path, r"up.weight: got shape \(96, 64\), expected shape \(64, 96\) as", More(up=nn.Linear(96, 64)))
    refused(path, r"norm.weight: got shape \(64,\), expected shape \(32,\) as", More(norm=nn.LayerNorm(32)))
    refused(path, r"tensors that the model has not \(down.weight.*missing", nn.Sequential(nn.Linear(3, 3)))

    class Doubled(nn.Linear):
        def forward(self, x):
            return 2 * super().forward(x)

    refused(path, "up: Doubled does more than the layer", More(up=Doubled(64, 96)), ConfigError)
    counter = Model()
    counter.steps = torch.tensor(1.0)
    refused(path, r"steps: got torch.int64, expected torch.float32 as in the model", counter)
    with pytest.raises(ConfigError, match=r"model: got function, expected a torch.nn.Module"):
        load(lambda: Model(), path)  # type: ignore[arg-type]


def test_not_strict_loads_what_both_have_and_says_the_rest(path):
    model = Model()
    model.extra = nn.Linear(2, 2)
    del model.norm
    with pytest.warns(AssayWarning, match=r"2 tensors that the model has not \(norm.bias, norm.weight\); 2 tensors of"):
        load(model, path, strict=False)
    assert isinstance(model.up, QuantizedLinear)
    other = nn.Sequential(nn.Linear(3, 3))
    with pytest.raises(StateError, match="that the model has not"):
        load(other, path, strict=False)


def test_infinite_scales(tmp_path):
    model = quantized()
    model.up.weight.scales[0, 0] = float("inf")
    path = save(model, tmp_path / "m.safetensors")
    refused(path, "scales of up.weight: got 1 that are NaN or infinite")


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(ConfigError, match=r"model: got no quantized layer, expected at least one\. Apply a plan first"):
        save(Model(), tmp_path / "a")
    with pytest.raises(ConfigError, match="got nothing, expected a module, or PackedWeight by name"):
        save({}, tmp_path / "a")
    with pytest.raises(ConfigError, match="got Tensor under 'a'"):
        save({"a": torch.ones(1)}, tmp_path / "a")  # type: ignore[dict-item]
    model = quantized()
    model.norm.to("meta")
    with pytest.raises(ConfigError, match=r"norm.weight: got a meta tensor"):
        save(model, tmp_path / "a")
    with pytest.raises(ConfigError, match="shard_bytes: got 0"):
        save(quantized(), tmp_path / "a", shard_bytes=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"which is a file, expected a folder, or a file that ends in \.safetensors"):
        save(quantized(), tmp_path / "file")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]
    with pytest.raises(ConfigError, match="expected a folder that can be written"):
        save(quantized(), tmp_path / "file" / "deeper")


def test_a_failure_leaves_the_file_of_before(tmp_path, monkeypatch):
    path = save(quantized(), tmp_path / "m.safetensors")
    before = path.read_bytes()
    real = Container.put

    def full(self, name, tensor):
        if name == "norm.weight":
            raise StateError("no space left")
        return real(self, name, tensor)

    monkeypatch.setattr(Container, "put", full)
    with pytest.raises(StateError):
        save(quantized(head=True), path)
    assert [each.name for each in tmp_path.iterdir()] == ["m.safetensors"]
    assert path.read_bytes() == before


def test_a_failure_before_the_last_check_changes_no_model(path, monkeypatch):
    monkeypatch.setattr(files.ModelLoader, "replacements", lambda *a, **k: (_ for _ in ()).throw(StateError("late")))
    refused(path, "late")


@pytest.mark.parametrize("kind", ["mps", "cuda", "xpu"])
def test_files_are_the_same_whatever_the_device(tmp_path, kind):
    model = quantized(head=True)
    path = save(model, tmp_path / "host.safetensors")
    expected = model(X)
    with pretend(kind) as device:
        there = load(meta_model(Model), path, device=device.device)
        assert {held.device.type for held in [*there.parameters(), *there.buffers()]} == {kind}
        found = there.eval()(X.to(device.device)).cpu()
        again = save(there, tmp_path / "there.safetensors")
        moved = load(Model().to(device.device), path)
        assert moved.up.weight.packed.device.type == kind
    assert again.read_bytes() == path.read_bytes()
    assert (found - expected).abs().max() <= 0.02 * expected.abs().max()


def test_hooks_and_modes_of_layers_are_kept_when_a_file_is_loaded(tmp_path):
    path = save(quantized(), tmp_path / "model")
    model = Model().eval()
    seen = []
    handle = model.up.register_forward_hook(lambda module, *_: seen.append(type(module).__name__))
    model.up.register_forward_pre_hook(lambda module, args, kwargs: seen.append("before"), with_kwargs=True)
    model.up.train()
    load(model, path)
    model(X)
    assert seen == ["before", "QuantizedLinear"]
    assert model.up.training
    handle.remove()
    model(X)
    assert seen[2:] == ["before"]
