"""The page of the documentation shows the tables as they are."""

from __future__ import annotations

from pathlib import Path

from assay.migrate import LIBRARIES, library
from assay.migrate.page import renewed, tables

PAGE = Path(__file__).parents[2] / "docs" / "migrate.md"


def test_the_page_is_up_to_date():
    page = PAGE.read_text("utf-8")
    assert page == renewed(page), "run: python -m assay.migrate.page docs/migrate.md"


def test_every_name_is_on_the_page():
    text = tables()
    for name in LIBRARIES:
        for each in [*library(name).entries, *library(name).without]:
            assert f"`{each}`" in text
