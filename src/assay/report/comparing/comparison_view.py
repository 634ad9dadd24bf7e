"""A comparison as a document: a grid of differences for each run and section, the samples that flipped, the slices."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from assay._records import CellValue
from assay.errors import plural
from assay.render import text
from assay.render.document import (
    Block,
    Bullets,
    Chapter,
    DataGrid,
    Document,
    Figures,
    Fold,
    GridCell,
    GridColumn,
    GridRow,
    Line,
    Notes,
    Span,
)
from assay.report.comparing.changes_view import changes_blocks
from assay.stats.power import POWER

if TYPE_CHECKING:
    from assay.report.comparing.comparison import Comparison, Delta, Flips, Unmatched
    from assay.report.comparing.group_changes import ChangedGroup, GroupChanges

_CORRECTIONS = {"holm": "by Holm", "bh": "by Benjamini and Hochberg", "none": "not at all"}
VERDICT_STYLES = {"better": "good", "worse": "bad", "differs": "warn", "no evidence": "faint", "cannot say": "faint"}
_ORDER = ("worse", "differs", "better", "no evidence", "cannot say")
_FOUND = ("better", "worse", "differs")
_FLIP_COLUMNS = ("id", "target", "before", "now")
_NAMES = 6  # more are not listed in a note
_REGRESSIONS = 12  # regressions on slices that a terminal shows, at most
_SLICES = 5  # differences on slices that it shows, worse or not; the others are counted


def comparison_document(comparison: Comparison) -> Document:
    """What is shown of a comparison."""
    baseline, *runs = (run.name for run in comparison.runs)
    parts = list(groups(comparison))
    counts: list[Line] = [
        (
            Span(_title(comparison, run, section), "strong"),
            f": {verdicts(deltas)}{_verdicts_by(comparison, run, section)}",
        )
        for run, section, deltas in parts
    ]
    chapters = [_chapter(comparison, *group) for group in parts]
    if comparison.unmatched:
        chapters.append(Chapter("Not compared", (Bullets(tuple(map(unmatched, comparison.unmatched))),)))
    if lines := tuple(smallest_differences(comparison)):
        chapters.append(Chapter("What could have been seen", (Notes(lines),)))
    footer = [
        (run.name + ("" if i else ", the baseline"), *filter(None, (run.title, text.moment(run.created), run.device)))
        for i, run in enumerate(comparison.runs)
    ]
    footer.append((f"compared {text.moment(comparison.created)}",))
    title = f"{', '.join(runs)} against {baseline}"
    notes = (*counts, *comparison.notes)
    origin = tuple(
        (
            run.name + ("" if i else ", the baseline"),
            "; ".join(line for name, line in run.origin.lines() if name != "seed"),
        )
        for i, run in enumerate(comparison.runs)
        if run.origin is not None
    )
    return Document(title, tuple(chapters), (settings(comparison),), notes, tuple(footer), level=3, origin=origin)


def _verdicts_by(comparison: Comparison, run: str, section: str) -> str:
    """How many groups of a table got worse and better, where some did."""
    changed = [each for each in comparison.groups if (each.run, each.section) == (run, section)]
    return "".join(f" {_changed(each)}." for each in changed if each.worse or each.better)


def _changed(changes: GroupChanges) -> str:
    """How many groups got worse and better beyond chance; lower and higher, where no direction is known."""
    low, high = ("lower", "higher") if changes.higher_is_better is None else ("worse", "better")
    of = plural(changes.groups, "group")
    return f"{changes.metric} by {changes.column}: {changes.worse:,} {low}, {changes.better:,} {high} of {of}"


def _title(comparison: Comparison, run: str, section: str) -> str:
    return f"{section} · {run}" if len(comparison.runs) > 2 else section


def _chapter(comparison: Comparison, run: str, section: str, deltas: list[Delta]) -> Chapter:
    names = comparison.runs[0].name, run
    columns = (GridColumn("metric"), *_columns(names), GridColumn("effect", "word", "wide"))
    rows = tuple(GridRow((*_cells_of(delta), GridCell(Span(effect(delta), "faint")))) for delta in deltas)
    grid = DataGrid(columns, rows, notes=how_tested(deltas, counted=True))
    blocks: list[Block] = [grid]
    plots = tuple(each.plot for each in comparison.plots if (each.run, each.section) == (run, section))
    blocks += [Figures(plots, on_page_only=True)] if plots else []
    blocks += [_fold(each) for each in comparison.flips if (each.run, each.section, each.slice) == (run, section, "")]
    for each in comparison.changes:
        if (each.run, each.section) == (run, section):
            delta = comparison.delta(each.metric, section, run)
            flips = _flips_of(comparison, delta)
            blocks += changes_blocks(each, has_table=flips is not None and flips.changed is not None)
    if slices := by_slice(comparison, run, section):
        blocks += _slices(comparison, names, slices)
    for found in comparison.groups:
        if (found.run, found.section) == (run, section):
            blocks.append(_group_grid(found, names, comparison))
    return Chapter(_title(comparison, run, section), tuple(blocks))


def _columns(names: Sequence[str], room: str = "") -> tuple[GridColumn, ...]:
    """The columns after the metric; ``room`` is what the two values need to be shown."""
    return (
        GridColumn(""),
        *(GridColumn(text.shorten(name, 16), "number", room) for name in names),
        GridColumn("difference", "number"),
        GridColumn("interval", "word"),
        GridColumn("p", "number"),
        GridColumn("p, uncorrected", "number", "page"),
        GridColumn("n", "number", "page"),
    )


def _cells_of(delta: Delta) -> tuple[GridCell, ...]:
    return _cells(delta, delta.metric, delta.verdict, counts(delta))


def _cells(change: Delta | ChangedGroup, name: str, verdict: str, count: str) -> tuple[GridCell, ...]:
    return (
        GridCell(name, name),
        GridCell(Span(verdict, VERDICT_STYLES[verdict]), verdict, verdict=True),
        *(GridCell(text.number(value), value) for value in (change.baseline, change.value)),
        GridCell(Span(signed(change.difference), "strong"), change.difference),
        GridCell(Span(interval(change), "faint"), span=ends_of(change)),
        GridCell(text.p_value(change.corrected), change.corrected),
        GridCell(text.p_value(change.p), change.p),
        GridCell(count, change.counts[0] if change.counts else None),
    )


def _slices(comparison: Comparison, names: Sequence[str], deltas: list[Delta]) -> Iterator[Block]:
    """The worst regressions on slices stand first; on a page, the samples that flipped on each of them."""
    flips = [_flips_of(comparison, delta) for delta in deltas]
    largest = _largest(deltas)
    rows = [
        GridRow(
            (GridCell(delta.slice, delta.slice), *_cells_of(delta), GridCell(Span(_flip_counts(each), "faint"))),
            matters=i < _REGRESSIONS and delta.verdict in ("worse", "differs"),
            rank=_rank(delta, largest),
            is_folded=delta.verdict not in _FOUND,
        )
        for i, (delta, each) in enumerate(zip(deltas, flips, strict=True))
    ]
    columns = (
        GridColumn("slice"),
        GridColumn("metric"),
        *_columns(names, "wide"),
        GridColumn("samples", "word", "wide"),
    )
    rest = deltas[max(_SLICES, sum(row.matters for row in rows)) :]
    more = f"{len(rest):,} more: {verdicts(rest)}"
    heading = f"By slice: {verdicts(deltas)}"
    folded = f"without a difference beyond chance: {verdicts([each for each in deltas if each.verdict not in _FOUND])}"
    yield DataGrid(columns, tuple(rows), heading, how_tested(deltas), _SLICES, more, lead=2, folded=folded)
    for delta, each in zip(deltas, flips, strict=True):
        if each and delta.verdict == "worse":
            yield _fold(each, is_open=False)


def _rank(delta: Delta, largest: dict[str, float]) -> float:
    """Regressions before improvements, and of each the largest first."""
    if delta.verdict not in _FOUND:
        return 0.0
    return abs(delta.difference) / largest[delta.metric] + (2.0 if delta.verdict != "better" else 0.0)


def _largest(deltas: Iterable[Delta]) -> dict[str, float]:
    """The largest difference of each metric, of which changes are shares: metrics have different units."""
    largest: dict[str, float] = {}
    for delta in deltas:
        if math.isfinite(delta.difference):
            largest[delta.metric] = max(abs(delta.difference), largest.get(delta.metric, 0.0))
    return {metric: size or 1.0 for metric, size in largest.items()}


def _group_grid(changes: GroupChanges, names: Sequence[str], comparison: Comparison) -> DataGrid:
    """The groups that changed most: those that are worse beyond chance, those that are better, and then the surest."""
    words = ("differs", "differs") if changes.higher_is_better is None else ("worse", "better")
    level = 1 - comparison.confidence_level
    sides = [(group, word) for word, side in zip(words, (changes.worst, changes.best), strict=True) for group in side]
    found = [pair for pair in sides if pair[0].corrected < level]
    others = sorted((pair for pair in sides if pair[0].corrected >= level), key=lambda pair: pair[0].p)
    rows = [_group_row(group, word) for group, word in found]
    rows += [_group_row(group, "no evidence", is_folded=True) for group, _ in others]
    columns = GridColumn(changes.column), *_columns(names, "wide")
    tested = f"{plural(changes.tested, 'group')} could be tested"
    of_table = "" if comparison.correction == "none" else " for all groups and metrics of the table"
    corrected = f"p is corrected {_CORRECTIONS[comparison.correction]}{of_table}"
    notes = [f"{changes.method}; {tested}. {corrected}."]
    if changes.missing or changes.new:
        notes.append(f"{plural(changes.missing, 'group')} in {names[0]} only, {changes.new:,} in {names[1]} only.")
    shown = min(len(rows), max(_SLICES, min(_REGRESSIONS, len(found))))
    more, folded = f"{len(rows) - shown:,} more, which the page shows", "without a difference beyond chance"
    return DataGrid(columns, tuple(rows), _changed(changes), tuple(notes), shown, more, folded=folded)


def _group_row(group: ChangedGroup, verdict: str, *, is_folded: bool = False) -> GridRow:
    count = " and ".join(f"{each:,}" for each in group.counts)
    return GridRow(_cells(group, group.group, verdict, count), is_folded=is_folded)


def _fold(flips: Flips, *, is_open: bool = True) -> Fold:
    where = f" in {flips.slice}" if flips.slice else ""
    grids = tuple(_flipped_samples(_title_of(*group), group[2]) for group in flips.groups() if group[2])
    return Fold(f"{flips.metric}{where}, sample by sample", flipped(flips), grids, is_open)


def _flipped_samples(name: str, rows: tuple[tuple[CellValue, ...], ...]) -> DataGrid:
    """Samples by id; numbers of ids and classes without commas, as they stand in the data."""
    used = [i for i in range(len(_FLIP_COLUMNS)) if any(row[i] is not None for row in rows)]
    columns = tuple(GridColumn(_FLIP_COLUMNS[i], "text" if isinstance(rows[0][i], str) else "number") for i in used)
    cells = [[GridCell(str(v) if isinstance(v, int) else text.cell(v), v) for v in row] for row in rows]
    return DataGrid(columns, tuple(GridRow(tuple(row[i] for i in used)) for row in cells), name)


def signed(value: float) -> str:
    """A difference with its sign.

    Example:
        >>> signed(0.0123), signed(-0.5), signed(0.0), signed(math.nan)
        ('+0.0123', '-0.5000', '0.0000', '–')
    """
    return ("+" if value > 0 else "") + text.number(value)


def ends_of(change: Delta | ChangedGroup) -> tuple[float, float, float] | None:
    """The ends of the interval of a difference, and the difference; None without an interval."""
    if change.lower is None or change.upper is None:
        return None
    return change.lower, change.upper, change.difference


def interval(change: Delta | ChangedGroup) -> str:
    """The interval of a difference, with signs, or empty."""
    ends = ends_of(change)
    if ends is None:
        return ""
    shown = zip(ends, text.column(list(ends[:2])), strict=False)
    return f"[{', '.join(('+' if end > 0 else '') + written for end, written in shown)}]"


def effect(delta: Delta) -> str:
    """The effect size with its scale, or empty."""
    return "" if delta.effect is None else f"{delta.scale} {text.number(delta.effect)}"


def method(delta: Delta) -> str:
    """How the test was made: paired or not, and by what; or that none was made."""
    return f"{'paired' if delta.paired else 'unpaired'}: {delta.method}" if delta.method else "no test"


def counts(delta: Delta) -> str:
    """How many samples stand behind a difference."""
    numbers = delta.counts[:1] if delta.paired else delta.counts
    return " and ".join(f"{count:,}" for count in numbers)


def settings(comparison: Comparison) -> str:
    """How intervals and p-values were made, in a sentence.

    Example:
        >>> from assay.report.comparing.comparison import Comparison, Run
        >>> settings(Comparison((Run("main"), Run("new"))))
        'Intervals of 95 %; p corrected by Holm for 0 tests; seed 0.'
    """
    tests = comparison.family()
    correction = _CORRECTIONS.get(comparison.correction, comparison.correction)
    of = "" if comparison.correction == "none" else f" for {plural(tests, 'test')}"
    level = f"{100 * comparison.confidence_level:g} %"
    return f"Intervals of {level}; p corrected {correction}{of}; seed {comparison.seed}."


def groups(comparison: Comparison) -> Iterator[tuple[str, str, list[Delta]]]:
    """The differences of each run and section over all samples, in order; those without a verdict last."""
    whole = (delta for delta in comparison.deltas if not delta.slice)
    for (run, section), deltas in groupby(whole, key=lambda delta: (delta.run, delta.section)):
        yield run, section, sorted(deltas, key=_has_no_verdict)


def by_slice(comparison: Comparison, run: str, section: str) -> list[Delta]:
    """The differences on slices: the surest regression first, the surest improvement later, no verdict last."""
    own = [delta for delta in comparison.deltas if delta.slice and (delta.run, delta.section) == (run, section)]
    return sorted(own, key=lambda delta: (_has_no_verdict(delta), _goodness(delta)))


def _has_no_verdict(delta: Delta) -> bool:
    return delta.verdict == "cannot say"


def _goodness(delta: Delta) -> float:
    """Between -1, surely worse, and 1, surely better; what differs without a better side counts as worse."""
    if delta.p is None or not delta.difference:
        return 0.0
    is_better = (delta.difference > 0) == delta.higher_is_better
    return (1 - delta.p) if is_better else (delta.p - 1)


def smallest_differences(comparison: Comparison) -> Iterator[str]:
    """A line for each metric of all samples: which differences would have been missed.

    Where a smaller one was found all the same, there is no line.
    """
    parts = list(groups(comparison))
    for run, section, deltas in parts:
        where = f"{_title(comparison, run, section)}, " if len(parts) > 1 else ""
        for delta in deltas:
            was_found = delta.verdict not in ("no evidence", "cannot say")
            if delta.smallest is not None and not (was_found and abs(delta.difference) < delta.smallest):
                size = text.number(delta.smallest)
                yield f"{where}{delta.metric}: a difference below {size} could not have been seen (power {POWER:g})."


def verdicts(deltas: list[Delta]) -> str:
    """How many verdicts there are of each kind, in a sentence."""
    counts = Counter(delta.verdict for delta in deltas)
    return ", ".join(f"{counts[verdict]:,} {verdict}" for verdict in _ORDER if counts[verdict]) + "."


def how_tested(deltas: Iterable[Delta], *, counted: bool = False) -> tuple[str, ...]:
    """How differences were tested: a line for those of one kind, which says which they are.

    Args:
        deltas: the differences.
        counted: whether to say how many samples stand behind them.
    """
    kinds: dict[str, dict[str, None]] = {}
    for delta in deltas:
        count = f"n = {counts(delta)}" if counted and delta.counts else ""
        test = "; ".join(part for part in (method(delta), delta.note, count) if part)
        where = f" in {delta.slice}" if delta.slice and delta.note else ""
        kinds.setdefault(test, {})[delta.metric + where] = None
    return tuple(f"{_some(names)}: {test}." for test, names in kinds.items())


def _some(lists: Iterable[str]) -> str:
    """Names in a sentence: all of a few, the first three of many.

    Example:
        >>> _some((f"metric {k}" for k in range(40)))
        'metric 0, metric 1, metric 2 and 37 more'
    """
    names = list(lists)
    return ", ".join(names) if len(names) <= _NAMES else f"{', '.join(names[:3])} and {len(names) - 3:,} more"


def _flips_of(comparison: Comparison, delta: Delta) -> Flips | None:
    """The samples that changed sides behind a difference."""
    wanted = delta.run, delta.section, delta.metric, delta.slice
    return next((f for f in comparison.flips if (f.run, f.section, f.metric, f.slice) == wanted), None)


def _flip_counts(flips: Flips | None) -> str:
    return "" if flips is None else ", ".join(f"{count:,} {name}" for name, count, _ in flips.groups())


def flipped(flips: Flips) -> str:
    """How many samples flipped, in a sentence."""
    changed = "" if flips.changed is None else f"; {flips.changed:,} decisions changed"
    return f"{_flip_counts(flips)}, {flips.yes:,} yes in both, {flips.no:,} no in both{changed}."


def _title_of(name: str, count: int, rows: tuple[tuple[CellValue, ...], ...]) -> str:
    return f"{name}: the first {len(rows):,} of {count:,} by id" if len(rows) < count else f"{name}: {count:,}"


def unmatched(entry: Unmatched) -> str:
    """What was not compared, and why."""
    where = "/".join(part for part in (entry.section, entry.metric) if part)
    return f"{entry.run}: {where}{f' in {entry.slice!r}' if entry.slice else ''}: {entry.why}"
