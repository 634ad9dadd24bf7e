"""Numbers of one query whose scores all differ, without a store: what functions of TorchMetrics give of it.

Each is the number that the class in `assay.compat.for_torchmetrics.retrieval` gives of this query alone, to the bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor

from assay.devices.placement import can_read
from assay.meter.batch_values import is_plain
from assay.tally.sums.row_sums import sum_each_row

Array = np.ndarray[Any, Any]

_WHOLE = (torch.int64, torch.int32, torch.bool)
_MOST_DOCUMENTS = 1 << 16


@dataclass(frozen=True, eq=False)
class _Query:
    """The relevance of each document, from the highest score to the lowest, and which of these documents are taken.

    Args:
        relevance: int64; 0 or 1 for all functions but that of graded relevance.
        total: how many documents are relevant.
        top_k: so many documents with the highest scores are taken; None for all.
        options: other arguments of the function.
    """

    relevance: Array
    total: int
    top_k: int | None
    options: Mapping[str, Any]

    @property
    def documents(self) -> int:
        return len(self.relevance)

    @property
    def hits(self) -> int:
        """How many of the documents that are taken are relevant."""
        return int(np.count_nonzero(self.relevance[: self.top_k]))


def _precision(query: _Query) -> float:
    if query.top_k is None:
        return query.total / query.documents
    return query.hits / (min(query.documents, query.top_k) if query.options.get("adaptive_k") else query.top_k)


def _of_relevant(number: Callable[[_Query], float]) -> Callable[[_Query], float]:
    """The number of a query, which is 0 without a relevant document."""
    return lambda query: number(query) if query.total else 0.0


def _fall_out(query: _Query) -> float:
    taken = query.documents if query.top_k is None else min(query.documents, query.top_k)
    others = query.documents - query.total
    return (taken - query.hits) / others if others else 0.0


def _average_precision(query: _Query) -> float:
    precisions = query.relevance * np.cumsum(query.relevance) / np.arange(1, query.documents + 1)
    return _row_total(precisions) / query.total


def _reciprocal_rank(query: _Query) -> float:
    rank = int(query.relevance.argmax()) + 1
    return 1 / rank if query.top_k is None or rank <= query.top_k else 0.0


def _auroc(query: _Query) -> float:
    taken = query.relevance[: query.top_k]
    pairs = query.hits * (len(taken) - query.hits)
    return int(np.cumsum(taken)[taken == 0].sum()) / pairs if pairs else 0.0


def _normalized_dcg(query: _Query) -> float:
    width, relevance = _width(query.documents), query.relevance
    discounts = _discounts(width) if query.top_k is None else _discounts(width).copy()
    if query.top_k is not None:
        discounts[query.top_k :] = 0
    gains = (each * discounts[: query.documents] for each in (relevance, np.sort(relevance)[::-1]))
    total, largest = map(_row_total, gains)
    return total / largest


NUMBERS: Mapping[str, Callable[[_Query], float]] = {
    "retrieval_auroc": _auroc,
    "retrieval_average_precision": _of_relevant(_average_precision),
    "retrieval_fall_out": _fall_out,
    "retrieval_hit_rate": lambda query: float(query.hits > 0),
    "retrieval_normalized_dcg": _of_relevant(_normalized_dcg),
    "retrieval_precision": _precision,
    "retrieval_r_precision": _of_relevant(
        lambda query: int(np.count_nonzero(query.relevance[: query.total])) / query.total
    ),
    "retrieval_recall": _of_relevant(lambda query: query.hits / query.total),
    "retrieval_reciprocal_rank": _of_relevant(_reciprocal_rank),
}
"""The number of a query, by the name of the function."""

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
    if options.get("max_fpr") is not None or type(options.get("adaptive_k", False)) is not bool:
        return None
    relevance = _ranked_relevance(preds, target, is_graded=name == _GRADED)
    if relevance is None:
        return None
    query = _Query(relevance, int(np.count_nonzero(relevance)), top_k, options)
    if name == _CURVE:
        return _curve(query)
    return torch.scalar_tensor(NUMBERS[name](query), device="cpu")


def _ranked_relevance(preds: Any, target: Any, is_graded: bool) -> Array | None:
    """The relevances from the highest score to the lowest; None unless all scores differ and all is in host memory."""
    if not (can_read(preds) and can_read(target)):
        return None
    if preds.dtype != torch.float32 or target.dtype not in _WHOLE or preds.shape != target.shape or not is_plain():
        return None
    if not 0 < preds.numel() <= _MOST_DOCUMENTS or preds.is_neg():
        return None
    scores, relevance = preds.numpy().reshape(-1), target.numpy().reshape(-1).astype(np.int64)
    if relevance.min() < 0 if is_graded else np.count_nonzero(relevance >> 1):
        return None
    order = np.argsort(-scores)
    falling = scores[order]
    if falling[-1] != falling[-1] or np.count_nonzero(falling[1:] == falling[:-1]):  # NaN is the last, or two are equal
        return None
    return np.asarray(relevance[order])


def _curve(query: _Query) -> tuple[Tensor, Tensor, Tensor]:
    """Precision and recall at 1, 2, ... documents."""
    length = query.documents if query.top_k is None else query.top_k
    hits = np.cumsum(query.relevance)[:length]
    hits = np.concatenate([hits, np.full(length - len(hits), query.total)])
    count = np.arange(1, length + 1)
    taken = np.minimum(count, query.documents) if query.options.get("adaptive_k") else count
    rates = (hits / taken, hits / query.total) if query.total else (np.zeros(length), np.zeros(length))
    dtype = torch.get_default_dtype()
    precision, recall = (torch.from_numpy(each).to(dtype) for each in rates)
    return precision, recall, torch.from_numpy(taken)


def _width(documents: int) -> int:
    """Of the row in which a query is measured, as sums of other rows are in another order."""
    return 1 << (documents - 1).bit_length()


@lru_cache(maxsize=16)
def _discounts(width: int) -> Array:
    """`1 / log2(rank + 1)`, by the operators of `QueryNormalizedDCG`."""
    discounts: Array = (math.log(2) / torch.log(torch.arange(2, width + 2, device="cpu").double())).numpy()
    discounts.flags.writeable = False
    return discounts


def _row_total(values: Array) -> float:
    """The sum, in the order in which a query of so many documents is summed."""
    row = np.zeros((1, _width(len(values))))
    row[0, : len(values)] = values
    return float(sum_each_row(torch.from_numpy(row)))
