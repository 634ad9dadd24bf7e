"""Perceptual path length: how much images change for a small step in the latent space of a generator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import Metric, number
from assay.metrics.exact_arithmetic import rounded
from assay.metrics.generative.features import repetitions
from assay.tally.base import Tally
from assay.tally.stores.samples import SampleArrays, SampleTally


@dataclass(frozen=True, kw_only=True)
class PerceptualPathLength(Metric):
    r"""The mean perceptual distance of images whose latents are a small step apart, over the square of the step.

    $$ \frac{1}{n} \sum_i \frac{d_i}{\epsilon^2} $$

    over the distances from the `lower_discard` to the `upper_discard` quantile; a quantile is the sample at or below
    its position, and is itself counted. The pairs of images and their distances (such as LPIPS) are the caller's, so
    nothing is drawn. A sample of integer weight w counts as w equal samples.

    Shapes: `preds` `(N,)`, the distances; no target; weights `(N,)`.

    Returns:
        float64, shape `()`; NaN with a warning without distances, or with one that is NaN.

    Raises:
        ConfigError: an `epsilon` that is not above 0, or quantiles outside [0, 1] or in the wrong order.
        InvalidValuesError: weights that are not integers, by `compute`.

    Example:
        >>> import torch
        >>> PerceptualPathLength(epsilon=0.5, upper_discard=0.75)(torch.tensor([1.0, 2.0, 3.0, 4.0, 90.0]))
        tensor(10., dtype=torch.float64)

    Source: T. Karras, S. Laine, T. Aila, A style-based generator architecture for generative adversarial networks,
    CVPR 2019.
    """

    epsilon: Annotated[float, "the step between the two latents of a pair."] = 1e-4
    lower_discard: Annotated[float | None, "distances below this quantile are left out; None keeps them."] = 0.01
    upper_discard: Annotated[float | None, "distances above this quantile are left out; None keeps them."] = 0.99

    family = "generative"
    inputs = "positive values"
    higher_is_better = False
    defined_for = "distances that have weight, none of them NaN"
    examples = ({}, {"epsilon": 0.5, "lower_discard": 0.25, "upper_discard": None})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.epsilon < math.inf:
            raise ConfigError(describe("epsilon", self.epsilon, "above 0, finite", "Pass epsilon=1e-4, the default"))
        lower, upper = self._quantiles
        if not 0 <= lower <= upper <= 1:
            got = f"{self.lower_discard} to {self.upper_discard}"
            do = "Pass lower_discard=0.01 and upper_discard=0.99, the defaults"
            raise ConfigError(describe("lower_discard", got, "quantiles in [0, 1], the lower one first", do))

    @property
    def _quantiles(self) -> tuple[Fraction, Fraction]:
        """As the decimal numbers that are written."""
        lower = 0.0 if self.lower_discard is None else self.lower_discard
        upper = 1.0 if self.upper_discard is None else self.upper_discard
        if not (math.isfinite(lower) and math.isfinite(upper)):
            return Fraction(-1), Fraction(-1)
        return Fraction(repr(lower)), Fraction(repr(upper))

    def tally(self, weighted: bool) -> Tally:
        return SampleTally(("preds",), weighted=weighted)

    def compute(self, counts: SampleArrays) -> Tensor:
        distances = counts["preds"][0].astype(np.float64)
        weights = None if counts.weights is None else counts.weights[0]
        times = [int(each) for each in repetitions(self, weights, len(distances))]
        size = sum(times)
        if not size or np.isnan(distances).any():
            return number(math.nan)
        some = self.kept(distances, times)
        if not np.isfinite(distances[some]).all():
            return number(math.fsum(distances[some].tolist()))
        total = sum((times[k] * Fraction(distances[k]) for k in some.tolist()), Fraction(0))
        return number(rounded(total / (sum(times[k] for k in some.tolist()) * Fraction(repr(self.epsilon)) ** 2)))

    def kept(self, distances: np.ndarray, times: Sequence[int]) -> np.ndarray:
        """The positions of the distances between the two quantiles, of float64 `(N,)` of which none is NaN.

        Args:
            distances: in the order of the samples.
            times: how often each of them counts.
        """
        order = np.argsort(distances, kind="stable")
        ends = np.cumsum([times[k] for k in order])
        least, most = (
            distances[order[np.searchsorted(ends, math.floor(q * (ends[-1] - 1)), side="right")]]
            for q in self._quantiles
        )
        return np.flatnonzero((distances >= least) & (distances <= most))
