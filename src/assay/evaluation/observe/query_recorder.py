"""An observer that keeps the worst queries that are rows, or which sample each document of a query is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from assay.evaluation.observe.observers import Array, SampleRows, Tensors, as_bytes, from_bytes
from assay.evaluation.observe.per_sample import host_array, id_array
from assay.evaluation.observe.worst_queries import ChosenQueries, DocumentList, query_severities
from assay.metrics.per_sample import row_values
from assay.metrics.retrieval.base import QueryMean
from assay.report.worst import worst_rows
from assay.report.worst_queries import MOST_QUERIES, QueryDocument, QueryRanking, WorstQueries

RowDocument: TypeAlias = tuple[int, int, int, float, float]
"""A document in a row: its place there, its rank, its last rank, its score and its relevance."""
Candidate: TypeAlias = "tuple[float, Any, int | None, float, int, int, list[RowDocument]]"
"""A bad query that is a row: its severity, its id, its key, its value, how many documents it has and how many of these
are relevant, and the documents that are shown."""


@dataclass
class QueryRecorder:
    """An observer that keeps the worst queries that are rows; of documents with the number of their query, which
    sample each is.

    Args:
        name: of the metric that says how bad a query is.
        metric: the metric.
        most: how many documents are kept; with 0 none are.
    """

    name: str
    metric: QueryMean
    most: int = 0
    _worst: list[Candidate] = field(default_factory=list)
    _counts: list[int] = field(default_factory=lambda: [0, 0, 0])  # rows, queries, imperfect ones
    _series: dict[str, list[Array]] = field(default_factory=dict)
    _ids: list[Any] = field(default_factory=list)

    @property
    def idle(self) -> bool:
        """Whether there were too many documents on this process already."""
        return not self.metric.by_row and self._counts[0] > self.most

    def empty(self) -> QueryRecorder:
        """One that has kept nothing."""
        return QueryRecorder(self.name, self.metric, self.most)

    def count(self, rows: SampleRows) -> None:
        """Keep what is needed of rows; it is moved to the CPU at once."""
        self._counts[0] += len(rows)
        if self.metric.by_row:
            self._count_queries(rows)
        elif self.idle:
            self._series, self._ids = {}, []
        else:
            self._count_documents(rows)

    def _count_documents(self, rows: SampleRows) -> None:
        named = dict(zip(rows.batch.names, rows.batch.tensors[3:], strict=True))
        columns = {"query": named["indexes"], "score": rows.preds, "relevance": rows.target}
        tensors = {name: each for name, each in columns.items() if each is not None and each.ndim == 1}
        series = {name: host_array(each) for name, each in tensors.items()}
        if rows.index is not None:
            series["key"] = rows.index
        for name, each in series.items():
            self._series.setdefault(name, []).append(each)
        self._ids += rows.ids or ()

    def _count_queries(self, rows: SampleRows) -> None:
        names = rows.index if rows.ids is None else id_array(rows.ids)
        if names is None:
            return
        terms = row_values(replace(self.metric, aggregation="mean"), rows.preds, rows.target, None, {})
        assert terms is not None  # as there is one number a row
        values = host_array(terms.terms[terms.numerator])
        counted = np.ones(len(values), bool)
        if terms.denominator:
            counted = host_array(terms.terms[terms.denominator]).astype(bool)
        severities = query_severities(values, counted, bool(self.metric.higher_is_better))
        self._counts[1] += int(counted.sum())
        self._counts[2] += int((severities != -np.inf).sum())
        least = self._worst[-1][0] if len(self._worst) == MOST_QUERIES else -np.inf
        candidates = []
        for row in worst_rows(np.where(severities < least, -np.inf, severities), names, MOST_QUERIES).tolist():
            named = int(names[row]) if rows.ids is None else rows.ids[row]
            keys = rows.index if rows.numbers is None else rows.numbers
            key = None if keys is None else int(keys[row])
            candidates.append((float(severities[row]), named, key, float(values[row]), *self._documents(rows, row)))
        self._worst = _worst([*self._worst, *candidates])

    def _documents(self, rows: SampleRows, row: int) -> tuple[int, int, list[RowDocument]]:
        """How many documents a query that is a row has, how many are relevant, and those that are shown."""
        assert rows.target is not None  # as the metric was given it
        scores, relevance = host_array(rows.preds[row]), host_array(rows.target[row])
        places = np.arange(len(scores))
        if self.metric.ignore_index is not None:
            places = np.flatnonzero(relevance != self.metric.ignore_index)
        documents = DocumentList(scores[places].astype(np.float64), relevance[places].astype(np.float64))
        shown = [
            (int(places[k]), rank, last, float(documents.scores[k]), float(documents.relevance[k]))
            for k, rank, last in documents.first()
        ]
        return len(places), int((documents.relevance > 0).sum()), shown

    def state(self) -> dict[str, Tensor]:
        """What was kept, as tensors."""
        about = {"worst": self._worst, "counts": self._counts, "ids": self._ids}
        return {"about": as_bytes(about), **{name: torch.from_numpy(each) for name, each in self._whole().items()}}

    def add_state(self, tensors: Tensors) -> None:
        """Add what `state` gave."""
        series = dict(tensors)
        about = from_bytes(series.pop("about"))
        self._counts = [one + other for one, other in zip(self._counts, about["counts"], strict=True)]
        self._worst = _worst([*self._worst, *((*each[:6], [*map(tuple, each[6])]) for each in about["worst"])])
        if self.idle:
            self._series, self._ids = {}, []
            return
        self._ids += about["ids"]
        for name, tensor in series.items():
            self._series.setdefault(name, []).append(tensor.numpy())

    def _whole(self) -> dict[str, Array]:
        """The series that have an entry for every document."""
        joined = {name: np.concatenate(parts) for name, parts in sorted(self._series.items())}
        return {name: series for name, series in joined.items() if len(series) == self._counts[0]}

    def documents(self, numbers: Iterable[int]) -> dict[int, DocumentList]:
        """What was kept of the documents of queries, by their numbers."""
        series = self._whole()
        if self.idle or not {"query", "score", "relevance"} <= series.keys():
            return {}
        ids = id_array(self._ids) if len(self._ids) == self._counts[0] else series.get("key")
        found = {}
        for number in numbers:
            is_of_query = series["query"] == number
            if self.metric.ignore_index is not None:
                is_of_query &= series["relevance"] != self.metric.ignore_index
            rows = np.flatnonzero(is_of_query)
            scores, relevance = (series[name][rows].astype(np.float64) for name in ("score", "relevance"))
            keys = series.get("key")
            found[number] = DocumentList(
                scores, relevance, None if ids is None else ids[rows], None if keys is None else keys[rows]
            )
        return found

    def queries(self) -> ChosenQueries | None:
        """The worst queries that are rows; None without queries."""
        if not self._counts[1]:
            return None
        queries = tuple(
            QueryRanking(
                str(named),
                value,
                count,
                relevant,
                tuple(
                    QueryDocument(rank, last_rank, score, relevance, str(place))
                    for place, rank, last_rank, score, relevance in documents
                ),
            )
            for _, named, _, value, count, relevant, documents in self._worst
        )
        samples = tuple(tuple((key, place) for place, *_ in documents) for _, _, key, *_, documents in self._worst)
        return ChosenQueries(WorstQueries(self.name, self._counts[1], self._counts[2], queries), samples)


def _worst(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The worst of some candidates, in the order in which a report has them."""
    if not candidates:
        return []
    names = id_array([each[1] for each in candidates])
    return [candidates[row] for row in worst_rows(np.array([each[0] for each in candidates]), names, MOST_QUERIES)]
