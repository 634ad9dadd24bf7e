"""The report of a table from what was counted of its fragments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay.errors import describe
from assay.evaluation.data.coverage import Coverage
from assay.evaluation.results.counted_samples import CountedSamples, section_of
from assay.report import Report, Table
from assay.scoring.bad_rows import BadRowsError
from assay.scoring.query_rows import RowsOfQueries, with_worst_queries
from assay.scoring.row_ids import MOST_IDS

if TYPE_CHECKING:
    from assay.data.tables.table_source import TableSource
    from assay.scoring.partial import Partial


def table_report(partial: Partial, table: TableSource | None) -> Report:
    """The report of the whole table; see `Partial.report`."""
    if partial.ids.duplicated:
        got = f"{partial.ids.duplicated:,} rows whose id in {partial.columns.ids} other rows have"
        do = "Give each row an id of its own, or count all fragments of files at once, which leaves them out"
        raise BadRowsError(describe("table", got, "none", do))
    counted = CountedSamples(partial.meter, partial.metrics, partial.diagnostics, partial.counts.observers)
    coverage = coverage_of(partial)
    tables = [coverage.table(), _run(partial)]
    notes = [f"Every row once: {coverage}."]
    if partial.bad.total:
        tables.append(partial.bad.table())
        reasons = "; ".join(f"{partial.bad.counts[each]:,} with {each}" for each in sorted(partial.bad.counts))
        notes.append(f"{partial.bad.total:,} of {partial.rows:,} rows were left out: {reasons}.")
    if partial.selection.filtered:
        notes.append(
            f"{partial.selection.filtered:,} of {partial.rows:,} rows do not match where={partial.options.where!r}."
        )
    if partial.ids.numbers is None:
        notes.append(f"Duplicate ids were not looked for, as there are more than {MOST_IDS:,} rows.")
    section, _, more = section_of(counted, partial.options, tables)
    section, unread = with_worst_queries(section, counted, _query_rows(partial), table)
    return Report(partial.options.title, (section,), notes=(*notes, *more, *unread))


def coverage_of(partial: Partial) -> Coverage:
    """What became of the rows."""
    by = f"its id in the column {partial.columns.ids}" if partial.columns.ids else "its file and its place there"
    expected = partial.rows - partial.selection.filtered
    missed = expected - partial.meter.rows - partial.bad.total
    return Coverage(expected, partial.meter.rows, partial.ids.duplicated, missed, partial.bad.total, 0, by)


def _run(partial: Partial) -> Table:
    rows = [
        ("rows", f"{partial.rows:,}"),
        ("fragments (files or row groups)", f"{len(partial.fragments):,}"),
        ("sum of hashed ids", f"{partial.ids.digest.ids:016x}"),
        ("exclusive or of hashed ids", f"{partial.ids.digest.ids_xor:016x}"),
        ("seed", f"{partial.options.seed}"),
    ]
    return Table("Run", ("what", "value"), tuple(rows))


def _query_rows(partial: Partial) -> RowsOfQueries:
    return RowsOfQueries(partial.selection, partial.record.origin, partial.options.sql or "", partial.record.contents)
