"""Words and numbers of a comparison, the same in every rendering."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from assay.report import text
from assay.report.comparison import Comparison, Delta, Flips, Unmatched
from assay.report.plain import Cell

CORRECTION_NAMES = {"holm": "by Holm", "bh": "by Benjamini and Hochberg", "none": "not at all"}
_NAMES = 6  # more are not listed in a note
ORDER = ("worse", "differs", "better", "no evidence", "cannot say")
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
    ends = zip((delta.lower, delta.upper), text.column([delta.lower, delta.upper]), strict=True)
    return f"[{', '.join(('+' if end > 0 else '') + shown for end, shown in ends)}]"


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
    return f"Intervals of {100 * comparison.confidence_level:g} %; p corrected {correction} {of}".rstrip() + (
        f"; seed {comparison.seed}."
    )


def groups(comparison: Comparison) -> Iterator[tuple[str, str, list[Delta]]]:
    """The differences of each run and section over all samples, in order; those without a verdict last."""
    whole = (delta for delta in comparison.deltas if not delta.slice)
    for (run, section), deltas in groupby(whole, key=lambda delta: (delta.run, delta.section)):
        yield run, section, sorted(deltas, key=_has_no_verdict)


def by_slice(comparison: Comparison, run: str, section: str) -> list[Delta]:
    """The differences on slices: the surest regression first, the surest improvement later, no verdict last.

    Example:
        >>> from assay.report.comparison import Run
        >>> def on(name, change, p):
        ...     return Delta("new", "test", "recall", 0.5, 0.5 + change, change, p=p, better="higher", slice=name)
        >>> deltas = [on("better", 0.3, 0.001), on("worse", -0.3, 0.001), on("as good", 0.0, 1.0)]
        >>> [d.slice for d in by_slice(Comparison((Run("main"), Run("new")), deltas), "new", "test")]
        ['worse', 'as good', 'better']
    """
    own = [delta for delta in comparison.deltas if delta.slice and (delta.run, delta.section) == (run, section)]
    return sorted(own, key=lambda delta: (_has_no_verdict(delta), _goodness(delta)))


def _has_no_verdict(delta: Delta) -> bool:
    return delta.verdict == "cannot say"


def _goodness(delta: Delta) -> float:
    """Between -1, surely worse, and 1, surely better; what differs without a better side counts as worse."""
    if delta.p is None or not delta.difference:
        return 0.0
    is_better = delta.better and (delta.difference > 0) == (delta.better == "higher")
    return (1 - delta.p) if is_better else (delta.p - 1)


def verdicts(deltas: list[Delta]) -> str:
    """How many verdicts there are of each kind, in a sentence.

    Example:
        >>> deltas = [Delta("new", "test", "a", 0, 1, 1, verdict=v) for v in ("no evidence", "worse", "no evidence")]
        >>> verdicts(deltas)
        '1 worse, 2 no evidence.'
    """
    counts = Counter(delta.verdict for delta in deltas)
    return ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in ORDER if counts[verdict]) + "."


def how_tested(deltas: Iterable[Delta], *, counted: bool = False) -> list[tuple[str, str]]:
    """How differences were tested, those of one kind together: which they are, and what is said of them.

    Args:
        deltas: the differences.
        counted: whether to say how many samples stand behind them.

    Example:
        >>> found = {"method": "Welch's test", "difference": 1, "baseline": 0, "value": 1}
        >>> how_tested([Delta("new", "test", name, **found) for name in ("loss", "error")])
        [('loss, error', "unpaired: Welch's test")]
    """
    kinds: dict[str, dict[str, None]] = {}
    for delta in deltas:
        count = f"n = {counts(delta)}" if counted and delta.counts else ""
        said = "; ".join(part for part in (method(delta), delta.note, count) if part)
        where = f" in {delta.slice}" if delta.slice and delta.note else ""
        kinds.setdefault(said, {})[delta.metric + where] = None
    return [(_some(list(names)), said) for said, names in kinds.items()]


def _some(names: list[str]) -> str:
    """Names for a note: all of a few, the first of many.

    Example:
        >>> _some([f"metric {k}" for k in range(40)])
        'metric 0, metric 1, metric 2 and 37 more'
    """
    return ", ".join(names) if len(names) <= _NAMES else f"{', '.join(names[:3])} and {len(names) - 3:,} more"


def flips_of(comparison: Comparison, delta: Delta) -> Flips | None:
    """The samples that changed sides behind a difference."""
    wanted = delta.run, delta.section, delta.metric, delta.slice
    return next((f for f in comparison.flips if (f.run, f.section, f.metric, f.slice) == wanted), None)


def flip_counts(flips: Flips | None) -> str:
    """How many samples flipped either way, in a few characters.

    Example:
        >>> flip_counts(Flips("new", "test", "accuracy", "higher", 9, 3, 80, 8, 15))
        '3 worse, 9 better'
    """
    if flips is None:
        return ""
    return ", ".join(f"{count:,} {name}" for name, count, _ in flips.groups())


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
    where = "/".join(part for part in (entry.section, entry.metric) if part)
    return f"{entry.run}: {where}{f' in {entry.slice!r}' if entry.slice else ''}: {entry.why}"
