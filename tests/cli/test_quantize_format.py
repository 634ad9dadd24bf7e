"""``assay quantize --format``."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

from assay.cli import app
from language.models import TEXT
from language.models import folder as folder_with_tokenizer

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def floats(tmp_path_factory):
    return folder_with_tokenizer(tmp_path_factory.mktemp("floats"))


def invoke(*arguments):
    done = CliRunner().invoke(app, ["quantize", *map(str, arguments)], catch_exceptions=True)
    return done.exit_code, f"{done.output}{done.exception or ''}"


def method(folder):
    return json.loads((folder / "config.json").read_text()).get("quantization_config", {}).get("quant_method")


def test_a_folder_is_quantized_and_written_in_the_format(floats, tmp_path):
    out = tmp_path / "out"
    options = ("--scheme", "int4:g32:sym", "--device", "cpu", "--format", "compressed-tensors", "--out", out)
    code, output = invoke(floats, *options)
    assert code == 0, output
    assert str(out) in output.splitlines()[-1]
    assert method(out) == "compressed-tensors"
    assert (out / "tokenizer.json").is_file()
    assert [path.name for path in tmp_path.iterdir()] == ["out"]  # what was written on the way is removed


def test_a_model_that_assay_quantized_is_converted_as_it_is(floats, tmp_path):
    assert invoke(floats, "--scheme", "int8", "--device", "cpu", "--out", tmp_path / "small")[0] == 0
    code, output = invoke(tmp_path / "small", "--format", "transformers", "--out", tmp_path / "out")
    assert code == 0, output
    name = "model.layers.0.mlp.up_proj.weight"
    before = load_file(tmp_path / "small" / "quantized.safetensors")
    expected = before[f"{name}.packed"].view(torch.int8).float() * before[f"{name}.scales"].float()
    assert torch.equal(load_file(tmp_path / "out" / "model.safetensors")[name], expected)


def test_what_was_calibrated_and_measured_is_written_in_the_format_too(floats, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text(TEXT)
    gptq = ("--method", "gptq", "--calibration", text)
    measured = ("--eval", text, "--window", "64")
    for name, options in (("gptq", gptq), ("eval", measured)):
        to = ("--format", "torchao", "--out", tmp_path / name)
        code, output = invoke(floats, "--scheme", "int4:g32:sym", "--device", "cpu", *options, *to)
        assert code == 0, output
        assert method(tmp_path / name) == "torchao"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--scheme", "int4:g32", "--format", "torchao"), "choose int4:g32:sym"),
        (("--scheme", "int8", "--format", "onnx"), "Name one of them"),
        (("--scheme", "int8:g32", "--format", "gguf"), "ends in .gguf"),
    ],
    ids=["scheme", "format", "target"],
)
def test_it_is_refused_before_the_work(floats, tmp_path, options, message):
    code, output = invoke(floats, *options, "--device", "cpu", "--out", tmp_path / "out")
    assert code != 0
    assert message in " ".join(output.split())
    assert not list(tmp_path.iterdir())


def test_a_model_of_code_has_no_such_format(tmp_path, monkeypatch):
    (tmp_path / "coded.py").write_text(
        "from torch import nn\n\n\ndef net():\n    return nn.Sequential(nn.Linear(64, 8))\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    code, output = invoke("coded:net", "--scheme", "int8", "--format", "torchao", "--out", "out")
    assert code != 0
    assert "a Hugging Face folder" in " ".join(output.split())


def test_a_kill_in_the_conversion_is_resumed(floats, tmp_path, monkeypatch):
    from assay.cli import quantize_formats

    def killed(*_):
        raise KeyboardInterrupt

    options = (floats, "--scheme", "int8", "--device", "cpu", "--format", "transformers", "--out", tmp_path / "out")
    with monkeypatch.context() as patched:
        patched.setattr(quantize_formats, "export", killed)
        assert invoke(*options)[0] != 0
    left = tmp_path / ".out.quantized" / "quantized.safetensors"
    before = left.stat().st_mtime_ns
    seen = []
    monkeypatch.setattr(quantize_formats.shutil, "rmtree", lambda path: seen.append(left.stat().st_mtime_ns))
    assert invoke(*options)[0] == 0
    assert seen == [before]  # it was not quantized again
