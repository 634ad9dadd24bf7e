"""The evaluation loop: any device, any number of processes, every sample once, and a report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.evaluation.errors import BatchError as BatchError
    from assay.evaluation.errors import RankError as RankError
    from assay.evaluation.evaluate_model import evaluate as evaluate
    from assay.evaluation.variants import OutputDifference as OutputDifference
    from assay.evaluation.variants import Variant as Variant
    from assay.evaluation.variants import VariantComparison as VariantComparison
    from assay.evaluation.variants import compare_variants as compare_variants

__all__, __getattr__, __dir__ = attach(__name__)
