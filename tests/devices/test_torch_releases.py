from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay.devices import torch_releases


@pytest.mark.parametrize(("installed", "lines"), [("9.9.1+cpu", 1), ("2.13.0+cpu", 0)])
def test_a_release_that_was_never_tried_is_reported_once(installed, lines, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch_releases, "version", lambda name: installed)
    monkeypatch.setattr(torch_releases, "cache_folder", lambda: tmp_path)
    for _ in range(2):
        torch_releases.report_untried.__wrapped__()
    assert capsys.readouterr().err.count("not tried with torch 9.9") == lines


def test_pages_name_the_releases_that_were_run():
    root = Path(__file__).parents[2]
    row = re.search(r"^\| torch \|.*\|.*$", (root / "docs/releases.md").read_text("utf-8"), re.MULTILINE)[0]
    assert sorted(set(re.findall(r"2\.\d+", row))) == sorted(torch_releases.TRIED)
    table = (root / "CONTRIBUTING.md").read_text("utf-8").partition("## Releases of torch")[2]
    by_hand = set(re.findall(r"^\| (2\.\d+)\.\d+\+", table, re.MULTILINE))
    assert by_hand == {*torch_releases.TRIED} - {"2.13"}
