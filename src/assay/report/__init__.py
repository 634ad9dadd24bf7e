"""Reports: plain values that can be stored as JSON, printed, and written as Markdown or as one HTML page.

Importing this needs neither torch nor anything that draws.
"""

from __future__ import annotations

from assay.report.comparing import compare
from assay.report.comparison import Comparison, Delta, Flips, Unmatched
from assay.report.gating import Check, Gate, Rule, gate
from assay.report.plots import Bars, ConfusionMatrix, Curve, Curves, Distribution, Plot, Reliability, Residuals, Series
from assay.report.points import Point, Points
from assay.report.report import SCHEMA, Report, Section, Table
from assay.report.samples import Column, Samples
from assay.report.slices import Slice
from assay.report.value import Value

__all__ = [
    "SCHEMA",
    "Bars",
    "Check",
    "Column",
    "Comparison",
    "ConfusionMatrix",
    "Curve",
    "Curves",
    "Delta",
    "Distribution",
    "Flips",
    "Gate",
    "Plot",
    "Point",
    "Points",
    "Reliability",
    "Report",
    "Residuals",
    "Rule",
    "Samples",
    "Section",
    "Series",
    "Slice",
    "Table",
    "Unmatched",
    "Value",
    "compare",
    "gate",
]
