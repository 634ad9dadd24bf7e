"""An audit in the terminal: findings by file and line with the line itself, then a table of rules and devices."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from assay.audit.finding import Finding
from assay.audit.judge import relative
from assay.audit.observations import Unrun
from assay.audit.result import NOT_RUN, Audit
from assay.audit.rulebook import rules

STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}
NAMED = 3  # metrics that a finding names; of the others it says how many
LISTED = 12  # parts that were known not to run; the JSON has all
AFTER = "seen in a second run, in which the hard-coded device was taken for the one there is"
WIDTH = 160  # where nobody can widen the output


def show(audit: Audit, console: Console | None = None, *, notes: bool = True) -> None:
    """Print an audit.

    Args:
        audit: what to print.
        console: where to; the standard output unless given.
        notes: whether findings of the severity ``note`` are printed one by one; they are counted in any case.
    """
    if console is not None or sys.stdout.isatty():
        (console or Console(highlight=False)).print(render(audit, notes=notes))
        return
    plain = Console(width=WIDTH, color_system=None, highlight=False)
    with plain.capture() as captured:
        plain.print(render(audit, notes=notes))
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


def render(audit: Audit, *, notes: bool = True) -> Group:
    """The audit as something that rich prints."""
    shown = [found for found in audit.open if notes or found.severity != "note"]
    parts: list[RenderableType] = []
    for file, group in groupby(sorted(shown, key=lambda found: (found.file, found.line)), lambda found: found.file):
        parts.append(Text(relative(file, Path.cwd()) if file else "no line of Python", style="bold underline"))
        parts += [Padding(each, (0, 0, 1, 2)) for found in group for each in [_one(found)]]
    parts += [*_table(audit), *_unrun(audit.unrun), *_end(audit, len(audit.open) - len(shown))]
    return Group(*parts)


def _one(found: Finding) -> Group:
    head = Text.assemble(
        (f"{found.line}", "bold"),
        "  ",
        (found.severity, STYLES[found.severity]),
        "  ",
        (found.rule, "bold"),
        (f"  {_where(found)}", "dim"),
    )
    rows = Table(box=None, padding=(0, 1, 0, 0), show_header=False)
    rows.add_column(no_wrap=True, style="dim")
    rows.add_column(overflow="fold")
    rows.add_row("", Text(found.code, style="green"))
    rows.add_row("what", Text(found.what))
    rows.add_row("why", Text(found.why + "."))
    for origin in found.origins:
        rows.add_row("from", Text(f"{origin.what} at {relative(origin.file, Path.cwd())}:{origin.line}"))
        rows.add_row("", Text(linecache.getline(origin.file, origin.line).strip(), style="green"))
    if found.replaced:
        rows.add_row("when", Text(AFTER))
    rows.add_row("fix", Text(found.fix + "."))
    if found.subjects and found.subjects != (found.file,):
        rows.add_row("in", Text(_subjects(found.subjects), style="dim"))
    return Group(head, rows)


def _where(found: Finding) -> str:
    return "; ".join(", ".join(part) for part in (found.devices, found.usages) if part)


def _subjects(names: tuple[str, ...]) -> str:
    rest = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {rest} more" if rest > 0 else "")


def _table(audit: Audit) -> Iterator[RenderableType]:
    counts = audit.table()
    if not counts:
        return
    devices = list(dict.fromkeys([*audit.devices, *(device for count in counts.values() for device in count)]))
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("lines", no_wrap=True)
    for device in devices:
        table.add_column(device or "any", justify="right", no_wrap=True)
    table.add_column("", overflow="fold", style="dim")
    for name, count in counts.items():
        cells = (str(count[device]) if count[device] else "·" for device in devices)
        table.add_row(Text(name, style=STYLES[rules()[name].severity]), *cells, rules()[name].title)
    yield table


def _unrun(parts: tuple[Unrun, ...]) -> Iterator[RenderableType]:
    failed, known = ([part for part in parts if part.known == which] for which in (False, True))
    if failed:
        yield Text("\nNot audited", style="bold red")
        yield from (Padding(Text(str(part)), (0, 0, 0, 2)) for part in failed)
    if known:
        yield Text(f"\nLeft out, {len(known)}", style="bold")
        yield from (Padding(Text(str(part), style="dim"), (0, 0, 0, 2)) for part in known[:LISTED])
        if len(known) > LISTED:
            yield Padding(Text(f"and {len(known) - LISTED} more (--json names all)", style="dim"), (0, 0, 0, 2))


def _end(audit: Audit, hidden: int) -> Iterator[RenderableType]:
    explained = len(audit.findings) - len(audit.open)
    failed = audit.exit_code("note") == NOT_RUN
    lines = _plural(len({(found.file, found.line, found.rule) for found in audit.open}), "finding")
    verdict = lines if audit.open else "not audited" if failed else "no finding"
    told = f"\n{verdict}: {_plural(audit.subjects, 'target')} on {', '.join(audit.devices)}, in {audit.seconds:.0f} s"
    yield Text(told, style="bold" if audit.open or failed else "bold green")
    yield Text(f"Devices are pretended, by the rules of torch {audit.torch}; values are the CPU's.", style="dim")
    if explained:
        yield Text(f"{_plural(explained, 'finding')} explained by comments (assay: allow).", style="dim")
    if hidden:
        yield Text(f"{_plural(hidden, 'note')} not printed (--notes).", style="dim")


def _plural(count: int, name: str) -> str:
    return f"{count} {name}" if count == 1 else f"{count} {name}s"
