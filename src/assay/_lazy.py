"""Names that are imported when they are first used, so that a package costs nothing until then (PEP 562)."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pkgutil import get_data, iter_modules


def attach(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make the ``__getattr__`` and ``__dir__`` of a package whose names live in other modules.

    Args:
        package: the package's ``__name__``.
        homes: public name -> the module that defines it.

    Returns:
        The two functions, to be bound at the package's top level.
    """

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)  # the next look-up does not come here
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names


def homes(package: str, path: Iterable[str]) -> dict[str, str]:
    """The public names of a package whose modules list theirs in `__all__`; no module is imported.

    Args:
        package: the package's ``__name__``.
        path: the package's ``__path__``.

    Returns:
        Public name -> the module that defines it.
    """
    found: dict[str, str] = {}
    for module in iter_modules(path):
        source = (get_data(package, f"{module.name}.py") or b"").decode("utf-8")
        if listed := re.search(r"^__all__ = (\[.*?\])", source, re.MULTILINE | re.DOTALL):
            found |= dict.fromkeys(ast.literal_eval(listed[1]), f"{package}.{module.name}")
    return found
