from __future__ import annotations

import inspect
import json
import os
import sys
import warnings

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from assay.cli.loaders.models import open_model
from assay.errors import AssayError, ConfigError, StateError

MODULE = """
import torch

def linear():
    return torch.nn.Linear(4, 3)

exported = torch.export.export(torch.nn.Linear(4, 3).eval(), (torch.ones(8, 4),))
"""
X = torch.arange(44.0).reshape(11, 4) / 44


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "nets.py").write_text(MODULE, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    sys.modules.pop("nets", None)


def linear():
    torch.manual_seed(3)
    return nn.Linear(4, 3).eval()


def program(path, module=None, example=None, **options):
    torch.export.save(torch.export.export(module or linear(), example or (torch.ones(8, 4),), **options), path)
    return path


def test_a_program_gives_what_the_model_gives(folder):
    found = open_model(str(program(folder / "net.pt2")))
    assert found.what == "an exported program"
    assert found.name == "net.pt2"
    assert torch.equal(found.model.eval()(X), torch.cat([linear()(X[:8]), linear()(X[8:])]))
    assert str(inspect.signature(found.model.forward)) == "(input)"


def test_a_program_in_a_module_is_one(folder):
    assert open_model("nets:exported").model(X).shape == (11, 3)


def scripted(module, path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(module).save(path)


class Writes(nn.Module):
    """TorchScript that writes a file when it is run."""

    def forward(self, x):
        torch.save(x, "ran")
        return torch.from_file("ran", True, 8)


class WritesWhenLoaded(Writes):
    @torch.jit.export
    def __getstate__(self):
        return True

    @torch.jit.export
    def __setstate__(self, state: bool):
        torch.save(state, "ran")
        self.training = state


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("module", [linear(), Writes(), WritesWhenLoaded()], ids=["linear", "writes", "when loaded"])
def test_torchscript_is_loaded_only_where_the_file_is_trusted(folder, module):
    scripted(module, "net.pt")
    with pytest.raises(StateError, match=r"net\.pt: got TorchScript.*--allow-code"):
        open_model("net.pt")
    assert not (folder / "ran").exists()
    if isinstance(module, WritesWhenLoaded):  # what is asked for --allow-code before
        open_model("net.pt", allow_code=True)
        assert (folder / "ran").exists()


def test_torchscript_says_what_it_takes(folder):
    scripted(linear(), "net.pt")
    found = open_model("net.pt", allow_code=True)
    assert found.what == "TorchScript"
    assert torch.equal(found.model(X), linear()(X))
    assert list(inspect.signature(found.model.forward).parameters) == ["input"]


@pytest.mark.parametrize("legacy", [False, True])
def test_weights_are_known_by_what_is_in_the_file(folder, legacy):
    torch.save(linear().state_dict(), "net.pt2x", _use_new_zipfile_serialization=not legacy)
    found = open_model("net.pt2x", factory="nets:linear")
    assert torch.equal(found.model(X), linear()(X))


def test_a_model_in_bfloat16_says_so(folder):
    assert open_model("nets:linear").dtype == torch.float32
    save_file(linear().bfloat16().state_dict(), "net.safetensors")
    assert open_model("net.safetensors", factory="nets:linear").dtype == torch.float32  # the factory's


class Touches:
    """What a stranger's file would do when it is unpickled."""

    def __reduce__(self):
        return os.system, ("touch ran",)


def test_a_whole_model_is_unpickled_only_where_the_file_is_trusted(folder):
    torch.save(nn.Linear(4, 3), "whole.pt")
    with pytest.raises(StateError, match=r"pickled objects \(torch.nn.modules.linear.Linear\), which run code"):
        open_model("whole.pt")
    with pytest.raises(StateError, match="or add --allow-code if you would run code from whoever made the file"):
        open_model("whole.pt")
    assert open_model("whole.pt", allow_code=True).what == "a module that was pickled whole"


def test_no_code_in_a_pickle_runs(folder):
    torch.save({"weight": Touches()}, "evil.pt")
    with pytest.raises(StateError, match=r"pickled objects \((posix|nt).system\)"):
        open_model("evil.pt", factory="nets:linear")
    assert not (folder / "ran").exists()


@pytest.mark.parametrize("part", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("ending", [".pt2", ".pt", ".safetensors"])
def test_files_that_are_cut_short_are_told(folder, ending, part):
    path = folder / f"net{ending}"
    if ending == ".pt2":
        program(path)
    else:
        state = linear().state_dict()
        torch.save(state, path) if ending == ".pt" else save_file(state, path)
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])
    with pytest.raises(StateError, match="got a file that cannot be read"):
        open_model(path.name, factory="nets:linear")


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("gone.pt2", "gone.pt2, which does not exist"),
        (f"gone{os.sep}net", "which does not exist, expected an existing file or folder"),
        (".", r"the folder \. without config.json, expected a model"),
        ("nets", "got 'nets', expected an existing file or folder, or package.module:function"),
    ],
)
def test_what_is_not_there_is_told(folder, named, message):
    with pytest.raises(ConfigError, match=message):
        open_model(named)


@pytest.mark.exhaustive
def test_a_folder_of_hugging_face(folder):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        id2label={0: "bad", 1: "good"},
    )
    net = transformers.BertForSequenceClassification(config).eval()
    net.save_pretrained("bert")
    found = open_model("bert")
    assert (found.name, found.classes) == ("bert", ("bad", "good"))
    ids = torch.tensor([[2, 5, 7, 3]])
    torch.testing.assert_close(found.model.eval()(ids).logits, net(ids).logits)
    _refused(folder / "bert", {"architectures": ["Mine"]}, "Mine, which transformers .* does not have")
    _refused(folder / "bert", {"architectures": None}, "architectures None, expected the name of a class")
    missing = r"missing weights qa_outputs.bias, qa_outputs.weight, expected all weights of BertForQuestionAnswering"
    _refused(folder / "bert", {"architectures": ["BertForQuestionAnswering"]}, missing)
    (folder / "bert" / "model.safetensors").unlink()
    _refused(folder / "bert", {}, "expected weights of BertForSequenceClassification as safetensors")
    (folder / "bert" / "config.json").write_text("{", "utf-8")
    with pytest.raises(StateError, match="got no JSON"):
        open_model("bert")


def _refused(folder, changes, message):
    file = folder / "config.json"
    before = file.read_text("utf-8")
    file.write_text(json.dumps({**json.loads(before), **changes}), "utf-8")
    with pytest.raises(AssayError, match=message):
        open_model(str(folder))
    file.write_text(before, "utf-8")
