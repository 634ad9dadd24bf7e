"""Documents of queries, ranked by their scores, with equal scores in groups whose order is random.

A metric of a query with equal scores is the expectation over all orders of these (McSherry and Najork, Computing
information retrieval performance measures efficiently in the presence of tied scores, ECIR 2008).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from assay.tally.sums.row_sums import sum_each_row

_LAST = (1 << 31) - 1  # as a key of a score: behind that of -inf

Value = TypeVar("Value")

GainOf = Callable[[Tensor, Tensor], Tensor]
"""The gain of documents, from their relevance and the largest of their query."""


class Once(Generic[Value]):
    """A property that is computed once: `functools.cached_property` without its lock, which `torch.compile` refuses."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self.compute, self.name, self.__doc__ = compute, compute.__name__, compute.__doc__

    def __get__(self, owner: Any, kind: type) -> Value:
        if owner is None:  # read from the class, as `help` does
            return self  # type: ignore[return-value]
        value = self.compute(owner)
        object.__setattr__(owner, self.name, value)
        return value


@dataclass(frozen=True, eq=False)
class RankedQueries:
    """Queries `(rows, documents)`, each with its documents from the highest score to the lowest.

    Among equal scores, documents are ordered by their relevance, so that sums over them have one order.

    Args:
        relevance: of each document, 0 or more; float32 or float64, the dtype in which terms are computed.
        first: bool: whether the document is the first of those with its score.
        absent: bool: places behind the documents of a query that has fewer of them; their relevance is 0.
        on_host: whether the tensors are in host memory, where values may be read.
        by_number: whether they are in host memory on every device, so that nothing has to be computed as elsewhere.
    """

    relevance: Tensor
    first: Tensor
    absent: Tensor
    on_host: bool = False
    by_number: bool = False

    @property
    def dtype(self) -> torch.dtype:
        return self.relevance.dtype

    @Once
    def place(self) -> Tensor:
        """0, 1, ..., of shape `(documents,)`."""
        return torch.arange(self.relevance.shape[1], device=self.relevance.device)

    @Once
    def all_differ(self) -> bool:
        """Whether it is known that no scores are equal; what is said of groups then has fewer dimensions."""
        return self.on_host and bool((self.first.numpy() | self.absent.numpy()).all())

    def largest_group(self, most: int | None = None) -> int:
        """How many documents have one score, at most; if that is unknown, the length of a row.

        Args:
            most: groups of more documents are left out.
        """
        if not self.on_host:
            return self.relevance.shape[1]
        sizes = np.where(self.absent.numpy(), 1, (self.end - self.start).numpy())
        return int((sizes if most is None else sizes[sizes <= most]).max(initial=1))

    def groups_above(self, size: int) -> list[tuple[int, int, int]]:
        """The row, start and end of each larger group, of queries by number."""
        if not self.by_number or self.all_differ:
            return []
        large = self.first & ~self.absent & (self.end - self.start > size)
        rows, starts = np.nonzero(large.numpy())
        ends = self.end.numpy()[rows, starts]
        return list(zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True))

    @Once
    def start(self) -> Tensor:
        """The place of the first document of the group of each."""
        if self.all_differ:
            return self.place
        return torch.searchsorted(self._number, self._number)

    @Once
    def end(self) -> Tensor:
        """The place behind the last document of the group of each."""
        if self.all_differ:
            return self.place + 1
        return torch.searchsorted(self._number, self._number, right=True)

    @Once
    def _number(self) -> Tensor:
        """The number of the group of each. Groups are found by it, as Apple GPUs have no `cummax` before torch 2.8."""
        return self.first.to(torch.int64).cumsum(1).contiguous()

    @Once
    def group(self) -> Tensor:
        """How many documents are in the group of each."""
        if self.all_differ:
            return torch.ones((), dtype=self.dtype, device=self.place.device)
        return (self.end - self.start).to(self.dtype)

    @Once
    def within(self) -> Tensor:
        """How many places of its group are before each."""
        if self.all_differ:
            return torch.zeros((), dtype=self.dtype, device=self.place.device)
        return (self.place - self.start).to(self.dtype)

    @Once
    def relevant(self) -> Tensor:
        """1 where the relevance is above 0, else 0."""
        return torch.gt(self.relevance, 0, out=torch.empty_like(self.relevance))

    @Once
    def _relevant_so_far(self) -> Tensor:
        """How many relevant documents are in the places up to each."""
        return self.relevant.to(torch.int64).cumsum(1)

    @Once
    def relevant_before(self) -> Tensor:
        """How many relevant documents are in the groups before that of each."""
        if self.all_differ:
            return self._relevant_so_far.to(self.dtype) - self.relevant
        counts = torch.cat([torch.zeros_like(self.start[:, :1]), self._relevant_so_far], 1)
        return counts.gather(1, self.start).to(self.dtype)

    @Once
    def relevant_within(self) -> Tensor:
        """How many relevant documents are in the group of each."""
        if self.all_differ:
            return self.relevant
        return self._relevant_so_far.gather(1, self.end - 1).to(self.dtype) - self.relevant_before

    @Once
    def num_relevant(self) -> Tensor:
        """How many relevant documents each query has, of shape `(rows, 1)`."""
        return self._relevant_so_far[:, -1:].to(self.dtype)

    @Once
    def num_documents(self) -> Tensor:
        """How many documents each query has, of shape `(rows, 1)`."""
        return (self.relevance.shape[1] - self.absent.sum(1, keepdim=True)).to(self.dtype)

    @Once
    def hits(self) -> Tensor:
        """How many relevant documents are expected in the places up to each."""
        if self.all_differ:
            return self._relevant_so_far.to(self.dtype)
        return self.relevant_before + self.relevant_within * ((self.within + 1) / self.group)

    def hits_at(self, count: int | None) -> Tensor:
        """How many relevant documents are expected among the first `count`, of shape `(rows, 1)`."""
        if count is None or count >= self.relevance.shape[1]:
            return self.num_relevant
        return self.hits[:, count - 1 : count]

    def hits_at_relevant(self) -> Tensor:
        """How many relevant documents are expected among as many as are relevant, of shape `(rows, 1)`."""
        last = (self.num_relevant.to(torch.int64) - 1).clamp(min=0)
        return self.hits.gather(1, last)

    def hits_of_first(self, count: int) -> Tensor:
        """How many relevant documents are expected among the first 1, 2, ..., `count`, of shape `(rows, count)`."""
        hits = self.hits[:, :count]
        missing = count - hits.shape[1]
        return torch.cat([hits, self.num_relevant.expand(-1, missing)], 1) if missing else hits

    def ranks(self, count: int) -> Tensor:
        """1, 2, ..., `count`, of shape `(count,)`."""
        return torch.arange(1, count + 1, device=self.relevance.device).to(self.dtype)

    def taken(self, count: int | None) -> Tensor:
        """How many documents are among the first `count`, of shape `(rows, 1)`."""
        return self.num_documents if count is None else self.num_documents.clamp(max=count)

    def until(self, count: int | None, weights: Tensor) -> Tensor:
        """Weights of places, with 0 for those that are not among the first `count`."""
        return weights if count is None else weights.masked_fill(self.place >= count, 0)

    def no_hit_at(self, count: int | None) -> Tensor:
        """The probability that no relevant document is among the first `count`, of shape `(rows, 1)`."""
        last = self.relevance.shape[1] if count is None else min(count, self.relevance.shape[1])
        return self.no_hit[:, last - 1 : last]

    @property
    def no_hit_before(self) -> Tensor:
        """The probability that no relevant document is in the places before each."""
        return torch.cat([torch.ones_like(self.no_hit[:, :1]), self.no_hit[:, :-1]], 1)

    @Once
    def no_hit(self) -> Tensor:
        """The probability that no relevant document is in the places up to each."""
        left = self.group - self.within
        return ((left - self.relevant_within).clamp(min=0) / left).cumprod(1)

    def expected(self, weights: Tensor) -> Tensor:
        """The mean of the weights of places, `(documents,)` and at most 1, over the places of the group of each."""
        if self.all_differ:
            return weights
        scale = 2.0 ** (62 - len(weights).bit_length())  # sums of integers have no order
        sums = torch.nn.functional.pad((weights * scale).round().to(torch.int64).cumsum(0), (1, 0))
        total = (sums[self.end] - sums[self.start]).to(self.dtype)
        return torch.where(self.group == 1, weights, total / (self.group * scale))

    @property
    def discounts(self) -> Tensor:
        """1 / log2(rank + 1) of each place, of shape `(documents,)`."""
        return discounts_of(self.place, self.dtype)

    def gains(self, gain: GainOf) -> tuple[Tensor, Tensor]:
        """The gain of each document, and of those from the most relevant to the least, in units that a row shares."""
        largest = self.ideal[:, :1]
        return gain(self.relevance, largest), gain(self.ideal, largest)

    @staticmethod
    def where(condition: Tensor, values: Tensor, others: Any) -> Tensor:
        """The values where the condition holds, elsewhere the others."""
        return torch.where(condition, values, others)

    @staticmethod
    def at_most(values: Tensor, limit: Tensor | int) -> Tensor:
        """The values, or the limit where they are above it."""
        return torch.minimum(values, limit) if isinstance(limit, Tensor) else values.clamp(max=limit)

    @staticmethod
    def at_least(values: Tensor, limit: int) -> Tensor:
        """The values, or the limit where they are below it."""
        return values.clamp(min=limit)

    @staticmethod
    def total(values: Tensor) -> Tensor:
        """The sum of each row, of shape `(rows, 1)`."""
        return sum_each_row(values.contiguous())

    @Once
    def ideal(self) -> Tensor:
        """The relevance from the highest to the lowest."""
        if self.on_host:
            return torch.from_numpy(-np.sort(-self.relevance.numpy(), 1))
        return self.relevance.sort(1, descending=True).values


