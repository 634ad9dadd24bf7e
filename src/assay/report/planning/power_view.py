"""How many samples comparisons need as a document: a grid for each effect, with a row for each way to compare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from assay.render import text
from assay.render.document import Chapter, DataGrid, Document, GridCell, GridColumn, GridRow, Span

if TYPE_CHECKING:
    from assay.report.planning.power_result import Power, PowerEstimate


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
