"""``assay score``: predictions in a table, metrics by name, a report in a folder."""

from __future__ import annotations

from assay.cli.loaders.batch_parts import parse_columns, parse_slices
from assay.cli.measurement import arguments_of, measure_and_show
from assay.cli.options import ScoreCommand
from assay.metrics.parsing import open_metrics
from assay.report import Report
from assay.tables import BadRowsError, score


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
    metrics = open_metrics(options.metrics, options.shared)
    source = options.table if len(options.table) != 1 else options.table[0]
    columns, slices = parse_columns(options.column, metrics), parse_slices(options.slice)
    return score(source or None, metrics, **arguments_of(score, options, columns=columns, slices=slices))
