"""One query whose documents all have different scores, ranked and measured by NumPy in a fraction of torch's time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch

from assay.devices.placement import can_read
from assay.tally.queries.ranked_queries import GainOf, Once, discounts_of
from assay.tally.sums.row_sums import sum_each_row

Array = np.ndarray[Any, Any]

_WHOLE = (torch.int64, torch.int32, torch.bool)
_MOST_DOCUMENTS = 1 << 16


class RankedQuery:
    """What terms read of `RankedQueries`, of one query without equal scores: numbers in the place of columns.

    The numbers that terms give of it have the bits that they have among other queries, in float64.

    Args:
        relevance: of the documents from the highest score to the lowest: int64, 0 or more.
    """

    group, within = 1, 0

    def __init__(self, relevance: Array) -> None:
        self.relevance = relevance
        self.num_documents = len(relevance)
        self.num_relevant = int(np.count_nonzero(relevance))

    @Once
    def place(self) -> Array:
        """0, 1, ..., of each document."""
        return np.arange(self.num_documents)

    @property
    def start(self) -> Array:
        """The place of each document, which has no other with its score."""
        return self.place

    @Once
    def relevant_within(self) -> Array:
        """1 where the relevance is above 0, else 0."""
        return np.minimum(self.relevance, 1)

    @Once
    def hits(self) -> Array:
        """How many relevant documents are in the places up to each."""
        return np.cumsum(self.relevant_within)

    @Once
    def relevant_before(self) -> Array:
        """How many relevant documents are in the places before each."""
        return self.hits - self.relevant_within

    @property
    def no_hit_before(self) -> Array:
        """Whether no relevant document is in the places before each."""
        return np.equal(self.relevant_before, 0)

    def hits_at(self, count: int | None) -> int:
        """How many relevant documents are among the first `count`."""
        if count is None or count >= self.num_documents:
            return self.num_relevant
        return int(np.count_nonzero(self.relevance[:count]))

    def no_hit_at(self, count: int | None) -> bool:
        """Whether no relevant document is among the first `count`."""
        return not self.hits_at(count)

    def hits_at_relevant(self) -> int:
        """How many relevant documents are among as many as are relevant."""
        return self.hits_at(self.num_relevant)

    def hits_of_first(self, count: int) -> Array:
        """How many relevant documents are among the first 1, 2, ..., `count`."""
        hits = self.hits[:count]
        return np.concatenate([hits, np.full(count - len(hits), self.num_relevant)])

    def ranks(self, count: int) -> Array:
        """1, 2, ..., `count`."""
        return np.arange(1, count + 1)

    def taken(self, count: int | None) -> int:
        """How many documents are among the first `count`."""
        return self.num_documents if count is None else min(self.num_documents, count)

    def until(self, count: int | None, weights: Array) -> Array:
        """Weights of places, with 0 for those that are not among the first `count`."""
        return weights if count is None else np.where(self.place >= count, 0, weights)

    def expected(self, weights: Array) -> Array:
        """The weights of the places of documents."""
        return weights

    @property
    def discounts(self) -> Array:
        """1 / log2(rank + 1) of each place."""
        return _discounts(_width(self.num_documents))[: self.num_documents]

    def gains(self, gain: GainOf) -> tuple[Array, Array]:
        """The linear gain of each document, and of those from the most relevant to the least: in their own unit."""
        return self.relevance, np.sort(self.relevance)[::-1]

    at_most, at_least, where = staticmethod(np.minimum), staticmethod(np.maximum), staticmethod(np.where)

    @staticmethod
    def total(values: Array) -> np.float64:
        """The sum, in the order in which a query of so many documents is summed."""
        row = np.zeros((1, _width(len(values))))
        row[0, : len(values)] = values
        return np.float64(sum_each_row(torch.from_numpy(row)).item())


def ranked_query(preds: Any, target: Any, is_graded: bool) -> RankedQuery | None:
    """A query of these scores and relevances; None unless all scores differ, and all is valid and in host memory.

    Args:
        preds: the scores.
        target: the relevances.
        is_graded: whether they may be above 1.
    """
    if not (can_read(preds) and can_read(target)):
        return None
    if preds.dtype != torch.float32 or target.dtype not in _WHOLE or preds.shape != target.shape:
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
    return RankedQuery(relevance[order])


def _width(documents: int) -> int:
    """Of the row in which a query is measured, as sums of other rows are in another order."""
    return 1 << (documents - 1).bit_length()


@lru_cache(maxsize=16)
def _discounts(width: int) -> Array:
    discounts: Array = discounts_of(torch.arange(width, device="cpu"), torch.float64).numpy()
    discounts.flags.writeable = False
    return discounts
