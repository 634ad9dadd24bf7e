from __future__ import annotations

import io
import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import assay
from assay.cli import app
from assay.cli import devices as module
from assay.devices import Policy, SelfTest, policy
from assay.devices.capabilities import FEATURES
from assay.devices.kinds import DEVICES
from assay.devices.selftest import SelfTestOutcome
from assay.errors import ConfigError


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "assay", *arguments], capture_output=True, text=True, check=False)


def test_the_version():
    assert CliRunner().invoke(app, ["--version"]).output == f"assay {assay.__version__}\n"


def test_without_arguments_it_shows_the_commands():
    output = run().stdout + run().stderr
    assert "devices" in output
    assert "demo" in output


@pytest.mark.exhaustive
def test_away_from_a_terminal_it_is_plain_text():
    done = run("devices")
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert max(map(len, lines)) <= 160
    assert "self-test passed: 11 of 11" in done.stdout
    for feature in FEATURES:
        assert f"  {feature} " in done.stdout


def test_json_holds_the_facts_the_policy_and_the_self_test():
    data = json.loads(CliRunner().invoke(app, ["devices", "--json"]).output)
    assert data["here"][0]["device"] == "cpu"
    assert data["here"][0]["passed"] is True
    assert data["here"][0]["policy"]["chunk_elements"]["value"] == 131072
    assert data["here"][0]["policy"]["non_blocking"]["value"] is False
    assert [each["type"] for each in data["kinds"]] == list(DEVICES)
    mps = data["kinds"][DEVICES.index("mps")]
    assert mps["tested"] is False
    assert mps["facts"]["float64"] == {
        "supported": "no",
        "since": "",
        "why": "Metal has no float64; moving such a tensor there raises TypeError",
        "source": "pytorch/pytorch#122602",
    }
    assert data["kinds"][DEVICES.index("xpu")]["facts"]["int64_cumsum"]["supported"] == "unknown"


def test_a_failed_self_test_is_shown_with_what_failed(monkeypatch, capsys):
    outcomes = (SelfTestOutcome("sum", True), SelfTestOutcome("scatter_add_", False, "3 of 7 numbers are wrong"))
    monkeypatch.setattr(module, "self_test", lambda device: SelfTest(device, outcomes))
    module.show(as_json=False)
    shown = capsys.readouterr().out
    assert "self-test FAILED: 1 of 2" in shown
    assert "  scatter_add_: 3 of 7 numbers are wrong" in shown


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_it_fits_the_terminal(monkeypatch, columns):
    screen = Terminal()
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", screen)
    module.show(as_json=False)
    plain = screen.getvalue().replace("\x1b[1m", "").replace("\x1b[2m", "").replace("\x1b[0m", "")
    assert "\x1b" not in plain
    assert max(map(len, plain.splitlines())) <= columns
    assert "…" not in plain  # nothing is cut off


def test_an_error_of_assay_is_one_line_and_exit_code_2(monkeypatch, capsys):
    def fail(*, as_json):
        raise ConfigError("it: got this, expected that. Do so.")

    monkeypatch.setattr(module, "show", fail)
    monkeypatch.setattr(sys, "argv", ["assay", "devices"])
    with pytest.raises(SystemExit) as ended:
        assay.cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "assay: it: got this, expected that. Do so.\n"


def test_the_policy_shown_is_the_policy_used():
    assert isinstance(policy("cpu"), Policy)
    assert list(module._here(policy("cpu").device)["policy"]) == list(policy("cpu").decisions)


def test_it_says_how_devices_would_be_pretended(monkeypatch):
    monkeypatch.setattr(module, "built", lambda: False)
    monkeypatch.setattr(module, "why_not", lambda: "there is no C++ compiler")
    assert module.collect()["pretend"] == "the Python engine: there is no C++ compiler"
    monkeypatch.setattr(module, "why_not", lambda: "")
    assert module.collect()["pretend"] == "native engine, compiled at first use"
    monkeypatch.setattr(module, "built", lambda: True)
    assert module.collect()["pretend"] == "native engine, compiled"


def test_prepare_compiles_the_engine_and_nothing_else(monkeypatch):
    monkeypatch.setattr(module, "load", lambda: None)
    output = CliRunner().invoke(app, ["devices", "--prepare"]).output
    assert output == f"The engine of pretend devices is ready for torch {module.torch.__version__}.\n"
