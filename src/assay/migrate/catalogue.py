"""The catalogue: every metric class of the other libraries, and what it is in assay."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from assay.migrate.table import LIBRARIES, LibraryTable, library
from assay.render import Chapter, DataGrid, Document


@dataclass(frozen=True)
class CatalogueRow:
    """One metric class of another library.

    Attributes:
        library: the library.
        name: the class.
        assay: the metric of assay that takes its place; empty where none has the same name and arguments.
        instead: what to write; of what has a counterpart only what cannot be changed by a program.
        missing: the family that it belongs to, where assay has nothing for it.
    """

    library: str
    name: str
    assay: str = ""
    instead: str = ""
    missing: str = ""


def catalogue(libraries: Iterable[str] = LIBRARIES) -> list[CatalogueRow]:
    """Every public class of these libraries, by library and name.

    Example:
        >>> next(row for row in catalogue(["torchmetrics"]) if row.name == "BinaryAccuracy").assay
        'Accuracy'
    """
    return [row for name in libraries for row in sorted(_rows(library(name)), key=lambda row: row.name)]


def _rows(table: LibraryTable) -> Iterator[CatalogueRow]:
    families = {name: family for family, names in missing(table.name).items() for name in names}
    for name, entry in table.entries.items():
        if not entry.function:
            yield CatalogueRow(table.name, name, entry.assay, entry.unsure)
    for name, instead in table.without.items():
        if name[0].isupper():
            family = families.get(name, "")
            yield CatalogueRow(table.name, name, instead=instead, missing=family)


@cache
def missing(name: str) -> dict[str, list[str]]:
    """The classes of a library that assay has nothing for, by family; none where it has all."""
    names: dict[str, dict[str, list[str]]] = tomllib.loads((files(__package__) / "missing.toml").read_text("utf-8"))
    return names.get(name, {})


def catalogue_document(rows: Iterable[CatalogueRow]) -> Document:
    """The catalogue as a document: a chapter a library."""
    by_library: dict[str, list[CatalogueRow]] = {}
    for row in rows:
        by_library.setdefault(row.library, []).append(row)
    return Document("", tuple(_chapter(library(name), each) for name, each in by_library.items()))


def _chapter(table: LibraryTable, rows: list[CatalogueRow]) -> Chapter:
    families = Counter(row.missing for row in rows if row.missing)
    lacking = ", ".join(f"{count} {family}" for family, count in families.items())
    direct, other = sum(bool(row.assay) for row in rows), sum(not row.assay and not row.missing for row in rows)
    note = f"{len(rows)} classes: {direct} have a counterpart, for {other} the last column says what to do"
    note += f"; missing: {lacking}" if lacking else ""
    cells = [(row.name, row.assay, f"missing: {row.missing}" if row.missing else row.instead) for row in rows]
    return Chapter(f"{table.title} {table.version}", (DataGrid.of(("class", "assay", "instead"), cells),), note)
