"""Standard output and written files: a reader that goes away loses nothing, and files come first."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

from assay._atomic import Location
from assay.cli.options.base import JsonOptions, OutputOptions

if TYPE_CHECKING:
    from assay.report import Report


def prepare_streams() -> None:
    """Let output to a pipe that is closed, or to a stream that never was open, vanish without an error.

    The command then ends as it would have ended: its files are written and its exit code is its own.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:  # else the next file that is opened would take this number, and be printed to
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - until the process ends
        elif stream is getattr(sys, f"__{name}__"):
            setattr(sys, name, _patient(stream))


def finish_output() -> None:
    """Print what is left in the buffer.

    Raises:
        OSError: that cannot be printed, as on a full disk; nothing more is tried then.
    """
    try:
        sys.stdout.flush()
    except OSError:
        if isinstance(getattr(sys.stdout, "buffer", None), io.BufferedWriter):
            _to_null(sys.stdout.fileno())
        raise


def write_then_show(write: Callable[[], Iterable[Location]], show: Callable[[], object]) -> None:
    """Write files, print what was found, and name the files; what could not be written is printed all the same.

    Args:
        write: writes the files and gives their paths.
        show: prints.
    """
    written: Iterable[Location] = ()
    try:
        written = list(write())
    finally:
        show()
    for path in written:
        print_path(path)


def write_report(report: Report, folder: Location | None) -> list[Location]:
    """Write a report as JSON and as a page into a folder, where one was named."""
    return [] if folder is None else [report.save(folder / "report.json"), report.to_html(folder / "report.html")]


def write_and_print(result: Any, options: JsonOptions) -> None:
    """Write a result to the files that `--html` and `--out` name, and print it."""

    def written() -> Iterator[Location]:
        if (page := getattr(options, "html", None)) is not None:
            yield result.to_html(page)
        if (file := getattr(options, "out", None)) is not None:
            yield result.save(file)

    write_then_show(written, lambda: print_as(result, options))


def print_as(printable: Any, options: JsonOptions) -> None:
    """Print a report, a comparison, a gate or a plan as JSON, as Markdown, or for people."""
    if options.json:
        print(printable.to_json(), end="")
    elif isinstance(options, OutputOptions) and options.markdown:
        print(printable.to_markdown(), end="")
    else:
        printable.show()


def print_path(path: Location) -> None:
    """Name a file that was written on the error stream."""
    print(path, file=sys.stderr)


class _Pipe(io.FileIO):
    """A file that goes on as the null device when nobody reads it any more."""

    def write(self, data: object) -> int:
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BrokenPipeError:
            _to_null(self.fileno())
            return len(data)  # type: ignore[arg-type]


def _to_null(number: int) -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, number)
    os.close(null)


def _patient(stream: TextIO) -> TextIO:
    stream.flush()
    raw = io.BufferedWriter(_Pipe(stream.fileno(), "w", closefd=False))
    lines = bool(stream.line_buffering) or stream is sys.__stderr__
    return io.TextIOWrapper(raw, stream.encoding, stream.errors, line_buffering=lines)
