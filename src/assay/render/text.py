"""Numbers and names as text, the same in every rendering."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence

from assay._records import CellValue

UNDEFINED = "–"


def number(value: float) -> str:
    """A number as a reader wants it: about four digits that count, thousands apart, an en dash for NaN.

    Example:
        >>> [number(v) for v in (0.94172, 2875.3162, 1e-7, 12.0, math.nan, -math.inf)]
        ['0.9417', '2,875.3', '1.000e-07', '12.0000', '–', '-∞']
    """
    if math.isnan(value):
        return UNDEFINED
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    size = abs(value)
    if size and not 1e-3 <= size < 1e9:
        return f"{value:.3e}"
    return f"{value:,.4f}" if size < 100 else f"{value:,.1f}"


def cell(value: CellValue) -> str:
    """What stands in a table for a text, a count, a number or nothing."""
    if value is None:
        return UNDEFINED
    if isinstance(value, str):
        return clean(value)
    return f"{value:,}" if isinstance(value, int) else number(value)


def column(values: Sequence[CellValue]) -> list[str]:
    """The cells of one column, its numbers in one format: as many decimals and the same notation in every row.

    Example:
        >>> column([0.5, 123.25, None]), column([1e-7, 0.25]), column([3, "many"])
        (['0.5000', '123.2500', '–'], ['1.000e-07', '2.500e-01'], ['3', 'many'])
    """
    floats = [value for value in values if isinstance(value, float) and math.isfinite(value)]
    sizes = [abs(value) for value in floats if value]
    form = "{:,.4f}"
    if sizes and (min(sizes) < 1e-5 or max(sizes) >= 1e9):
        form = "{:.3e}"
    elif sizes and min(sizes) < 1e-3:
        form = "{:,.6f}"
    elif sizes and min(sizes) >= 100:
        form = "{:,.1f}"
    return [form.format(each) if isinstance(each, float) and math.isfinite(each) else cell(each) for each in values]


def rows(cells: Sequence[Sequence[CellValue]]) -> list[tuple[str, ...]]:
    """The rows of a table as text, each column in one format."""
    return list(zip(*map(column, zip(*cells, strict=True)), strict=True))


def interval(lower: float | None, upper: float | None) -> str:
    """``[0.9301, 0.9533]``, or nothing where no interval is known."""
    return "" if lower is None or upper is None else f"[{', '.join(column([lower, upper]))}]"


def seconds(duration: float) -> str:
    """A duration in the unit that fits it.

    Example:
        >>> seconds(0.0312), seconds(4.25), seconds(754.0)
        ('31 ms', '4.2 s', '12 min 34 s')
    """
    if duration < 1:
        return f"{1000 * duration:.0f} ms"
    return f"{duration:.1f} s" if duration < 100 else f"{int(duration) // 60} min {int(duration) % 60} s"


def moment(created: str) -> str:
    """A time in ISO 8601 as a reader wants it, to the second.

    Example:
        >>> moment("2026-11-20T12:30:00.250000+00:00")
        '2026-11-20 12:30:00 UTC'
    """
    return re.sub(r"\.\d+", "", created).replace("T", " ").replace("+00:00", " UTC")


def clean(text: str) -> str:
    """``text`` on one line, with a visible mark for what would steer a terminal or a page instead of being read.

    Class names come from data: they may hold escape sequences, line breaks, or marks that turn the writing round.

    Example:
        >>> clean("cat\\n\\x1b[31mdog")
        'cat �[31mdog'
    """
    if text.isprintable():
        return text
    return "".join(" " if char in "\t\n\r" else char if _is_readable(char) else "\ufffd" for char in text)


def shorten(text: str, width: int) -> str:
    """``text`` in at most ``width`` characters, with an ellipsis where something was cut.

    Example:
        >>> shorten("Norwegian forest cat", 10)
        'Norwegian…'
    """
    text = clean(text)
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def first_names(names: Iterable[object], most: int = 3, between: str = ", ") -> str:
    """The first of some names, and how many more there are.

    Example:
        >>> first_names(["de", "en", "fr", "is", "no"])
        'de, en, fr and 2 more'
    """
    first, rest = (every := [str(name) for name in names])[:most], len(every) - most
    return between.join(first) + (f" and {rest:,} more" if rest > 0 else "")


def shorten_each(texts: Sequence[str], width: int) -> list[str]:
    """Texts in at most ``width`` characters each; different texts stay different.

    A text loses its end, or its middle where it would read like one before it, or else gets its number.

    Example:
        >>> shorten_each(["Norwegian forest cat", "Norwegian fjord horse", "cat"], 12)
        ['Norwegian f…', 'Norweg…horse', 'cat']
        >>> shorten_each([f"release of {day} May by the team" for day in (1, 2, 3)], 12)
        ['release of…', 'releas… team', '3 release o…']
    """
    shown: list[str] = []
    for i, each in enumerate(texts):
        head = (width - 1) // 2 + 1
        middle = f"{clean(each)[:head]}…{clean(each)[-(width - 1 - head) :]}"
        numbered = shorten(f"{i + 1} {each}", width)
        shown.append(next((short for short in (shorten(each, width), middle) if short not in shown), numbered))
    return shown


def _is_readable(char: str) -> bool:
    category = unicodedata.category(
        char
    )  # Cc: control. Cs: half of a surrogate pair. Cf: format; scripts need the joiners.
    allowed = category not in ("Cc", "Cs") and (category != "Cf" or char in "\u200c\u200d")
    return allowed and ord(char) & 0xFFFE != 0xFFFE  # XML and HTML have no U+FFFE and U+FFFF


def p_value(p: float | None) -> str:
    """A p-value as a reader wants it.

    Example:
        >>> p_value(0.0372), p_value(2e-9), p_value(None)
        ('0.0372', '< 0.0001', '–')
    """
    if p is None or math.isnan(p):
        return UNDEFINED
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"
