"""The command line: each command turns its options into one call. ``--help`` imports neither torch nor a metric.

An invalid option, file, model or data set raises an `AssayError`, and `main` prints it as one line. This
holds in every module here, so docstrings do not repeat it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.cli.commands import app as app

_, __getattr__, __dir__ = attach(__name__)


def main() -> None:
    """Run the command line; what assay raises on purpose, and what the system refuses, is one line and exit code 2."""
    import sys

    from assay import _foreign_files
    from assay.errors import AssayError, needing

    if foreign := _foreign_files.foreign_files():
        print(_foreign_files.about_foreign_files(foreign), file=sys.stderr)
    try:
        with needing("typer", "cli", "the command line"):
            import typer as _  # noqa: F401
        from assay.cli.commands import app
        from assay.cli.output import finish_output, prepare_streams

        prepare_streams()
        try:
            app()
        finally:
            finish_output()
    except (AssayError, OSError) as error:
        print("assay:", error, *getattr(error, "__notes__", ()), file=sys.stderr)
        sys.exit(2)
