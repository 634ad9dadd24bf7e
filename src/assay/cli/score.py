"""``assay score``: predictions in a table, metrics by name, a report in a folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay._atomic import Location
from assay.cli.loaders.batch_parts import parse_slices
from assay.cli.measurement import arguments_of, measure_and_show
from assay.cli.options.base import ReportOutput
from assay.cli.options.measurement import ScoreCommand
from assay.cli.output import print_path
from assay.errors import ConfigError, describe
from assay.report import Report
from assay.scoring.bad_rows import BadRowsError
from assay.scoring.counting import Engine
from assay.scoring.options import ScoreOptions
from assay.scoring.stored_predictions import count_part, score_table


def run(options: ScoreCommand) -> None:
    """Measure, write the report where a folder was named, and print it; or count a part and write that."""
    if options.part:
        print_path(_count_part(options))
    else:
        measure_table(lambda: _measured(options), options)


def measure_table(make: Callable[[], Report], options: ReportOutput) -> None:
    """Make a report, write it where a folder was named, and print it; bad rows are the error after that."""
    bad: list[BadRowsError] = []

    def measure() -> Report:
        try:
            return make()
        except BadRowsError as error:
            if error.report is None:
                raise
            bad.append(error)
            return error.report

    measure_and_show(measure, options)
    if bad:
        raise bad[0]


def _measured(options: ScoreCommand) -> Report:
    source, plain = _arguments(options)
    return score_table(source, options.metrics, plain, options.shared, _engine(options))


def _count_part(options: ScoreCommand) -> Location:
    number, _, parts = options.part.partition("/")
    if not (number.isdigit() and parts.isdigit() and 1 <= int(number) <= int(parts)):
        raise ConfigError(describe("--part", repr(options.part), "a part of all, such as 3/8", "Write --part 1/2"))
    if options.out is None:
        do = "Add --out FOLDER, the same for all parts"
        raise ConfigError(describe("--part", "no folder for its file", "--out", do))
    source, plain = _arguments(options)
    engine = _engine(options)
    partial = count_part(source, options.metrics, plain, options.shared, int(number) - 1, int(parts), engine)
    return partial.to_file(options.out / f"part-{number}-of-{parts}.safetensors")


def _engine(options: ScoreCommand) -> Engine | None:
    """What counts the fragments, where it is not this machine."""
    if options.engine == "local":
        return None
    if options.engine != "ray":
        raise ConfigError(describe("--engine", repr(options.engine), "local or ray", "Write --engine ray"))
    if options.workers is not None:
        do = "Leave one of them out; the cluster says how many processes count"
        raise ConfigError(describe("--workers", "and --engine ray", "one of the two", do))
    from assay.integrations.ray import count_on_ray

    return count_on_ray


def _arguments(options: ScoreCommand) -> tuple[Any, ScoreOptions]:
    """The table, and how it is measured."""
    source = list(options.table) if len(options.table) != 1 else options.table[0]
    if not source and not options.sql:
        do = "Write assay score predictions.parquet, or --sql"
        raise ConfigError(describe("TABLE", "none", "a file, a folder, a pattern or a URL", do))
    columns = dict(_column(each) for each in options.column)
    arguments = arguments_of(ScoreOptions, options, columns=columns, slices=parse_slices(options.slice))
    return source or None, ScoreOptions(**arguments)


def _column(written: str) -> tuple[str, str]:
    name, _, column = written.partition("=")
    if not (name and column):
        expected = "NAME=COLUMN"
        raise ConfigError(describe("--column", repr(written), expected, "Write --column indexes=query_id"))
    return name, column
