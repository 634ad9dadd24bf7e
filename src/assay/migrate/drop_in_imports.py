"""What is left to the reader, done by imports: the names of `assay.compat` in the place of the libraries' own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

MODULES = {"torchmetrics": "torchmetrics", "ignite": "ignite.metrics", "torcheval": "torcheval.metrics"}
"""The libraries that `assay.compat` has, and the modules whose names it changes."""


def drop_in_imports(text: str, library: str) -> Iterator[tuple[str, str]]:
    """The imports of a library in a file, each with the one of `assay.compat` that takes its place.

    Args:
        text: the file.
        library: the library, of `MODULES`.

    Returns:
        The kind of statement with the dotted path that is imported, and the statement.

    Example:
        >>> list(drop_in_imports("from torchmetrics import *", "torchmetrics"))
        [('from torchmetrics', 'from assay.compat.torchmetrics import *')]
    """
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and not node.level and _is_changed(node.module or "", library):
            names = ", ".join(map(ast.unparse, node.names))
            yield f"from {node.module}", f"from assay.compat.{node.module} import {names}"
        elif isinstance(node, ast.Import):
            for each in node.names:
                if _is_changed(each.name, library):
                    yield f"import {ast.unparse(each)}", _import_of(each)


def _is_changed(path: str, library: str) -> bool:
    return path == library or f"{path}.".startswith(f"{MODULES[library]}.")


def _import_of(each: ast.alias) -> str:
    root, _, inside = each.name.partition(".")
    if each.asname and inside:
        return f"import assay.compat.{each.name} as {each.asname}"
    named = f"from assay.compat import {root}" + (f" as {each.asname}" if each.asname else "")
    return f"import assay.compat.{each.name}; {named}" if inside else named
