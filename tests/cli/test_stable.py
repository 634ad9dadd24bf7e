"""`assay stable`: exit codes, other forms of the model, files of predictions, and what is refused."""

from __future__ import annotations

import json
import sys
import types

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from assay.cli import app
from assay.cli.loaders.onnx_programs import OnnxProgram
from assay.errors import ConfigError
from assay.stability import check_stability

MODELS = """
import torch

def net():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU())

def soft():
    return torch.nn.Sequential(net(), torch.nn.Softmax(0))
"""


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    (tmp_path / "networks_to_check.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    random = np.random.default_rng(0)
    x = random.standard_normal((50, 4)).astype(np.float32)
    np.savez("data.npz", x=x, y=random.integers(0, 3, 50))
    np.save("first.npy", x)
    np.save("second.npy", x + np.float32(0.1))


def run(*arguments: str):
    return CliRunner().invoke(app, ["stable", *arguments])


def test_exit_codes_say_whether_outputs_depend_on_something():
    given = "--data", "data.npz", "--inputs", "x"
    assert run("networks_to_check:net", *given).exit_code == 0
    assert run("networks_to_check:net", *given, "--as-is").exit_code == 1
    done = run("networks_to_check:soft", *given, "--samples", "20", "--json", "--out", "stable.json")
    assert done.exit_code == 1
    shown = json.loads(done.stdout)
    assert shown["schema"] == "assay.stability/1"
    assert shown["checks"][0]["samples"] == 20
    with open("stable.json", encoding="utf-8") as file:
        assert json.load(file) == shown


def test_data_need_no_target():
    np.savez("alone.npz", x=np.load("data.npz")["x"])
    assert run("networks_to_check:net", "--data", "alone.npz").exit_code == 0


def test_another_form_of_the_model_is_opened_as_the_model_is():
    given = "--data", "data.npz", "--inputs", "x", "--against", "networks_to_check:soft"
    done = run("networks_to_check:net", *given)
    assert done.exit_code == 1
    assert "networks_to_check:soft computes something else" in " ".join(done.output.split())


@pytest.mark.parametrize(("second", "code"), [("first.npy", 0), ("second.npy", 1)])
def test_two_files_of_predictions(second, code):
    assert run("first.npy", "--against", second).exit_code == code


def test_a_model_without_data_is_one_line():
    with pytest.raises(ConfigError, match="--data: got no data, expected samples for the model"):
        CliRunner().invoke(app, ["stable", "networks_to_check:net"], catch_exceptions=False)


def test_an_onnx_file_is_run_by_onnx_runtime_where_it_is_installed(monkeypatch):
    """ONNX Runtime itself is not needed: a stand-in has the three calls that are made of it."""
    with open("net.onnx", "wb"):
        pass

    class Session:
        def __init__(self, path, providers):
            assert (path, providers) == ("net.onnx", ["CPUExecutionProvider"])

        def get_inputs(self):
            return [types.SimpleNamespace(name="a"), types.SimpleNamespace(name="b")]

        def run(self, names, given):
            assert names is None
            return [given["a"] - given["b"]]

    monkeypatch.setitem(sys.modules, "onnxruntime", types.SimpleNamespace(InferenceSession=Session))
    program = OnnxProgram("net.onnx")
    assert torch.equal(program(torch.tensor([3.0]), b=torch.tensor([1.0])), torch.tensor([2.0]))


def test_onnx_runtime_itself_is_compared_with_the_model(recwarn):
    """Where ONNX Runtime and PyTorch's exporter are installed."""
    pytest.importorskip("onnxruntime")
    pytest.importorskip("onnxscript")
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4))
    sizes = {"dynamo": True, "dynamic_shapes": ({0: torch.export.Dim("batch")},), "verbose": False}
    torch.onnx.export(model.eval(), (torch.randn(3, 8),), "net.onnx", **sizes)
    samples, sound = torch.randn(40, 8), OnnxProgram("net.onnx")
    (row,) = [
        each for each in check_stability(model, samples, against={"net.onnx": sound}).checks if "onnx" in each.what
    ]
    assert row.verdict in ("rounding", "same bits")
    with torch.no_grad():
        model[3].bias[1] += 0.3
    (row,) = [
        each for each in check_stability(model, samples, against={"net.onnx": sound}).checks if "onnx" in each.what
    ]
    assert (row.verdict, row.cause) == ("depends", "net.onnx computes something else")


def test_without_onnx_runtime_an_onnx_file_is_not_checked(monkeypatch):
    with open("net.onnx", "wb"):
        pass
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    done = run("networks_to_check:net", "--data", "data.npz", "--inputs", "x", "--against", "net.onnx")
    assert done.exit_code == 0
    assert "onnxruntime is not installed" in " ".join(done.output.split())
    with pytest.raises(ConfigError, match=r"none\.onnx, which does not exist"):
        OnnxProgram("none.onnx")
