"""Where derived tables and engines are kept."""

from __future__ import annotations

from pathlib import Path

from assay.devices.pretend.cache import cache_folder
from assay.devices.pretend.table import table


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


def test_without_a_folder_nothing_is_kept(monkeypatch, tmp_path):
    in_its_place = tmp_path / "file"
    in_its_place.write_text("")
    monkeypatch.setenv("ASSAY_CACHE", str(in_its_place))
    assert cache_folder() is None
    assert table.__wrapped__() == table()
    assert in_its_place.read_text() == ""


def test_a_disk_that_is_full_breaks_nothing(monkeypatch, tmp_path):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path))
    monkeypatch.setattr("assay.devices.pretend.table.write_text", full)
    assert table.__wrapped__() == table()
    assert not list(tmp_path.iterdir())
