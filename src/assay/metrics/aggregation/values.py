"""Aggregation of plain values: sums, means, extremes and variances."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar, get_args

import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import Examples, Metric, number
from assay.metrics.exact_arithmetic import quotient, rounded, value_of_sums
from assay.metrics.field_values import plain
from assay.metrics.per_sample import SampleTerms, single
from assay.tally.base import Batch, NanPolicy, State, Tally
from assay.tally.sums.extremes import Extremes, Range
from assay.tally.sums.polynomials import QuotientOfSums, SumOf
from assay.tally.sums.sums import Sums
from assay.tally.sums.terms import PREDS, Product, Term
from assay.tally.sums.totals import Totals

_MEAN = QuotientOfSums(SumOf(PREDS), SumOf())
_SUM = QuotientOfSums(SumOf(PREDS) * SumOf(), SumOf())
"""The sum by compiled code, which computes quotients."""


@dataclass(frozen=True)
class Aggregate(Metric):
    """A metric of values of any shape, every element of which is a sample; there is no target.

    Shapes: `preds` of any shape and real dtype, no `target`; weights `(N,)` or one each.

    Returns:
        float64, shape `()`. Infinite values give an infinite value, both infinities NaN; weighted, an infinite value
        gives NaN. NaN without data.

    Raises:
        ConfigError: an unknown `nan_policy`.
        InvalidValuesError: by `compute`, for NaN with `nan_policy="raise"`.
    """

    family: ClassVar[str] = "aggregation"
    inputs: ClassVar[str] = "values"
    examples: ClassVar[Examples] = ({}, {"nan_policy": "ignore"}, {"nan_policy": "warn"}, {"nan_policy": 0.5})

    nan_policy: Annotated[
        NanPolicy,
        '"propagate": a NaN makes the value NaN, with a warning that says how many; "ignore" leaves them out; "warn" '
        'leaves them out, and warns when the value is computed; "raise" raises then; a number takes their place.',
    ] = "propagate"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.nan_policy, str) and self.nan_policy in get_args(get_args(NanPolicy)[0]):
            return
        try:
            number_given = plain("nan_policy", self.nan_policy, "float")
        except ConfigError:
            number_given = math.nan
        if math.isnan(number_given):
            do = "Choose whether NaN makes the value NaN, is left out, raises or is replaced"
            expected = '"propagate", "ignore", "warn", "raise" or a number'
            raise ConfigError(describe("nan_policy", repr(self.nan_policy), expected, do))
        object.__setattr__(self, "nan_policy", number_given)

    def _sums(self, weighted: bool, *terms: Term) -> Tally:
        return Sums(frozenset(terms), None, weighted, ("preds",), self.nan_policy)


@dataclass(frozen=True)
class Mean(Aggregate):
    """Mean of the values.

    `sum(w x) / sum(w)`.

    Example:
        >>> import torch
        >>> Mean()(torch.tensor([1.0, 2.0, 6.0]))
        tensor(3., dtype=torch.float64)

    Source: Neal, Fast exact summation using small and large superaccumulators, arXiv:1505.05571.
    """

    def tally(self, weighted: bool) -> Tally:
        return self._sums(weighted, PREDS)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        values = single(batch.preds)
        if values is None:
            return None
        if self.nan_policy in ("propagate", "raise") or not values.dtype.is_floating_point:
            return SampleTerms.of("value", values)
        known = values == values  # NaN is no number, not even itself
        if isinstance(self.nan_policy, float):
            return SampleTerms.of(f"value, {self.nan_policy} for NaN", torch.where(known, values, self.nan_policy))
        return SampleTerms.of("value, without NaN", torch.where(known, values, 0), "known value", known)

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return _MEAN

    def compute(self, counts: Totals) -> Tensor:
        return value_of_sums(_MEAN, counts)


@dataclass(frozen=True)
class Sum(Aggregate):
    """Sum of the values.

    `sum(w x)`: it does not stop at 2 ** 24 and loses nothing to cancellation.

    Example:
        >>> import torch
        >>> Sum()(torch.tensor([1e30, 1.0, -1e30]))
        tensor(1., dtype=torch.float64)

    Source: Neal, Fast exact summation using small and large superaccumulators, arXiv:1505.05571.
    """

    estimates = False

    def tally(self, weighted: bool) -> Tally:
        return self._sums(weighted, PREDS)

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return _SUM

    def compute(self, counts: Totals) -> Tensor:
        quotients = counts.quotients(_SUM)
        if quotients is None or quotients.doubtful:
            return number(rounded(counts[PREDS][0]) if counts.count[0] else math.nan)
        return quotients.values


@dataclass(frozen=True)
class Variance(Aggregate):
    """Variance of the values.

    `sum(w (x - mean)²) / (sum(w) - ddof)`: a large mean costs no digits. Weights count as frequencies.

    Returns:
        float64, shape `()`. NaN where a value is infinite, where the weights do not exceed `ddof`, and without data.

    Raises:
        ConfigError: an unknown `nan_policy`, `ddof` below 0.

    Example:
        >>> import torch
        >>> Variance(ddof=1)(torch.tensor([1e6, 1e6 + 1, 1e6 + 2]))
        tensor(1., dtype=torch.float64)

    Source: Chan, Golub, LeVeque, The American Statistician 37 (1983), 242-247, for what is avoided here.
    """

    ddof: Annotated[
        int,
        "what is subtracted from the sum of the weights: 0 for the variance of these values, 1 for the unbiased "
        "estimate of that of the population they are a sample of.",
    ] = 0

    examples = ({}, {"ddof": 1})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ddof < 0:
            raise ConfigError(describe("ddof", self.ddof, "0 or more", "Use 0 or 1"))

    def tally(self, weighted: bool) -> Tally:
        return self._sums(weighted, PREDS, Product(PREDS, PREDS))

    def compute(self, counts: Totals) -> Tensor:
        weight, total, squares = counts.weight[0], counts[PREDS][0], counts[Product(PREDS, PREDS)][0]
        if isinstance(weight, float) or isinstance(total, float) or isinstance(squares, float) or weight <= self.ddof:
            return number(math.nan)
        return number(rounded(quotient(squares - total * total / weight, weight - self.ddof)))


@dataclass(frozen=True)
class Extreme(Aggregate):
    """The largest or smallest value. Samples of weight 0 are left out; other weights have no influence.

    Returns:
        float64, shape `()`: the value as given, 64-bit integers rounded once. NaN without data.
    """

    examples: ClassVar[Examples] = ({},)
    estimates = False

    def tally(self, weighted: bool) -> Tally:
        return Extremes(self.nan_policy)


def _end(tally: Tally, smallest: bool) -> Callable[[State], Tensor | None] | None:
    """What reads the largest or the smallest value of a state."""
    if not isinstance(tally, Extremes):
        return None
    plain = tally.plain_end

    def read(state: State) -> Tensor | None:
        found = plain(state, smallest)
        return None if found is None else number(found)

    return read


@dataclass(frozen=True)
class Max(Extreme):
    """Largest value. Samples of weight 0 are left out; other weights have no influence.

        max_i x_i

    Example:
        >>> import torch
        >>> Max()(torch.tensor([1.0, 7.0, 2.0]))
        tensor(7., dtype=torch.float64)

    Source: IEEE 754-2019, section 9.6, `maximum` and `maximumNumber`.
    """

    def reading(self, tally: Tally) -> Callable[[State], Tensor | None] | None:
        return _end(tally, smallest=False)

    def compute(self, counts: Range) -> Tensor:
        return number(counts.largest)


@dataclass(frozen=True)
class Min(Extreme):
    """Smallest value. Samples of weight 0 are left out; other weights have no influence.

        min_i x_i

    Example:
        >>> import torch
        >>> Min()(torch.tensor([1.0, 7.0, 2.0]))
        tensor(1., dtype=torch.float64)

    Source: IEEE 754-2019, section 9.6, `minimum` and `minimumNumber`.
    """

    def reading(self, tally: Tally) -> Callable[[State], Tensor | None] | None:
        return _end(tally, smallest=True)

    def compute(self, counts: Range) -> Tensor:
        return number(counts.smallest)
