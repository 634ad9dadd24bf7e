"""Quantiles, read from all samples."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate
from typing import Annotated, Any, Literal

import numpy as np
from torch import Tensor

from assay.errors import ConfigError, InvalidValuesError, describe
from assay.metrics.base import Metric, number, vector
from assay.metrics.exact_arithmetic import rounded
from assay.metrics.field_values import plain
from assay.stats.intervals import Ends, order_statistics
from assay.tally.base import Tally
from assay.tally.stores.samples import SampleArrays, SampleTally

Interpolation = Literal["linear", "lower", "higher", "nearest", "midpoint"]

_SHARE: Mapping[str, Callable[[Fraction], Fraction]] = {
    "linear": lambda part: part,
    "lower": lambda part: Fraction(0),
    "higher": lambda part: Fraction(math.ceil(part)),
    "midpoint": lambda part: Fraction(math.ceil(part), 2),
}


@dataclass(frozen=True)
class Quantile(Metric):
    r"""The value below which a share q of the samples lies.

    $$ x_{(k)} + (h - k)(x_{(k+1)} - x_{(k)}), \quad h = q (n - 1), \; k = \lfloor h \rfloor $$

    over the n sorted samples, counted from 0. The position and the value are computed in exact arithmetic and rounded
    once; q is taken as the decimal number that is written, so 0.7 of 11 samples is the eighth, not just below it. All
    samples are kept, and the value takes `O(n log n)`.

    A weight says how often its sample occurs; it is an integer.

    Shapes: `preds` of any shape and real dtype; with one output every element is a sample. No target.

    Returns:
        float64 of shape `()`, with `(len(q),)` in front for a tuple and `(num_outputs,)` behind for several outputs;
        NaN without samples or with a NaN.

    Raises:
        ConfigError: q outside [0, 1], an unknown interpolation, or `num_outputs` below 1.
        InvalidValuesError: weights that are not integers, by `compute`.

    Example:
        >>> import torch
        >>> Quantile(0.5)(torch.tensor([1.0, 2.0, 4.0, 8.0]))
        tensor(3., dtype=torch.float64)
        >>> Quantile((0.1, 0.9), interpolation="nearest")(torch.arange(11))
        tensor([1., 9.], dtype=torch.float64)

    Source: R. J. Hyndman and Y. Fan, Sample quantiles in statistical packages, Am. Stat. 50 (1996), definition 7.
    """

    q: Annotated[float | tuple[float, ...], "in [0, 1], or a tuple of such numbers."]
    interpolation: Annotated[
        Interpolation,
        'between two neighbours: "linear" as above; "lower", "higher" or "nearest" of them (from halfway, the one with '
        'the even index), or their "midpoint".',
    ] = "linear"
    num_outputs: Annotated[
        int, "for more than one, the values have shape `(N, num_outputs)` and there are quantiles for each."
    ] = field(default=1, kw_only=True)

    family = "aggregation"
    inputs = "values"
    examples = ({"q": 0.5}, {"q": (0.1, 0.9), "interpolation": "nearest"})

    def __post_init__(self) -> None:
        super().__post_init__()
        is_sequence = isinstance(self.q, tuple | list | np.ndarray)
        shares = tuple(plain("q", q, "float") for q in (self.q if is_sequence else [self.q]))  # type: ignore[union-attr]
        object.__setattr__(self, "q", shares if is_sequence else shares[0])
        for q in shares or (math.nan,):
            if not 0 <= q <= 1:
                got = q if shares else "no number"
                raise ConfigError(describe("q", got, "a number in [0, 1]", "Give 0.25 for the lower quartile"))
        if self.num_outputs < 1:
            raise ConfigError(describe("num_outputs", self.num_outputs, "1 or more", "Give the size of dimension 1"))

    @property
    def _shares(self) -> tuple[float, ...]:
        return self.q if isinstance(self.q, tuple) else (self.q,)

    def tally(self, weighted: bool) -> Tally:
        return SampleTally(("preds",), None if self.num_outputs == 1 else self.num_outputs, weighted)

    def compute(self, counts: SampleArrays) -> Tensor:
        weights = counts.weights
        samples = [_Ascending.of(x, None if weights is None else weights[k]) for k, x in enumerate(counts["preds"])]
        values = [[self._value(s, Fraction(repr(q))) for s in samples] for q in self._shares]
        if self.num_outputs == 1 and not isinstance(self.q, tuple):
            return number(values[0][0])
        table = vector([value for row in values for value in row])
        if not isinstance(self.q, tuple):
            return table
        return table if self.num_outputs == 1 else table.view(len(values), -1)

    @property
    def closed_form(self) -> str:
        return "order statistics" if self.num_outputs == 1 and not isinstance(self.q, tuple) else ""

    def interval(self, counts: SampleArrays, confidence_level: float, rows: int) -> Ends | None:
        values = counts["preds"][0]
        if not self.closed_form or len(values) > rows or np.isnan(values).any():
            return None
        return order_statistics(np.sort(values), self._shares[0], confidence_level)

    def _value(self, samples: _Ascending, q: Fraction) -> float:
        if not samples.count or samples.has_nan:
            return math.nan
        position = q * (samples.count - 1)
        if self.interpolation == "nearest":
            position = Fraction(round(position))
        below = math.floor(position)
        share = position - below
        lower, upper = samples[below], samples[math.ceil(position)]
        return _between(lower, upper, _SHARE.get(self.interpolation, _SHARE["linear"])(share))


@dataclass(frozen=True, eq=False)
class _Ascending:
    """Samples in ascending order, each as often as it occurs."""

    values: np.ndarray[Any, Any]
    ends: Sequence[int] | None
    """Weighted: the number of samples up to each of the values."""

    @staticmethod
    def of(values: np.ndarray[Any, Any], weights: np.ndarray[Any, Any] | None) -> _Ascending:
        values = values + values.dtype.type(0)  # -0.0 becomes 0.0: they are equal, so sorting would not order them
        if weights is None:
            return _Ascending(np.sort(values), None)
        times = [int(w) for w in weights]
        if any(n != w for n, w in zip(times, weights.tolist(), strict=True)):
            raise InvalidValuesError(
                describe("weights", "fractions", "integers, how often a sample occurs", "Scale them to integers")
            )
        order = np.argsort(values, kind="stable")
        return _Ascending(values[order], list(accumulate(times[k] for k in order)))

    @property
    def count(self) -> int:
        if self.ends is None:
            return len(self.values)
        return self.ends[-1] if self.ends else 0

    @property
    def has_nan(self) -> bool:
        return bool(np.isnan(self.values[-1]))  # NaN sorts last

    def __getitem__(self, index: int) -> float | int:
        value: float | int = self.values[index if self.ends is None else bisect_right(self.ends, index)].item()
        return value


def _between(lower: float, upper: float, share: Fraction) -> float:
    """The value at a share of the way, rounded once; infinities as in floating point."""
    if lower == upper or not share:
        return float(lower)
    if share == 1:
        return float(upper)
    if math.isinf(lower) or math.isinf(upper):
        return lower + upper  # the infinite one, or NaN between both infinities
    return rounded(Fraction(lower) + share * (Fraction(upper) - Fraction(lower)))
