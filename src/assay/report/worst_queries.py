"""The worst queries of a ranking metric, with the documents that were ranked first for each."""

from __future__ import annotations

from assay._records import Record
from assay.errors import ShapeError, describe

MOST_QUERIES = 5
MOST_DOCUMENTS = 10
"""Of a query that are shown; and the first relevant one, if it is further down."""


class QueryDocument(Record):
    """A document of a query.

    Args:
        rank: its place by score, from 1 on; of documents with equal scores, the first place of these.
        last_rank: the last place of the documents with its score.
        score: what it was ranked by.
        relevance: its true relevance; one above 0 is relevant.
        id: which document it is; empty where that is not known.
        shown: what was asked to be shown of it.
    """

    rank: int
    last_rank: int
    score: float
    relevance: float
    id: str = ""
    shown: tuple[str, ...] = ()


class QueryRanking(Record):
    """A query with its documents.

    Args:
        id: which query it is.
        value: that of the metric for this query; with equal scores, the expectation over their orders.
        document_count: how many documents it has.
        relevant_count: how many of them are relevant.
        documents: those with the highest scores in the order of these, and the first relevant one.
        shown: what was asked to be shown of the query.
    """

    id: str
    value: float
    document_count: int
    relevant_count: int
    documents: tuple[QueryDocument, ...]
    shown: tuple[str, ...] = ()

    @property
    def first_relevant(self) -> QueryDocument | None:
        """The relevant document with the highest score; None where no document is relevant."""
        return next((each for each in self.documents if each.relevance > 0), None)


class WorstQueries(Record):
    """The queries with the worst values of a metric, the worst first.

    Args:
        metric: the name of the metric.
        query_count: how many queries count.
        imperfect_count: how many of them have another value than the best possible one.
        queries: the worst of these.
        query_columns: the names of what is shown of a query.
        document_columns: the names of what is shown of a document.

    Raises:
        ShapeError: a query or a document has not one string for each column.

    Example:
        >>> found = QueryDocument(1, 1, 0.9, 0.0), QueryDocument(2, 2, 0.4, 1.0)
        >>> worst = WorstQueries("MRR", 20, 7, [QueryRanking("q3", 0.5, 2, 1, found)])
        >>> worst.queries[0].first_relevant.rank
        2
    """

    metric: str
    query_count: int
    imperfect_count: int
    queries: tuple[QueryRanking, ...]
    query_columns: tuple[str, ...] = ()
    document_columns: tuple[str, ...] = ()

    def _check(self) -> None:
        for query in self.queries:
            _check_shown(f"queries: {query.id}", query.shown, self.query_columns)
            for each in query.documents:
                _check_shown(f"queries: {query.id}: rank {each.rank}", each.shown, self.document_columns)


def _check_shown(where: str, shown: tuple[str, ...], columns: tuple[str, ...]) -> None:
    if len(shown) != len(columns):
        expected = f"{len(columns)}, one a column"
        raise ShapeError(describe(f"WorstQueries.{where}", f"{len(shown)} strings", expected, "Pass as many"))
