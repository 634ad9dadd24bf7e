"""Numbers of one query whose scores all differ, without a store: what functions of TorchMetrics give of it.

Each is the number that the class in `assay.compat.for_torchmetrics.retrieval` gives of this query alone, to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.compat.for_torchmetrics.retrieval import AUROCOfFirst
from assay.meter.batch_values import is_plain
from assay.tally.queries import query_terms as terms
from assay.tally.queries.ranked_query import RankedQuery, ranked_query

_TERMS: Mapping[str, type[terms.QueryTerm]] = {
    "retrieval_auroc": AUROCOfFirst,
    "retrieval_average_precision": terms.QueryAveragePrecision,
    "retrieval_fall_out": terms.QueryFallOut,
    "retrieval_hit_rate": terms.QueryHit,
    "retrieval_normalized_dcg": terms.QueryNormalizedDCG,
    "retrieval_precision": terms.QueryPrecision,
    "retrieval_r_precision": terms.QueryRPrecision,
    "retrieval_recall": terms.QueryRecall,
    "retrieval_reciprocal_rank": terms.QueryReciprocalRank,
}
"""What is measured of a query, by the name of the function."""

_CURVE, _GRADED = "retrieval_precision_recall_curve", "retrieval_normalized_dcg"
_OF_ALL = ("retrieval_average_precision",)
"""Of all documents alone: another definition holds where some are taken."""


def number_of_query(name: str, preds: Any, target: Any, options: Mapping[str, Any]) -> Any:
    """What a function gives of a query; None where documents with equal scores, or other data, need more than this.

    Args:
        name: of the function.
        preds: the scores of its documents.
        target: their relevances.
        options: the other arguments that it was given.
    """
    top_k = options.get("max_k" if name == _CURVE else "top_k")
    if top_k is not None and (type(top_k) is not int or top_k < 1 or name in _OF_ALL):
        return None
    adaptive = options.get("adaptive_k", False)
    if options.get("max_fpr") is not None or type(adaptive) is not bool or not is_plain():
        return None
    query = ranked_query(preds, target, is_graded=name == _GRADED)
    if query is None:
        return None
    if name == _CURVE:
        return _curve(query, terms.QueryCurve(query.num_documents if top_k is None else top_k, adaptive))
    return torch.scalar_tensor(_term(name, top_k, adaptive).of_query(query), device="cpu")


@lru_cache(maxsize=64)
def _term(name: str, top_k: int | None, adaptive: bool) -> terms.QueryTerm:
    options = {"top_k": top_k} if top_k is not None else {}
    return _TERMS[name](**options, **({"adaptive_k": True} if adaptive else {}))


def _curve(query: RankedQuery, term: terms.QueryCurve) -> tuple[Tensor, Tensor, Tensor]:
    """Precision and recall at 1, 2, ... documents, and these numbers of documents; 0 without a relevant one."""
    alone: Any = query
    rates: Any = term.rates(alone) if query.num_relevant else [np.zeros(term.max_k)] * 2
    precision, recall = (torch.from_numpy(each).to(torch.get_default_dtype()) for each in rates)
    return precision, recall, torch.from_numpy(np.asarray(term.retrieved(alone)))
