"""Dataclasses as commands of typer."""

from __future__ import annotations

import gc
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, get_origin

import typer

from assay._atomic import Location
from assay.cli.declaration import PANELS, Option, options_of


def add_command(
    app: typer.Typer,
    name: str,
    command: type,
    run: str | Callable[[Any], None],
    *,
    group: str | None = None,
    example: str = "",
) -> None:
    """Make a dataclass a command.

    Args:
        app: the command line.
        name: what the command is called.
        command: the dataclass; its docstring is the help.
        run: the function that takes the dataclass, or the module whose `run` it is, which is imported only then.
        group: the heading in the list of commands that it stands under.
        example: a command line that the help ends with.
    """
    known = options_of(command)

    def call(**values: Any) -> None:
        from assay.cli.config import resolve

        function = _run_of(run) if isinstance(run, str) else run
        function(resolve(command, values))

    in_order = sorted(known.values(), key=_place)
    parameters = [_parameter(each, "config" in known) for each in in_order]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    call.__annotations__ = {each.name: each.annotation for each in parameters}
    epilog = _plain(f"Example: {example}") if example else None
    app.command(name, help=_paragraphs(command), rich_help_panel=group, epilog=epilog)(call)


def _run_of(module: str) -> Callable[[Any], None]:
    """The `run` of a module.

    What imports make stays until the process ends. So the garbage collector is off meanwhile, and skips it afterwards,
    also at the end: that is a quarter to a third of the time of `import torch`.
    """
    gc.disable()
    try:
        run: Callable[[Any], None] = importlib.import_module(module).run
        return run
    finally:
        gc.freeze()
        gc.enable()


_PATHS = (Path, Location)
_METAVARS = {int: "INTEGER", float: "NUMBER", bool: " ", **dict.fromkeys(_PATHS, "PATH")}  # a flag takes nothing


def _place(of: Option) -> tuple[int, bool]:
    """Where an option stands in the help: by its panel, and there the forms of the output last."""
    panel = of.declared.panel
    return -1 if panel is None else PANELS.index(panel), of.name in ("json", "markdown")


def _paragraphs(command: type) -> str:
    """The docstring with each paragraph in one line, which the help wraps."""
    return _plain("\n\n".join(" ".join(each.split()) for each in (inspect.getdoc(command) or "").split("\n\n")))


def _parameter(of: Option, has_config: bool) -> inspect.Parameter:
    """An option as typer takes it; what is not given is None, so that one place decides what holds then."""
    declared = of.declared
    metavar = of.name.upper() if declared.is_argument else declared.metavar or _METAVARS.get(of.kind, "TEXT")
    more: dict[str, Any] = {"help": _help(of), "rich_help_panel": declared.panel, "metavar": metavar}
    info: Any
    if declared.is_argument:
        info = typer.Argument(show_default=False, **more)
    else:
        tri_state = f"--{of.key}/--no-{of.key}" if of.kind is bool and of.may_be_none else f"--{of.key}"
        info = typer.Option(*(declared.names or (tri_state,)), **more)
    kind = str if declared.separator or of.kind in _PATHS else of.kind  # typer's Path would make s3:/ of s3://
    if get_origin(kind) is tuple:
        kind = list[str]
    is_needed = bool(declared.required) and not has_config
    return inspect.Parameter(
        of.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if is_needed else None,
        annotation=Annotated[kind if is_needed else kind | None, info],
    )


def _help(of: Option) -> str:
    if of.default in (None, False, "", ()) or of.declared.is_argument:
        return _plain(of.declared.help)
    default = ",".join(of.default) if isinstance(of.default, tuple) else of.default
    return _plain(f"{of.declared.help} [default: {default}]")


def _plain(text: str) -> str:
    """Text in which brackets are brackets, not markup."""
    return text.replace("[", "\\[")
