"""``assay compare``: runs against a baseline, from their stored reports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from assay.cli.options import CompareCommand
from assay.cli.output import check_output, print_as, write_then_show
from assay.errors import ConfigError, describe
from assay.report import Comparison, Report, compare
from assay.report.comparing import short_names


def run(options: CompareCommand) -> None:
    """Compare reports, and print or write the comparison."""
    paths = options.reports
    if len(paths) < 2:
        do = "Name the baseline first, then the runs"
        raise ConfigError(describe("REPORTS", f"{len(paths)} file", "two or more", do))
    check_output(options)
    comparison = compare(
        *[Report.load(path) for path in paths],
        confidence_level=options.confidence_level,
        correction=options.correction,
        seed=options.seed,
        flips=options.flips,
        names=short_names(paths),
        slices=options.slices,
    )
    write_then_show(lambda: _write(comparison, options), lambda: print_as(comparison, options))


def _write(comparison: Comparison, options: CompareCommand) -> Iterator[Path]:
    if options.html is not None:
        yield comparison.to_html(options.html)
    if options.out is not None:
        yield comparison.save(options.out)
