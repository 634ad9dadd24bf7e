"""Options as they hold: those of the command line, else those of a TOML file, else the defaults of the fields."""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from assay.cli.declaration import Option, options_of
from assay.errors import ConfigError, StateError, describe

T = TypeVar("T")


def resolve(command: type[T], arguments: Mapping[str, Any]) -> T:
    """The options as they hold: those of the command line, else those of the file, else the defaults.

    Args:
        command: the dataclass.
        arguments: what the command line says, by the names of the fields; None or an empty list where it says nothing.

    Example:
        >>> from assay.cli.options.measurement import EvaluateCommand
        >>> arguments = {"model": "m:net", "data": "x.csv", "metrics": ["accuracy"], "classes": "cat,dog"}
        >>> resolve(EvaluateCommand, arguments).classes
        ('cat', 'dog')
    """
    known = options_of(command)
    config = arguments.get("config")
    values = {} if config is None else read_config(Path(config), known)
    for name, written in arguments.items():
        if written is None or written == []:
            continue
        value = known[name].value(known[name].label, written)
        values[name] = (*values.get(name, ()), *value) if known[name].declared.is_extended else value
    options = command(**values)
    for name, each in known.items():
        if each.declared.required and not getattr(options, name):
            do = "Name it, or write it into a --config file"
            raise ConfigError(describe(each.label, "none", each.declared.required, do))
    return options


def read_config(path: Path, options: Mapping[str, Option]) -> dict[str, Any]:
    """The options in a TOML file, by the names of the fields. Paths are seen from the folder of the file.

    Args:
        path: the file.
        options: the options of the command.
    """
    try:
        data = tomllib.loads(path.read_text("utf-8"))
    except (
        ValueError,
        RecursionError,
    ) as error:  # no TOML, no UTF-8, integers of too many digits, or nested too deeply
        got = f"a file that is not TOML: {error!s:.200}"
        raise StateError(describe(str(path), got, "TOML", "Check the line and column named")) from error
    known = {each.key: each for each in options.values() if each.name != "config"}
    values = {}
    for key, written in data.items():
        if key not in known:
            near = difflib.get_close_matches(key.replace("_", "-"), known, n=1)
            expected = repr(near[0]) if near else f"one of {', '.join(known)}"
            raise ConfigError(describe(str(path), f"the key {key!r}", expected, "Rename the key or remove it"))
        value = known[key].value(f"{path}: {key}", written)
        values[known[key].name] = _relative_to(value, known[key].declared.is_path, path.parent)
    return values


def _relative_to(value: Any, is_path: bool, folder: Path) -> Any:
    """A value in which paths are seen from a folder."""
    if isinstance(value, Path):
        return folder / value
    if not is_path:
        return value
    if isinstance(value, str):
        return os.fspath(folder / value) if value and (folder / value).exists() else value
    return tuple(",".join(_placed_part(part, folder) for part in each.split(",")) for each in value)


def _placed_part(part: str, folder: Path) -> str:
    """A part of a variant, which is a model or has a key."""
    key, equals, name = part.rpartition("=")
    return key + equals + _relative_to(name, True, folder) if key in ("", "model") else part
