"""The section of a report: values with their intervals, slices, what each sample contributed, and the details."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.devices.subnormals import keeps_subnormals
from assay.errors import plural
from assay.evaluation.arguments.options import ReportOptions
from assay.evaluation.observe.bootstrap_groups import BootstrapGroups, Resampled, resamples_of_slices
from assay.evaluation.observe.clusters import cluster_name
from assay.evaluation.observe.per_sample import PerSampleValues
from assay.evaluation.observe.slices import Slicer, SliceResult
from assay.evaluation.results.diagnostics import Diagnostics, residuals
from assay.evaluation.results.grouped_values import grouped_values, notes_of
from assay.evaluation.results.missing_classes import Absent, absent_classes, missing_classes
from assay.evaluation.results.missing_intervals import MissingInterval, missing_interval_notes
from assay.evaluation.results.provenance import counts_of
from assay.evaluation.results.report_values import IntervalSources, rest_of, values_of
from assay.meter import Meter
from assay.meter.resampling.intervals import intervals_or_reasons, range_of, readings_of
from assay.meter.resampling.replicates import ConfidenceInterval
from assay.meter.resampling.resample import READ_ELEMENTS
from assay.meter.values import Readings
from assay.metrics.base import Metric
from assay.metrics.signature import signature
from assay.report import Section, Slice, Table, Value
from assay.report.grouped import GroupedValues
from assay.report.per_sample.packed_array import PackedArray
from assay.report.per_sample.resampling import named_clusters
from assay.report.worst_slices import slices_of

SECTION = "Evaluation"  # the same of every model and title: reports are compared section by section


@keeps_subnormals
def build_section(
    total: Meter,
    readings: Readings,
    results: Mapping[str, Any],
    metrics: Mapping[str, Metric],
    diagnostics: Diagnostics,
    observed: Mapping[str, Any],
    per_sample: PerSampleValues,
    options: ReportOptions,
    tables: Sequence[Table],
) -> tuple[Section, list[str]]:
    """Lay out what was counted.

    Args:
        total: the meter of all processes.
        readings: what its tallies compute.
        results: what the metrics compute from it.
        metrics: those that were asked for.
        diagnostics: what else is shown.
        observed: what observed the samples, of all processes.
        per_sample: what each of them contributed.
        options: how it was run.
        tables: tables that come last.

    Returns:
        The section, and what a reader must know of it.
    """
    groups: BootstrapGroups | None = observed.get("groups")
    sources = IntervalSources(options.confidence_level, per_sample.samples, per_sample.terms)
    if options.confidence_level is not None:
        closed = _closed_forms(total, readings, options, options.confidence_level, options.n_resamples)
        drawn = Resampled()
        if groups is not None:
            known = _with_interval(closed)
            drawn = groups.resampled(options.confidence_level, options.n_resamples, per_sample.terms, known)
        sources = replace(sources, closed=closed, drawn=drawn)
    missing: list[MissingInterval] = []
    lines = {name: signature(each, total.rows, weighted=total.weighted) for name, each in metrics.items()}
    values = _values(results, metrics, total.rows, sources, missing, signatures=lines)
    slicer: Slicer | None = observed.get("slices")
    slices: tuple[Slice, ...] = ()
    if slicer is not None:
        found = slicer.results(per_sample.order)
        slices, absent = _slices(found, results, metrics, sources, options, missing)
        slices = _with_missing_classes(slices, absent, absent_classes(readings, metrics), diagnostics.classes)
    tables_by: tuple[GroupedValues, ...] = ()
    if (terms := observed.get("by")) is not None:
        level = None if options.cluster is not None else options.confidence_level
        tables_by = grouped_values(terms, values, metrics, level)
    own_tables, own_plots, omitted = rest_of(results, metrics, diagnostics.classes)
    more_tables, more_plots, notes = diagnostics.figures(readings)
    if options.diagnostics:
        more_plots += residuals(per_sample.samples, metrics)
    section = Section(
        SECTION,
        values,
        (*own_tables, *more_tables, *tables),
        (*own_plots, *more_plots),
        note=f"{plural(total.rows, 'sample')}." + (f" Not shown here: {', '.join(omitted)}." if omitted else ""),
        samples=per_sample.samples,
        slices=slices,
        min_slice_size=options.min_slice_size,
        resampling=sources.drawn.resampling,
        counts=counts_of(total, metrics, options),
        by=tables_by,
    )
    notes += per_sample.notes
    notes += notes_of(tables_by, clustered=options.cluster is not None)
    if options.cluster is not None:
        notes.append(_clusters(section, cluster_name(options.cluster)))
    if slicer is not None and slicer.lists:
        names = ", ".join(slicer.lists)
        notes.append(
            f"A sample is in the slices of all its values of {names}, so slices add up to more than all samples."
        )
    return section, notes + _worst(section) + missing_interval_notes(missing)


def _values(
    results: Mapping[str, Any],
    metrics: Mapping[str, Metric],
    rows: int,
    sources: IntervalSources,
    missing: list[MissingInterval],
    slice_name: str = "",
    signatures: Mapping[str, str] | None = None,
) -> tuple[Value, ...]:
    """Values with their intervals; those without one are added to `missing`."""
    values = []
    for name, number in values_of(results, metrics, rows, signatures):
        value = sources.with_interval(number, range_of(number.name, metrics))
        if reason := sources.refusal(value, name, metrics[name]):
            missing.append(MissingInterval(value.name, reason, slice_name))
        values.append(value)
    return tuple(values)


def _slices(
    results: Sequence[SliceResult],
    whole: Mapping[str, Any],
    metrics: Mapping[str, Metric],
    of_all: IntervalSources,
    options: ReportOptions,
    missing: list[MissingInterval],
) -> tuple[tuple[Slice, ...], list[Absent]]:
    """The slices with the values that the section has, and their intervals; and the classes that each lacks."""
    names = list(dict.fromkeys(name for name, _ in values_of(whole, metrics, 0)))
    slices, absent = [], []
    level, n_resamples = of_all.confidence_level, resamples_of_slices(options.n_resamples, len(results))
    for each in results:
        readings = readings_of(each.meter, with_intervals=level is not None)
        terms = of_all.terms if each.members is not None else {}
        sources = replace(of_all, members=each.members, closed={}, drawn=Resampled(), terms=terms)
        if level is not None:
            closed = _closed_forms(each.meter, readings, options, level, n_resamples)
            drawn = each.resampled(level, n_resamples, terms, _with_interval(closed), READ_ELEMENTS // len(results))
            sources = replace(sources, closed=closed, drawn=drawn)
        values = _values(_values_of_slice(readings, names), metrics, readings.rows, sources, missing, each.name)
        members = None if each.members is None else PackedArray.of(each.members)
        slices.append(Slice(each.name, readings.rows, values, members, sources.drawn.resampling))
        absent.append(absent_classes(readings, metrics))
    return tuple(slices), absent


def _values_of_slice(readings: Readings, names: Sequence[str]) -> dict[str, Any]:
    """What metrics compute of a slice; one that has too little data returns NaN, which is no warning here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return readings.values(names)


