"""A comparison as Markdown for a pull request: one table, the flips in a folded part, notes below."""

from __future__ import annotations

from collections.abc import Iterator

from assay.report import comparison_text as words
from assay.report import text
from assay.report.comparison import Comparison, Delta
from assay.report.markdown import escape
from assay.report.plain import Cell

MARKS = {"better": "🟢 better", "worse": "🔴 worse", "differs": "🟡 differs"}


def to_markdown(comparison: Comparison) -> str:
    """Write a comparison for a pull request.

    Example:
        >>> from assay.report.comparison import Run
        >>> delta = Delta("new", "test", "accuracy", 0.9, 0.94, 0.04, 0.01, 0.07, 0.008, 0.008, verdict="better")
        >>> print(to_markdown(Comparison((Run("main"), Run("new")), [delta])))
        ### new against main
        <BLANKLINE>
        | test | main | new | difference | interval | p | |
        |:--|--:|--:|--:|:--|--:|:--|
        | accuracy | 0.9000 | 0.9400 | **+0.0400** | \\[+0.0100, +0.0700\\] | 0.0080 | 🟢 better |
        <BLANKLINE>
        <sub>Intervals of 95 %; p corrected by Holm for 1 test; seed 0.<br>accuracy: no test.</sub>
        <BLANKLINE>
    """
    baseline, *runs = (run.name for run in comparison.runs)
    parts = [f"### {escape(', '.join(runs))} against {escape(baseline)}"]
    for run, section, deltas in words.groups(comparison):
        parts.append(_table(baseline, run, section, deltas))
        parts += _slices(comparison, baseline, run, section)
    parts += [escape(note) for note in comparison.notes]
    parts += _folded(comparison)
    if comparison.unmatched:
        parts.append(
            "\n".join(["Not compared:", "", *(f"- {escape(words.unmatched(e))}" for e in comparison.unmatched)])
        )
    parts.append(f"<sub>{escape(words.settings(comparison))}{_notes(comparison)}</sub>")
    return "\n\n".join(parts) + "\n"


def _table(baseline: str, run: str, section: str, deltas: list[Delta]) -> str:
    lines = [
        _row([escape(section), escape(baseline), escape(run), "difference", "interval", "p", ""]),
        "|:--|--:|--:|--:|:--|--:|:--|",
    ]
    lines += [_row([escape(delta.metric), *_numbers(delta)]) for delta in deltas]
    return "\n".join(lines)


def _numbers(delta: Delta) -> list[str]:
    cells = [text.number(delta.baseline), text.number(delta.value)]
    difference = f"**{escape(words.signed(delta.difference))}**"
    rest = [words.interval(delta), words.p_value(delta.corrected), MARKS.get(delta.verdict, delta.verdict)]
    return [*map(escape, cells), difference, *map(escape, rest)]


def _slices(comparison: Comparison, baseline: str, run: str, section: str) -> Iterator[str]:
    """What differs on slices, the worst on top; the rest is folded."""
    deltas = words.by_slice(comparison, run, section)
    told = [delta for delta in deltas if delta.verdict in MARKS]
    rest = [delta for delta in deltas if delta.verdict not in MARKS]
    if deltas:
        yield escape(f"{section} by slice: {words.verdicts(deltas)}")
    if told:
        yield _slice_table(comparison, baseline, run, told)
    if rest:
        title = f"<details><summary>{escape(f'{section}: the other slices')}</summary>"
        yield "\n\n".join([title, _slice_table(comparison, baseline, run, rest), "</details>"])


def _slice_table(comparison: Comparison, baseline: str, run: str, deltas: list[Delta]) -> str:
    names = ["slice", "metric", escape(baseline), escape(run), "difference", "interval", "p", "", "samples"]
    lines = [_row(names), "|:--|:--|--:|--:|--:|:--|--:|:--|:--|"]
    for delta in deltas:
        flips = words.flip_counts(words.flips_of(comparison, delta))
        lines.append(_row([*map(escape, (delta.slice, delta.metric)), *_numbers(delta), escape(flips)]))
    return "\n".join(lines)


def _folded(comparison: Comparison) -> Iterator[str]:
    for flips in comparison.flips:
        if flips.slice:  # counted in the table of slices
            continue
        where = f"{flips.run}: {flips.section}/{flips.metric}: {words.flipped(flips)}"
        lists = [_list(words.listed(name, count, rows), rows) for name, count, rows in flips.groups() if rows]
        if lists:
            yield "\n\n".join([f"<details><summary>{escape(where)}</summary>", *lists, "</details>"])


def _list(title: str, rows: tuple[tuple[Cell, ...], ...]) -> str:
    used = words.used(rows)
    lines = [_row([words.COLUMNS[i] for i in used]), "|" + "--:|" * len(used)]
    lines += [_row([escape(str(row[i]) if row[i] is not None else "") for i in used]) for row in rows]
    return "\n".join([escape(title), "", *lines])


def _notes(comparison: Comparison) -> str:
    lines = words.how_tested(comparison.deltas)
    return "".join(f"<br>{escape(names)}: {escape(said)}." for names, said in lines)


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |".replace("|  |", "| |")
