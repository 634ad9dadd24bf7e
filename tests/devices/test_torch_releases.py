from __future__ import annotations

import pytest

from assay.devices import torch_releases


@pytest.mark.parametrize(("installed", "lines"), [("9.9.1+cpu", 1), ("2.13.0+cpu", 0)])
def test_a_release_that_was_never_tried_is_reported_once(installed, lines, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(torch_releases, "version", lambda name: installed)
    monkeypatch.setattr(torch_releases, "cache_folder", lambda: tmp_path)
    for _ in range(2):
        torch_releases.report_untried.__wrapped__()
    assert capsys.readouterr().err.count("not tried with torch 9.9") == lines
