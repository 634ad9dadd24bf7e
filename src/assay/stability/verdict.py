"""Whether a difference of outputs is rounding."""

from __future__ import annotations

import math

from assay.evaluation.model.output_gap import MOST_ULPS, OutputGap
from assay.stability.result import StabilityVerdict

REMOVED = 2.0**-20
"""Of a difference that is rounding, float64 (29 bits more) leaves less than this share."""


def verdict_of(gap: OutputGap, in_float64: OutputGap | None) -> StabilityVerdict:
    """Whether outputs have the same bits, differ by rounding, or depend on what was changed.

    Args:
        gap: the difference in the dtype of the model.
        in_float64: the difference of a float64 copy for the same change; None where there is no such copy.
    """
    if gap.sample is None:
        return "same bits"
    if gap.ulps <= MOST_ULPS:
        return "rounding"
    is_finite = math.isfinite(gap.largest)  # NaN in small batches, such as a deviation of one sample, is no rounding
    is_removed = is_finite and in_float64 is not None and in_float64.largest <= REMOVED * gap.largest
    return "rounding" if is_removed else "depends"
