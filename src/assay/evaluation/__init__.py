"""The evaluation loop: any device, any number of processes, every sample once, and a report."""

from __future__ import annotations

from assay.evaluation.errors import BatchError, RankError
from assay.evaluation.evaluate_model import evaluate
from assay.evaluation.variants import OutputDifference, Variant, VariantComparison, compare_variants

__all__ = [
    "BatchError",
    "OutputDifference",
    "RankError",
    "Variant",
    "VariantComparison",
    "compare_variants",
    "evaluate",
]
