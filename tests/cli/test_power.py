"""``assay power`` on stored reports."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import assay.cli
from assay.report import Power, Report, Samples, Section, Value


def write(path, right, n=500):
    samples = Samples.pack([f"{k // 10}/{k}" for k in range(n)], {"correct": np.arange(n) < right}, data="made up")
    value = Value("accuracy", right / n, numerator="correct", higher_is_better=True)
    return Report(path.stem, [Section("test", [value], samples=samples)]).save(path)


@pytest.fixture
def reports(tmp_path):
    return write(tmp_path / "main.json", 450), write(tmp_path / "new.json", 470)


@pytest.fixture
def power(monkeypatch):
    """Run ``assay power``; the exit code."""

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["assay", "power", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            assay.cli.main()
        return ended.value.code

    return call


def test_it_prints_how_many_samples(power, reports, capsys):
    assert power(reports[0], "--effect", "accuracy=0.01", "--n", "1000,20000") == 0
    printed = capsys.readouterr().out
    for word in ("main: how many samples", "same samples", "other samples", "14,126", "power 0.8"):
        assert word in printed
    assert power(reports[0], "--with", reports[1], "--effect", "accuracy=0.01", "--json", "--power", "0.9") == 0
    found = Power.from_json(capsys.readouterr().out)
    assert (found.run, found.power, len(found.estimates)) == ("new", 0.9, 2)
    assert power(reports[0], "--effect", "accuracy=0.01", "--cluster", "^[^/]+", "--markdown") == 0
    assert "50 clusters of id" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "--effect"),
        ("--effect accuracy", "metric=number"),
        ("--effect accuracy=0", "above 0"),
        ("--effect f1=0.1", "missing: there is test/accuracy"),
        ("--effect accuracy=0.01 --n 10.5", "--n"),
        ("--effect accuracy=0.01 --n many", "--n"),
        ("--effect accuracy=0.01 --power 80", "power"),
        ("--effect accuracy=0.01 --with none.json", "none.json"),
    ],
)
def test_what_is_invalid_exits_with_2(power, reports, arguments, message, capsys):
    assert power(reports[0], *arguments.split()) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert "Traceback" not in shown