def _with_missing_classes(
    slices: Sequence[Slice], absent: Sequence[Absent], whole: Absent, classes: Sequence[str]
) -> tuple[Slice, ...]:
    """Slices whose values say where they are means over fewer classes than all samples have."""
    marked = []
    for part, of_part in zip(slices, absent, strict=True):
        found = missing_classes(of_part, whole, classes)
        values = tuple(replace(value, not_compared=found.get(value.name, "")) for value in part.values)
        marked.append(replace(part, values=values) if found else part)
    return tuple(marked)


def _closed_forms(
    meter: Meter, readings: Readings, options: ReportOptions, confidence_level: float, n_resamples: int
) -> dict[str, ConfidenceInterval | str]:
    """Intervals in closed form, which hold for independent samples."""
    if options.cluster is not None:
        return {}
    return intervals_or_reasons(meter, confidence_level, n_resamples, options.seed, readings)


def _with_interval(closed: Mapping[str, ConfidenceInterval | str]) -> set[str]:
    """The names of the values that have an interval in closed form."""
    return {name for name, found in closed.items() if isinstance(found, ConfidenceInterval)}


def _clusters(section: Section, name: str) -> str:
    """What a reader must know of clusters."""
    if section.samples is not None and section.samples.clusters is not None:
        return f"Intervals are of {named_clusters(name, len(section.samples.cluster_numbers[0]))}, not of samples."
    return f"Intervals are of {named_clusters(name)}, not of samples."


def _worst(section: Section) -> list[str]:
    """The slices in which a metric is worst, among those of some size."""
    table = slices_of(section)
    if table is None:
        return []
    notes = []
    for row in table.rows:
        each = zip(table.metrics, row.values, row.is_worst, strict=True)
        numbers = [f"{name} {value.value:.4f}" for name, value, is_worst in each if is_worst and value is not None]
        if numbers:
            notes.append(f"Worst slice: {row.name} ({row.count:,} samples): {', '.join(numbers)}.")
    notes += table.notes_of_missing_classes()
    small = sum(row.is_small for row in table.rows)
    if small:
        few = f"{small} of {len(table.rows)} slices have fewer than {table.least} samples"
        notes.append(f"{few} and are not compared.")
    return notes
