"""The commands of the command line, made of their options."""

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


for _name, _command in COMMANDS.items():
    _example = f"assay {_name} {_command.example}".rstrip()
    add_command(app, _name, _command.options, f"assay.cli.{_command.module}", group=_command.group, example=_example)
