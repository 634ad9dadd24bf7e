"""What one query gives, such as precision and discounted gain: expectations over the orders of equal scores."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from assay.tally.queries.ranked_queries import GainOf, RankedQueries
from assay.tally.queries.ranked_query import RankedQuery

EmptyTargetAction = Literal["neg", "pos", "skip", "error"]
Gain = Literal["linear", "exponential"]


class QueryTerm(ABC):
    """A frozen description of the numbers that a query gives, `(rows, width)`.

    The numbers of a query for which `lacks` holds may be any. Terms of functions of one query are written so that they
    take a `RankedQuery` as well.
    """

    name: str
    """What the number is called, for the columns of per-sample values."""
    top_k: int | None = None
    needs: str = "relevant document"
    """What a query must have."""

    @property
    def width(self) -> int:
        return 1

    @property
    def title(self) -> str:
        """The name with its cutoff."""
        return self.name if self.top_k is None else f"{self.name} at {self.top_k}"

    @property
    def max_relevance(self) -> float:
        """The highest relevance that a document may have."""
        return math.inf

    def lacks(self, queries: RankedQueries) -> Tensor:
        """Which queries lack what they must have, bool of shape `(rows, 1)`."""
        return queries.num_relevant == 0

    @abstractmethod
    def __call__(self, queries: RankedQueries) -> Tensor:
        """The numbers of every query."""

    def of_query(self, query: RankedQuery) -> float:
        """The number of one query; 0 where it lacks what it must have."""
        alone: Any = query
        return 0.0 if self.lacks(alone) else float(self(alone))


@dataclass(frozen=True)
class QueryPrecision(QueryTerm):
    """`hits / k`."""

    top_k: int | None = None
    adaptive_k: bool = False

    name = "precision"

    @property
    def title(self) -> str:
        return super().title + " or all documents" * self.adaptive_k

    def __call__(self, queries: RankedQueries) -> Tensor:
        hits = queries.hits_at(self.top_k)
        return hits / (queries.taken(self.top_k) if self.top_k is None or self.adaptive_k else self.top_k)


@dataclass(frozen=True)
class QueryRecall(QueryTerm):
    """`hits / relevant`."""

    top_k: int | None = None

    name = "recall"

    def __call__(self, queries: RankedQueries) -> Tensor:
        return queries.hits_at(self.top_k) / queries.num_relevant


@dataclass(frozen=True)
class QueryHit(QueryTerm):
    """The probability of a relevant document among the first k."""

    top_k: int | None = None

    name = "hit"

    def __call__(self, queries: RankedQueries) -> Tensor:
        return 1 - queries.no_hit_at(self.top_k)


@dataclass(frozen=True)
class QueryFallOut(QueryTerm):
    """`misses / not relevant`."""

    top_k: int | None = None

    name = "fall-out"
    needs = "document that is not relevant"

    def lacks(self, queries: RankedQueries) -> Tensor:
        return queries.num_relevant == queries.num_documents

    def __call__(self, queries: RankedQueries) -> Tensor:
        misses = queries.taken(self.top_k) - queries.hits_at(self.top_k)
        return misses / (queries.num_documents - queries.num_relevant)


@dataclass(frozen=True)
class QueryRPrecision(QueryTerm):
    """`hits among the first R / R`, where R documents are relevant."""

    name = "R-precision"

    def __call__(self, queries: RankedQueries) -> Tensor:
        return queries.hits_at_relevant() / queries.num_relevant


@dataclass(frozen=True)
class QueryAveragePrecision(QueryTerm):
    """The mean of the precision at each relevant document; those that are not among the first k count 0."""

    top_k: int | None = None

    name = "average precision"

    def __call__(self, queries: RankedQueries) -> Tensor:
        others = (queries.relevant_within - 1) / queries.at_least(queries.group - 1, 1)  # relevant, a place before it
        relevant = queries.relevant_before + 1 + queries.within * others
        share = queries.relevant_within / queries.group
        precision = queries.until(self.top_k, share * relevant / (queries.place + 1))
        return queries.total(precision) / queries.num_relevant


@dataclass(frozen=True)
class QueryReciprocalRank(QueryTerm):
    """`1 / rank` of the first relevant document; 0 where it is not among the first k."""

    top_k: int | None = None

    name = "reciprocal rank"

    def __call__(self, queries: RankedQueries) -> Tensor:
        hit = queries.at_most(queries.relevant_within / (queries.group - queries.within), 1)
        return queries.total(queries.until(self.top_k, queries.no_hit_before * hit / (queries.place + 1)))


@dataclass(frozen=True)
class QueryAUROC(QueryTerm):
    """The share of pairs of a relevant and another document in the right order; equal scores count half."""

    name = "area under the ROC curve"
    needs = "relevant document and one that is not"

    def lacks(self, queries: RankedQueries) -> Tensor:
        return (queries.num_relevant == 0) | (queries.num_relevant == queries.num_documents)

    def __call__(self, queries: RankedQueries) -> Tensor:
        others = queries.num_documents - queries.num_relevant
        above = queries.start.to(queries.dtype) - queries.relevant_before
        equal = queries.group - queries.relevant_within
        below = (others - above - equal) + equal / 2
        return queries.total(queries.relevant * (below / others)) / queries.num_relevant


@dataclass(frozen=True)
class QueryNormalizedDCG(QueryTerm):
    """The gain of the first k documents, discounted by the logarithm of their ranks, over the largest possible."""

    top_k: int | None = None
    gain: Gain = "linear"

    name = "normalized discounted gain"

    @property
    def title(self) -> str:
        return super().title + (", exponential" if self.gain == "exponential" else "")

    def __call__(self, queries: RankedQueries) -> Tensor:
        discounts = queries.until(self.top_k, queries.discounts)
        gains, largest = queries.gains(GAINS[self.gain])
        return queries.total(gains * queries.expected(discounts)) / queries.total(largest * discounts)


@dataclass(frozen=True)
class QueryRankBiasedPrecision(QueryTerm):
    """`(1 - p) * sum(p ** (rank - 1))` over the relevant documents among the first k."""

    p: float
    top_k: int | None = None

    name = "rank-biased precision"

    @property
    def title(self) -> str:
        return f"{super().title}, p={self.p:g}"

    def __call__(self, queries: RankedQueries) -> Tensor:
        stays = torch.exp(queries.place.to(queries.dtype) * math.log(self.p)) * (1 - self.p)
        return queries.total(queries.relevant * queries.expected(queries.until(self.top_k, stays)))


@dataclass(frozen=True)
class QueryExpectedReciprocalRank(QueryTerm):
    """The expected `1 / rank` of the document with which a user is content, with probability `gain / 2 ** highest`."""

    highest: float
    top_k: int | None = None

    name = "expected reciprocal rank"

    @property
    def max_relevance(self) -> float:
        return self.highest

    @property
    def title(self) -> str:
        return f"{super().title}, relevance up to {self.highest:g}"

    def __call__(self, queries: RankedQueries) -> Tensor:
        content = _exponential(queries.relevance) / 2.0**self.highest
        large = queries.groups_above(_LARGE)
        continuation = _expected_product(queries, 1 - content, large)
        before = torch.cat([torch.ones_like(continuation[:, :1]), continuation[:, :-1]], 1)
        terms = queries.until(self.top_k, (before - continuation) / (queries.place + 1))
        groups = [content[row, start:end].numpy() for row, start, end in large]
        for (row, start, end), group, stops in zip(large, groups, _poisson_binomials(groups), strict=True):
            reached = max(0, len(group) if self.top_k is None else min(end, self.top_k) - start)
            terms[row, start:end] = 0
            terms[row, start] = before[row, start] * _reciprocal_rank(stops, len(group), start, reached)
        return queries.total(terms)


_LARGE = 32
"""Larger groups of equal scores are computed one by one where the queries are on the CPU on every device."""
Distribution = tuple[int, np.ndarray]
"""Of a number of events: the fewest, and the probabilities from there on."""


def _expected_product(queries: RankedQueries, each: Tensor, large: Sequence[tuple[int, int, int]]) -> Tensor:
    """The expected product of `each` over the documents in the places up to each.

    In a group, the mean over all choices of m documents of the product of `each` is built document by document:
    `mean[m] <- (1 - m / t) mean[m] + (m / t) each[t] mean[m - 1]` for the document t. In large groups, the places
    before the last are left out.
    """
    if queries.all_differ:
        return each.cumprod(1)
    one = torch.ones_like(each)
    chosen = queries.within + 1
    mean = torch.where(chosen == 1, each.gather(1, queries.start), 0)
    starts = chosen == 1
    last = queries.end - 1
    for t in range(2, queries.largest_group(_LARGE if large else None) + 1):
        before = torch.where(starts, one, torch.cat([one[:, :1], mean[:, :-1]], 1))
        document = each.gather(1, torch.minimum(queries.start + (t - 1), last))
        share = chosen / t
        grown = torch.where(chosen <= t, (1 - share) * mean + share * (document * before), mean)
        mean = torch.where(queries.group >= t, grown, mean)
    mean = torch.where(queries.absent, one, mean)
    for row, start, end in large:
        mean[row, end - 1] = each[row, start:end].prod()
    whole = torch.where(queries.place == last, mean, one).cumprod(1)  # of the groups that end up to each place
    earlier = torch.cat([one[:, :1], whole[:, :-1]], 1)
    return mean * earlier


def _reciprocal_rank(stops: Distribution, n: int, start: int, reached: int) -> float:
    """The expected `1 / rank` of the first of the documents that content, in a random order behind `start` others.

    If k of the n documents content, any k places are as likely. So with `u(k) = 1 - C(n - reached, k) / C(n, k)`, the
    probability that one of them is reached, the mean of `1 / rank` is
    `h(k) = (u(k) + h(k + 1) (n - k) k / (k + 1)) / (n + start - k + 1)` and `h(n) = 1 / (start + 1)`. All terms are
    positive, so no digits are lost.
    """
    if not reached:
        return 0.0
    fewest, probabilities = stops
    places = np.arange(n)
    missed = np.append(1.0, np.cumprod(np.maximum(n - reached - places, 0) / (n - places)))
    within = np.append(0.0, np.cumsum(missed[:-1] * (reached / (n - places)))).tolist()
    mean = 1 / (start + 1)
    means = [mean]
    for k in range(n - 1, max(fewest, 1) - 1, -1):
        mean = (within[k] + mean * ((n - k) * k / (k + 1))) / (n + start - k + 1)
        means.append(mean)
    if not fewest:
        means.append(0.0)
    count = min(len(means), len(probabilities))
    return float(probabilities[:count] @ np.array(means[::-1][:count]))


def _poisson_binomials(groups: Sequence[np.ndarray]) -> Iterator[Distribution]:
    """How many of independent events occur, given the probabilities of the events of each group."""
    counts = [-(-len(group) // _LARGE) for group in groups]
    blocks = np.zeros((sum(counts), _LARGE))
    ends = np.cumsum(counts, dtype=np.int64).tolist()
    for group, end, count in zip(groups, ends, counts, strict=True):
        blocks[end - count : end].reshape(-1)[: len(group)] = group
    table = np.zeros((len(blocks), _LARGE + 1))
    table[:, 0] = 1
    for chance in blocks.T[:, :, None]:
        table[:, 1:] = table[:, 1:] * (1 - chance) + table[:, :-1] * chance
        table[:, :1] *= 1 - chance
    for end, count in zip(ends, counts, strict=True):
        parts: list[Distribution] = [(0, row) for row in table[end - count : end]]
        while len(parts) > 1:
            alone = parts[len(parts) // 2 * 2 :]
            pairs = zip(parts[::2], parts[1::2], strict=False)
            parts = [_without_tails(a + b, np.convolve(left, right)) for (a, left), (b, right) in pairs] + alone
        yield parts[0]


def _without_tails(fewest: int, probabilities: np.ndarray) -> Distribution:
    """Without what is below 1e-30 of the largest probability of one event or more."""
    if len(probabilities) < 8 * _LARGE:
        return fewest, probabilities
    largest = probabilities[int(not fewest) :].max(initial=0)
    (kept,) = np.nonzero(probabilities > 1e-30 * largest)
    first, last = (int(kept[0]), int(kept[-1])) if len(kept) else (0, 0)
    return fewest + first, probabilities[first : last + 1]


@dataclass(frozen=True)
class QueryCurve(QueryTerm):
    """Precision at 1 ... `max_k`, and then recall at these."""

    max_k: int
    adaptive_k: bool = False

    name = "precision and recall"

    @property
    def width(self) -> int:
        return 2 * self.max_k

    def __call__(self, queries: RankedQueries) -> Tensor:
        return torch.cat(self.rates(queries), 1)

    def rates(self, queries: RankedQueries) -> tuple[Tensor, Tensor]:
        """Precision and recall, each of shape `(rows, max_k)`."""
        hits = queries.hits_of_first(self.max_k)
        return hits / self.retrieved(queries), hits / queries.num_relevant

    def retrieved(self, queries: RankedQueries) -> Tensor:
        """How many documents are taken."""
        counts = queries.ranks(self.max_k)
        return queries.at_most(counts, queries.num_documents) if self.adaptive_k else counts


def power_of_two(x: Tensor) -> Tensor:
    """`2 ** x`: exact for integers, and the same bits in every place of a tensor, as those of `pow` are not."""
    bits, bias, kind = (52, 1023, torch.int64) if x.dtype == torch.float64 else (23, 127, torch.int32)
    whole = x.floor().clamp(1 - bias, bias + 1)
    power = (whole.to(kind) + bias).bitwise_left_shift(bits).view(x.dtype)  # 2 ** (bias + 1) has the bits of infinity
    return power * torch.exp((x - whole) * math.log(2))


def _exponential(relevance: Tensor) -> Tensor:
    return torch.where(relevance < 1, torch.expm1(relevance * math.log(2)), power_of_two(relevance) - 1)


def _linear_gain(relevance: Tensor, largest: Tensor) -> Tensor:
    """The relevance, times a power of two in rows where sums of it could overflow or lose digits."""
    half = round(math.log2(torch.finfo(relevance.dtype).max)) // 2
    scale = torch.ones_like(largest).masked_fill_(largest > 2.0**half, 2.0**-half)
    return relevance * scale.masked_fill_(largest < 2.0**-half, 2.0**half)


def _exponential_gain(relevance: Tensor, largest: Tensor) -> Tensor:
    """`2 ** relevance - 1`, divided by a power of two in rows where sums of it could overflow."""
    shift = largest.floor()
    shifted = power_of_two(relevance - shift) - power_of_two(-shift)
    return torch.where(largest > 64, shifted, _exponential(relevance))


GAINS: dict[Gain, GainOf] = {"linear": _linear_gain, "exponential": _exponential_gain}
"""The gain of each document in units that the rows share, from its relevance and the largest of its query."""
