"""Rows of a table that are read once more: the names of its worst queries, and what is shown of their documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.data.tables.arrow import arrow
from assay.data.tables.content_digests import changed_files
from assay.data.tables.table_source import Fragment, TableSource, open_table
from assay.evaluation.observe.query_recorder import QueryRecorder
from assay.evaluation.observe.worst_queries import ChosenQueries, DocumentList, numbered_queries, ranking_metric
from assay.evaluation.results.counted_samples import CountedSamples
from assay.metrics.retrieval.base import QueryMean
from assay.report import Section
from assay.scoring.row_selection import RowSelection
from assay.scoring.rows import row_numbers
from assay.scoring.schemas import schema_difference

_INDEXES = "indexes"


@dataclass(frozen=True)
class TableOrigin:
    """Where fragments were read from, so that some of their rows can be read again.

    Attributes:
        paths: what the table was opened from.
        texts: columns of CSV that are strings.
    """

    paths: tuple[str, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class RowsOfQueries:
    """How rows of queries are found again.

    Attributes:
        selection: selects rows as it did when they were counted.
        origin: where they were read from; None where that is not known.
        sql: the query that gives them; empty for none.
        contents: the digests of the files when they were counted.
    """

    selection: RowSelection
    origin: TableOrigin | None
    sql: str = ""
    contents: Mapping[str, str] = field(default_factory=dict)

    def changed(self, table: TableSource) -> list[str]:
        """The files that were written again since they were counted."""
        if not self.contents:
            return []
        return changed_files(table.contents(self.selection.reader.columns.needed), self.contents)

    def opened(self, table: TableSource | None) -> TableSource | None:
        """The table, so that it can be read again; None where it cannot."""
        if table is not None and not table.is_stream:
            return table
        if self.sql:
            return open_table(None, sql=self.sql)
        return None if self.origin is None else open_table(list(self.origin.paths), texts=self.origin.texts)


@dataclass
class FoundRows:
    """What was read of the rows of queries.

    Attributes:
        names: what queries are called, by their numbers.
        documents: the documents of queries, by their numbers.
        shown: by the keys of rows, what is shown of them.
        note: why that is not all; empty where it is.
    """

    names: dict[int, str] = field(default_factory=dict)
    documents: dict[int, DocumentList] = field(default_factory=dict)
    shown: dict[int, tuple[Any, ...]] = field(default_factory=dict)
    note: str = ""


def with_worst_queries(
    section: Section, counted: CountedSamples, rows: RowsOfQueries, table: TableSource | None
) -> tuple[Section, list[str]]:
    """The section with its worst queries, and why something of them is not shown.

    Args:
        section: what was measured.
        counted: what was counted.
        rows: how rows are found again.
        table: the table; None to open what the rows were read from.
    """
    ranking = ranking_metric(counted.metrics)
    if ranking is None:
        return section, []
    name, metric = ranking
    chosen, found = (_of_rows if metric.by_row else _of_numbers)(name, metric, counted, rows, table)
    if chosen is None:
        return section, []
    names = tuple(rows.selection.reader.columns.shown) if found.shown else ()
    notes = [found.note] if found.note and chosen.worst.queries else []
    return replace(section, worst_queries=chosen.result(names, found.shown)), notes


def _of_rows(
    name: str, metric: QueryMean, counted: CountedSamples, rows: RowsOfQueries, table: TableSource | None
) -> tuple[ChosenQueries | None, FoundRows]:
    """The worst queries that are rows; what was kept of them has all but what is to be shown."""
    recorder = counted.observed.get("queries")
    chosen = recorder.queries() if isinstance(recorder, QueryRecorder) else None
    if chosen is None or not rows.selection.reader.columns.shown:
        return chosen, FoundRows()
    return chosen, _found(chosen.keys, rows, table, by_row=True)


def _of_numbers(
    name: str, metric: QueryMean, counted: CountedSamples, rows: RowsOfQueries, table: TableSource | None
) -> tuple[ChosenQueries | None, FoundRows]:
    """The worst queries whose documents are rows; their names and those of documents are in the table only."""
    queries = numbered_queries(counted.total, name, metric)
    if queries is None:
        return None, FoundRows()
    reader = rows.selection.reader
    found = FoundRows()
    if queries.values and (reader.has_hashed_queries or reader.columns.ids or reader.columns.shown):
        found = _found(list(queries.values), rows, table, by_row=False)
    if reader.has_hashed_queries:
        hashes = {number: f"#{number & (1 << 64) - 1:016x}" for number in queries.values}
        found.names = hashes | found.names
    documents = found.documents
    if metric.ignore_index is not None:
        documents = {number: each.where(each.relevance != metric.ignore_index) for number, each in documents.items()}
    return queries.chosen(documents, found.names), found


def _found(numbers: Sequence[int], rows: RowsOfQueries, table: TableSource | None, *, by_row: bool) -> FoundRows:
    """What the table has of some queries."""
    missing = "What show= names, names of queries and ids of documents are not in the report, as far as they are "
    try:
        opened = rows.opened(table)
        if opened is None:
            return FoundRows(note=f"{missing}in the table only: it is a stream, which cannot be read again.")
        if changed := rows.changed(opened):
            return FoundRows(note=f"{missing}in the table only: {changed[0]} has changed since it was counted.")
        wanted = np.array(sorted(numbers), np.int64)
        selection = rows.selection.fresh()
        return _read(opened, selection, wanted) if by_row else _read_documents(opened, selection, wanted)
    except Exception as error:  # all is measured: no text is worth losing the report
        return FoundRows(note=f"{missing}in the table, which could not be read again: {type(error).__name__}: {error}")


def _read(table: TableSource, selection: RowSelection, wanted: NDArray[np.int64]) -> FoundRows:
    """What is shown of rows, by the numbers that identify them."""
    found, columns = FoundRows(), selection.reader.columns
    for read in _batches(table, selection, wanted, by_row=True):
        shown = zip(*(read.batch.column(each).to_pylist() for each in columns.shown.values()), strict=True)
        found.shown |= dict(zip(read.numbers.tolist(), shown, strict=True))
    return found


def _read_documents(table: TableSource, selection: RowSelection, wanted: NDArray[np.int64]) -> FoundRows:
    """The documents of queries, by the numbers of these; their keys count them."""
    found, columns = FoundRows(), selection.reader.columns
    parts: dict[int, list[tuple[float, float, Any, int]]] = {number: [] for number in wanted.tolist()}
    for read in _batches(table, selection, wanted, by_row=False):
        names = read.batch.column(columns.named[_INDEXES]).to_pylist()
        ids = read.batch.column(columns.ids).to_pylist() if columns.ids else [None] * len(names)
        shown = [read.batch.column(each).to_pylist() for each in columns.shown.values()]
        for row, number in enumerate(read.numbers.tolist()):
            key = len(found.shown)
            found.shown[key] = tuple(each[row] for each in shown)
            found.names[number] = str(names[row])
            parts[number].append((read.scores[row], read.relevance[row], ids[row], key))
    for number, documents in parts.items():
        scores, relevance, ids, keys = zip(*documents, strict=True) if documents else ((), (), (), ())
        named = np.array(ids, None if all(isinstance(each, int) for each in ids) else object)
        found.documents[number] = DocumentList(
            np.array(scores, np.float64),
            np.array(relevance, np.float64),
            named if columns.ids else None,
            np.array(keys, np.int64),
        )
    if not columns.shown:
        found.shown = {}
    return found


@dataclass(frozen=True)
class _Rows:
    """Rows that were wanted: a record batch, the numbers by which they were, scores and relevances."""

    batch: Any
    numbers: NDArray[np.int64]
    scores: list[float]
    relevance: list[float]


def _batches(
    table: TableSource, selection: RowSelection, wanted: NDArray[np.int64], *, by_row: bool
) -> Iterator[_Rows]:
    """The rows that have one of the wanted numbers, out of those that were counted."""
    columns = selection.reader.columns
    names = tuple(dict.fromkeys((*columns.needed, *columns.shown.values())))
    for fragment in table.fragments:
        if schema_difference(fragment.schema, table, columns.needed):
            continue
        find = _Finder(fragment, table.is_one_file, selection, wanted, by_row)
        if selection.repeated is None and not any(map(np.any, find.masks())):
            continue
        first = fragment.first
        for batch in fragment.scan(names):
            places = np.arange(first, first + batch.num_rows, dtype=np.int64)
            first += batch.num_rows
            if selection.repeated is None:  # else the first row with an id has to be found
                mask = find.mask(batch, places)
                batch, places = batch.filter(arrow().array(mask)), places[mask]
            rows = selection.rows(batch, fragment.key, places)
            batch = batch.take(arrow().array(np.searchsorted(places, rows.places)))
            mask = find.mask(batch, rows.places)
            batch, scores, relevance = batch.filter(arrow().array(mask)), [], []
            if not by_row:
                scores, relevance = (each.double().numpy()[mask].tolist() for each in (rows.preds, rows.target))
            yield _Rows(batch, find.numbers(batch, rows.places[mask]), scores, relevance)


@dataclass(frozen=True)
class _Finder:
    """Finds the rows of a fragment by their numbers, or by those of their queries."""

    fragment: Fragment
    is_one_file: bool
    selection: RowSelection
    wanted: NDArray[np.int64]
    by_row: bool

    def masks(self) -> Iterator[NDArray[np.bool_]]:
        """Which rows are wanted, batch by batch; no other column is read for that."""
        columns, first = self.selection.reader.columns, self.fragment.first
        column = columns.ids if self.by_row else columns.named[_INDEXES]
        if not column and self.fragment.rows is not None:
            yield np.isin(self._numbers_of_places(np.arange(first, first + self.fragment.rows)), self.wanted)
            return
        for batch in self.fragment.scan([column] if column else columns.needed[:1]):
            yield self.mask(batch, np.arange(first, first + batch.num_rows))
            first += batch.num_rows

    def mask(self, batch: Any, places: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows of a batch are wanted."""
        return np.isin(self.numbers(batch, places), self.wanted)

    def numbers(self, batch: Any, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of the rows of a batch, or those of their queries."""
        reader = self.selection.reader
        if not self.by_row:
            return reader.query_numbers(batch, reader.columns.named[_INDEXES])
        if reader.columns.ids:
            return row_numbers(reader.ids(batch), places, "", True)
        return self._numbers_of_places(places)

    def _numbers_of_places(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        return row_numbers(None, places, self.fragment.file, self.is_one_file)
