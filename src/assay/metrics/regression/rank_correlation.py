"""Rank correlations, read from all samples: ranks, ties and pairs are counted in integers, and rounded once."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import CORRELATION, Examples, Metric
from assay.metrics.exact_arithmetic import over_root, result
from assay.metrics.per_sample import single
from assay.native.library import library
from assay.native.rankings import MOST_ORDERED, count_inversions, rank_products
from assay.stats.distributions import normal_quantile, student_quantile
from assay.stats.intervals import Ends, fisher_z
from assay.stats.rank_moves import kendall_moves, spearman_moves
from assay.tally.base import Batch, Tally
from assay.tally.stores.samples import SampleArrays, UnorderedSamples
from assay.tally.sums.integer_weights import integer_weights

Variant = Literal["a", "b", "c"]
Array = np.ndarray[Any, Any]
"""Of int64, or of Python integers where samples have weights."""


@dataclass(frozen=True)
class RankCorrelation(Metric):
    """A correlation that depends on the order of the samples' values only, with one value per output.

    Shapes: `preds` and `target` of one shape, real: `(N, num_outputs)`; for one output any shape, every element
    of which is a sample.

    Returns:
        float64 of shape `()`, or `(num_outputs,)`. NaN without two different values of each, or with a NaN.

    Raises:
        ConfigError: `num_outputs` below 1.
    """

    value_range = CORRELATION

    family = "correlation"
    higher_is_better = True
    inputs = "pairs"
    examples: ClassVar[Examples] = ({}, {"num_outputs": 2})
    unchanged_by = frozenset({"swap", "affine", "increasing"})

    num_outputs: Annotated[int, "how many outputs there are; one value for each."] = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_outputs < 1:
            raise ConfigError(describe("num_outputs", self.num_outputs, "1 or more", "Give the size of dimension 1"))

    def tally(self, weighted: bool) -> Tally:
        return UnorderedSamples(num_outputs=None if self.num_outputs == 1 else self.num_outputs, weighted=weighted)

    def predicted(self, batch: Batch) -> Tensor | None:
        return single(batch.preds) if self.num_outputs == 1 else None

    def compute(self, counts: SampleArrays) -> Tensor:
        values = []
        for k, (x, y) in enumerate(zip(counts["preds"], counts["target"], strict=True)):
            weights = None if counts.weights is None else counts.weights[k]
            nan = np.isnan(x).any() or np.isnan(y).any()
            values.append(math.nan if nan else self.value(*_weighed(x, y, weights)))
        return result(values)

    def interval(self, counts: SampleArrays, confidence_level: float, rows: int) -> Ends | None:
        """Fisher's interval with the variance of how far samples move the value, and at least that of normal pairs.

        That of normal pairs alone is too small where large values of both come together, as with heavy tails.
        """
        n = len(counts["preds"][0])
        if not self.closed_form or not 4 < n <= rows:
            return None
        x, y, r = counts["preds"][0], counts["target"][0], float(self.compute(counts))
        if not abs(r) < 1:
            return None
        moves = self.moves(x, y)
        variance = float(moves @ moves) / (n - 2) ** 2 / (1 - r * r) ** 2
        t = student_quantile((1 + confidence_level) / 2, n - 1) / normal_quantile((1 + confidence_level) / 2)
        return fisher_z(r, max(variance * t**2, self.least_variance(r, n)), confidence_level)

    @abstractmethod
    def least_variance(self, r: float, n: int) -> float:
        """The variance of ``atanh`` of the value r of n normal pairs."""

    @abstractmethod
    def moves(self, x: Array, y: Array) -> Array:
        """How far each sample moves the value, times how many there are; their mean is 0."""

    @abstractmethod
    def value(self, x: Array, y: Array, weights: Array) -> float | Fraction:
        """The value for samples `x` and `y` with whole, positive weights."""


@dataclass(frozen=True)
class SpearmanCorrCoef(RankCorrelation):
    r"""Spearman's rank correlation coefficient.

    $$ \rho = \frac{\sum_i (r_i - \bar r)(s_i - \bar s)}{\sqrt{\sum_i (r_i - \bar r)^2 \sum_i (s_i - \bar s)^2}} $$

    where r and s are the ranks of preds and of target; tied values share the mean of their ranks. All samples
    are kept, and the value takes `O(n log n)`.

    A sample of weight w counts as w equal samples; only the ratios of the weights matter.

    Example:
        >>> import torch
        >>> SpearmanCorrCoef()(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1, 3, 2, 9]))
        tensor(0.8000, dtype=torch.float64)

    Source: C. Spearman, The proof and measurement of association between two things, Am. J. Psychol. 15 (1904).
    """

    @property
    def closed_form(self) -> str:
        return "Fisher's z, variance of the ranks" if self.num_outputs == 1 else ""

    def least_variance(self, r: float, n: int) -> float:
        return (1 + r * r / 2) / (n - 3)

    def moves(self, x: Array, y: Array) -> Array:
        return spearman_moves(x, y)

    def value(self, x: Array, y: Array, weights: Array) -> float:
        if not len(x):
            return math.nan
        both, of_x, of_y = _rank_products(x, y, weights)
        return over_root(both, of_x * of_y)


@dataclass(frozen=True)
class KendallRankCorrCoef(RankCorrelation):
    r"""Kendall's rank correlation coefficient.

    $$ \tau_a = \frac{C - D}{n_0} \quad \tau_b = \frac{C - D}{\sqrt{(n_0 - n_1)(n_0 - n_2)}}
       \quad \tau_c = \frac{2 (C - D)}{n^2 (m - 1) / m} $$

    where C and D count the concordant and the discordant pairs of samples, n_0 all pairs, n_1 and n_2 the pairs tied in
    preds and in target, and m is the smaller number of different values. All samples
    are kept, and the value takes `O(n log n)`.

    A pair counts as the product of the weights of its samples; only the ratios of the weights matter.

    Returns:
        float64 of shape `()`, or `(num_outputs,)`. NaN without two samples or with a NaN; "b" and "c" also without two
        different values of each.

    Raises:
        ConfigError: an unknown variant, or `num_outputs` below 1.

    Example:
        >>> import torch
        >>> KendallRankCorrCoef()(torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([1, 3, 2, 9]))
        tensor(0.6667, dtype=torch.float64)

    Source: M. G. Kendall, The treatment of ties in ranking problems, Biometrika 33 (1945); A. Stuart, The estimation
    and comparison of strengths of association in contingency tables, Biometrika 40 (1953); the count of discordant
    pairs follows W. R. Knight, A computer method for calculating Kendall's tau, JASA 61 (1966).
    """

    variant: Annotated[
        Variant,
        '"b" allows for ties, "c" also for tables that are not square, "a" leaves ties in n_0. TorchMetrics divides '
        '"a" by C + D, which gives the gamma of Goodman and Kruskal.',
    ] = "b"

    examples = ({}, {"variant": "a"}, {"variant": "c"}, {"num_outputs": 2})

    @property
    def closed_form(self) -> str:
        return "Fisher's z, variance of the ranks" if self.num_outputs == 1 and self.variant != "c" else ""

    def least_variance(self, r: float, n: int) -> float:
        return 0.437 / (n - 4)

    def moves(self, x: Array, y: Array) -> Array:
        return kendall_moves(x, y, ties=self.variant == "b")

    def value(self, x: Array, y: Array, weights: Array) -> float | Fraction:
        if not len(x):
            return math.nan
        x, y = _dense(x), _dense(y)
        # Sums over ordered pairs, each sample with itself included: they cancel in the differences.
        everything = int(weights.sum()) ** 2
        x_tied, y_tied = _tied(x, weights), _tied(y, weights)
        both_tied, inversions = _of_pairs(x, y, weights)
        net = everything - x_tied - y_tied + both_tied - 4 * inversions
        if self.variant == "a":
            pairs = everything - _dot(weights, weights)
            return Fraction(net, pairs) if pairs else math.nan
        if self.variant == "b":
            return over_root(net, (everything - x_tied) * (everything - y_tied))
        fewest = min(int(x.max()), int(y.max())) + 1
        return Fraction(net * fewest, everything * (fewest - 1)) if fewest > 1 else math.nan


def _weighed(x: Array, y: Array, weights: Array | None) -> tuple[Array, Array, Array]:
    """The samples that count, and their weights as integers of one unit."""
    if weights is None:
        return x, y, np.ones(len(x), dtype=np.int64)
    counts = weights > 0
    return x[counts], y[counts], integer_weights(weights[counts])[0].astype(object)


def _dense(x: Array) -> Array:
    """The ranks 0, 1, 2 ... of the values, without gaps; equal values have one rank."""
    rank: Array = np.unique(_narrow(x), return_inverse=True)[1]
    return rank


def _narrow(x: Array) -> Array:
    """The same numbers as float32, which is sorted in less time, where that holds float64; others as they are."""
    if x.dtype != np.float64:
        return x
    with np.errstate(over="ignore"):
        narrow = x.astype(np.float32)
    return narrow if np.array_equal(narrow, x) else x


def _of_pairs(x: Array, y: Array, weights: Array) -> tuple[int, int]:
    """What `_tied` says of pairs of ranks; and `_inversions` of y in the order of x, and of y where that is equal."""
    above = int(y.max()) + 1
    both = x * above + y
    if weights.dtype == object or library() is None or len(y) >= 1 << 31:
        order = np.argsort(both, kind="stable")
        return _tied(_dense(both), weights), _inversions(y[order], weights[order])
    both.sort()  # without weights nothing but the pairs themselves is to be in that order
    first = np.flatnonzero(np.concatenate([[True], both[1:] != both[:-1]]))
    tied = np.diff(first, append=len(both))
    return _dot(tied, tied), count_inversions(both % above)


def _group_sums(rank: Array, weights: Array) -> Array:
    """The weight of each rank."""
    if weights.dtype != object:  # each is 1
        return np.bincount(rank)
    sums = np.zeros(int(rank.max()) + 1, dtype=weights.dtype)
    np.add.at(sums, rank, weights)
    return sums


def _rank_products(x: Array, y: Array, weights: Array) -> tuple[int, int, int]:
    """The sums of products of the centred ranks: of x with y, of x with itself, and of y with itself."""
    if weights.dtype != object and library() is not None and len(x) < MOST_ORDERED:
        x, y = _narrow(x), _narrow(y)
        if x.dtype == y.dtype == np.float32:
            return rank_products(np.ascontiguousarray(x), np.ascontiguousarray(y))
    r, s = _centred_ranks(x, weights), _centred_ranks(y, weights)
    return _dot(weights * r, s), _dot(weights * r, r), _dot(weights * s, s)


def _centred_ranks(x: Array, weights: Array) -> Array:
    """Twice the difference between each rank and the mean of all ranks: integers, tied values with equal ones."""
    rank = _dense(x)
    tied = _group_sums(rank, weights)
    below = np.cumsum(tied) - tied
    centred: Array = 2 * below + tied - weights.sum()
    return centred[rank]


def _tied(rank: Array, weights: Array) -> int:
    """The sum of products of weights over all ordered pairs of equal rank."""
    sums = _group_sums(rank, weights)
    return _dot(sums, sums)


def _dot(a: Array, b: Array) -> int:
    """The sum of products, exactly. Products of int64 fit int64 below 3e9 samples, their sum need not."""
    products = a * b
    if products.dtype == object:
        return int(products.sum())
    return (int((products >> 32).sum()) << 32) + int((products & 0xFFFFFFFF).sum())


def _inversions(rank: Array, weights: Array) -> int:
    """The sum of products of weights over all pairs whose former rank is higher than the latter.

    Two ranks differ first in one bit, counted from the highest. For each bit, the samples stand in groups of equal
    higher bits, in their order; there the pairs with a one before a zero are counted, and the groups parted by the bit.
    """
    total = 0
    starts = np.concatenate([[0], np.cumsum(np.bincount(rank))])  # where the samples of each rank end up
    place = np.arange(len(rank))
    for bit in reversed(range(int(rank.max()).bit_length())):
        high = rank >> bit
        one = high & 1
        group = starts[(high >> 1) << (bit + 1)]
        ones = np.cumsum(one) - one
        ones -= ones[group]
        heavy = np.cumsum(one * weights) - one * weights
        total += _dot((1 - one) * weights, heavy - heavy[group])
        target = starts[high << bit] + np.where(one, ones, place - group - ones)
        rank, weights = _moved(rank, target), _moved(weights, target)
    return total


def _moved(values: Array, target: Array) -> Array:
    moved = np.empty_like(values)
    moved[target] = values
    return moved
