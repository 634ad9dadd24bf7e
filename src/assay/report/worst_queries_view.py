"""The worst queries as a table, and the documents of each as another one."""

from __future__ import annotations

from collections.abc import Iterator

from assay.render import text
from assay.render.document import Block, DataGrid, Fold, GridCell, GridColumn, GridRow, Span
from assay.report.worst_queries import QueryDocument, QueryRanking, WorstQueries

_TITLE = "Worst queries"


def worst_queries_blocks(worst: WorstQueries) -> Iterator[Block]:
    """A row a query, and below it the documents of each."""
    if not worst.queries:
        return
    yield _overview(worst)
    intro = (
        "By score, the highest first. Documents with equal scores are in no order: they share their ranks, and the "
        "relevant ones stand first."
    )
    yield Fold("Documents of the worst queries", intro, tuple(_documents(each, worst) for each in worst.queries))


def _overview(worst: WorstQueries) -> DataGrid:
    names = ("query", *worst.query_columns, worst.metric, "documents", "relevant", "first relevant at")
    values = text.column([each.value for each in worst.queries])
    rows = [_query_row(each, shown) for each, shown in zip(worst.queries, values, strict=True)]
    lead = 1 + len(worst.query_columns)
    columns = tuple(GridColumn(name, "text" if k < lead else "number") for k, name in enumerate(names))
    note = (
        f"{len(rows):,} of {worst.imperfect_count:,} queries whose {worst.metric} is not the best possible one, the "
        f"worst first; all queries: {worst.query_count:,}."
    )
    return DataGrid(columns, tuple(rows), _TITLE, (note,))


def _query_row(query: QueryRanking, shown: str) -> GridRow:
    first = query.first_relevant
    cells = (
        GridCell(query.id, query.id),
        *(GridCell(each, each) for each in query.shown),
        GridCell(shown, query.value),
        GridCell(f"{query.document_count:,}", query.document_count),
        GridCell(f"{query.relevant_count:,}", query.relevant_count),
        GridCell(text.UNDEFINED, float("nan")) if first is None else GridCell(_rank(first), first.rank),
    )
    return GridRow(cells)


def _documents(query: QueryRanking, worst: WorstQueries) -> DataGrid:
    documents = query.documents
    has_ids = any(each.id for each in documents)
    scores = _numbers([each.score for each in documents])
    relevances = _numbers([each.relevance for each in documents])
    rows = []
    for each, score, relevance in zip(documents, scores, relevances, strict=True):
        cells = [
            GridCell(_rank(each), each.rank),
            GridCell(score, each.score),
            GridCell(Span(relevance, "good strong") if each.relevance > 0 else relevance, each.relevance),
            *([GridCell(each.id, each.id)] if has_ids else []),
            *(GridCell(shown, shown) for shown in each.shown),
        ]
        rows.append(GridRow(tuple(cells)))
    columns = [GridColumn(name, "number") for name in ("rank", "score", "relevance")]
    columns += [GridColumn(name) for name in (*(("document",) if has_ids else ()), *worst.document_columns)]
    named = " · ".join(dict.fromkeys([query.id, *filter(None, query.shown)]))
    return DataGrid(tuple(columns), tuple(rows), f"{named}: {worst.metric} {text.number(query.value)}", _notes(query))


def _notes(query: QueryRanking) -> tuple[str, ...]:
    """How many documents there are where not all are listed, and that none is relevant where that is so."""
    shown = len(query.documents)
    notes = [f"{shown:,} of {query.document_count:,} documents."] if shown < query.document_count else []
    if not query.relevant_count:
        notes.append("No document is relevant.")
    return tuple(notes)


def _numbers(values: list[float]) -> list[str]:
    """Numbers in one format: as integers where all are."""
    return text.column([*map(int, values)] if all(each.is_integer() for each in values) else values)


def _rank(document: QueryDocument) -> str:
    if document.rank == document.last_rank:
        return f"{document.rank:,}"
    return f"{document.rank:,}–{document.last_rank:,}"
