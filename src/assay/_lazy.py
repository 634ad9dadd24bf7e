"""Names that are imported when they are first used, so that a package costs nothing until then (PEP 562)."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pkgutil import get_data
from types import FrameType

_IMPORT = re.compile(r"^    from ([\w.]+) import (?:\(\s+)?(\w+) as \2\b", re.MULTILINE)


def attach(
    package: str, modules: Sequence[str] = (), hints: str = ""
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Make ``__all__``, ``__getattr__`` and ``__dir__`` of a package whose names live in other modules.

    Its public names are those that it imports for type checkers, each alone: ``from module import name as name``.

    Args:
        package: the package's ``__name__``.
        modules: its modules and packages that are imported when they are first used, too.
        hints: the module whose `hint(package, name)` says what to write instead of a name that there is not.

    Returns:
        The sorted public names and the two functions, to be bound at the package's top level.
    """
    homes = homes_of(package)

    def hint(name: str) -> str:
        if name.startswith("_"):
            return ""
        said = import_module(hints).hint(package, name) if hints else ""
        close = [] if said else difflib.get_close_matches(name, homes, 1)
        said = f"did you mean {close[0]}?" if close else said
        return f"; {said}" if said else ""

    def get(name: str) -> object:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in homes:
            if _imports_names(sys._getframe(1)) and find_spec(f"{package}.{name}") is None:
                raise ImportError(f"cannot import name {name!r} from {package!r}{hint(name)}", name=package)
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint(name)}")
        value = getattr(import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)  # the next look-up does not come here
        return value

    def names() -> list[str]:
        dunder = [name for name in vars(sys.modules[package]) if name.startswith("__")]
        return sorted({*dunder, *homes, *modules})

    return sorted(homes), get, names


def _imports_names(frame: FrameType) -> bool:
    """Whether a frame is that of `from package import name`, which drops the message of an `AttributeError`."""
    code = frame.f_code
    return code.co_name == "_handle_fromlist" and code.co_filename.startswith("<frozen importlib")


def homes_of(package: str) -> dict[str, str]:
    """Public name -> the module that defines it, as the source of a package says, see `attach`."""
    source = (get_data(package, "__init__.py") or b"").decode("utf-8")
    return {name: module for module, name in _IMPORT.findall(source)}


class LateAttributeError(AttributeError):
    """Raised for a name that an object does not have; the message is made when it is read.

    `getattr` with a default drops the error, and near names take milliseconds to find.

    Args:
        about: makes the message.
    """

    __module__, __qualname__ = "builtins", "AttributeError"  # what the last line of a traceback says

    def __init__(self, about: Callable[[], str]) -> None:
        super().__init__()
        self._about = about

    def __str__(self) -> str:
        return self._about()

    def __reduce__(self) -> tuple[type[AttributeError], tuple[str]]:
        return AttributeError, (str(self),)
