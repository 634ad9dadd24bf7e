"""The evaluation loop: any device, any number of processes, every sample once, and a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
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

_HOMES = {
    "assay.evaluation.errors": (
        "BatchError",
        "RankError",
    ),
    "assay.evaluation.evaluate_model": ("evaluate",),
    "assay.evaluation.variants": (
        "OutputDifference",
        "Variant",
        "VariantComparison",
        "compare_variants",
    ),
}

__getattr__, __dir__ = attach(__name__, {name: home for home, names in _HOMES.items() for name in names})