def ranked(
    scores: Tensor, relevance: Tensor, absent: Tensor, dtype: torch.dtype, on_host: bool = False
) -> RankedQueries:
    """Rank the documents of each row.

    Args:
        scores: floats of shape `(rows, documents)`, none of them NaN.
        relevance: of that shape; any where a document is absent.
        absent: bool of that shape.
        dtype: in which terms are computed.
        on_host: the tensors are in host memory, where NumPy sorts them several times as fast, and values may be read.
    """
    scores = scores + 0.0  # -0.0 is 0.0
    relevance = relevance.to(dtype).masked_fill(absent, 0) + 0.0  # keys hold bits: -0.0 is 0.0
    if torch.float64 in (scores.dtype, dtype):
        order = relevance.masked_fill(absent, -1).sort(dim=1, descending=True, stable=True).indices
        scores = scores.masked_fill(absent, -torch.inf).gather(1, order)
        scores, second = scores.sort(dim=1, descending=True, stable=True)
        order = order.gather(1, second)
        relevance, absent = relevance.gather(1, order), absent.gather(1, order)
        same = (scores[:, 1:] == scores[:, :-1]) & (absent[:, 1:] == absent[:, :-1])
        return RankedQueries(relevance, _and_first(~same, scores), absent, on_host)
    bits = scores.float().contiguous().view(torch.int32)
    descending = ~(bits ^ ((bits >> 31) & _LAST)).masked_fill(absent, ~_LAST)
    low = relevance.contiguous().view(torch.int32)  # of floats that are not negative: in the order of their values
    keys = (descending.to(torch.int64) << 32) | (_LAST - low)
    keys = torch.from_numpy(np.sort(keys.numpy(), 1)) if on_host else keys.sort(1).values
    high = (keys >> 32).to(torch.int32)
    relevance = (_LAST - (keys & _LAST).to(torch.int32)).view(torch.float32)
    return RankedQueries(relevance, _and_first(high[:, 1:] != high[:, :-1], high), high == _LAST, on_host)


def _and_first(others: Tensor, like: Tensor) -> Tensor:
    """Where groups begin: also at the first document."""
    return torch.cat([torch.ones_like(like[:, :1], dtype=torch.bool), others], 1)


def discounts_of(places: Tensor, dtype: torch.dtype) -> Tensor:
    """1 / log2(rank + 1) of places from 0."""
    return math.log(2) / torch.log((places + 2).to(dtype))
