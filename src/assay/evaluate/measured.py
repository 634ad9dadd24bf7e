"""The section of a report: values with their intervals, slices, what each sample contributed, and the details."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.evaluate.details import Details, residuals
from assay.evaluate.groups import Groups
from assay.evaluate.kept import Kept, KeptSamples
from assay.evaluate.options import Options
from assay.evaluate.slices import SliceFound, Slicer
from assay.evaluate.values import DRAWS_OF_SLICES, Evidence, rest_of, values_of
from assay.meter import Meter
from assay.meter.intervals import closed_forms
from assay.metrics.base import Metric
from assay.report import Section, Slice, Table, Value


def measured(
    total: Meter,
    found: Mapping[str, Any],
    metrics: Mapping[str, Metric],
    details: Details,
    followed: Mapping[str, Any],
    options: Options,
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
    keeper: Kept | None = followed.get("samples")
    kept = KeptSamples() if keeper is None else keeper.result(details.named)
    groups: Groups | None = followed.get("groups")
    evidence = Evidence(options.level, options.seed, kept.samples, kept.terms)
    if options.level is not None:
        drawn = {} if groups is None else groups.intervals(options.level, options.replicates)
        evidence = replace(evidence, closed=closed_forms(total, options.level), drawn=drawn)
    values = tuple(evidence.known_of(value) for _, value in values_of(found, metrics, total.rows))
    slicer: Slicer | None = followed.get("slices")
    slices = () if slicer is None else _slices(slicer.found(kept.order), found, metrics, evidence, options.min_slice)
    own_tables, own_plots, left = rest_of(found, metrics, details.classes)
    more_tables, more_plots, notes = details.drawn(total)
    if options.details:
        more_plots += residuals(kept.samples, metrics)
    section = Section(
        options.title,
        values,
        (*own_tables, *more_tables, *tables),
        (*own_plots, *more_plots),
        note=f"{total.rows:,} samples." + (f" Not shown here: {', '.join(left)}." if left else ""),
        samples=kept.samples,
        slices=slices,
        min_slice=options.min_slice,
    )
    notes += kept.notes
    if groups is not None and groups.nameless and any(value.lower is None for value in values):
        notes.append(
            "Some intervals are not given: samples are known by nothing, so several processes cannot deal them to the "
            "same groups. Say with ids= what they are known by."
        )
    return section, notes + _worst(slices, values, options.min_slice)


def _slices(
    found: Sequence[SliceFound], whole: Mapping[str, Any], metrics: Mapping[str, Metric], of_all: Evidence, least: int
) -> tuple[Slice, ...]:
    """The slices with the values that the section has, and their intervals."""
    names = list(dict.fromkeys(name for name, _ in values_of(whole, metrics, 0)))
    slices = []
    for each in found:
        rows = each.meter.rows
        closed = {} if of_all.level is None else closed_forms(each.meter, of_all.level)
        terms = of_all.terms if each.members is not None else {}
        evidence = replace(of_all, members=each.members, closed=closed, drawn={}, terms=terms, draws=DRAWS_OF_SLICES)
        values = [evidence.known_of(value) for _, value in values_of(each.values(names), metrics, rows)]
        if rows < least:
            few = f"fewer than {least} samples"
            values = [replace(value, note="; ".join(filter(None, (value.note, few)))) for value in values]
        if each.members is None:
            slices.append(Slice(each.name, rows, tuple(values)))
        else:
            slices.append(Slice.of(each.name, tuple(values), each.members))
    return tuple(slices)


def _worst(slices: Sequence[Slice], values: Sequence[Value], least: int) -> list[str]:
    """The slices, among those of some size, in which a value that can be better is worst."""
    large = [each for each in slices if each.count >= least]
    found: dict[str, list[str]] = {}
    for value in values:
        there = [(number, each) for each in large if (number := each.number(value.name)) is not None]
        there = [(number, each) for number, each in there if not math.isnan(number)]
        if value.better and there:
            choose = min if value.better == "higher" else max
            number, worst = choose(there, key=lambda pair: pair[0])
            found.setdefault(f"{worst.name} ({worst.count:,} samples)", []).append(f"{value.name} {number:.4f}")
    notes = [f"Worst slice: {name}: {', '.join(numbers)}." for name, numbers in found.items()]
    if len(large) < len(slices):
        small = len(slices) - len(large)
        notes.append(f"{small} of {len(slices)} slices have fewer than {least} samples and are not compared.")
    return notes
