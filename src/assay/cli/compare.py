"""``assay compare``: runs against a baseline, from their stored reports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay._atomic import Location
from assay.cli.options import CompareCommand
from assay.cli.output import check_output, print_as, write_then_show
from assay.errors import ConfigError, describe
from assay.report import Comparison, Report, compare, compare_training_runs
from assay.report.report import Source


def run(options: CompareCommand) -> None:
    """Compare reports, and print or write the comparison."""
    if options.runs or options.against:
        comparison = _of_training_runs(options)
        write_then_show(lambda: _write(comparison, options), lambda: print_as(comparison, options))
        return
    reports, names = _compared(options)
    check_output(options)
    comparison = compare(
        *reports,
        confidence_level=options.confidence_level,
        correction=options.correction,
        seed=options.seed,
        flips=options.flips,
        names=names,
        slices=options.slices,
        cluster=options.cluster or None,
    )
    write_then_show(lambda: _write(comparison, options), lambda: print_as(comparison, options))


def _of_training_runs(options: CompareCommand) -> Comparison:
    if options.reports or options.between:
        do = "Name the reports of the runs with --runs, and those of the baseline with --against"
        raise ConfigError(describe("--runs", "REPORTS or --between beside it", "the options alone", do))
    check_output(options)
    return compare_training_runs(
        options.against,
        options.runs,
        confidence_level=options.confidence_level,
        correction=options.correction,
        slices=options.slices,
        cluster=options.cluster or None,
    )


def _compared(options: CompareCommand) -> tuple[Sequence[Source], Sequence[str] | None]:
    """The paths of reports, or the slices of one report with their names."""
    paths, slices = options.reports, options.between
    if slices:
        if len(paths) != 1 or len(slices) < 2 or len(set(slices)) < len(slices):
            got = f"{len(slices)} slices of {len(paths)} reports: {', '.join(slices)}"
            do = "Name one report, and --between once for each slice"
            raise ConfigError(describe("--between", got, "two or more different slices of one report", do))
        report = Report.load(paths[0])
        return [report.of_slice(name) for name in slices], slices
    if len(paths) < 2:
        do = "Name the baseline first, then the runs"
        raise ConfigError(describe("REPORTS", f"{len(paths)} file", "two or more", do))
    return paths, None


def _write(comparison: Comparison, options: CompareCommand) -> Iterator[Location]:
    if options.html is not None:
        yield comparison.to_html(options.html)
    if options.out is not None:
        yield comparison.save(options.out)
