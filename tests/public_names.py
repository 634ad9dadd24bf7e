"""The public names and signatures of assay, one a line: `python tests/public_names.py` writes `public_names.txt`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

FILE = Path(__file__).with_suffix(".txt")
PACKAGES = (
    "",
    "audit",
    "conformance",
    "devices",
    "errors",
    "language",
    "metrics",
    "pretend",
    "quantize",
    "report",
    "wrappers",
)
NAMES_ALONE = ("integrations",)  # whose modules import other libraries


def lines() -> list[str]:
    """All of them, in order."""
    found = [f"assay.{package}.{name}" for package in NAMES_ALONE for name in _package(package).__all__]
    for package in PACKAGES:
        module = _package(package)
        for name in module.__all__:
            found += _lines(f"{module.__name__}.{name}", getattr(module, name))
    return sorted(found)


def _package(name: str):
    return importlib.import_module(f"assay.{name}" if name else "assay")


def _lines(name: str, value: object) -> Iterator[str]:
    if not callable(value):
        yield name
        return
    yield f"{name}{_signature(value)}"
    if inspect.isclass(value) and _is_ours(value) and not issubclass(value, _package("metrics").Metric):
        for method in sorted(set(vars(value)) - {"_"}):
            raw = inspect.getattr_static(value, method)
            if method.startswith("_") or not (inspect.isroutine(raw) or isinstance(raw, property | classmethod)):
                continue
            yield f"{name}.{method}" + ("" if isinstance(raw, property) else _signature(getattr(value, method)))


def _is_ours(value: type) -> bool:
    return value.__module__.startswith("assay.")


def _signature(value: object) -> str:
    """Parameters with their defaults, without annotations: releases of Python write these in other ways."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [
        each.replace(annotation=each.empty, default=each.empty if each.default is each.empty else _Shown(each.default))
        for each in signature.parameters.values()
        if each.name != "self"
    ]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


class _Shown:
    """A default as it is written; other objects than plain ones are dots."""

    def __init__(self, value: object) -> None:
        plain = value is None or isinstance(value, bool | int | float | str) or value in ((), {}, [])
        self.text = repr(value) if plain else "..."

    def __repr__(self) -> str:
        return self.text


if __name__ == "__main__":
    FILE.write_text("\n".join(lines()) + "\n", "utf-8")
