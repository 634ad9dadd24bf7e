"""What metrics of features of generated and of real samples have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from assay.errors import ConfigError, InvalidValuesError, describe
from assay.metrics.base import Examples, Metric
from assay.tally.base import Tally
from assay.tally.points.finite_rows import FeatureGroups

_MOST = 2.0**53  # samples, up to which all integers are numbers of float64


@dataclass(frozen=True, kw_only=True)
class RowsMetric(Metric):
    """A metric of rows of `num_features` numbers, which are compared with each other in float64."""

    family: ClassVar[str] = "generative"
    exact_terms: ClassVar[bool] = False
    terms_in_float64: ClassVar[bool] = True
    counts_pairs: ClassVar[bool] = True
    examples: ClassVar[Examples] = ({"num_features": 3},)

    num_features: Annotated[int, "how many numbers a row of `preds` has."]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_features < 1:
            do = "Give the size of dimension 1 of preds"
            raise ConfigError(describe("num_features", self.num_features, "1 or more", do))


@dataclass(frozen=True, kw_only=True)
class FeatureMetric(RowsMetric):
    """A metric of the features that the caller's network computes of generated and of real samples.

    Shapes:
        `preds` `(N, num_features)`, the features; `target` `(N,)`, which are real: bool, or 1 and 0; weights `(N,)`,
        how often each counts. An update may have both groups, or one of them.

    Returns:
        float64, shape `()`; NaN with a warning for fewer than two generated or two real samples.

    Raises:
        ConfigError: an argument that is out of range.
        InvalidValuesError: by `compute`, if a feature is NaN or infinite, a target is neither 0 nor 1, or a weight is
            negative or no integer.
    """

    inputs: ClassVar[str] = "features"
    higher_is_better: ClassVar[bool | None] = False
    defined_for = "two generated and two real samples or more"

    def tally(self, weighted: bool) -> Tally:
        return FeatureGroups((self.num_features,), (), weighted)


def repetitions(metric: Metric, weights: np.ndarray | None, size: int) -> np.ndarray:
    """How often each of so many samples occurs, in float64.

    Raises:
        InvalidValuesError: a weight is no integer, or they sum to more than 2 ** 53.
    """
    if weights is None:
        return np.ones(size)
    if (weights != np.rint(weights)).any():
        got, expected = f"fractions for {type(metric).__name__}", "integers: how often each sample occurs"
        raise InvalidValuesError(describe("weights", got, expected, "Scale them to numbers of samples"))
    times = weights.astype(np.float64)
    if times.max(initial=0) > _MOST or times.sum() > _MOST:
        do = "Divide them by what they have in common"
        raise InvalidValuesError(describe("weights", f"{times.max():g} or less", "a sum of at most 2 ** 53", do))
    return times
