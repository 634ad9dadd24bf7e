"""The worst queries of a ranking metric, with the documents that are shown of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from assay.devices.placement import to_host
from assay.evaluation.observe.observers import Array
from assay.evaluation.observe.per_sample import excerpt
from assay.meter import Meter
from assay.metrics.base import Metric
from assay.metrics.retrieval.base import QueryMean
from assay.report.worst import severity, worst_rows
from assay.report.worst_queries import MOST_DOCUMENTS, MOST_QUERIES, QueryDocument, QueryRanking, WorstQueries

_BEST = 1 - 1e-6  # of each metric of which more is better, up to the rounding of float32


def ranking_metric(metrics: Mapping[str, Metric]) -> tuple[str, QueryMean] | None:
    """The first metric that is made of one number a query, with its name, or None."""
    return next(((name, metric) for name, metric in metrics.items() if isinstance(metric, QueryMean)), None)


@dataclass(frozen=True)
class DocumentList:
    """The documents of a query, in any order.

    Attributes:
        scores: what they are ranked by.
        relevance: of each.
        ids: what they are called, integers or strings; None where that is not known.
        keys: by which their samples can be found again; None where they cannot.
    """

    scores: Array
    relevance: Array
    ids: Array | None = None
    keys: Array | None = None

    def where(self, members: Array) -> DocumentList:
        """Some of the documents, as booleans say."""
        ids, keys = (each if each is None else each[members] for each in (self.ids, self.keys))
        return DocumentList(self.scores[members], self.relevance[members], ids, keys)

    def has_the_documents_of(self, other: DocumentList) -> bool:
        """Whether both have equal scores and relevances."""
        pairs = [np.lexsort((each.relevance, each.scores)) for each in (self, other)]
        columns = [(a.scores[k], a.relevance[k]) for a, k in zip((self, other), pairs, strict=True)]
        return all(np.array_equal(one, two) for one, two in zip(*columns, strict=True))

    def first(self) -> list[tuple[int, int, int]]:
        """The position, the rank and the last rank of the documents that are shown, in the order of their scores."""
        names = np.arange(len(self.scores)) if self.ids is None else np.unique(self.ids, return_inverse=True)[1]
        order = np.lexsort((names, -self.relevance, -self.scores))
        ordered = -self.scores[order]
        relevant = np.flatnonzero(self.relevance[order] > 0)[:1]
        places = [*range(min(len(order), MOST_DOCUMENTS)), *relevant[relevant >= MOST_DOCUMENTS].tolist()]
        ranks, last_ranks = (np.searchsorted(ordered, ordered[places], side) for side in ("left", "right"))
        return list(zip(order[places].tolist(), (ranks + 1).tolist(), last_ranks.tolist(), strict=True))


@dataclass(frozen=True)
class ChosenQueries:
    """The queries that are shown, and the samples in which more of them is found.

    Attributes:
        worst: the queries, without what else is shown of them.
        samples: for each document of each query, the key of its sample or of that of its query, None where it cannot be
            found; and the place of the document in a sample that is a query.
    """

    worst: WorstQueries
    samples: tuple[tuple[tuple[int | None, int | None], ...], ...]

    @property
    def keys(self) -> list[int]:
        """Of the samples that are to be read again, so that something of them can be shown."""
        return sorted({key for documents in self.samples for key, _ in documents if key is not None})

    def result(self, names: Sequence[str] = (), shown: Mapping[int, Sequence[Any]] | None = None) -> WorstQueries:
        """The queries as a report has them.

        Args:
            names: of what is shown.
            shown: by the keys of samples, the values of these names. What is the same for all documents of a query is
                shown once; a list in a sample that is a query has a value for each of its documents.
        """
        shown = {} if shown is None else shown
        columns = [self._column(k, shown) for k in range(len(names))]
        of_queries = [k for k, column in enumerate(columns) if all(len(set(each)) <= 1 for each in column)]
        if all(len(documents) <= 1 for documents in self.samples):
            of_queries = []
        of_documents = [k for k in range(len(names)) if k not in of_queries]
        queries = []
        for number, query in enumerate(self.worst.queries):
            documents = tuple(
                replace(each, shown=tuple(columns[k][number][row] for k in of_documents))
                for row, each in enumerate(query.documents)
            )
            of_query = tuple(next(iter(columns[k][number]), "") for k in of_queries)
            queries.append(replace(query, documents=documents, shown=of_query))
        return replace(
            self.worst,
            queries=tuple(queries),
            query_columns=tuple(names[k] for k in of_queries),
            document_columns=tuple(names[k] for k in of_documents),
        )

    def _column(self, number: int, shown: Mapping[int, Sequence[Any]]) -> list[list[str]]:
        """What is shown of each document under one name, a list a query."""
        return [
            [
                "" if key is None or key not in shown else _text(shown[key][number], place, query.document_count)
                for key, place in documents
            ]
            for query, documents in zip(self.worst.queries, self.samples, strict=True)
        ]


def _text(value: Any, place: int | None, count: int) -> str:
    """A value as a short string, empty for None; of a list that has one for each document, that of one of them."""
    if isinstance(value, Tensor):
        value = to_host(value)
    if isinstance(value, Tensor | np.ndarray):
        value = value.tolist()
    if place is not None and isinstance(value, list | tuple) and len(value) >= max(count, place + 1):
        value = value[place]
    if value is None:
        return ""
    return excerpt(value if isinstance(value, str | list | tuple) else str(value))


@dataclass(frozen=True)
class NumberedQueries:
    """The worst queries whose documents were counted with the number of their query.

    Attributes:
        metric: the name of the metric.
        query_count: how many queries count.
        imperfect_count: how many of them have another value than the best possible one.
        values: of the worst, by their numbers.
        documents: likewise.
    """

    metric: str
    query_count: int
    imperfect_count: int
    values: Mapping[int, float]
    documents: Mapping[int, DocumentList]

    def chosen(self, found: Mapping[int, DocumentList], names: Mapping[int, str]) -> ChosenQueries:
        """The queries with what is known of their documents.

        Args:
            found: documents with ids or keys, by the numbers of queries; not used where they are not those counted.
            names: what queries are called, by their numbers; by default by these.
        """
        queries, samples = [], []
        for number, value in self.values.items():
            counted = self.documents[number]
            named = found.get(number)
            known = named if named is not None and named.has_the_documents_of(counted) else counted
            documents = tuple(
                QueryDocument(
                    rank,
                    last_rank,
                    float(known.scores[k]),
                    float(known.relevance[k]),
                    "" if known.ids is None else str(known.ids[k]),
                )
                for k, rank, last_rank in known.first()
            )
            samples.append(tuple((None if known.keys is None else int(known.keys[k]), None) for k, *_ in known.first()))
            relevant = int((known.relevance > 0).sum())
            queries.append(QueryRanking(names.get(number, str(number)), value, len(known.scores), relevant, documents))
        worst = WorstQueries(self.metric, self.query_count, self.imperfect_count, tuple(queries))
        return ChosenQueries(worst, tuple(samples))


def numbered_queries(total: Meter, name: str, metric: QueryMean) -> NumberedQueries | None:
    """The worst queries by a metric that is given the number of the query of each document; None without queries."""
    blocks = total.counts_of(name)
    found, _ = blocks.values(metric.measure)
    values, counted = found.values[:, 0].numpy(), found.counted[:, 0].numpy()
    severities = query_severities(values, counted, bool(metric.higher_is_better))
    numbers, (starts, ends) = blocks.columns["indexes"], blocks.bounds
    if not counted.any():
        return None
    worst = worst_rows(severities, numbers[starts], MOST_QUERIES).tolist()
    columns = blocks.columns["scores"], blocks.columns["relevance"]
    return NumberedQueries(
        name,
        int(counted.sum()),
        int((severities != -np.inf).sum()),
        {int(numbers[starts[row]]): float(values[row]) for row in worst},
        {
            int(numbers[starts[row]]): DocumentList(
                *(column[starts[row] : ends[row]].astype(np.float64) for column in columns)
            )
            for row in worst
        },
    )


def query_severities(values: Array, counted: Array, higher_is_better: bool) -> Array:
    """How bad queries are; -inf for those that are as good as can be, and those that do not count."""
    severities = severity(values, None, higher_is_better)
    if higher_is_better:
        severities = np.where(values >= _BEST, -np.inf, severities)
    return np.where(counted, severities, -np.inf)
