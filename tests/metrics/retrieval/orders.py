"""Metrics of one query from their definitions, in fractions: the mean over all orders of equal scores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

Of = Callable[[Sequence[Any]], Any]
"""A metric of the relevances from the first document to the last; None where it is undefined."""


def orders(scores: Sequence[float], relevance: Sequence[Any]) -> Iterator[list[Any]]:
    """The relevances from the highest score to the lowest, in each order of equal scores."""
    groups = [[r for s, r in zip(scores, relevance, strict=True) if s == each] for each in sorted(set(scores))[::-1]]
    for chosen in itertools.product(*map(itertools.permutations, groups)):
        yield list(itertools.chain(*chosen))


def expectation(metric: Of, scores: Sequence[float], relevance: Sequence[Any]) -> Any:
    """The mean over all orders."""
    values = [metric(order) for order in orders(scores, relevance)]
    return None if values[0] is None else sum(values) / len(values)


def hits(order: Sequence[Any], k: int | None = None) -> int:
    return sum(each > 0 for each in order[:k])


def precision(k: int | None = None, adaptive: bool = False) -> Of:
    def of(order):
        count = len(order) if k is None or (adaptive and k > len(order)) else k
        return Fraction(hits(order, k), count) if hits(order) else None

    return of


def recall(k: int | None = None) -> Of:
    return lambda order: Fraction(hits(order, k), hits(order)) if hits(order) else None


def hit(k: int | None = None) -> Of:
    return lambda order: Fraction(hits(order, k) > 0) if hits(order) else None


def fall_out(k: int | None = None) -> Of:
    def of(order):
        others = [not each for each in order]
        return recall(k)(others)

    return of


def r_precision() -> Of:
    return lambda order: recall(hits(order))(order)


def average_precision(k: int | None = None) -> Of:
    def of(order):
        found = [Fraction(hits(order, i + 1), i + 1) for i, each in enumerate(order[:k]) if each > 0]
        return sum(found, Fraction(0)) / hits(order) if hits(order) else None

    return of


def reciprocal_rank(k: int | None = None) -> Of:
    def of(order):
        found = next((Fraction(1, i + 1) for i, each in enumerate(order[:k]) if each > 0), Fraction(0))
        return found if hits(order) else None

    return of


def auroc() -> Of:
    """Of one order; the mean over orders counts equal scores half."""

    def of(order):
        pairs = [a > 0 for a, b in itertools.combinations(order, 2) if (a > 0) != (b > 0)]
        return Fraction(sum(pairs), len(pairs)) if pairs else None

    return of


def ndcg(k: int | None = None, exponential: bool = False) -> Of:
    def gained(order):
        gains = [2.0**each - 1 if exponential else float(each) for each in order[:k]]
        return math.fsum(gain / math.log2(i + 2) for i, gain in enumerate(gains))

    return lambda order: gained(order) / gained(sorted(order, reverse=True)) if hits(order) else None


def rank_biased_precision(p: Fraction, k: int | None = None) -> Of:
    return lambda order: (
        (1 - p) * sum((p**i for i, each in enumerate(order[:k]) if each > 0), Fraction(0)) if hits(order) else None
    )


def expected_reciprocal_rank(highest: int, k: int | None = None) -> Of:
    def of(order):
        total, goes_on = Fraction(0), Fraction(1)
        for i, each in enumerate(order[:k]):
            stop = Fraction(2**each - 1, 2**highest)
            total += goes_on * stop / (i + 1)
            goes_on *= 1 - stop
        return total if hits(order) else None

    return of
