"""Where derived tables and engines are kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from assay._cache import cache_folder
from assay.devices.operators.overloads import overloads


def test_the_folder_that_was_chosen_is_made(monkeypatch, tmp_path):
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "a" / "b"))
    assert cache_folder() == tmp_path / "a" / "b"
    assert cache_folder().is_dir()


def test_else_the_users_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("ASSAY_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "assay"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert cache_folder() == tmp_path / ".cache" / "assay"


@pytest.mark.exhaustive
def test_without_a_folder_nothing_is_kept(tmp_path):
    in_its_place = tmp_path / "file"
    in_its_place.write_text("")
    assert derived(in_its_place) == f"None {len(overloads())}"
    assert in_its_place.read_text() == ""


@pytest.mark.exhaustive
def test_a_disk_that_is_full_breaks_nothing(tmp_path):
    full = (
        "from assay.devices.operators import overloads\n"
        "def full(*_): raise OSError(28, 'full')\n"
        "overloads.write_text = full\n"
    )
    assert derived(tmp_path, full) == f"{tmp_path} {len(overloads())}"
    assert not list(tmp_path.iterdir())


def derived(folder: Path, before: str = "") -> str:
    """The cache folder and the size of the table in a new process: in this one, engines may have added kernels."""
    code = (
        f"{before}"
        "from assay._cache import cache_folder\n"
        "from assay.devices.operators.overloads import overloads\n"
        "print(cache_folder(), len(overloads()))"
    )
    environment = os.environ | {"ASSAY_CACHE": str(folder)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()
