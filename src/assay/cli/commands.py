"""The commands of the command line, made of their options."""

from __future__ import annotations

import functools
from collections import ChainMap
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from assay import __version__
from assay.cli.command import add_command
from assay.cli.options import COMMANDS


@functools.cache
def _command(name: str) -> Any:
    command = COMMANDS[name]
    example = f"assay {name} {command.example}".rstrip()
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    add_command(alone, name, command.options, f"assay.cli.{command.module}", group=command.group, example=example)
    return typer.main.get_command(alone)


class _Commands(Mapping[str, Any]):
    """The commands by their names. Each is made when it is asked for, without the options of the others."""

    def __getitem__(self, name: str) -> Any:
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _CommandGroup(TyperGroup):
    """All of these, and those that a program has added to `app`."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = ChainMap(self.commands, _Commands())  # type: ignore[arg-type]


app = typer.Typer(
    name="assay",
    cls=_CommandGroup,
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
