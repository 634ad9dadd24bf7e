"""A comparison as one HTML page that needs nothing else, in the style of the page of a report."""

from __future__ import annotations

import math

from assay.report import comparison_text as words
from assay.report import text
from assay.report.comparison import Comparison, Delta
from assay.report.html import page
from assay.report.plain import Cell

TONES = {"better": "good", "worse": "bad", "differs": "other"}


def to_html(comparison: Comparison) -> str:
    """Draw a comparison as a page.

    Args:
        comparison: what to draw.

    Returns:
        A whole HTML document: light or dark as the reader's system is, fit for a phone and for paper.

    Example:
        >>> from assay.report.comparison import Run
        >>> to_html(Comparison((Run("main"), Run("<new>")))).splitlines()[0]
        '<!doctype html>'
    """
    return page(
        "compare.html",
        comparison=comparison,
        groups=list(words.groups(comparison)),
        words=words,
        tones=TONES,
        whisker=whisker,
        exact=lambda value: "" if value is None else repr(value),
        entry=_entry,
    )


def whisker(delta: Delta) -> dict[str, float] | None:
    """Where to draw a difference and its interval on a line of 100 units with 0 in the middle; None without interval.

    Each has a scale of its own: differences of an accuracy and of a price do not share one.

    Example:
        >>> whisker(Delta("r", "s", "m", 0.5, 0.6, 0.1, -0.1, 0.3))
        {'x1': 34.0, 'x2': 98.0, 'x': 66.0}
    """
    if delta.lower is None or delta.upper is None:
        return None
    place = {"x1": delta.lower, "x2": delta.upper, "x": delta.difference}
    reach = max(map(abs, place.values()))
    if not reach or not all(map(math.isfinite, place.values())):
        return None
    return {name: round(50 + 48 * value / reach, 2) for name, value in place.items()}


def _entry(value: Cell) -> str:
    """An id or a class as it stands in the data."""
    return str(value) if isinstance(value, int) else text.cell(value)
