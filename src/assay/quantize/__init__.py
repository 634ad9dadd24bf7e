"""Weight-only quantization that knows the device: plan, round, pack, save, and measure what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.quantize.analysis import measure, recipe_for_budget, sensitivity, sweep
    from assay.quantize.calibration import calibrate
    from assay.quantize.files.file import load, load_folder, save
    from assay.quantize.files.transformers_registration import register_with_transformers
    from assay.quantize.formats.export import export
    from assay.quantize.layers import QuantizedEmbedding, QuantizedLinear
    from assay.quantize.packed_weight import PackedWeight
    from assay.quantize.planning.plan import LayerPlan, Plan
    from assay.quantize.planning.plan_builder import plan
    from assay.quantize.planning.recipe import Recipe
    from assay.quantize.rounding import quantize_weight
    from assay.quantize.scheme import Scheme
    from assay.quantize.streaming.job import quantize_shards
    from assay.quantize.tuning import tune

__all__ = [
    "LayerPlan",
    "PackedWeight",
    "Plan",
    "QuantizedEmbedding",
    "QuantizedLinear",
    "Recipe",
    "Scheme",
    "calibrate",
    "export",
    "load",
    "load_folder",
    "measure",
    "plan",
    "quantize_shards",
    "quantize_weight",
    "recipe_for_budget",
    "register_with_transformers",
    "save",
    "sensitivity",
    "sweep",
    "tune",
]

_HOMES = {
    "calibration": ("calibrate",),
    "files.file": ("load", "load_folder", "save"),
    "files.transformers_registration": ("register_with_transformers",),
    "formats.export": ("export",),
    "packed_weight": ("PackedWeight",),
    "layers": ("QuantizedEmbedding", "QuantizedLinear"),
    "analysis": ("recipe_for_budget", "measure", "sensitivity", "sweep"),
    "planning.plan": ("LayerPlan", "Plan"),
    "planning.plan_builder": ("plan",),
    "planning.recipe": ("Recipe",),
    "rounding": ("quantize_weight",),
    "scheme": ("Scheme",),
    "streaming.job": ("quantize_shards",),
    "tuning": ("tune",),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
