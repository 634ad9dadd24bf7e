"""``assay gate``: exit codes, options, and the configuration file."""

from __future__ import annotations

import hashlib
import json
import re
import sys

import numpy as np
import pytest

import assay.cli
from assay.cli.gate import parse_range
from assay.errors import ConfigError
from assay.report import Gate, Report, Samples, Section, Slice, Value


def write(path, right, n=500):
    correct = np.arange(n) < right
    samples = Samples.pack(range(n), {"correct": correct}, data="made up")
    value = Value("accuracy", right / n, numerator="correct", higher_is_better=True)
    part = correct[: n // 2]
    slices = [Slice.of("first half", [Value("accuracy", part.mean(), numerator="correct")], np.arange(n) < n // 2)]
    return Report(path.stem, [Section("test", [value], samples=samples, slices=slices)]).save(path)


@pytest.fixture
def report(tmp_path):
    return write(tmp_path / "run.json", 450)


@pytest.fixture
def gate(monkeypatch):
    """Run ``assay gate``; the exit code."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["assay", "gate", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            assay.cli.main()
        return ended.value.code

    return call


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("--min accuracy=0.85", 0),
        ("--min accuracy=0.85 --max accuracy=0.95 --worst-slice accuracy=0.9", 0),
        ("--min accuracy=0.89", 2),
        ("--min accuracy=0.89 --point", 0),
        ("--min accuracy=0.91 --point", 1),
        ("--min accuracy=0.89 --confidence-level 0.3", 0),
        ("--min accuracy=0.95", 1),
        ("--min accuracy=0.89 --max accuracy=0.5", 1),
        ("--min f1=0.1", 1),
        ("--max-drop accuracy=0.1", 1),
        ("--max-rise accuracy=0.1", 2),
        ("--worst-slice accuracy=0.999", 2),
        ("--worst-slice-max accuracy=0.5", 1),
        ("--worst-slice accuracy=0.5 --min-slice-size 251", 1),
        ("--min accuracy[first*]=0.9 --max-drop accuracy[*]=0.1", 1),
        ("--min accuracy[*]=0.9", 0),
        ("--min accuracy[none]=0.9", 1),
        ("", 2),
        ("--min accuracy", 2),
        ("--min accuracy=nan", 2),
        ("--confidence-level 95 --min accuracy=0.1", 2),
        ("--least accuracy=0.1", 2),
        ("--json --markdown --min accuracy=0.1", 2),
        ("--min accuracy=0.1 --baseline none.json", 2),
        ("--min accuracy=0.1 --config none.toml", 2),
    ],
)
def test_exit_codes(report, gate, arguments, code, capsys):
    assert gate(report, *arguments.split()) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_baseline(report, gate, tmp_path, capsys):
    main = write(tmp_path / "main.json", 460)
    assert gate(report, "--baseline", main, "--max-drop", "accuracy=0.05", "--max-drop", "test/accuracy=0.06") == 0
    assert gate(report, "--baseline", main, "--max-drop", "accuracy=0.02") == 2
    assert gate(report, "--baseline", main, "--max-drop", "accuracy[first half]=0.1") == 0
    assert gate(report, "--baseline", main, "--max-drop", "accuracy=0.001") == 1
    assert "test/accuracy drops by ≤ 0.001" in capsys.readouterr().out


def test_a_file_that_is_no_report_cannot_say(gate, report, tmp_path, capsys):
    broken = tmp_path / "broken.json"
    broken.write_text(report.read_text("utf-8")[:200], "utf-8")
    assert gate(broken, "--min", "accuracy=0.1") == 2
    assert gate(report, "--max-drop", "accuracy=0.1", "--baseline", broken) == 2
    assert gate(tmp_path / "none.json", "--min", "accuracy=0.1") == 2
    assert re.findall("(?m)^assay: .*(JSON that ends|No such file)", capsys.readouterr().err) == [
        "JSON that ends",
        "JSON that ends",
        "No such file",
    ]


def test_the_configuration_and_the_options_over_it(report, gate, tmp_path, capsys):
    write(tmp_path / "main.json", 460)
    config = tmp_path / "gate.toml"
    config.write_text('baseline = "main.json"\n[min]\naccuracy = 0.95\n[max-drop]\naccuracy = 0.05\n', "utf-8")
    assert gate(report, "--config", config) == 1
    capsys.readouterr()
    assert gate(report, "--config", config, "--min", "accuracy=0.85", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert [(c["rule"]["kind"], c["rule"]["bound"]) for c in data["checks"]] == [("min", 0.85), ("max-drop", 0.05)]
    config.write_text("point = true\nmin-slice-size = 251\n[worst-slice]\naccuracy = 0.5\n", "utf-8")
    assert gate(report, "--config", config) == 1
    assert gate(report, "--config", config, "--min-slice-size", "1") == 0
    capsys.readouterr()
    assert gate(report, "--config", config, "--min-slice-size", "1", "--strict", "--markdown") == 0
    assert "by intervals of 95 %" in capsys.readouterr().out
    config.write_text("[minimum]\naccuracy = 0.5\n", "utf-8")
    assert gate(report, "--config", config) == 2
    assert "gate.toml: got the key 'minimum', expected 'min'" in capsys.readouterr().err


def test_the_help_says_what_the_codes_mean(gate, capsys):
    assert gate("--help") == 0
    printed = " ".join(capsys.readouterr().out.split())
    for word in ("Exit code 0: every rule holds.", "2: undecided.", "Exit code 2 means not enough evidence"):
        assert word in printed


def test_the_help_shows_how_slices_are_written(gate, capsys):
    assert gate("--help") == 0
    assert "[language = de]" in capsys.readouterr().out


def test_a_folder_stands_for_the_report_in_it(tmp_path, gate):
    (tmp_path / "run").mkdir()
    write(tmp_path / "run" / "report.json", 450)
    assert gate(tmp_path / "run", "--min", "accuracy=0.85", "--baseline", tmp_path / "run") == 0


def test_a_range_without_two_numbers_is_named_as_it_was_written():
    with pytest.raises(ConfigError, match="--range: got 'loss=1', expected metric=low,high"):
        parse_range("loss=1")


def test_locked_rules_are_recorded_with_their_digest_and_nothing_overrides_them(report, gate, tmp_path, capsys):
    rules = tmp_path / "rules.toml"
    rules.write_text("[min]\naccuracy = 0.8\n", "utf-8")
    assert gate(report, "--locked", rules, "--json") == 0
    digest = hashlib.sha256(rules.read_bytes()).hexdigest()
    found = Gate.from_json(capsys.readouterr().out)
    assert (found.rules_sha256, found.outcome) == (digest, "pass")
    assert gate(report, "--locked", rules) == 0
    assert digest[:20] in capsys.readouterr().out
    for more in (("--min", "accuracy=0.7"), ("--point",), ("--confidence-level", "0.5"), ("--config", rules)):
        assert gate(report, "--locked", rules, *more) == 2
        assert "--locked" in capsys.readouterr().err
    for text in ("", "confidence-level = 0.9\n", "baseline = 'run.json'\n[min]\naccuracy = 0.8\n"):
        rules.write_text(text, "utf-8")
        assert gate(report, "--locked", rules, "--baseline", report) == 2
