"""Reports: plain values that can be stored as JSON, printed, and written as Markdown or as one HTML page.

Importing this needs neither torch nor anything that draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.render.matrices import ConfusionPlot
    from assay.render.plots import Bars, Curve, Curves, Distribution, Plot, Reliability, Residuals, Series
    from assay.render.points import Point, Points
    from assay.report.comparing.compare import compare
    from assay.report.comparing.comparison import ChangedSample, Changes, Comparison, Delta, Flips, Unmatched
    from assay.report.comparing.training_runs import compare_training_runs
    from assay.report.gating.gate import gate
    from assay.report.gating.gate_result import Gate, GateCheck, GateRule
    from assay.report.gating.stopping import StopWhen
    from assay.report.inference.adjusted import controlled, rogan_gladen, stratified
    from assay.report.many_reports.collection import ReportCollection, collect
    from assay.report.many_reports.history_result import History, HistoryMetric, HistoryValue
    from assay.report.many_reports.ranking import rank
    from assay.report.many_reports.ranking_result import MetricRanking, RankedRun, RunRanking
    from assay.report.many_reports.tracking import history
    from assay.report.per_sample.samples import Column, RawSample, Samples
    from assay.report.planning.power_result import Power, PowerEstimate
    from assay.report.planning.sample_sizes import power
    from assay.report.report import SCHEMA, Report
    from assay.report.section import Section, Table
    from assay.report.slices import Slice
    from assay.report.value import Value
    from assay.report.worst_queries import QueryDocument, QueryRanking, WorstQueries

__all__ = [
    "SCHEMA",
    "Bars",
    "ChangedSample",
    "Changes",
    "Column",
    "Comparison",
    "ConfusionPlot",
    "Curve",
    "Curves",
    "Delta",
    "Distribution",
    "Flips",
    "Gate",
    "GateCheck",
    "GateRule",
    "History",
    "HistoryMetric",
    "HistoryValue",
    "MetricRanking",
    "Plot",
    "Point",
    "Points",
    "Power",
    "PowerEstimate",
    "QueryDocument",
    "QueryRanking",
    "RankedRun",
    "RawSample",
    "Reliability",
    "Report",
    "ReportCollection",
    "Residuals",
    "RunRanking",
    "Samples",
    "Section",
    "Series",
    "Slice",
    "StopWhen",
    "Table",
    "Unmatched",
    "Value",
    "WorstQueries",
    "collect",
    "compare",
    "compare_training_runs",
    "controlled",
    "gate",
    "history",
    "power",
    "rank",
    "rogan_gladen",
    "stratified",
]

_HOMES = {
    "assay.render.matrices": ("ConfusionPlot",),
    "assay.render.plots": (
        "Bars",
        "Curve",
        "Curves",
        "Distribution",
        "Plot",
        "Reliability",
        "Residuals",
        "Series",
    ),
    "assay.render.points": (
        "Point",
        "Points",
    ),
    "assay.report.comparing.compare": ("compare",),
    "assay.report.comparing.comparison": (
        "ChangedSample",
        "Changes",
        "Comparison",
        "Delta",
        "Flips",
        "Unmatched",
    ),
    "assay.report.comparing.training_runs": ("compare_training_runs",),
    "assay.report.gating.gate": ("gate",),
    "assay.report.gating.gate_result": (
        "Gate",
        "GateCheck",
        "GateRule",
    ),
    "assay.report.gating.stopping": ("StopWhen",),
    "assay.report.inference.adjusted": (
        "controlled",
        "rogan_gladen",
        "stratified",
    ),
    "assay.report.many_reports.collection": (
        "ReportCollection",
        "collect",
    ),
    "assay.report.many_reports.history_result": (
        "History",
        "HistoryMetric",
        "HistoryValue",
    ),
    "assay.report.many_reports.ranking": ("rank",),
    "assay.report.many_reports.ranking_result": (
        "MetricRanking",
        "RankedRun",
        "RunRanking",
    ),
    "assay.report.many_reports.tracking": ("history",),
    "assay.report.per_sample.samples": (
        "Column",
        "RawSample",
        "Samples",
    ),
    "assay.report.planning.power_result": (
        "Power",
        "PowerEstimate",
    ),
    "assay.report.planning.sample_sizes": ("power",),
    "assay.report.report": (
        "SCHEMA",
        "Report",
    ),
    "assay.report.section": (
        "Section",
        "Table",
    ),
    "assay.report.slices": ("Slice",),
    "assay.report.value": ("Value",),
    "assay.report.worst_queries": (
        "QueryDocument",
        "QueryRanking",
        "WorstQueries",
    ),
}

__getattr__, __dir__ = attach(__name__, {name: home for home, names in _HOMES.items() for name in names})
