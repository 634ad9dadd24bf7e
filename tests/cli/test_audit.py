from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.audit import Audit, rules
from assay.audit.running.runner import AuditProgress
from assay.audit.watching.observations import COMPILING
from assay.cli import app
from assay.cli import audit as module
from assay.cli.config import resolve
from assay.cli.options.tools import AuditCommand
from assay.errors import ConfigError

pytestmark = pytest.mark.exhaustive  # most tests start processes
BUGGY = Path(__file__).parents[1] / "audit" / "buggy.py"


def invoke(*arguments):
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def test_findings_are_printed_and_the_exit_code_is_1():
    done = subprocess.run(
        [sys.executable, "-m", "assay", "audit", f"{BUGGY}:MixedDevices", "--device", "mps"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert not [line for line in done.stderr.splitlines() if "compiling the engine" not in line]
    assert "error  mixed-devices  mps; moved first, not moved" in done.stdout
    assert "Make `weights` on the device of the inputs" in done.stdout


@pytest.mark.parametrize(("subject", "lines"), [(COMPILING, 1), ("MixedDevices", 0)])
def test_a_compilation_is_reported_once_where_there_is_no_terminal(subject, lines, monkeypatch, capsys):
    def audit(target, devices, progress, **_):
        for device in devices:
            progress(AuditProgress(device, 0, 0, subject))
        return Audit(target, tuple(devices), (), (), 1, "2.13.0")

    monkeypatch.setattr(module, "audit", audit)
    assert invoke(f"{BUGGY}:MixedDevices").exit_code == 0
    assert invoke(f"{BUGGY}:MixedDevices").stderr.count("assay devices --prepare") == lines


def test_json_and_sarif(tmp_path):
    done = invoke(f"{BUGGY}:DeviceSync", "--device", "cuda:1", "--json", "--sarif", tmp_path / "a.sarif")
    assert done.exit_code == 1
    (found,) = json.loads(done.stdout)["findings"]
    assert found["rule"] == "device-sync"
    log = json.loads((tmp_path / "a.sarif").read_text())
    assert log["runs"][0]["results"][0]["ruleId"] == "device-sync"


def test_what_fails_can_be_chosen():
    target = f"{BUGGY}:DeviceSync"
    assert invoke(target, "--device", "mps", "--fail-on", "error").exit_code == 0
    assert invoke(target, "--device", "mps", "--ignore", "device-sync").exit_code == 0
    assert invoke(target, "--device", "mps", "--rules", "device-sync,unseeded", "--usage", "moved").exit_code == 1


def test_a_script_takes_arguments(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys, torch\nprint(torch.ones(2, device=sys.argv[1]).sum().item())\n")
    assert invoke(script, "--device", "xpu", "--args", "{device}").exit_code == 0
    assert invoke(script, "--device", "xpu").exit_code == 2


def test_modules_of_the_working_folder_can_be_named(tmp_path):
    package = tmp_path / "mine"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "metrics.py").write_text(BUGGY.read_text().partition("BATCHES = ")[0])
    command = Path(sys.executable).with_name("assay")
    done = subprocess.run(
        [command, "audit", "mine.metrics:DeviceSync", "--device", "mps", "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    (found,) = json.loads(done.stdout)["findings"]
    assert found["file"] == str(package / "metrics.py")


def test_the_rules_are_listed():
    lines = invoke("--list-rules").stdout.splitlines()
    assert lines[0].split()[:2] == ["mixed-devices", "error"]
    assert len(lines) == len(rules())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("no_such_thing",), "target: got 'no_such_thing'"),
        ((BUGGY, "--device", "tpu"), "device: got 'tpu'"),
        ((BUGGY, "--usage", "sideways"), "--usage: got sideways, expected one of moved, not-moved, both"),
        ((BUGGY, "--fail-on", "grave"), "--fail-on: got grave, expected one of note, warning, error"),
        ((BUGGY, "--rules", "sync"), "rule: got 'sync'"),
        ((BUGGY, "--timeout", "0"), "timeout: got 0.0, expected seconds, more than 0"),
        ((BUGGY, "--args", "'"), "--args: got ' (No closing quotation)"),
    ],
)
def test_wrong_arguments_are_said(arguments, message):
    error = invoke(*arguments).exception
    assert isinstance(error, ConfigError)
    assert str(error).startswith(message)


def test_without_a_target_it_asks_for_one():
    done = invoke()
    assert isinstance(done.exception, ConfigError)
    assert "TARGET: got none" in str(done.exception)


def test_lists_are_split():
    assert resolve(AuditCommand, {"target": "x", "device": " mps,cuda:1 ,,"}).device == ("mps", "cuda:1")
