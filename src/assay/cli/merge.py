"""``assay merge``: the parts of a table that were counted apart become one report."""

from __future__ import annotations

from assay.cli.options import MergeCommand
from assay.cli.score import measure_table
from assay.tables.partial import Partial, merge


def run(options: MergeCommand) -> None:
    """Add up the parts, write the report where a folder was named, and print it."""
    measure_table(lambda: merge(map(Partial.from_file, options.parts)).checked_report(), options)
