"""The pages that tables make; `python docs/pages/migration_pages.py` writes their tables anew."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from textwrap import fill

from differences import DeliberateDifference, DifferenceTopic, topics, wrong_numbers

from assay._atomic import write_text
from assay.migrate.table import LIBRARIES, Counterpart, LibraryTable, library

BEGIN = "<!-- tables: made by docs/pages/migration_pages.py -->"


def name_tables() -> str:
    """The names of all libraries."""
    return "\n".join(_section(library(name)) for name in LIBRARIES)


def difference_tables() -> str:
    """The deliberate differences of all topics."""
    return "\n".join(_topic(each) for each in topics())


def wrong_number_entries() -> str:
    """The wrong numbers of all parts: what is wrong, what the script prints, and where the script is."""
    blocks = []
    for title, numbers in wrong_numbers().items():
        blocks.append(f"## {title}")
        for each in numbers:
            link = f"[Script](../examples/wrong_numbers/{each.script}.py). {each.after}".strip()
            blocks += [f"### {each.title}", _wrapped(each.text), f"```\n{each.prints}\n```", _wrapped(link)]
    return "\n\n".join(blocks) + "\n"


def _wrapped(text: str) -> str:
    return fill(text, 120, break_long_words=False, break_on_hyphens=False)


PAGES: Mapping[str, Callable[[], str]] = {
    "docs/migrate.md": name_tables,
    "docs/differences.md": difference_tables,
    "docs/wrong_numbers_elsewhere.md": wrong_number_entries,
}
"""What stands on each page behind `BEGIN`."""


def renewed(page: str, tables: Callable[[], str]) -> str:
    """A page with its tables written anew."""
    return page[: page.index(BEGIN)] + f"{BEGIN}\n\n{tables()}"


def _row(*cells: str) -> str:
    return "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _head(*names: str) -> list[str]:
    return [_row(*names), "|" + "---|" * len(names)]


def _topic(of: DifferenceTopic) -> str:
    blocks = (f"## {of.title}", _wrapped(of.tests), difference_table(of, of.differences), of.after)
    return "\n\n".join(each for each in blocks if each) + "\n"


def difference_table(of: DifferenceTopic, differences: Iterable[DeliberateDifference]) -> str:
    """Some differences of a topic as a table."""
    heads = ("case", of.theirs, *([of.reference] if of.reference else []), "assay", "why")
    return "\n".join([*_head(*heads), *(_difference_row(each, bool(of.reference)) for each in differences)])


def _difference_row(of: DeliberateDifference, with_reference: bool) -> str:
    theirs = _cell(of.theirs, [f"`{each.theirs}`: {each.gives}" for each in of.examples])
    ours = _cell(of.assay, [f"`{each.ours}`: {each.reads}" for each in of.examples])
    case = _cell(of.case, [_code(each.data) for each in of.examples if each.data])
    return _row(case, theirs, *([of.reference or "-"] if with_reference else []), ours, of.why)


def _cell(text: str, of_examples: list[str]) -> str:
    """A statement, and behind it the examples; `-` for nothing."""
    return "<br>".join(each for each in (text, *dict.fromkeys(of_examples)) if each) or "-"


class _Notes:
    """Texts that stand once, below their table, and are cited in it by number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def cite(self, *texts: str) -> str:
        return ", ".join(str(self.numbers.setdefault(each, len(self.numbers) + 1)) for each in texts if each)

    def lines(self) -> list[str]:
        return [f"{number}. {text}" for text, number in self.numbers.items()]


def _section(of: LibraryTable) -> str:
    notes = _Notes()
    parts = [f"## {of.title} {of.version}", "", "### Names", "", *_names(of, notes), "", *notes.lines(), ""]
    return "\n".join([*parts, "### Names without a counterpart", "", *_without(of), ""])


def _names(of: LibraryTable, notes: _Notes) -> list[str]:
    rows: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for each in sorted(of.entries.values(), key=lambda entry: entry.assay):
        written = ", ".join(f"{name}={value}" for name, value in each.writes.items())
        target = "by `task=`" if each.tasks else _code(each.assay)
        checks = notes.cite(*(check.text for check in each.checks))
        rows[target, _arguments(each), _code(written), notes.cite(each.unsure), checks].append(_code(each.name))
    heads = _head("name", "assay", "arguments", "written unless given", "left to you", "look at")
    return [*heads, *(_row(", ".join(names), *cells) for cells, names in rows.items())]


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


if __name__ == "__main__":
    for path, make in PAGES.items():
        file = Path(__file__).parents[2] / path
        write_text(file, renewed(file.read_text("utf-8"), make))
