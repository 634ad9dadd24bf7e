"""``assay history``: metrics over many runs, from their stored reports."""

from __future__ import annotations

from assay.cli.declaration import same_named
from assay.cli.options.reports import HistoryCommand
from assay.cli.output import write_and_print
from assay.report import history


def run(options: HistoryCommand) -> None:
    """Read reports, and print or write their history."""
    chosen = {"metrics": options.metric, "sections": options.section, "slices": options.slice}
    write_and_print(history(options.reports, **same_named(history, options, **chosen)), options)
