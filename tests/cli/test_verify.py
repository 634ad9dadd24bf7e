"""`assay verify --model`: a second run by the same model has the same bits, and one by another model has not."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.errors import ConfigError

MODEL = """
import torch

def linear(seed):
    torch.manual_seed(seed)
    return torch.nn.Linear(4, 3)

def measured():
    return linear(0)

def other():
    return linear(1)
"""


@pytest.fixture
def measured(tmp_path, monkeypatch):
    (tmp_path / "networks_to_verify.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    random = np.random.default_rng(0)
    x, y = random.standard_normal((60, 4)).astype(np.float32), random.integers(0, 3, 60)
    np.savez("data.npz", x=x, y=y)
    options = ["--data", "data.npz", "--inputs", "x", "--target", "y", "--num-classes", "3", "--metrics", "accuracy"]
    made = CliRunner().invoke(app, ["evaluate", "networks_to_verify:measured", *options, "--out", "run"])
    assert made.exit_code == 0, made.output
    return tmp_path / "run/report.json"


@pytest.mark.parametrize(("name", "code"), [("measured", 0), ("other", 1)])
def test_a_second_run_by_another_model_is_told_from_one_by_the_same(measured, name, code):
    given = ["verify", str(measured), "--model", f"networks_to_verify:{name}", "--data", "data.npz"]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == code, done.output
    assert ("the weights that were measured" in done.output) is (code == 0)


def test_a_model_without_data_is_one_line(measured):
    given = ["verify", str(measured), "--model", "networks_to_verify:measured"]
    with pytest.raises(ConfigError, match="--model: got no data, expected --data"):
        CliRunner().invoke(app, given, catch_exceptions=False)
