"""How many samples comparisons need, and what they can show, as a plain value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby

from assay._records import Record
from assay.render import Chapter, DataGrid, Document, GridCell, GridColumn, GridRow, Span, Viewable, text


class PowerEstimate(Record):
    """What one way to compare a metric needs to show a difference.

    Args:
        section: where the metric stands in the report.
        metric: its name.
        value: its value in the report.
        effect: the difference that a comparison should find.
        design: how two models are compared: the same samples in pairs, or other samples.
        assumption: how much the difference varies, as a part of a sentence.
        samples: how many samples each model needs.
        clusters: in how many clusters; None where samples are independent.
        counts: numbers of samples: that of the report, then those that were asked for.
        smallest: for each of them the smallest difference that a comparison finds; infinite where none is found.
    """

    section: str
    metric: str
    value: float
    effect: float
    design: str
    assumption: str
    samples: int
    clusters: int | None
    counts: tuple[int, ...]
    smallest: tuple[float, ...]


class Power(Record, Viewable, schema="assay.power/1"):
    """How many samples comparisons with a report need, and what they can show.

    Args:
        estimates: for each effect the ways to compare, paired ones first.
        power: the probability to find a difference of the size that was asked for.
        confidence_level: of the comparisons; there is a difference where p is below 1 - confidence_level.
        report: the title of the report.
        run: the title of the report that says how much two models differ; empty where there was none.
        notes: what is assumed of the samples, in sentences.
    """

    estimates: tuple[PowerEstimate, ...]
    power: float
    confidence_level: float
    report: str
    run: str = ""
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """One line: the report, and how many estimates there are."""
        return f"<Power {self.report!r}: {len(self.estimates)} estimate(s)>"

    def to_document(self) -> Document:
        """What is shown: a grid for each effect, with a row for each way to compare."""
        return power_document(self)


def power_document(found: Power) -> Document:
    """What is shown of the power of comparisons."""
    parts = groupby(found.estimates, key=lambda each: (each.section, each.metric, each.effect))
    chapters = tuple(_chapter(list(estimates)) for _, estimates in parts)
    of = f"Samples that a comparison needs to find a difference with power {found.power:g}"
    facts = (f"{of}, at a confidence level of {100 * found.confidence_level:g} %.",)
    title = f"{found.report}: how many samples"
    return Document(title, chapters, facts, found.notes, level=3)


def _chapter(estimates: Sequence[PowerEstimate]) -> Chapter:
    first = estimates[0]
    is_clustered = first.clusters is not None
    columns = (
        GridColumn("compared on"),
        GridColumn("samples each", "number"),
        *([GridColumn("in clusters", "number")] if is_clustered else []),
        *(GridColumn(f"least at {count:,}", "number") for count in first.counts),
        GridColumn("assumed"),
    )
    rows = tuple(_row(each, is_clustered) for each in estimates)
    note = "least at: the smallest difference that this many samples show, infinite where they show none"
    title = f"{first.section}/{first.metric} {text.number(first.value)}, a difference of {first.effect:g}"
    return Chapter(title, (DataGrid(columns, rows, notes=(note,)),))


def _row(estimate: PowerEstimate, is_clustered: bool) -> GridRow:
    clusters = [GridCell(f"{estimate.clusters:,}", estimate.clusters)] if is_clustered else []
    return GridRow(
        (
            GridCell(estimate.design),
            GridCell(Span(f"{estimate.samples:,}", "strong"), estimate.samples),
            *clusters,
            *(GridCell(text.number(each), each if math.isfinite(each) else None) for each in estimate.smallest),
            GridCell(Span(estimate.assumption, "faint")),
        )
    )
