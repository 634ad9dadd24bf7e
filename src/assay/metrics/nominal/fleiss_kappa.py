"""The agreement of several raters beyond chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from torch import Tensor

from assay.errors import ConfigError, InvalidValuesError, describe
from assay.metrics.base import Metric, number
from assay.metrics.exact_arithmetic import quotient, rounded
from assay.tally.base import Tally
from assay.tally.labels.ratings import RatingMode, Ratings, RatingSums


@dataclass(frozen=True, kw_only=True)
class FleissKappa(Metric):
    r"""Fleiss' kappa: the agreement of several raters beyond what chance gives.

    $$ \kappa = \frac{\bar P - P_e}{1 - P_e} \quad
       \bar P = \frac{1}{N} \sum_i \sum_k \frac{n_{ik} (n_{ik} - 1)}{n (n - 1)} \quad P_e = \sum_k p_k^2 $$

    where `n_ik` of n raters put sample i into category k, and `p_k` is the share of all ratings in category k.

    Shapes:
        `preds (N, num_classes)` integers, the numbers of ratings; with `mode="probs"`,
        `preds (N, num_classes, raters)` floats. No target. Weights are `(N,)`.

    Returns:
        float64, shape `()`; NaN with fewer than two raters, or where all ratings are of one category.

    Raises:
        ConfigError: no `num_classes`, or one below 2; an unknown mode.
        InvalidValuesError: by `compute`, if a number of ratings is negative, a score is NaN, samples have different
            numbers of ratings, or more than 3,037,000,499.

    Example:
        >>> import torch
        >>> FleissKappa(num_classes=3)(torch.tensor([[4, 0, 0], [1, 3, 0], [0, 0, 4], [2, 1, 1]]))
        tensor(0.4859, dtype=torch.float64)

    Source: J. L. Fleiss, Measuring nominal scale agreement among many raters, Psychological Bulletin 76 (1971).
    """

    family: ClassVar[str] = "nominal"
    higher_is_better = True
    inputs: ClassVar[str] = "ratings"
    examples = ({}, {"num_classes": 4, "mode": "probs"})
    defined_for = "samples with two or more ratings each, in two or more categories"

    num_classes: Annotated[int | None, "how many categories there are; it must be given."] = None
    mode: Annotated[
        RatingMode,
        '"counts": preds are numbers of ratings; "probs": preds are scores, and each rater chose the category with the '
        "highest.",
    ] = "counts"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_classes is None or self.num_classes < 2:
            do = "Give the size of dimension 1 of preds"
            raise ConfigError(describe("num_classes", self.num_classes, "2 or more", do))

    def tally(self, weighted: bool) -> Tally:
        assert self.num_classes is not None, "it was checked"
        return Ratings(self.num_classes, self.mode, weighted)

    def compute(self, counts: RatingSums) -> Tensor:
        if not counts.weight:
            return number(math.nan)
        raters = counts.raters / counts.weight
        if raters * raters * counts.weight != counts.raters_squared:
            expected = "as many of each sample"
            do = "Leave out samples that some raters did not rate"
            raise InvalidValuesError(describe("preds", "different numbers of ratings", expected, do))
        observed = quotient(counts.squares - counts.raters, counts.raters * (raters - 1))
        chance = sum((each / counts.raters) ** 2 for each in counts.categories) if counts.raters else math.nan
        return number(rounded(quotient(observed - chance, 1 - chance)))
