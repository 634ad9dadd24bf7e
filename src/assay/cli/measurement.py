"""What ``assay evaluate`` and ``assay perplexity`` have in common: the run around a measurement, and its arguments."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from assay._atomic import Location, prepare_folder
from assay.cli.declaration import same_named
from assay.cli.options.base import ReportCommand, ReportOutput
from assay.cli.output import write_report, write_then_show
from assay.cli.recorded import command_line
from assay.errors import AssayWarning
from assay.evaluation.processes.ranks import process_group
from assay.report import Report

if TYPE_CHECKING:
    from assay.evaluation import VariantComparison


def measure_and_show(measure: Callable[[], Report | VariantComparison], options: ReportOutput) -> None:
    """Measure, write the result where a folder was named, and print it; of several processes the first one does.

    Args:
        measure: gives the result.
        options: where to write it, and how to print it.
    """
    with _folder(options.out), process_group(), warnings.catch_warnings():  # samplers ask for the group
        warnings.simplefilter("ignore", AssayWarning)  # the notes of the report say the same
        result = measure()
    if isinstance(result, Report) and result.origin is not None:
        result = replace(result, origin=replace(result.origin, command=command_line()))
    if os.environ.get("RANK", "0") != "0":
        return
    write_then_show(lambda: _write(result, options.out), lambda: _show(result, options))
    if options.out is None and isinstance(result, Report) and not (options.json or options.verbose):
        print("Tables and plots: add --verbose, or --out FOLDER for a page.", file=sys.stderr)


@contextmanager
def _folder(out: Location | None) -> Iterator[None]:
    """Make the folder before anything is measured; where measuring fails, an empty one is not left behind."""
    is_new = isinstance(out, Path) and not out.exists()
    if out is not None:
        prepare_folder("--out", out)
    try:
        yield
    except BaseException:
        if is_new:
            with suppress(OSError):  # it has files
                cast(Path, out).rmdir()
        raise


def _write(result: Report | VariantComparison, out: Location | None) -> list[Location]:
    if isinstance(result, Report):
        return write_report(result, out)
    return [] if out is None else result.save(out)


def _show(result: Report | VariantComparison, options: ReportOutput) -> None:
    if options.json:
        print((result if isinstance(result, Report) else result.comparison).to_json(), end="")
    elif isinstance(result, Report):
        result.show(verbose=options.verbose)
    else:
        result.show()


def arguments_of(function: Callable[..., Any], options: ReportCommand, **more: Any) -> dict[str, Any]:
    """The arguments of the function that measures, see `same_named`."""
    known = same_named(function, options, **more)
    if options.confidence_level is not None:
        known["confidence_level"] = options.confidence_level or None  # 0 is for no intervals
    return known
