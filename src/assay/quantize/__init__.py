"""Weight-only quantization that knows the device: plan, round, pack, save, and measure what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.quantize.analysis import measure as measure
    from assay.quantize.analysis import recipe_for_budget as recipe_for_budget
    from assay.quantize.analysis import sensitivity as sensitivity
    from assay.quantize.analysis import sweep as sweep
    from assay.quantize.calibration import calibrate as calibrate
    from assay.quantize.files.file import load as load
    from assay.quantize.files.file import load_folder as load_folder
    from assay.quantize.files.file import save as save
    from assay.quantize.files.transformers_registration import register_with_transformers as register_with_transformers
    from assay.quantize.formats.export import export as export
    from assay.quantize.layers import QuantizedEmbedding as QuantizedEmbedding
    from assay.quantize.layers import QuantizedLinear as QuantizedLinear
    from assay.quantize.packed_weight import PackedWeight as PackedWeight
    from assay.quantize.planning.plan import LayerPlan as LayerPlan
    from assay.quantize.planning.plan import Plan as Plan
    from assay.quantize.planning.plan_builder import plan as plan
    from assay.quantize.planning.recipe import Recipe as Recipe
    from assay.quantize.rounding import quantize_weight as quantize_weight
    from assay.quantize.scheme import Scheme as Scheme
    from assay.quantize.streaming.job import quantize_shards as quantize_shards
    from assay.quantize.tuning import tune as tune

__all__, __getattr__, __dir__ = attach(__name__)
