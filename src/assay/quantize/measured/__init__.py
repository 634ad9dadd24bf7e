"""What quantization costs, measured: outputs before and after, layer by layer, scheme by scheme, at a size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.quantize.measured.before_after import measure
    from assay.quantize.measured.budget import Budget, Chosen, for_budget
    from assay.quantize.measured.layer_by_layer import Sensitivities, Sensitivity, sensitivity
    from assay.quantize.measured.schemes import Sweep, SweepPoint, sweep
    from assay.quantize.measured.variants import Reading

__all__ = [
    "Budget",
    "Chosen",
    "Reading",
    "Sensitivities",
    "Sensitivity",
    "Sweep",
    "SweepPoint",
    "for_budget",
    "measure",
    "sensitivity",
    "sweep",
]

_HOMES = {
    "budget": ("Budget", "Chosen", "for_budget"),
    "before_after": ("measure",),
    "layer_by_layer": ("Sensitivities", "Sensitivity", "sensitivity"),
    "schemes": ("Sweep", "SweepPoint", "sweep"),
    "variants": ("Reading",),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
