"""The pages of the documentation show the tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from differences import wrong_numbers
from migration_pages import PAGES, name_tables, renewed

from assay.migrate import LIBRARIES, library

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("path", PAGES)
def test_the_page_is_up_to_date(path):
    page = (ROOT / path).read_text("utf-8")
    assert page == renewed(page, PAGES[path]), "run: python docs/pages/migration_pages.py"


def test_every_name_is_on_the_page():
    text = name_tables()
    for name in LIBRARIES:
        for each in [*library(name).entries, *library(name).without]:
            assert f"`{each}`" in text


def test_each_wrong_number_has_a_script_and_each_script_a_wrong_number():
    scripts = [each.script for part in wrong_numbers().values() for each in part]
    assert sorted(scripts) == sorted(path.stem for path in (ROOT / "examples" / "wrong_numbers").glob("*.py"))
