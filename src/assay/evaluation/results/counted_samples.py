"""The section of a report from what was counted of all samples, whoever predicted them."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.errors import warn
from assay.evaluation.arguments.options import ReportOptions
from assay.evaluation.observe.per_sample import PerSampleRecorder, PerSampleValues
from assay.evaluation.results.diagnostics import Diagnostics
from assay.evaluation.results.report_section import build_section
from assay.meter import Meter
from assay.meter.resampling.intervals import readings_of
from assay.metrics.base import Metric
from assay.report import Section, Table


@dataclass(frozen=True)
class CountedSamples:
    """What was counted of all samples.

    Attributes:
        total: the meter of all metrics and diagnostics.
        metrics: those that were asked for.
        diagnostics: what else is shown.
        observed: what observed the samples, by name.
    """

    total: Meter
    metrics: Mapping[str, Metric]
    diagnostics: Diagnostics
    observed: Mapping[str, Any]


def section_of(
    counted: CountedSamples, options: ReportOptions, tables: Sequence[Table]
) -> tuple[Section, PerSampleValues, list[str]]:
    """The section of what was counted, what each sample contributed, and what a reader must know.

    Args:
        counted: what was counted.
        options: what the report says.
        tables: tables that come last.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        readings = readings_of(counted.total, with_intervals=options.confidence_level is not None)
        values = readings.values(name for name in counted.total.metrics if name in counted.metrics)
    recorder: PerSampleRecorder | None = counted.observed.get("samples")
    named = counted.diagnostics.named
    per_sample = PerSampleValues() if recorder is None else recorder.result(counted.total.rows, named)
    section, notes = build_section(
        counted.total,
        readings,
        values,
        counted.metrics,
        counted.diagnostics,
        counted.observed,
        per_sample,
        options,
        tables,
    )
    for each in caught:
        warn(str(each.message), each.category)
    return section, per_sample, [*(str(each.message) for each in caught), *notes]
