"""Regression metrics that set errors against the spread of the target: what a model explains of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

from assay.errors import ConfigError, describe
from assay.metrics.base import AT_MOST_1, NOT_NEGATIVE
from assay.metrics.output_metrics import SQUARED_ERROR, TARGET_SPREAD, WEIGHT, OverOutputs, share_left
from assay.tally.sums.exact import Number
from assay.tally.sums.polynomials import QuotientOfSums, SumOf
from assay.tally.sums.terms import PREDS, TARGET
from assay.tally.sums.totals import Totals

_ERROR = WEIGHT * SQUARED_ERROR
_BIAS = SumOf(PREDS) - SumOf(TARGET)
_SCORE = QuotientOfSums(TARGET_SPREAD - _ERROR, TARGET_SPREAD)
_EXPLAINED = QuotientOfSums(TARGET_SPREAD - (_ERROR - _BIAS * _BIAS), TARGET_SPREAD)
_RELATIVE = QuotientOfSums(_ERROR, TARGET_SPREAD)
_ROOT_RELATIVE = QuotientOfSums(_ERROR, TARGET_SPREAD, "of the quotient")


@dataclass(frozen=True)
class R2Score(OverOutputs):
    """Coefficient of determination R².

    `1 - sum(w (target - preds)²) / sum(w (target - mean)²)`, with the weighted mean of the target.

    Returns:
        float64, shape `()`, or `(num_outputs,)` for raw values. A constant target gives 1 when it is met exactly, else
        0 (as in scikit-learn). NaN for fewer than 2 samples that have weight, and adjusted for `adjusted + 1` of them
        or fewer.

    Raises:
        ConfigError: `adjusted` below 0, an unknown `multioutput`, `num_outputs` below 1.

    Example:
        >>> import torch
        >>> R2Score()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.9486, dtype=torch.float64)

    Source: Kvålseth, The American Statistician 39 (1985), 279-285, equation 1; scikit-learn user guide.
    """

    value_range = AT_MOST_1

    defined_for: ClassVar[str] = "samples with weight, 2 or more, and more than adjusted + 1 where it is adjusted"

    adjusted: Annotated[
        int,
        "the number of independent variables of the model; above 0 gives the adjusted "
        "`1 - (1 - R²) (N - 1) / (N - adjusted - 1)`, with `N` the number of samples whose weight is not 0.",
    ] = 0

    examples = (
        {},
        {"adjusted": 2},
        *({"num_outputs": 2, "multioutput": k} for k in ("raw_values", "variance_weighted")),
    )
    unchanged_by = frozenset({"common affine"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.adjusted < 0:
            raise ConfigError(describe("adjusted", self.adjusted, "0 or more", "Give the number of variables"))

    @property
    def formula(self) -> QuotientOfSums | None:
        return None if self.adjusted else _SCORE

    def value(self, counts: Totals, k: int) -> Number:
        samples = counts.count[k]
        score = share_left(_SCORE, counts, k)
        if isinstance(score, float) or samples < 2 or not counts.weight[k]:
            return math.nan
        if not self.adjusted:
            return score
        return (
            1 - (1 - score) * Fraction(samples - 1, samples - self.adjusted - 1)
            if samples > self.adjusted + 1
            else math.nan
        )


@dataclass(frozen=True)
class ExplainedVariance(OverOutputs):
    """Explained variance: as R², but a constant error costs nothing.

    `1 - Var(target - preds) / Var(target)`, with weighted variances.

    Returns:
        float64, shape `()`, or `(num_outputs,)` for raw values. A constant target gives 1 when the error is constant,
        too, else 0 (as in scikit-learn). NaN without data.

    Example:
        >>> import torch
        >>> ExplainedVariance()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.9572, dtype=torch.float64)

    Source: scikit-learn user guide, explained variance score.
    """

    value_range = AT_MOST_1

    examples = ({}, {"num_outputs": 2})
    unchanged_by = frozenset({"common affine", "shift"})
    formula = _EXPLAINED

    def value(self, counts: Totals, k: int) -> Number:
        return share_left(_EXPLAINED, counts, k) if counts.weight[k] else math.nan


@dataclass(frozen=True)
class RelativeSquaredError(OverOutputs):
    """Relative squared error: the squared error over that of always predicting the mean, or its root.

    `sum(w (target - preds)²) / sum(w (target - mean)²)`. For a mean of roots, each root is rounded and then their mean.

    Returns:
        float64, shape `()`, or `(num_outputs,)` for raw values. With a constant target: infinite, or NaN when there is
        no error either; weighted by the spread, such an output does not count unless all are. NaN without data.

    Example:
        >>> import torch
        >>> RelativeSquaredError()(torch.tensor([2.5, 0.0, 2.0, 8.0]), torch.tensor([3.0, -0.5, 2.0, 7.0]))
        tensor(0.0514, dtype=torch.float64)

    Source: Botchkarev, Interdisciplinary Journal of Information, Knowledge, and Management 14 (2019), 45-76.
    """

    value_range = NOT_NEGATIVE

    higher_is_better = False
    examples = ({}, {"squared": False})
    unchanged_by = frozenset({"common affine"})

    squared: Annotated[bool, "False gives the square root."] = True

    @property
    def scale(self) -> str:
        return "" if self.squared else "root"

    @property
    def formula(self) -> QuotientOfSums | None:
        return _RELATIVE if self.squared else _ROOT_RELATIVE
