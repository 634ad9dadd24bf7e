"""Metrics of where the relevant documents of a query are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from assay.errors import ConfigError, describe
from assay.metrics.retrieval.base import QueryMean
from assay.tally.queries.query_terms import (
    EmptyTargetAction,
    QueryAUROC,
    QueryAveragePrecision,
    QueryFallOut,
    QueryHit,
    QueryPrecision,
    QueryRankBiasedPrecision,
    QueryRecall,
    QueryReciprocalRank,
    QueryRPrecision,
    QueryTerm,
)


@dataclass(frozen=True, kw_only=True)
class RetrievalMAP(QueryMean):
    """Mean average precision over queries.

        mean over queries of sum over relevant ranks i of (hits in the first i / i) / R

    Of a query with R relevant documents: the sum of the precision at the rank of each, over R. With `top_k`, relevant
    documents behind that rank count 0, as in trec_eval's `map_cut`.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.6, 0.4]])
        >>> RetrievalMAP(by_row=True)(preds, torch.tensor([[0, 0, 1], [1, 0, 1]]))
        tensor(0.7917, dtype=torch.float64)

    Source: Manning, Raghavan, Schütze, Introduction to Information Retrieval, section 8.4.
    """

    @property
    def term(self) -> QueryTerm:
        return QueryAveragePrecision(self.top_k)


@dataclass(frozen=True, kw_only=True)
class RetrievalMRR(QueryMean):
    """Mean reciprocal rank over queries: `1 / rank` of the first relevant document.

        mean over queries of 1 / rank of the first relevant document

    0 for a query whose first relevant document is not among the first `top_k`.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.6, 0.4]])
        >>> RetrievalMRR(by_row=True)(preds, torch.tensor([[0, 1, 0], [1, 1, 0]]))
        tensor(0.7500, dtype=torch.float64)

    Source: Voorhees, The TREC-8 question answering track report, 1999.
    """

    @property
    def term(self) -> QueryTerm:
        return QueryReciprocalRank(self.top_k)


@dataclass(frozen=True, kw_only=True)
class RetrievalPrecision(QueryMean):
    """Mean over queries of the share of the first `top_k` documents that are relevant.

    `hits / top_k`, also for a query with fewer documents, unless `adaptive_k`.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.6, 0.4]])
        >>> RetrievalPrecision(by_row=True, top_k=2)(preds, torch.tensor([[0, 0, 1], [1, 1, 1]]))
        tensor(0.7500, dtype=torch.float64)

    Source: Manning, Raghavan, Schütze, Introduction to Information Retrieval, section 8.4.
    """

    examples = (
        {"top_k": 2},
        {"by_row": True, "top_k": 4, "adaptive_k": True},
        {"by_row": True, "aggregation": "median"},
    )

    adaptive_k: Annotated[bool, "divide by the number of documents of a query that has fewer than `top_k`."] = False

    @property
    def term(self) -> QueryTerm:
        return QueryPrecision(self.top_k, self.adaptive_k)


@dataclass(frozen=True, kw_only=True)
class RetrievalRecall(QueryMean):
    """Mean over queries of the share of their relevant documents that are among the first `top_k`.

    `hits / relevant`.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.6, 0.4]])
        >>> RetrievalRecall(by_row=True, top_k=2)(preds, torch.tensor([[0, 0, 1], [1, 0, 1]]))
        tensor(0.7500, dtype=torch.float64)

    Source: Manning, Raghavan, Schütze, Introduction to Information Retrieval, section 8.4.
    """

    examples = ({"top_k": 2}, {"by_row": True, "top_k": 1})

    @property
    def term(self) -> QueryTerm:
        return QueryRecall(self.top_k)


@dataclass(frozen=True, kw_only=True)
class RetrievalHitRate(QueryMean):
    """The share of queries with a relevant document among the first `top_k`.

        #{queries: a relevant document among the first top_k} / #{queries}

    Of a query with equal scores: the probability of that.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.6, 0.6]])
        >>> RetrievalHitRate(by_row=True, top_k=1)(preds, torch.tensor([[0, 0, 1], [1, 0, 1]]))
        tensor(0.7500, dtype=torch.float64)

    Source: Deshpande, Karypis, Item-based top-N recommendation algorithms, ACM TOIS 22 (2004).
    """

    examples = ({"top_k": 2}, {"by_row": True, "top_k": 1})

    @property
    def term(self) -> QueryTerm:
        return QueryHit(self.top_k)


@dataclass(frozen=True, kw_only=True)
class RetrievalFallOut(QueryMean):
    """Mean over queries of the share of the documents that are not relevant that are among the first `top_k`.

    `misses / not relevant`. `empty_target_action` is for queries all of whose documents are relevant.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.6, 0.4]])
        >>> RetrievalFallOut(by_row=True, top_k=2)(preds, torch.tensor([[0, 0, 1], [1, 0, 1]]))
        tensor(0.7500, dtype=torch.float64)

    Source: Manning, Raghavan, Schütze, Introduction to Information Retrieval, section 8.3; the action for empty queries
    is TorchMetrics'.
    """

    higher_is_better = False
    examples = ({"top_k": 2}, {"by_row": True, "top_k": 1})

    empty_target_action: EmptyTargetAction = "pos"

    @property
    def term(self) -> QueryTerm:
        return QueryFallOut(self.top_k)


@dataclass(frozen=True, kw_only=True)
class RetrievalRPrecision(QueryMean):
    """Mean over queries of the precision at R, where R of the query's documents are relevant.

        mean over queries of hits in the first R / R

    Example:
        >>> import torch
        >>> preds = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.6, 0.4]])
        >>> RetrievalRPrecision(by_row=True)(preds, torch.tensor([[0, 0, 1], [1, 0, 1]]))
        tensor(0.7500, dtype=torch.float64)

    Source: Manning, Raghavan, Schütze, Introduction to Information Retrieval, section 8.4.
    """

    examples = ({}, {"by_row": True})
    top_k: ClassVar[None] = None  # type: ignore[misc]
    term = QueryRPrecision()


@dataclass(frozen=True, kw_only=True)
class RetrievalAUROC(QueryMean):
    """Mean over queries of the area under the receiver operating characteristic curve.

        of a query: #{(i, j): i relevant, j not, s_i > s_j} / (#{relevant} #{others})

    Of a query: the share of pairs of a relevant document and another one in which the relevant one has the higher
    score; equal scores count half. `empty_target_action` is for queries without a relevant document or without another.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.6, 0.4]])
        >>> RetrievalAUROC(by_row=True)(preds, torch.tensor([[0, 1, 1], [1, 0, 1]]))
        tensor(0.5000, dtype=torch.float64)

    Source: Hanley, McNeil, The meaning and use of the area under a ROC curve, Radiology 143 (1982).
    """

    examples = ({}, {"by_row": True})
    top_k: ClassVar[None] = None  # type: ignore[misc]
    term = QueryAUROC()


@dataclass(frozen=True, kw_only=True)
class RankBiasedPrecision(QueryMean):
    """Mean over queries of rank-biased precision.

    `(1 - p) sum(p ** (rank - 1))` over the relevant documents: the expected share of relevant documents among those
    that a user sees who goes from each on to the next with probability p.

    Example:
        >>> import torch
        >>> preds = torch.tensor([[0.2, 0.3, 0.5], [0.1, 0.6, 0.4]])
        >>> RankBiasedPrecision(by_row=True, p=0.5)(preds, torch.tensor([[0, 1, 0], [1, 1, 0]]))
        tensor(0.4375, dtype=torch.float64)

    Source: Moffat, Zobel, Rank-biased precision for measurement of retrieval effectiveness, ACM TOIS 27 (2008).
    """

    p: Annotated[float, "the probability of going on, between 0 and 1."] = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.p < 1:
            raise ConfigError(describe("p", self.p, "a probability between 0 and 1", "Write p=0.8 for patient users"))

    @property
    def term(self) -> QueryTerm:
        return QueryRankBiasedPrecision(self.p, self.top_k)
