"""``assay compare``: runs against a baseline, from their stored reports."""

from __future__ import annotations

from collections.abc import Sequence

from assay.cli.declaration import same_named
from assay.cli.options.reports import CompareCommand
from assay.cli.output import write_and_print
from assay.errors import ConfigError, describe
from assay.report import Comparison, Report, compare, compare_training_runs
from assay.report.report import Source


def run(options: CompareCommand) -> None:
    """Compare reports, and print or write the comparison."""
    if options.runs or options.against:
        comparison = _of_training_runs(options)
    else:
        reports, names = _compared(options)
        comparison = compare(*reports, **same_named(compare, options, names=names))
    write_and_print(comparison, options)


def _of_training_runs(options: CompareCommand) -> Comparison:
    if options.reports or options.between:
        do = "Name the reports of the runs with --runs, and those of the baseline with --against"
        raise ConfigError(describe("--runs", "REPORTS or --between beside it", "the options alone", do))
    return compare_training_runs(options.against, options.runs, **same_named(compare_training_runs, options))


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
