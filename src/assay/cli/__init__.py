"""The command line: each command turns its options into one call. ``--help`` imports neither torch nor a metric.

An invalid option, file, model or data set raises an `AssayError`, and `main` prints it as one line. This
holds in every module here, so docstrings do not repeat it.
"""

from __future__ import annotations

from typing import Annotated

import typer

from assay import __version__
from assay.cli.command import add_command
from assay.cli.options import COMMANDS

app = typer.Typer(
    name="assay",
    help="Exact metrics for PyTorch models: the same number in any batch size and order, on any number of processes.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; what assay raises on purpose, and what the system refuses, is one line and exit code 2."""
    import sys

    from assay.cli.output import finish_output, prepare_streams
    from assay.errors import AssayError

    prepare_streams()
    try:
        try:
            app()
        finally:
            finish_output()
    except (AssayError, OSError) as error:
        print("assay:", error, *getattr(error, "__notes__", ()), file=sys.stderr)
        sys.exit(2)


def _show_version(is_given: bool) -> None:
    if is_given:
        typer.echo(f"assay {__version__}")
        raise typer.Exit


@app.callback()
def _assay(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


for _name, (_options, _module) in COMMANDS.items():
    add_command(app, _name, _options, _module)
