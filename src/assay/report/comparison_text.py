"""Words and numbers of a comparison, the same in every rendering."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby

from assay.report import text
from assay.report.comparison import Comparison, Delta, Flips, Unmatched
from assay.report.plain import Cell

CORRECTION_NAMES = {"holm": "by Holm", "bh": "by Benjamini and Hochberg", "none": "not at all"}
COLUMNS = ("id", "target", "before", "now")


def signed(value: float) -> str:
    """A difference with its sign.

    Example:
        >>> signed(0.0123), signed(-0.5), signed(0.0), signed(math.nan)
        ('+0.0123', '-0.5000', '0.0000', '–')
    """
    return ("+" if value > 0 else "") + text.number(value)


def interval(delta: Delta) -> str:
    """The interval of a difference, with signs; empty where there is none."""
    if delta.lower is None or delta.upper is None:
        return ""
    return f"[{signed(delta.lower)}, {signed(delta.upper)}]"


def p_value(p: float | None) -> str:
    """A p-value as a reader wants it.

    Example:
        >>> p_value(0.0372), p_value(2e-9), p_value(None)
        ('0.0372', '< 0.0001', '–')
    """
    if p is None or math.isnan(p):
        return text.UNDEFINED
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def effect(delta: Delta) -> str:
    """The effect size with its scale; empty where there is none."""
    return "" if delta.effect is None else f"{delta.scale} {text.number(delta.effect)}"


def method(delta: Delta) -> str:
    """How the test was made: paired or not, and by what; or that there is none."""
    return f"{'paired' if delta.paired else 'unpaired'}: {delta.method}" if delta.method else "no test"


def counts(delta: Delta) -> str:
    """How many samples stand behind a difference."""
    numbers = delta.counts[:1] if delta.paired else delta.counts
    return " and ".join(f"{count:,}" for count in numbers)


def settings(comparison: Comparison) -> str:
    """How intervals and p-values were made, in a sentence.

    Example:
        >>> from assay.report.comparison import Run
        >>> settings(Comparison((Run("main"), Run("new"))))
        'Intervals of 95 %; p corrected by Holm for 0 tests; seed 0.'
    """
    tests = comparison.family()
    correction = CORRECTION_NAMES.get(comparison.correction, comparison.correction)
    of = f"for {tests:,} {'test' if tests == 1 else 'tests'}" if comparison.correction != "none" else ""
    return f"Intervals of {100 * comparison.level:g} %; p corrected {correction} {of}".rstrip() + (
        f"; seed {comparison.seed}."
    )


def groups(comparison: Comparison) -> Iterator[tuple[str, str, list[Delta]]]:
    """The differences of each run and section, in order."""
    for (run, section), deltas in groupby(comparison.deltas, key=lambda delta: (delta.run, delta.section)):
        yield run, section, list(deltas)


def flipped(flips: Flips) -> str:
    """How many samples flipped, in a sentence.

    Example:
        >>> flipped(Flips("new", "test", "accuracy", "higher", 9, 3, 80, 8, 15))
        '3 worse, 9 better, 80 yes in both, 8 no in both; 15 decisions changed.'
    """
    parts = [f"{count:,} {name}" for name, count, _ in flips.groups()]
    parts += [f"{flips.yes:,} yes in both", f"{flips.no:,} no in both"]
    changed = "" if flips.changed is None else f"; {flips.changed:,} decisions changed"
    return f"{', '.join(parts)}{changed}."


def listed(name: str, count: int, rows: tuple[tuple[Cell, ...], ...]) -> str:
    """The title of a list of samples.

    Example:
        >>> listed("worse", 12, ((1, 0, 0, 1),))
        'worse: the first 1 of 12 by id'
    """
    return f"{name}: the first {len(rows):,} of {count:,} by id" if len(rows) < count else f"{name}: {count:,}"


def used(rows: tuple[tuple[Cell, ...], ...]) -> list[int]:
    """The columns of a list of samples that hold anything."""
    return [i for i in range(len(COLUMNS)) if any(row[i] is not None for row in rows)]


def unmatched(entry: Unmatched) -> str:
    """What was not compared, and why."""
    return f"{entry.run}: {entry.section}/{entry.metric}: {entry.why}"
