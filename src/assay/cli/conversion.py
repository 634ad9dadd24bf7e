"""Values of the command line and of a TOML file as the fields of a dataclass hold them."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, get_args, get_origin

from assay._atomic import Location, local_path, location
from assay.errors import ConfigError, describe

_EXPECTED: dict[Any, str] = {str: "a string", int: "an integer", float: "a number", bool: "true or false"}
_EXPECTED |= {Path: "a path", Location: "a path or a URL"}
_TYPES: dict[Any, Any] = {float: int | float, Path: str | Path, Location: str | Path}


def convert(where: str, kind: Any, separator: str, value: Any) -> Any:
    """A value of the command line or of a file as a field holds it.

    Args:
        where: the option, or the file and the key, in messages.
        kind: the type of the field: one of `_EXPECTED`, or a tuple of them.
        separator: what stands between several values in one string.
        value: what was written.
    """
    if get_origin(kind) is not tuple:
        return _converted(where, kind, value, _EXPECTED[kind])
    item = get_args(kind)[0]
    expected = f"a list, each {_EXPECTED[item]}"
    if isinstance(value, str) and separator:
        value = [
            _number(where, each) if item is float else each.strip() for each in value.split(separator) if each.strip()
        ]
    if isinstance(value, dict):
        value = [_pair(where, key, each) for key, each in value.items()]
    if not isinstance(value, list | tuple):
        raise ConfigError(describe(where, repr(value), expected, f"Write {expected}"))
    texts = [_table(each) if isinstance(each, dict) else each for each in value]
    return tuple(_converted(where, item, each, expected) for each in texts)


def _converted(where: str, kind: Any, value: Any, expected: str) -> Any:
    if not isinstance(value, _TYPES.get(kind, kind)) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(describe(where, repr(value), expected, f"Write {expected}"))
    if kind is Path:
        return local_path(where, value)
    return location(where, value) if kind == Location else kind(value)


def _number(where: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        do = "Write numbers with commas between them, as in 0.5,0.5,0.5"
        raise ConfigError(describe(where, repr(text), "numbers", do)) from error


def _pair(where: str, key: str, value: Any) -> str:
    """An entry of a table in the syntax of the command line."""
    is_finite = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    if isinstance(value, bool) or not is_finite:
        do = 'Quote a key that holds a dot: "top.5" = 0.9'
        raise ConfigError(describe(f"{where}.{key}", repr(value), "a string or a finite number", do))
    return f"{key}={value}"


def _table(table: dict[str, Any]) -> str:
    """A table in a list in the syntax of the command line: pairs with commas."""
    return ",".join(f"{key}={str(each).lower() if isinstance(each, bool) else each}" for key, each in table.items())
