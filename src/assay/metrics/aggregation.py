"""Aggregation of plain values: sums, means, extremes and variances of whatever an update is given."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import Metric, number
from assay.metrics.contributions import Contributions, single
from assay.metrics.rational import quotient, rounded
from assay.tally.base import Batch, Tally
from assay.tally.extremes import Extremes, Range
from assay.tally.sums import PREDS, Product, Sums, Term, Totals

NanPolicy = Literal["propagate", "ignore"]


@dataclass(frozen=True)
class Aggregate(Metric):
    """A metric of values of any shape, every element of which is a sample; there is no target."""

    nan_policy: NanPolicy = "propagate"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nan_policy not in get_args(NanPolicy):
            do = "Choose whether NaN makes the value NaN or is left out"
            raise ConfigError(describe("nan_policy", repr(self.nan_policy), '"propagate" or "ignore"', do))

    def _sums(self, weighted: bool, *terms: Term) -> Tally:
        return Sums(frozenset(terms), None, weighted, ("preds",), self.nan_policy == "ignore")


@dataclass(frozen=True)
class Mean(Aggregate):
    """Mean of the values.

    `sum(w x) / sum(w)`. Both sums are exact and their quotient is rounded once.

    Args:
        nan_policy: "propagate": a NaN makes the mean NaN, with a warning that says how many; "ignore" leaves them out.

    Returns:
        float64, shape `()`. Infinite values give an infinite mean, both infinities NaN; weighted, an infinite value
        gives NaN. NaN without data.

    Raises:
        ConfigError: an unknown `nan_policy`.

    Example:
        >>> import torch
        >>> Mean()(torch.tensor([1.0, 2.0, 6.0]))
        tensor(3., dtype=torch.float64)

    Source: Neal, Fast exact summation using small and large superaccumulators, arXiv:1505.05571.
    """

    def tally(self, weighted: bool) -> Tally:
        return self._sums(weighted, PREDS)

    def contribute(self, batch: Batch) -> Contributions | None:
        values = single(batch.preds)
        if values is None:
            return None
        if self.nan_policy == "propagate" or not values.dtype.is_floating_point:
            return Contributions.of("value", values)
        known = values == values  # NaN is no number, not even itself
        return Contributions.of("value, without NaN", torch.where(known, values, 0), "known value", known)

    def read(self, counted: Totals) -> Tensor:
        total = counted[PREDS][0]
        return number(total if isinstance(total, float) else rounded(quotient(total, counted.weight[0])))


@dataclass(frozen=True)
class Sum(Aggregate):
    """Sum of the values.

    `sum(w x)`, exact and rounded once: it does not stop at 2 ** 24 and loses nothing to cancellation.

    Args:
        nan_policy: "propagate": a NaN makes the sum NaN, with a warning that says how many; "ignore" leaves them out.

    Returns:
        float64, shape `()`. Infinite values give an infinite sum, both infinities NaN; weighted, an infinite value
        gives NaN. NaN without data.

    Raises:
        ConfigError: an unknown `nan_policy`.

    Example:
        >>> import torch
        >>> Sum()(torch.tensor([1e30, 1.0, -1e30]))
        tensor(1., dtype=torch.float64)

    Source: Neal, Fast exact summation using small and large superaccumulators, arXiv:1505.05571.
    """

    @property
    def estimates(self) -> bool:
        return False

    def tally(self, weighted: bool) -> Tally:
        return self._sums(weighted, PREDS)

    def read(self, counted: Totals) -> Tensor:
        return number(rounded(counted[PREDS][0]) if counted.count[0] else math.nan)


@dataclass(frozen=True)
class Variance(Aggregate):
    """Variance of the values.

    `sum(w (x - mean)²) / (sum(w) - ddof)`. The value is that of exact arithmetic on the given inputs, rounded once: a
    large mean costs no digits. Weights count as frequencies.

    Args:
        nan_policy: "propagate": a NaN makes the variance NaN, with a warning that says how many; "ignore" leaves
            them out.
        ddof: what is subtracted from the sum of the weights: 0 for the variance of these values, 1 for the unbiased
            estimate of that of the population they are a sample of.

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

    ddof: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ddof < 0:
            raise ConfigError(describe("ddof", self.ddof, "0 or more", "Use 0 or 1"))

    def tally(self, weighted: bool) -> Tally:
        return self._sums(weighted, PREDS, Product(PREDS, PREDS))

    def read(self, counted: Totals) -> Tensor:
        weight, total, squares = counted.weight[0], counted[PREDS][0], counted[Product(PREDS, PREDS)][0]
        if isinstance(weight, float) or isinstance(total, float) or isinstance(squares, float) or weight <= self.ddof:
            return number(math.nan)
        return number(rounded(quotient(squares - total * total / weight, weight - self.ddof)))


@dataclass(frozen=True)
class Max(Aggregate):
    """Largest value. Weights have no influence.

    Args:
        nan_policy: "propagate": a NaN makes the maximum NaN, with a warning that says how many; "ignore" leaves
            them out.

    Returns:
        float64, shape `()`: the value as given, 64-bit integers rounded once. NaN without data.

    Raises:
        ConfigError: an unknown `nan_policy`.

    Example:
        >>> import torch
        >>> Max()(torch.tensor([1.0, 7.0, 2.0]))
        tensor(7., dtype=torch.float64)

    Source: IEEE 754-2019, section 9.6, `maximum` and `maximumNumber`.
    """

    @property
    def estimates(self) -> bool:
        return False

    def tally(self, weighted: bool) -> Tally:
        return Extremes(self.nan_policy == "ignore")

    def read(self, counted: Range) -> Tensor:
        return number(counted.largest)


@dataclass(frozen=True)
class Min(Aggregate):
    """Smallest value. Weights have no influence.

    Args:
        nan_policy: "propagate": a NaN makes the minimum NaN, with a warning that says how many; "ignore" leaves
            them out.

    Returns:
        float64, shape `()`: the value as given, 64-bit integers rounded once. NaN without data.

    Raises:
        ConfigError: an unknown `nan_policy`.

    Example:
        >>> import torch
        >>> Min()(torch.tensor([1.0, 7.0, 2.0]))
        tensor(1., dtype=torch.float64)

    Source: IEEE 754-2019, section 9.6, `minimum` and `minimumNumber`.
    """

    @property
    def estimates(self) -> bool:
        return False

    def tally(self, weighted: bool) -> Tally:
        return Extremes(self.nan_policy == "ignore")

    def read(self, counted: Range) -> Tensor:
        return number(counted.smallest)
