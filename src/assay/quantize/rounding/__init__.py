"""From floats to integers: the nearest, the best in squared error, HQQ's, and with calibration data GPTQ's."""

from __future__ import annotations

from assay.quantize.rounding.gptq import Calibration, gptq
from assay.quantize.rounding.grids import METHODS
from assay.quantize.rounding.weight import quantize_weight

__all__ = ["METHODS", "Calibration", "gptq", "quantize_weight"]
