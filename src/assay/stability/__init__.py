"""Whether a model gives the same outputs for the same inputs when what should not matter changes."""

from __future__ import annotations

from assay.stability.checks import check_stability
from assay.stability.result import Stability, StabilityCheck
from assay.stability.stored import compare_predictions

__all__ = ["Stability", "StabilityCheck", "check_stability", "compare_predictions"]
