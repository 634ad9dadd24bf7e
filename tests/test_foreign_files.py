"""Files of other distributions in this package are reported in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import assay
from assay import _foreign_files
from assay._foreign_files import OWN, about_foreign_files, foreign_files
from assay.cli import main

FOLDER = Path(assay.__file__).parent


def test_the_list_is_that_of_the_package():
    assert {each.name for each in FOLDER.iterdir() if not each.name.startswith(".")} | {"__pycache__"} == OWN
    assert foreign_files() == []


def test_start_up_names_foreign_files_and_goes_on(tmp_path, monkeypatch, capsys):
    (tmp_path / "client.py").touch()
    assert foreign_files(tmp_path) == ["client.py"]
    monkeypatch.setattr(_foreign_files, "foreign_files", lambda: ["client.py"])
    monkeypatch.setattr(sys, "argv", ["assay", "--version"])
    with pytest.raises(SystemExit, match="0"):
        main()
    shown = capsys.readouterr()
    assert shown.out.startswith("assay ")
    assert shown.err.startswith("assay: got client.py, of another distribution in its package")
    assert shown.err.count("\n") == 1


def test_the_distribution_is_named(tmp_path, monkeypatch):
    info = tmp_path / "neighbour-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: neighbour\nVersion: 1.0\n")
    (info / "RECORD").write_text("assay/client.py,,\nassay/__init__.py,,\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "client.py of neighbour in its package" in about_foreign_files(["client.py"])
