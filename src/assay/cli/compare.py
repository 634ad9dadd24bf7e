"""``assay compare``: runs against a baseline, from their stored reports."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from assay.cli._streams import write_then_show
from assay.errors import ConfigError, describe
from assay.report import Comparison, Report, compare
from assay.report.comparing import short_names


@dataclass(frozen=True)
class Options:
    """How to compare, and where to write it."""

    level: float
    correction: str
    seed: int
    flips: int
    slices: bool | None
    as_json: bool
    markdown: bool
    html: Path | None
    out: Path | None


def run(paths: list[Path], options: Options) -> None:
    """Compare reports and print or write what was found.

    Args:
        paths: the files of the reports, the baseline first.
        options: how.

    Raises:
        ConfigError: options that cannot be, or reports that have no section in common.
        StateError: a file that is no report.
        OSError: a file that cannot be read or written.
    """
    if len(paths) < 2:
        do = "Name the baseline first, then the runs"
        raise ConfigError(describe("reports", f"{len(paths)} file", "two or more", do))
    if options.as_json and options.markdown:
        raise ConfigError(describe("output", "--json and --markdown", "one of the two", "Leave one out"))
    comparison = compare(
        *[Report.load(path) for path in paths],
        confidence_level=options.level,
        correction=options.correction,
        seed=options.seed,
        flips=options.flips,
        names=short_names(paths),
        slices=options.slices,
    )
    write_then_show(lambda: _written(comparison, options), lambda: _show(comparison, options))


def _written(comparison: Comparison, options: Options) -> Iterator[Path]:
    if options.html is not None:
        yield comparison.to_html(options.html)
    if options.out is not None:
        yield comparison.save(options.out)


def _show(comparison: Comparison, options: Options) -> None:
    if options.as_json:
        print(comparison.to_json(), end="")
    elif options.markdown:
        print(comparison.to_markdown(), end="")
    else:
        comparison.show()
