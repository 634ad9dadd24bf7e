from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from functools import partial

import pytest
import torch
from safetensors.torch import save_file
from torch import nn
from typer.testing import CliRunner

from assay.cli import app
from assay.cli import quantize as cli_quantize
from assay.errors import AssayError, ConfigError
from assay.quantize import QuantizedLinear, dispatch, tuning
from assay.quantize.files.file import load, load_packed_weights

MODULE = """
    import torch
    from torch import nn

    def net():
        return nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10))

    def nothing():
        return nn.Sequential(nn.Conv1d(4, 4, 3))

    def broken():
        model = net()
        with torch.no_grad():
            model[0].weight[3, 5] = float("nan")
        return model
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "given.py").write_text(textwrap.dedent(MODULE), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("given", None)


def invoke(*arguments):
    return CliRunner().invoke(app, ["quantize", *arguments], catch_exceptions=True)


def test_the_plan_alone_changes_and_writes_nothing(folder):
    before = sorted(folder.rglob("*"))
    done = invoke("given:net", "--scheme", "int4", "--device", "mps", "--dtype", "bfloat16", "--plan")
    assert done.exit_code == 0, done.output
    assert "int4pack; dequantize from 32" in done.output
    assert "its rows of 64 weights cannot be cut into groups of 128; int4:g64 fits" in done.output
    assert [path for path in sorted(folder.rglob("*")) if "__pycache__" not in str(path)] == before


def test_it_quantizes_and_writes_what_can_be_loaded(folder):
    done = invoke("given:net", "--scheme", "int8", "--device", "cpu", "--out", "out", "--seed", "3")
    assert done.exit_code == 0, done.output
    assert "2 of 2 layers are quantized" in done.output
    import given

    model = load(given.net(), folder / "out")
    assert isinstance(model[2], QuantizedLinear)
    torch.manual_seed(3)
    x = torch.randn(4, 256, generator=torch.Generator().manual_seed(1))
    torch.manual_seed(3)
    assert (model(x) - given.net()(x)).abs().max() < 0.05


def test_weights_with_a_factory_and_options_of_layers(folder):
    torch.manual_seed(5)
    net = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10))
    save_file(net.state_dict(), folder / "weights.safetensors")
    options = ("--model-factory", "given:net", "--scheme", "int4:g64", "--exclude", "2", "--device", "cpu")
    done = invoke("weights.safetensors", *options, "--json", "--out", "small.safetensors")
    assert done.exit_code == 0, done.output
    said = json.loads(done.stdout)
    assert [layer["scheme"] for layer in said["layers"]] == ["int4:g64", None]
    assert said["layers"][1]["why"] == "excluded by '2'"
    import given

    model = load(given.net(), folder / "small.safetensors")
    assert torch.equal(model[2].weight, net[2].weight)


def test_a_torchchat_json_as_text_and_as_file(folder):
    recipe = '{"executor": {"accelerator": "mps"}, "linear:int4": {"groupsize": 32}}'
    (folder / "mobile.json").write_text(recipe, "utf-8")
    for given in (recipe, "mobile.json"):
        done = invoke("given:net", "--recipe", given, "--plan", "--json")
        assert done.exit_code == 0, done.output
        said = json.loads(done.stdout)
        assert (said["device"], {layer["scheme"] for layer in said["layers"]}) == ("mps", {"int4:g32"})


def test_markdown_and_the_original_case(folder):
    done = invoke("given:net", "--device", "mps", "--release", "2.4", "--plan", "--markdown")
    assert done.exit_code == 0, done.output
    assert "| 0 | 64 × 256 | int4:g128 |" in done.output
    note = "torch 2.4 has no kernel of _convert_weight_to_int4pack for mps; it is not needed"
    assert note in done.output.replace("\\_", "_")


def test_what_works_on_which_device():
    done = invoke("--matrix")
    assert done.exit_code == 0
    assert "| scheme | activations | cpu | cuda | mps | xpu |" in done.output


@pytest.fixture
def checkpoint(folder):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=128, intermediate_size=256, num_hidden_layers=2, num_attention_heads=4, vocab_size=64
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16).eval()
    model.save_pretrained(folder / "llama")
    return model


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_hugging_face_folder_is_planned_without_its_weights_and_quantized_tensor_by_tensor(folder, checkpoint):
    planned = invoke("llama", "--scheme", "int4", "--device", "mps", "--plan", "--json")
    assert planned.exit_code == 0, planned.output
    said = json.loads(planned.stdout)
    assert {layer["dtype"] for layer in said["layers"]} == {"bfloat16"}
    assert sum(layer["scheme"] is not None for layer in said["layers"]) == 15
    done = invoke("llama", "--scheme", "int4", "--device", "mps", "--out", "small", "--json")
    assert done.exit_code == 0, done.output
    from assay.quantize.files.file import load_folder

    model = load_folder(folder / "small")
    taken = {name for name, module in model.named_modules() if isinstance(module, QuantizedLinear)}
    assert taken == {layer["name"] for layer in said["layers"] if layer["scheme"]}
    ids = torch.tensor([[1, 2, 3]])
    assert (model(ids).logits - checkpoint(ids).logits).abs().max() < 0.2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_plan_that_was_printed_is_applied_as_it_is(folder, checkpoint):
    recipe = '{"mlp.up_proj": "int4:g64", "mlp.down_proj": "int8"}'
    planned = invoke("llama", "--recipe", recipe, "--device", "mps", "--plan", "--json")
    (folder / "plan.json").write_text(planned.stdout, "utf-8")
    done = invoke("llama", "--apply", "plan.json", "--out", "small", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout) == json.loads(planned.stdout)
    schemes = {str(each.scheme) for each in load_packed_weights(folder / "small").values()}
    assert {"int4:g64", "int8"} <= schemes
    done = invoke("llama", "--apply", "plan.json", "--scheme", "int4", "--out", "other")
    assert "--apply with --scheme" in str(done.exception)
    done = invoke("given:net", "--apply", "plan.json", "--out", "other")
    assert "the model that was planned" in str(done.exception)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("given:net",), "assay quantize: got no --out, expected where to write the model"),
        (("given:net", "--scheme", "int9", "--plan"), "scheme: got 'int9'"),
        (("given:net", "--device", "tpu", "--plan"), "device: got 'tpu'"),
        (("given:net", "--scheme", "int4", "--recipe", "r.toml", "--plan"), "plan: got a scheme and a recipe"),
        (("given:net", "--recipe", "none.toml", "--plan"), "recipe: got none.toml ("),
        (("given:nothing", "--plan"), "model: got no linear layer and no embedding"),
        (("given:broken", "--scheme", "int8", "--out", "out"), "0: weight: got 1 values that are NaN or infinite"),
        (("nowhere.safetensors", "--plan"), "MODEL: got nowhere.safetensors, which does not exist"),
    ],
)
def test_bad_input_is_told_and_nothing_is_written(folder, arguments, message):
    done = invoke(*arguments)
    assert isinstance(done.exception, AssayError), done.output
    assert message in str(done.exception)
    assert not (folder / "out").exists()


def test_no_model_is_told():
    done = invoke("--plan")
    assert isinstance(done.exception, ConfigError)
    assert "MODEL: got none" in str(done.exception)


@pytest.mark.exhaustive
def test_modules_of_the_folder_are_found_by_the_command_of_its_own(folder):
    command = [sys.executable, "-P", "-m", "assay", "quantize", "given:net", "--scheme", "int8", "--out", "small"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    assert (folder / "small").is_dir()
    assert done.stderr == "small\n"


@pytest.mark.exhaustive
def test_errors_are_one_line_and_exit_code_2(folder):
    command = [sys.executable, "-m", "assay", "quantize", "given:net", "--device", "npu", "--plan"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("assay: device: got 'npu'")
    assert done.stderr.count("\n") == 1


def test_tuning_measures_this_machine_and_says_where_it_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    monkeypatch.setattr(tuning, "STEADY", float("inf"))
    monkeypatch.setattr(cli_quantize, "tune", partial(tuning.tune, shape=(64, 128), rows=(1, 8), seconds=0.2))
    done = invoke("--tune", "--device", "cpu", "--scheme", "int8", "--dtype", "bfloat16")
    dispatch.default_table.cache_clear()
    assert done.exit_code == 0, done.output
    assert "int8, bfloat16: from 1 rows" in done.output
    assert str(tmp_path / "quantize-cpu.json") in done.output
    assert (tmp_path / "quantize-cpu.json").is_file()


def test_a_busy_machine_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    monkeypatch.setattr(tuning, "STEADY", 0.0)
    monkeypatch.setattr(cli_quantize, "tune", partial(tuning.tune, shape=(64, 128), rows=(1,), seconds=0.1))
    done = invoke("--tune", "--device", "cpu", "--scheme", "int8", "--dtype", "bfloat16")
    assert done.exit_code == 0, done.output
    assert "Run it again when the machine is idle; nothing was kept." in done.output
    assert list(tmp_path.iterdir()) == []
