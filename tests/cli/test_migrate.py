"""The command as a user runs it: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from assay.cli import app

CODE = """\
from torchmetrics import Accuracy
from torchmetrics.wrappers import FeatureShare
from ignite.metrics import Accuracy as Share

m = Accuracy(task="multiclass", num_classes=3)
p = FeatureShare([])
share = Share(output_transform=lambda o: o)
"""


def ran(*arguments: object):
    return CliRunner().invoke(app, ["migrate", *map(str, arguments)])


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "train.py"
    made.write_text(CODE)
    return made


def test_it_shows_a_diff_and_numbered_notes_and_writes_nothing(file):
    shown = ran(file)
    assert shown.exit_code == 1
    assert "+m = as_torchmetric(Accuracy(num_classes=3))\n" in shown.stdout
    assert f"1. {file}:3: or change the import: PyTorch Ignite" in shown.stdout
    assert "   instead: from assay.compat.ignite.metrics import Accuracy as Share\n" in shown.stdout
    assert f"2. {file}:6: kept: TorchMetrics FeatureShare has no counterpart.\n" in shown.stdout
    assert f"3. {file}:7: left to you: PyTorch Ignite Accuracy: num_classes is not written here" in shown.stdout
    assert "   instead: as_ignite(Accuracy(num_classes=...), lambda o: o)\n" in shown.stdout
    assert "1 file: 1 would change, 1 place left to you. Nothing was written; --write does." in shown.stderr
    assert file.read_text() == CODE


def test_it_writes_when_asked_and_is_done_then(file):
    shown = ran(file, "--write", "--num-classes", 3)
    assert shown.exit_code == 0
    assert "1 file: 1 changed, 0 places left to you." in shown.stderr
    assert "share = as_ignite(Accuracy(num_classes=3), lambda o: o)\n" in file.read_text()
    again = ran(file)
    assert again.exit_code == 0
    assert "---" not in again.stdout


def test_json_is_for_programs(file):
    shown = ran(file, "--json")
    assert shown.exit_code == 1
    told = json.loads(shown.stdout)
    assert told["written"] is False
    (about,) = told["files"]
    assert about["changed"] is True
    assert about["diff"].startswith("--- a/")
    assert [(note["line"], note["kind"]) for note in about["notes"]] == [(3, "import"), (6, "kept"), (7, "todo")]


def test_a_file_that_cannot_be_read_does_not_stop_the_others(file):
    (file.parent / "bad.py").write_text("def f(:\n")
    shown = ran(file.parent, "--write")
    assert shown.exit_code == 2
    assert f"assay: {file.parent / 'bad.py'} is no Python that can be read (line 1)" in shown.stderr
    assert "as_torchmetric" in file.read_text()
    assert (file.parent / "bad.py").read_text() == "def f(:\n"


def test_nothing_to_do_is_fine(tmp_path):
    (tmp_path / "a.py").write_text("x = 1\n")
    shown = ran(tmp_path)
    assert (shown.exit_code, shown.stdout) == (0, "")
