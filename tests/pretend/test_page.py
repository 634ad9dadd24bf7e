"""The page about pretend devices shows what really happens."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "pretend.md"


def test_the_example_prints_what_the_page_shows(capsys: pytest.CaptureFixture[str]):
    text = PAGE.read_text("utf-8")
    example, shown = re.search(r"```python\n(.*?)```\n\n```\n(.*?)```", text, re.DOTALL).groups()
    exec(compile(example, "example.py", "exec"), {})
    assert capsys.readouterr().out == shown
