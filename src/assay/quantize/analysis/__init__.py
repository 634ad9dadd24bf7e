"""What quantization costs, measured: outputs before and after, layer by layer, scheme by scheme, at a size."""

from __future__ import annotations

from assay.quantize.analysis.budget import Budget, BudgetResult, recipe_for_budget
from assay.quantize.analysis.data_spec import DataSpec
from assay.quantize.analysis.layer_sensitivity import Sensitivities, Sensitivity, sensitivity
from assay.quantize.analysis.quantization_cost import measure
from assay.quantize.analysis.scheme_sweep import Sweep, SweepPoint, sweep
from assay.quantize.analysis.stored_comparison import compare_with_stored
from assay.quantize.analysis.stored_outputs import store_outputs

__all__ = [
    "Budget",
    "BudgetResult",
    "DataSpec",
    "Sensitivities",
    "Sensitivity",
    "Sweep",
    "SweepPoint",
    "compare_with_stored",
    "measure",
    "recipe_for_budget",
    "sensitivity",
    "store_outputs",
    "sweep",
]
