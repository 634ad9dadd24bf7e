"""What a gate said, in a terminal and as Markdown."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from assay.report import text
from assay.report.gating import Check, Gate
from assay.report.markdown import escape
from assay.report.terminal import print_plainly

MARKS = {"pass": ("pass", "green"), "fail": ("FAIL", "bold red"), "not enough evidence": ("?", "yellow")}
SIGNS = {
    "min": "≥",
    "max": "≤",
    "max-drop": "drops by ≤",
    "max-rise": "rises by ≤",
    "worst-slice": "≥",
    "worst-slice-max": "≤",
}


def show(gate: Gate, console: Console | None = None) -> None:
    """Print what a gate said: one line for each rule, then the outcome.

    Args:
        gate: what to print.
        console: where to; the standard output unless given.
    """
    print_plainly(render(gate), console or Console())


def render(gate: Gate) -> RenderableType:
    """What rich prints for a gate."""
    grid = Grid.grid(padding=(0, 2, 0, 0))
    for right in (False, False, True, False):
        grid.add_column(justify="right" if right else "left", overflow="fold")
    for check in gate.checks:
        mark, style = MARKS[check.outcome]
        number = "" if check.value is None else text.number(check.value)
        grid.add_row(
            Text(mark, style),
            Text(text.clean(condition(check))),
            Text(number, "bold"),
            Text(text.clean(because(check)), "dim"),
        )
    return Group(grid, Text(summary(gate), MARKS[gate.outcome][1]))


def condition(check: Check) -> str:
    """What had to hold, of what."""
    return f"{check.where or check.rule.metric} {SIGNS[check.rule.kind]} {check.rule.bound:g}"


def because(check: Check) -> str:
    """The interval, how it was found, and the reason."""
    parts = [text.interval(check.lower, check.upper), check.method, check.reason]
    return "; ".join(part for part in parts if part)


def summary(gate: Gate) -> str:
    """The outcome in a sentence.

    Example:
        >>> summary(Gate("pass", (), 0.95, False, "digits"))
        'pass: 0 rules, by intervals of 95 %; exit code 0'
    """
    rules = f"{len(gate.checks)} {'rule' if len(gate.checks) == 1 else 'rules'}"
    by = "by the numbers alone" if gate.point else f"by intervals of {100 * gate.confidence_level:g} %"
    return f"{gate.outcome}: {rules}, {by}; exit code {gate.exit_code}"


def to_markdown(gate: Gate) -> str:
    """What a gate said, for a pull request.

    Example:
        >>> print(to_markdown(Gate("pass", (), 0.95, False, "digits")).splitlines()[0])
        ### digits: pass
    """
    signs = {"pass": "🟢 pass", "fail": "🔴 fail", "not enough evidence": "🟡 not enough evidence"}
    lines = [f"### {escape(gate.report)}: {gate.outcome}", "", "| rule | found | | |", "|:--|--:|:--|:--|"]
    for check in gate.checks:
        number = "" if check.value is None else text.number(check.value)
        cells = [condition(check), number, because(check), signs[check.outcome]]
        lines.append(f"| {' | '.join(map(escape, cells))} |")
    return "\n".join([*lines, "", f"<sub>{escape(summary(gate))}</sub>"]) + "\n"
