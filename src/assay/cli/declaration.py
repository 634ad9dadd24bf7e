"""A command from a frozen dataclass: each field declares one option, of the command line and of a TOML file."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from types import UnionType
from typing import Any, ClassVar, dataclass_transform, get_args, get_origin, get_type_hints

from assay._atomic import Location, local_path
from assay._remote import RemotePath
from assay.cli.conversion import convert
from assay.errors import ConfigError, describe

PANELS = MODEL, DATA, MEASURED, RUN = "Model", "Data", "What is measured", "Run and report"
"""Headings in the help, in their order; options without one come first."""


@dataclass(frozen=True)
class Declaration:
    """What a field declares of its option, next to its name, type and default.

    Attributes:
        help: a sentence that can be read alone.
        names: how it is spelled; by default the name of the field.
        panel: the heading in the help that it stands under.
        metavar: what the help shows for its value.
        separator: what stands between several values in one string; empty for an option that may be repeated.
        least: the smallest number that is valid.
        most: the largest number that is valid.
        required: what must be named, on the command line or in the file; empty for an option that may be left out.
        is_argument: whether it is written without a name.
        is_extended: whether values on the command line come after those of the file instead of in their place.
        is_path: whether it may name a file, which is on this machine and seen from the folder of the TOML file.
        may_be_url: whether that file may be at a URL.
    """

    help: str
    names: tuple[str, ...] = ()
    panel: str | None = None
    metavar: str | None = None
    separator: str = ""
    least: int | None = None
    most: int | None = None
    required: str = ""
    is_argument: bool = False
    is_extended: bool = False
    is_path: bool = False
    may_be_url: bool = False


def option(help: str, *names: str, default: Any = None, **more: Any) -> Any:
    """A field that is an option; None means that it was not given and that the function called decides."""
    return field(default=default, metadata={"declaration": Declaration(help, names, **more)})


def string(help: str, *names: str, **more: Any) -> Any:
    """A field that is an option with a string; an empty one means that it was not given."""
    return option(help, *names, default="", **more)


def several(help: str, *names: str, **more: Any) -> Any:
    """A field that is an option with several values."""
    return option(help, *names, default=(), **more)


def flag(help: str, *names: str, **more: Any) -> Any:
    """A field that is an option without a value."""
    return option(help, *names, default=False, **more)


def argument(help: str, default: Any = "", **more: Any) -> Any:
    """A field that is written without a name."""
    return option(help, default=default, is_argument=True, **more)


@dataclass_transform(frozen_default=True)
class CommandOptions:
    """The base of the options of a command: a subclass is a frozen dataclass, without a decorator."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)


@dataclass(frozen=True)
class Option:
    """One option of a command.

    Attributes:
        name: the field.
        kind: its type, without None.
        may_be_none: whether its type has None.
        default: what it is where it is not given.
        declared: what its field says.
    """

    name: str
    kind: Any
    may_be_none: bool
    default: Any
    declared: Declaration

    @property
    def label(self) -> str:
        """How a message names it."""
        if self.declared.is_argument:
            return self.name.upper()
        return next((each for each in self.declared.names if each.startswith("--")), f"--{self.key}").partition("/")[0]

    @property
    def key(self) -> str:
        """The key in the file."""
        return self.name.replace("_", "-")

    def value(self, where: str, written: Any) -> Any:
        """What was written as the field holds it."""
        value = convert(where, self.kind, self.declared.separator, written)
        if self.declared.is_path and not self.declared.may_be_url:
            parts = [value] if isinstance(value, str) else [part for each in value for part in each.split(",")]
            for part in filter(None, parts):
                local_path(where, part.removeprefix("model="))  # as in a variant
        least, most = self.declared.least, self.declared.most
        if (least is not None and value < least) or (most is not None and value > most):
            expected = f"at least {least}" if most is None else f"{least} to {most}"
            number = "a number" if self.kind is float else "an integer"
            raise ConfigError(describe(where, value, f"{number}, {expected}", f"Write {self.label} {least}"))
        return value


def same_named(function: Callable[..., Any], options: object, **more: Any) -> dict[str, Any]:
    """The arguments of a function: the options of their names, and more of them; None and "" keep its defaults."""
    parameters = inspect.signature(function).parameters.values()
    names = [each.name for each in parameters if each.default is not each.empty and hasattr(options, each.name)]
    arguments = {name: getattr(options, name) for name in names} | more
    return {name: value for name, value in arguments.items() if value is not None and value != ""}


def options_of(command: type) -> dict[str, Option]:
    """The options of a command by the names of their fields."""
    hints = get_type_hints(command)
    options = {}
    for each in fields(command):
        kinds = get_args(hints[each.name]) if get_origin(hints[each.name]) is UnionType else (hints[each.name],)
        may_be_none = type(None) in kinds
        kind = Location if RemotePath in kinds else kinds[0]
        declared = each.metadata["declaration"]
        options[each.name] = Option(each.name, kind, may_be_none, each.default, declared)
    return options
