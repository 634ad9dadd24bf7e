"""What quantization costs, measured: outputs before and after, layer by layer, scheme by scheme, at a size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.quantize.analysis.budget import Budget, BudgetResult, recipe_for_budget
    from assay.quantize.analysis.layer_sensitivity import Sensitivities, Sensitivity, sensitivity
    from assay.quantize.analysis.output_comparison import DataSpec
    from assay.quantize.analysis.quantization_cost import measure
    from assay.quantize.analysis.scheme_sweep import Sweep, SweepPoint, sweep

__all__ = [
    "Budget",
    "BudgetResult",
    "DataSpec",
    "Sensitivities",
    "Sensitivity",
    "Sweep",
    "SweepPoint",
    "measure",
    "recipe_for_budget",
    "sensitivity",
    "sweep",
]

_HOMES = {
    "budget": ("Budget", "BudgetResult", "recipe_for_budget"),
    "quantization_cost": ("measure",),
    "layer_sensitivity": ("Sensitivities", "Sensitivity", "sensitivity"),
    "scheme_sweep": ("Sweep", "SweepPoint", "sweep"),
    "output_comparison": ("DataSpec",),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
