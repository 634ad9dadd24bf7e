"""The catalogue: every metric class of the other libraries, and what it is in assay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
    """

    library: str
    name: str
    assay: str = ""
    instead: str = ""


def catalogue(libraries: Iterable[str] = LIBRARIES) -> list[CatalogueRow]:
    """Every public class of these libraries, by library and name.

    Example:
        >>> next(row for row in catalogue(["torchmetrics"]) if row.name == "BinaryAccuracy").assay
        'Accuracy'
    """
    return [row for name in libraries for row in sorted(_rows(library(name)), key=lambda row: row.name)]


def _rows(table: LibraryTable) -> Iterator[CatalogueRow]:
    for name, entry in table.entries.items():
        if not entry.function:
            yield CatalogueRow(table.name, name, entry.assay, entry.unsure)
    for name, instead in table.without.items():
        if name[0].isupper():
            yield CatalogueRow(table.name, name, instead=instead)


def catalogue_document(rows: Iterable[CatalogueRow]) -> Document:
    """The catalogue as a document: a chapter a library."""
    by_library: dict[str, list[CatalogueRow]] = {}
    for row in rows:
        by_library.setdefault(row.library, []).append(row)
    return Document("", tuple(_chapter(library(name), each) for name, each in by_library.items()))


def _chapter(table: LibraryTable, rows: list[CatalogueRow]) -> Chapter:
    direct = sum(bool(row.assay) for row in rows)
    note = f"{len(rows)} classes: {direct} have a counterpart, for {len(rows) - direct} the last column says what to do"
    cells = [(row.name, row.assay, row.instead) for row in rows]
    return Chapter(f"{table.title} {table.version}", (DataGrid.of(("class", "assay", "instead"), cells),), note)
