"""Modules that stand for those of another library: names are looked up there, and replaced by compatible ones."""

from __future__ import annotations

import difflib
import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

from assay.compat import __name__ as PACKAGE
from assay.errors import AssayWarning

Replace = Callable[[Any], Any]
"""What stands for an object of another library."""

_TITLES = {"torchmetrics": "TorchMetrics", "ignite": "Ignite", "torcheval": "TorchEval"}


def stand_for(library: ModuleType, replace: Replace) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Let `assay.compat.<library>`, and every module in it, have the names of a library.

    Args:
        library: the library.
        replace: gives what stands for an object of it.

    Returns:
        `__getattr__` and `__dir__` of the module.
    """
    sys.meta_path.append(_CompatibleModules(library.__name__, replace))
    return lambda name: _member(library, name, replace), lambda: dir(library)


def others_own(original: Any, instead: str, name: str = "") -> Any:
    """The metric of the other library itself, with a warning at the line that names it.

    Args:
        original: a metric that assay has with other arguments only, or not at all.
        instead: what assay has.
        name: what it is called, if not by its own name.
    """
    why = "assay's metric has other arguments or gives other values"
    warn_of_others_own(name or original.__name__, original, why, f"Use it as before, or what assay has: {instead}", 5)
    return original


def warn_of_others_own(name: str, original: Any, why: str, do: str, stacklevel: int) -> None:
    """Warn that the other library computes a metric, and not assay.

    Args:
        name: what computes it.
        original: the metric of the other library.
        why: the reason, as a clause.
        do: what the reader can do.
        stacklevel: of the caller, as `warnings.warn` has it.
    """
    library = _TITLES[original.__module__.partition(".")[0]]
    text = f"{name}: {library} itself computes it, without assay's exact counts, because {why}. {do}."
    warnings.warn(text, AssayWarning, stacklevel + 1)


class SignatureOfOwner:
    """The signature of a class, as `__signature__`, but not of its subclasses and instances."""

    def __init__(self, signature: inspect.Signature) -> None:
        self._signature = signature

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if instance is not None or vars(owner).get("__signature__") is not self:
            raise AttributeError("__signature__")
        signature: inspect.Signature = self._signature
        return signature


class CompatibleModule(ModuleType):
    """A module that stands for one of another library."""

    def __init__(self, original: ModuleType, replace: Replace) -> None:
        super().__init__(f"{PACKAGE}.{original.__name__}", original.__doc__)
        self.__path__: list[str] = []
        self._original, self._replace = original, replace

    def __getattr__(self, name: str) -> Any:
        value = _member(self._original, name, self._replace)
        setattr(self, name, value)  # the next look-up does not come here
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        is_submodule = isinstance(value, CompatibleModule)
        if is_submodule and not isinstance(getattr(self._original, name), ModuleType):
            return  # importing a submodule sets it, and there the package has a function of this name
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return dir(self._original)


class _CompatibleModules(MetaPathFinder, Loader):
    """Finds the modules that stand for those of a library."""

    def __init__(self, library: str, replace: Replace) -> None:
        self._inside, self._replace = f"{PACKAGE}.{library}.", replace

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        return spec_from_loader(fullname, self, is_package=True) if fullname.startswith(self._inside) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        name = spec.name.removeprefix(f"{PACKAGE}.")
        try:
            return CompatibleModule(import_module(name), self._replace)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            package, _, last = spec.name.rpartition(".")
            said = f"cannot import name {last!r} from {package!r}{_where(package, last)}"
            raise ImportError(said, name=spec.name) from None

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is to be run."""


def _where(package: str, name: str) -> str:
    """Where a library has a name that one of its modules has not, or the nearest name that the module has."""
    module = package.removeprefix(f"{PACKAGE}.")
    inside = [
        (each, vars(sys.modules[each])) for each in sys.modules if each.startswith(module.partition(".")[0] + ".")
    ]
    homes = sorted((each for each, names in inside if name in names.get("__all__", ())), key=len)
    if homes:
        return f"; write from {PACKAGE}.{homes[0]} import {name}"
    close = difflib.get_close_matches(name, dir(sys.modules[module]), 1)
    return f"; did you mean {close[0]}?" if close else ""


def _member(module: ModuleType, name: str, replace: Replace) -> Any:
    if name == "__all__":  # asked by `from ... import *`, which finds no names in a module that looks them up
        return getattr(module, name, None) or [each for each in dir(module) if not each.startswith("_")]
    if name.startswith("__") and name != "__version__":
        raise AttributeError(f"module {PACKAGE}.{module.__name__} has no attribute {name!r}")
    original = getattr(module, name)
    if not isinstance(original, ModuleType):
        return replace(original)
    inside = original.__name__.startswith(f"{module.__name__.partition('.')[0]}.")
    return import_module(f"{PACKAGE}.{original.__name__}") if inside else original
