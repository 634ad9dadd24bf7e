"""The numbers of a few queries whose scores all differ, by NumPy and without sorting all documents canonically.

Each is the number that the query has among others, to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.tally.queries import query_terms as terms
from assay.tally.queries.queries import QueryMeasure
from assay.tally.queries.ranked_query import RankedQuery
from assay.tally.stores.sample_store import SampleStore

MOST_QUERIES, MOST_DOCUMENTS = 8, 512
"""Of more, all together take less time."""

_OF_ONE = (
    *(terms.QueryAveragePrecision, terms.QueryCurve, terms.QueryFallOut, terms.QueryHit, terms.QueryNormalizedDCG),
    *(terms.QueryPrecision, terms.QueryRPrecision, terms.QueryRecall, terms.QueryReciprocalRank),
)


def is_of_one_query(term: terms.QueryTerm) -> bool:
    """Whether a term also takes a `RankedQuery`."""
    return type(term) in _OF_ONE and getattr(term, "gain", "linear") == "linear"


def few_queries(documents: SampleStore, is_graded: bool) -> list[RankedQuery] | None:
    """The queries, by number; None where they are many, two documents of one have the same score, or some are invalid.

    Args:
        documents: what `QueryDocuments` has counted, in any order.
        is_graded: whether relevances may be above 1.
    """
    if not 0 < documents.rows <= MOST_DOCUMENTS:
        return None
    indexes, scores, relevance = (documents.column(name).numpy() for name in ("indexes", "scores", "relevance"))
    if scores.dtype != np.float32 or relevance.dtype != np.int64:
        return None
    order = np.argsort(-scores)
    is_valid = relevance.min() >= 0 if is_graded else not np.count_nonzero(relevance >> 1)
    if not is_valid or np.isnan(scores[order[-1]]):  # NaN is the last
        return None
    order = order[np.argsort(indexes[order], kind="stable")]
    indexes, scores, relevance = indexes[order], scores[order], relevance[order]
    is_next = indexes[1:] != indexes[:-1]
    if np.count_nonzero(is_next) >= MOST_QUERIES or not ((scores[1:] != scores[:-1]) | is_next).all():
        return None
    bounds = [0, *(np.flatnonzero(is_next) + 1).tolist(), len(indexes)]
    return [RankedQuery(relevance[start:stop]) for start, stop in pairwise(bounds)]


def numbers_of(measure: QueryMeasure, queries: Sequence[RankedQuery]) -> Tensor | None:
    """The numbers of the queries that count, float64 `(queries, width)`; None where none does, or one is an error."""
    term, action = measure.term, measure.empty_target_action
    rows: list[Any] = []
    for query in queries:
        alone: Any = query
        if not term.lacks(alone):
            rows.append(
                np.concatenate(term.rates(alone)) if isinstance(term, terms.QueryCurve) else [term.of_query(query)]
            )
        elif action == "error":
            return None
        elif action != "skip":
            rows.append([float(action == "pos")] * term.width)
    return torch.from_numpy(np.array(rows, np.float64)) if rows else None
