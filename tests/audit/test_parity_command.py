"""The command that compares a file, a metric or a module with the CPU."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from assay.audit.parity import ParityAudit, run
from assay.errors import ConfigError

PROGRAM = """
import torch

def audit(device):
    x = torch.arange(4.0).to(device)
    return x.cumsum(0)

def off(device):
    return torch.ones(2).to(device) + (str(device) != "cpu")

def nothing():
    return None
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_the_command_holds_a_file_against_the_cpu(program, capsys):
    assert run(str(program), ["mps", "cuda:1"]) == 0
    shown = capsys.readouterr().out
    assert f"{program} on mps:0 (pretend, native), lockstep: 2 operators compared, all agree" in shown
    assert "cuda:1 (pretend, native): 1 agree, 0 diverge, 2 operators compared" in shown


def test_the_command_shows_the_line_that_diverges(program, capsys):
    assert run(f"{program}:off", ["mps"]) == 1
    shown = capsys.readouterr().out
    assert "first: aten::add.Tensor" in shown or "first: result" in shown
    assert f"{program}:9" in shown
    assert 'return torch.ones(2).to(device) + (str(device) != "cpu")' in shown


def test_the_command_gives_json(program, capsys):
    assert run(f"{program}:off", ["mps"], as_json=True) == 1
    audit = ParityAudit.from_json(capsys.readouterr().out)
    (compared,) = audit.compared
    assert (compared.agrees, audit.exit_code) == (False, 1)
    assert (compared.first.file, compared.first.line) == (str(program), 9)
    assert compared.first.difference.device == 2.0
    assert "program.py:9" in audit.to_markdown()


def test_the_command_says_when_nothing_was_compared(program, capsys):
    assert run(f"{program}:nothing", ["mps"]) == 2
    assert "no operator was compared" in capsys.readouterr().out


def test_the_command_runs_the_metrics_of_a_library(capsys):
    assert run("assay.metrics:MeanSquaredError", ["mps"]) == 0
    shown = capsys.readouterr().out
    assert "MeanSquaredError" in shown
    assert "all agree" in shown


def test_a_script_imports_what_lies_beside_it_and_changes_no_arguments(tmp_path, monkeypatch, capsys):
    (tmp_path / "beside_the_compared.py").write_text("SIZE = 3\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import sys, torch\nfrom beside_the_compared import SIZE\n"
        "device = torch.accelerator.current_accelerator() or 'cpu'\n"
        "assert len(sys.argv) == 1\nx = torch.ones(SIZE, device=device) * 2\n"
    )
    monkeypatch.setattr("sys.argv", ["assay", "audit", "script.py"])
    before = list(sys.path)
    assert run(str(script), ["mps"]) == 0, capsys.readouterr().out
    assert (sys.argv, sys.path) == (["assay", "audit", "script.py"], before)


def test_a_module_by_name_is_compared_with_inputs_that_fit(tmp_path, capsys):
    (tmp_path / "net_to_compare.py").write_text("import torch\nnet = torch.nn.Linear(3, 2)\n")
    assert run(f"{tmp_path / 'net_to_compare.py'}:net", ["mps"]) == 0
    assert "all agree" in capsys.readouterr().out


def test_the_command_refuses_a_mode_that_is_none(program):
    with pytest.raises(ConfigError, match="mode: got 'x'"):
        run(str(program), ["mps"], mode="x")
