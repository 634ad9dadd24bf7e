"""The command line: each command turns its arguments into one call. ``--help`` imports neither torch nor a metric."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from assay import __version__

app = typer.Typer(
    name="assay",
    help="Measures PyTorch models and gives the same, right number on every device.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line; what assay raises on purpose, and what the system refuses, is one line and exit code 2."""
    import sys

    from assay.errors import AssayError

    try:
        app()
    except (AssayError, OSError) as error:
        print(f"assay: {error}", file=sys.stderr)
        sys.exit(2)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"assay {__version__}")
        raise typer.Exit


@app.callback()
def _assay(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@app.command("devices")
def _devices(
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of tables.")] = False,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Compile the engine of pretend devices now instead of at first use.")
    ] = False,
) -> None:
    """What is on this machine, what each kind of device can do, and why not."""
    from assay.cli.devices import prepare_pretend, show

    if prepare:
        prepare_pretend()
        return
    show(as_json=json)


@app.command("demo")
def _demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the report as JSON and HTML.")] = Path("assay-demo"),
) -> None:
    """Real data, a few seconds, a report to look at."""
    from assay.cli.demo import run

    run(out)
