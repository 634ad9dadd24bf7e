"""Reports: plain values that can be stored as JSON, printed, and written as Markdown or as one HTML page.

Importing this needs neither torch nor anything that draws.
"""

from __future__ import annotations

from assay.report.plots import Bars, ConfusionMatrix, Curve, Curves, Plot, Reliability, Residuals
from assay.report.report import SCHEMA, Report, Section, Table
from assay.report.samples import Column, Samples
from assay.report.slices import Slice
from assay.report.value import Value

__all__ = [
    "SCHEMA",
    "Bars",
    "ConfusionMatrix",
    "Curve",
    "Curves",
    "Plot",
    "Reliability",
    "Report",
    "Residuals",
    "Section",
    "Table",
    "Value",
]
