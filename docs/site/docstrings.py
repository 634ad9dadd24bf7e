"""Docstrings as Markdown that mkdocstrings reads."""

from __future__ import annotations

import inspect
import re


def as_markdown(docstring: str) -> str:
    """A docstring with the headings that mkdocstrings knows, and others as bold paragraphs."""
    text = re.sub(r"^Example:\n", "Examples:\n", docstring, flags=re.MULTILINE)
    text = re.sub(r"^(Rounding|Source|Formula): ", r"**\1:** ", text, flags=re.MULTILINE)
    return re.sub(r"^Shapes:\n((?:    .*\n?)+)", _shapes, text, flags=re.MULTILINE)


def _shapes(match: re.Match[str]) -> str:
    return f"**Shapes:**\n\n{inspect.cleandoc(match[1])}\n"
