"""``assay score`` and ``assay merge``: files, exit codes, and what is printed."""

from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

import assay.cli
from assay import Accuracy, Meter
from assay.report import Report

ARGUMENTS = ("--preds", "p0..p2", "--target", "y", "--slice", "sex", "--metrics", "accuracy,f1:average=macro")


@pytest.fixture
def path(tmp_path):
    random = np.random.default_rng(3)
    scores = random.dirichlet(np.ones(3), 90)
    columns = {f"p{k}": scores[:, k] for k in range(3)}
    table = pa.table({**columns, "y": random.integers(0, 3, 90), "sex": ["f", "m", "m"] * 30})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=25)
    return tmp_path / "t.parquet"


def call(monkeypatch, *arguments):
    """The exit code."""
    monkeypatch.setattr(sys, "argv", ["assay", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        assay.cli.main()
    return ended.value.code or 0


def test_a_report_is_written_and_parts_add_up_to_the_same(monkeypatch, path, tmp_path, capsys):
    assert call(monkeypatch, "score", path, *ARGUMENTS, "--out", tmp_path / "run") == 0
    assert "accuracy" in capsys.readouterr().out
    for number in (1, 2, 3):
        assert call(monkeypatch, "score", path, *ARGUMENTS, "--part", f"{number}/3", "--out", tmp_path / "parts") == 0
    parts = sorted((tmp_path / "parts").glob("*.safetensors"))
    assert call(monkeypatch, "merge", *reversed(parts), "--out", tmp_path / "merged") == 0
    whole, merged = (Report.load(tmp_path / each / "report.json").sections[0] for each in ("run", "merged"))
    assert (whole.values, whole.slices, whole.samples) == (merged.values, merged.slices, merged.samples)
    capsys.readouterr()
    assert call(monkeypatch, "merge", *parts[1:]) == 2
    assert "fragments not counted" in capsys.readouterr().err


def test_what_is_no_part_is_called_by_its_name(monkeypatch, path, tmp_path, capsys):
    call(monkeypatch, "score", path, *ARGUMENTS, "--out", tmp_path / "run")
    meter = Meter(Accuracy(num_classes=3))
    meter.update(torch.tensor([0, 1]), torch.tensor([0, 2]))
    meter.to_file(tmp_path / "meter.safetensors")
    save_file({"a": torch.zeros(2)}, tmp_path / "other.safetensors")
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "parts").mkdir()
    expected = {
        "run/report.json": ("a report", "--part 1/2"),
        "run": ("a report", "--part 1/2"),
        "meter.safetensors": ("the counts of a meter", "Meter.from_file"),
        "other.safetensors": ("a safetensors file of something else", "assay score --part"),
        "other.json": ("a JSON file", "assay score --part"),
        "parts": ("a folder", "parts/*.safetensors"),
    }
    for name, (got, do) in expected.items():
        capsys.readouterr()
        assert call(monkeypatch, "merge", tmp_path / name, tmp_path / name) == 2
        message = capsys.readouterr().err
        for part in (got, do):
            assert part in message, name
        assert "again" not in message, name


def test_bad_rows_are_an_error_after_the_report_of_the_others(monkeypatch, path, tmp_path, capsys):
    table = pq.read_table(path)
    pq.write_table(table.set_column(3, "y", pa.array([None, 3, *table["y"].to_pylist()[2:]])), path)
    assert call(monkeypatch, "score", path, *ARGUMENTS, "--out", tmp_path / "run", "--json") == 2
    printed = capsys.readouterr()
    assert "1 with no value in y (t.parquet row 0)" in printed.err
    assert json.loads(printed.out)["sections"][0]["values"][0]["count"] == 88
    assert Report.load(tmp_path / "run" / "report.json").sections[0].values[0].count == 88
    assert call(monkeypatch, "score", path, *ARGUMENTS, "--on-bad", "skip") == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--target", "y", "-m", "acc"), "--preds: got none"),
        (("--preds", "p0..p2", "--target", "z", "-m", "acc"), "no column 'z'"),
        (("--preds", "p2..p0", "--target", "y", "-m", "acc"), "rising numbers"),
        ((*ARGUMENTS, "--part", "4/3"), "--part"),
        ((*ARGUMENTS, "--part", "1/3"), "--out"),
        ((*ARGUMENTS, "--where", "sex ="), "where"),
        ((*ARGUMENTS, "--column", "indexes"), "--column"),
        ((*ARGUMENTS, "--slice", "p0:bins=4", "--part", "1/2", "--out", "parts"), "p0:edges=18,40,65"),
        ((*ARGUMENTS, "--workers", "0"), "at least 1"),
        ((*ARGUMENTS, "--engine", "beam"), "--engine: got 'beam'"),
        ((*ARGUMENTS, "--engine", "ray", "--workers", "2"), "--workers"),
        ((*ARGUMENTS, "--column", "indexes=y"), "no metric takes a named column"),
    ],
)
def test_what_is_invalid_is_one_line(monkeypatch, path, capsys, arguments, message):
    assert call(monkeypatch, "score", path, *arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("kept", [False, True], ids=["new", "there before"])
def test_a_missing_file_leaves_no_empty_folder(monkeypatch, tmp_path, capsys, kept):
    if kept:
        (tmp_path / "run").mkdir()
    assert call(monkeypatch, "score", tmp_path / "none.parquet", *ARGUMENTS, "--out", tmp_path / "run") == 2
    assert "got no file" in capsys.readouterr().err
    assert (tmp_path / "run").exists() == kept
