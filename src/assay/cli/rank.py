"""``assay rank``: many runs in an order with ties, from their stored reports."""

from __future__ import annotations

from assay.cli.declaration import same_named
from assay.cli.options.reports import RankCommand
from assay.cli.output import write_and_print
from assay.report import rank


def run(options: RankCommand) -> None:
    """Rank reports, and print or write the ranking."""
    chosen = {"metrics": options.metric, "sections": options.section}
    write_and_print(rank(options.reports, **same_named(rank, options, **chosen)), options)
