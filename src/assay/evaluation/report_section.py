"""The section of a report: values with their intervals, slices, what each sample contributed, and the details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.evaluation.bootstrap_groups import BootstrapGroups
from assay.evaluation.diagnostics import Diagnostics, residuals
from assay.evaluation.options import EvaluateOptions
from assay.evaluation.per_sample import PerSampleRecorder, PerSampleValues
from assay.evaluation.report_values import IntervalSources, rest_of, values_of
from assay.evaluation.slices import Slicer, SliceResult
from assay.meter import Meter
from assay.meter.intervals import closed_forms
from assay.metrics.base import Metric
from assay.report import Section, Slice, Table
from assay.report.sliced import slices_of

SECTION = "Evaluation"  # the same of every model and title: reports are compared section by section


def build_section(
    total: Meter,
    found: Mapping[str, Any],
    metrics: Mapping[str, Metric],
    details: Diagnostics,
    followed: Mapping[str, Any],
    options: EvaluateOptions,
    tables: Sequence[Table],
) -> tuple[Section, list[str]]:
    """Lay out what was counted.

    Args:
        total: the meter of all processes.
        found: what the metrics read of it.
        metrics: those that were asked for.
        details: what else is shown.
        followed: what followed the samples, of all processes.
        options: how it was run.
        tables: tables that come last.

    Returns:
        The section, and what a reader must know of it.
    """
    keeper: PerSampleRecorder | None = followed.get("samples")
    kept = PerSampleValues() if keeper is None else keeper.result(details.named)
    groups: BootstrapGroups | None = followed.get("groups")
    evidence = IntervalSources(options.confidence_level, kept.samples, kept.terms)
    if options.confidence_level is not None:
        drawn = {} if groups is None else groups.intervals(options.confidence_level, options.n_resamples)
        evidence = replace(evidence, closed=closed_forms(total, options.confidence_level), drawn=drawn)
    values = tuple(evidence.known_of(value) for _, value in values_of(found, metrics, total.rows))
    slicer: Slicer | None = followed.get("slices")
    slices = () if slicer is None else _slices(slicer.found(kept.order), found, metrics, evidence)
    own_tables, own_plots, left = rest_of(found, metrics, details.classes)
    more_tables, more_plots, notes = details.drawn(total)
    if options.diagnostics:
        more_plots += residuals(kept.samples, metrics)
    section = Section(
        SECTION,
        values,
        (*own_tables, *more_tables, *tables),
        (*own_plots, *more_plots),
        note=f"{total.rows:,} samples." + (f" Not shown here: {', '.join(left)}." if left else ""),
        samples=kept.samples,
        slices=slices,
        min_slice_size=options.min_slice_size,
    )
    notes += kept.notes
    if groups is not None and groups.nameless and any(value.lower is None for value in values):
        notes.append(
            "Some intervals are not given: samples are known by nothing, so several processes cannot deal them to the "
            "same groups. Say with ids= what they are known by."
        )
    return section, notes + _worst(section)


def _slices(
    found: Sequence[SliceResult], whole: Mapping[str, Any], metrics: Mapping[str, Metric], of_all: IntervalSources
) -> tuple[Slice, ...]:
    """The slices with the values that the section has, and their intervals."""
    names = list(dict.fromkeys(name for name, _ in values_of(whole, metrics, 0)))
    slices = []
    for each in found:
        rows = each.meter.rows
        closed = {} if of_all.confidence_level is None else closed_forms(each.meter, of_all.confidence_level)
        terms = of_all.terms if each.members is not None else {}
        evidence = replace(of_all, members=each.members, closed=closed, drawn={}, terms=terms)
        values = [evidence.known_of(value) for _, value in values_of(each.values(names), metrics, rows)]
        if each.members is None:
            slices.append(Slice(each.name, rows, tuple(values)))
        else:
            slices.append(Slice.of(each.name, tuple(values), each.members))
    return tuple(slices)


def _worst(section: Section) -> list[str]:
    """The slices in which a metric is worst, among those of some size."""
    found = slices_of(section)
    if found is None:
        return []
    notes = []
    for row in found.rows:
        each = zip(found.metrics, row.values, row.is_worst, strict=True)
        numbers = [f"{name} {value.value:.4f}" for name, value, is_worst in each if is_worst and value is not None]
        if numbers:
            notes.append(f"Worst slice: {row.name} ({row.count:,} samples): {', '.join(numbers)}.")
    small = sum(row.is_small for row in found.rows)
    if small:
        few = f"{small} of {len(found.rows)} slices have fewer than {found.least} samples"
        notes.append(f"{few} and are not compared.")
    return notes
