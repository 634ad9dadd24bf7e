"""``assay rank``: many runs in an order with ties, from their stored reports."""

from __future__ import annotations

from collections.abc import Iterator

from assay._atomic import Location
from assay.cli.options import RankCommand
from assay.cli.output import check_output, print_as, write_then_show
from assay.report import RunRanking, rank


def run(options: RankCommand) -> None:
    """Rank reports, and print or write the ranking."""
    check_output(options)
    found = rank(
        options.reports,
        metrics=options.metric,
        sections=options.section,
        confidence_level=options.confidence_level,
        seed=options.seed,
        cluster=options.cluster or None,
    )
    write_then_show(lambda: _write(found, options), lambda: print_as(found, options))


def _write(found: RunRanking, options: RankCommand) -> Iterator[Location]:
    if options.html is not None:
        yield found.to_html(options.html)
    if options.out is not None:
        yield found.save(options.out)
