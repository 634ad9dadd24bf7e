from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from assay.devices import tried_releases
from assay.devices.tried_releases import TRIED


@pytest.mark.parametrize(
    ("torch", "python", "lines"),
    [
        ("9.9.1+cpu", (3, 11), ["assay: not tried with torch 9.9; tried: 2.6,"]),
        ("2.13.0+cpu", (3, 11), []),
        ("2.13.0+cpu", (3, 99), ["assay: not tried with Python 3.99; tried: 3.11,"]),
        ("2.1", (3, 1), ["assay: not tried with Python 3.1;", "assay: not tried with torch 2.1;"]),
    ],
)
def test_a_release_that_was_never_tried_is_reported_once(torch, python, lines, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(tried_releases, "version", lambda name: torch)
    monkeypatch.setattr(
        tried_releases,
        "sys",
        SimpleNamespace(
            version_info=SimpleNamespace(major=python[0], minor=python[1]), stderr=tried_releases.sys.stderr
        ),
    )
    monkeypatch.setattr(tried_releases, "cache_folder", lambda: tmp_path)
    for _ in range(2):
        tried_releases.report_untried.__wrapped__()
    found = capsys.readouterr().err.splitlines()
    assert [each[: len(line)] for each, line in zip(found, lines, strict=True)] == lines


def test_pages_name_the_releases_that_were_run():
    root = Path(__file__).parents[2]
    supported = (root / "docs/releases.md").read_text("utf-8")
    for name, versions in TRIED.items():
        run = re.search(rf"^\| {name} \|.*\|(.*)\|$", supported, re.MULTILINE)[1]
        assert sorted(set(re.findall(r"[23]\.\d+", run))) == sorted(versions)
    table = (root / "CONTRIBUTING.md").read_text("utf-8").partition("## Releases of torch")[2]
    by_hand = set(re.findall(r"^\| (2\.\d+)\.\d+\+", table, re.MULTILINE))
    assert by_hand == {*TRIED["torch"]} - {"2.13"}
