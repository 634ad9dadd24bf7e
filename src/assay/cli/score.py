"""``assay score``: predictions in a table, metrics by name, a report in a folder."""

from __future__ import annotations

from assay.cli.loaders.batch_parts import parse_slices
from assay.cli.measurement import arguments_of, measure_and_show
from assay.cli.options import ScoreCommand
from assay.errors import ConfigError, describe
from assay.report import Report
from assay.tables.bad_rows import BadRowsError
from assay.tables.options import ScoreOptions
from assay.tables.score import score_table


def run(options: ScoreCommand) -> None:
    """Measure, write the report where a folder was named, and print it; bad rows are the error after that."""
    bad: list[BadRowsError] = []

    def measure() -> Report:
        try:
            return _measured(options)
        except BadRowsError as error:
            if error.report is None:
                raise
            bad.append(error)
            return error.report

    measure_and_show(measure, options)
    if bad:
        raise bad[0]


def _measured(options: ScoreCommand) -> Report:
    source = list(options.table) if len(options.table) != 1 else options.table[0]
    if not source and not options.sql:
        do = "Write assay score predictions.parquet, or --sql"
        raise ConfigError(describe("TABLE", "none", "a file, a folder, a pattern or a URL", do))
    columns = dict(_column(each) for each in options.column)
    arguments = arguments_of(ScoreOptions, options, columns=columns, slices=parse_slices(options.slice))
    return score_table(source or None, options.metrics, ScoreOptions(**arguments), options.shared)


def _column(written: str) -> tuple[str, str]:
    name, _, column = written.partition("=")
    if not (name and column):
        expected = "NAME=COLUMN"
        raise ConfigError(describe("--column", repr(written), expected, "Write --column indexes=query_id"))
    return name, column
