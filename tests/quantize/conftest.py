"""Tests of quantization do not depend on what was measured on this machine before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.quantize import dispatch, tuning_records


@pytest.fixture(autouse=True)
def tuned_folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for measurements, in the place of the user's."""
    folder = tmp_path_factory.mktemp("tuned")
    monkeypatch.setattr(tuning_records, "cache_folder", lambda: folder)
    dispatch.default_table.cache_clear()
    yield folder
    dispatch.default_table.cache_clear()
