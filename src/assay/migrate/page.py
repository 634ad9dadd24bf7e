"""The tables as Markdown; `python -m assay.migrate.page docs/migrate.md` renews those of the page."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

from assay._atomic import write_text
from assay.migrate.table import LIBRARIES, Counterpart, LibraryTable, library

BEGIN = "<!-- tables: made from the TOML in src/assay/migrate -->"


def tables() -> str:
    """All tables of all libraries."""
    return "\n".join(_section(library(name)) for name in LIBRARIES)


def _section(of: LibraryTable) -> str:
    parts = [f"## {of.title} {of.version}", "", "### Where values differ", "", *_differences(of), ""]
    parts += ["### Names", "", *_names(of), "", "### Names without a counterpart", "", *_without(of), ""]
    return "\n".join(parts)


def _row(*cells: str) -> str:
    return "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _head(*names: str) -> list[str]:
    return [_row(*names), "|" + "---|" * len(names)]


def _differences(of: LibraryTable) -> list[str]:
    lines = _head("case", "data", of.title, "gives", "assay", "reads", "why")
    for each in of.differences:
        cells = (_code(each.data), _code(each.theirs), each.gives, _code(each.ours), each.reads)
        lines.append(_row(each.case, *cells, each.why))
    return lines


def _names(of: LibraryTable) -> list[str]:
    lines = _head("name", "assay", "arguments", "written unless given", "left to you", "look at")
    for each in of.entries.values():
        written = ", ".join(f"{name}={value}" for name, value in each.writes.items())
        checks = "; ".join(check.text for check in each.checks)
        target = "by `task=`" if each.tasks else _code(each.assay)
        lines.append(_row(_code(each.name), target, _arguments(each), _code(written), each.unsure, checks))
    return lines


def _arguments(entry: Counterpart) -> str:
    """What becomes of the arguments, those that are passed on first."""
    kinds: dict[str, list[str]] = defaultdict(list)
    for each in entry.takes:
        kind, _, rest = entry.rules.get(each.name, "").partition(" ")
        if kind == "same":
            kinds["same"].append(f"`{each.name}`")
        elif kind.startswith("="):
            kinds["same"].append(f"`{each.name}` as `{kind[1:]}`")
        elif kind == "among":
            kinds["same"].append(f"`{each.name}` if {rest}")
        elif kind == "only":
            kinds["only"].append(f"`{each.name}={rest}`")
    same, only = ", ".join(kinds["same"]), ", ".join(kinds["only"])
    return "; ".join(each for each in (same, f"only {only}" if only else "") if each)


def _without(of: LibraryTable) -> list[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for name, instead in of.without.items():
        groups[instead].append(f"`{name}`")
    return [*_head("names", "instead"), *(_row(", ".join(names), instead) for instead, names in groups.items())]


def renewed(page: str) -> str:
    """A page with its tables as they are now."""
    return page[: page.index(BEGIN)] + f"{BEGIN}\n\n{tables()}"


if __name__ == "__main__":
    path = Path(sys.argv[1])
    write_text(path, renewed(path.read_text("utf-8")))
