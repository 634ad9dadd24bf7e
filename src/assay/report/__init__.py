"""Reports: plain values that can be stored as JSON, printed, and written as Markdown or as one HTML page.

Importing this needs neither torch nor anything that draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.render.matrices import ConfusionPlot as ConfusionPlot
    from assay.render.plots import Bars as Bars
    from assay.render.plots import Curve as Curve
    from assay.render.plots import Curves as Curves
    from assay.render.plots import Distribution as Distribution
    from assay.render.plots import Plot as Plot
    from assay.render.plots import Reliability as Reliability
    from assay.render.plots import Residuals as Residuals
    from assay.render.plots import Series as Series
    from assay.render.points import Point as Point
    from assay.render.points import Points as Points
    from assay.report.comparing.compare import compare as compare
    from assay.report.comparing.comparison import ChangedSample as ChangedSample
    from assay.report.comparing.comparison import Changes as Changes
    from assay.report.comparing.comparison import Comparison as Comparison
    from assay.report.comparing.comparison import Delta as Delta
    from assay.report.comparing.comparison import Flips as Flips
    from assay.report.comparing.comparison import Unmatched as Unmatched
    from assay.report.comparing.training_runs import compare_training_runs as compare_training_runs
    from assay.report.gating.gate import gate as gate
    from assay.report.gating.gate_result import Gate as Gate
    from assay.report.gating.gate_result import GateCheck as GateCheck
    from assay.report.gating.gate_result import GateRule as GateRule
    from assay.report.gating.stopping import StopWhen as StopWhen
    from assay.report.inference.adjusted import controlled as controlled
    from assay.report.inference.adjusted import rogan_gladen as rogan_gladen
    from assay.report.inference.adjusted import stratified as stratified
    from assay.report.many_reports.collection import ReportCollection as ReportCollection
    from assay.report.many_reports.collection import collect as collect
    from assay.report.many_reports.history_result import History as History
    from assay.report.many_reports.history_result import HistoryMetric as HistoryMetric
    from assay.report.many_reports.history_result import HistoryValue as HistoryValue
    from assay.report.many_reports.ranking import rank as rank
    from assay.report.many_reports.ranking_result import MetricRanking as MetricRanking
    from assay.report.many_reports.ranking_result import RankedRun as RankedRun
    from assay.report.many_reports.ranking_result import RunRanking as RunRanking
    from assay.report.many_reports.tracking import history as history
    from assay.report.per_sample.samples import Column as Column
    from assay.report.per_sample.samples import RawSample as RawSample
    from assay.report.per_sample.samples import Samples as Samples
    from assay.report.planning.power_result import Power as Power
    from assay.report.planning.power_result import PowerEstimate as PowerEstimate
    from assay.report.planning.sample_sizes import power as power
    from assay.report.report import SCHEMA as SCHEMA
    from assay.report.report import Report as Report
    from assay.report.section import Section as Section
    from assay.report.section import Table as Table
    from assay.report.slices import Slice as Slice
    from assay.report.value import Value as Value
    from assay.report.worst_queries import QueryDocument as QueryDocument
    from assay.report.worst_queries import QueryRanking as QueryRanking
    from assay.report.worst_queries import WorstQueries as WorstQueries

__all__, __getattr__, __dir__ = attach(__name__)
