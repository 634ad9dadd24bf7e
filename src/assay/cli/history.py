"""``assay history``: metrics over many runs, from their stored reports."""

from __future__ import annotations

from collections.abc import Iterator

from assay._atomic import Location
from assay.cli.options import HistoryCommand
from assay.cli.output import check_output, print_as, write_then_show
from assay.report import History, history


def run(options: HistoryCommand) -> None:
    """Read reports, and print or write their history."""
    check_output(options)
    found = history(
        options.reports,
        metrics=options.metric,
        sections=options.section,
        slices=options.slice,
        last=options.last,
        since=options.since,
        confidence_level=options.confidence_level,
        correction=options.correction,
        seed=options.seed,
        sequential=bool(options.sequential),
    )
    write_then_show(lambda: _write(found, options), lambda: print_as(found, options))


def _write(found: History, options: HistoryCommand) -> Iterator[Location]:
    if options.html is not None:
        yield found.to_html(options.html)
    if options.out is not None:
        yield found.save(options.out)
