"""Weight-only quantization that knows the device: plan, round, pack, save, and measure what it cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.quantize.integers import Integers
    from assay.quantize.layers import QuantizedEmbedding, QuantizedLinear
    from assay.quantize.measured import for_budget, measure, sensitivity, sweep
    from assay.quantize.plans import LayerPlan, Plan, plan
    from assay.quantize.recipe import Recipe
    from assay.quantize.rounding import quantize_weight
    from assay.quantize.scheme import Scheme

__all__ = [
    "Integers",
    "LayerPlan",
    "Plan",
    "QuantizedEmbedding",
    "QuantizedLinear",
    "Recipe",
    "Scheme",
    "for_budget",
    "measure",
    "plan",
    "quantize_weight",
    "sensitivity",
    "sweep",
]

_HOMES = {
    "integers": ("Integers",),
    "layers": ("QuantizedEmbedding", "QuantizedLinear"),
    "measured": ("for_budget", "measure", "sensitivity", "sweep"),
    "plans": ("LayerPlan", "Plan", "plan"),
    "recipe": ("Recipe",),
    "rounding": ("quantize_weight",),
    "scheme": ("Scheme",),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
