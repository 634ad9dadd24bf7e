"""For mkdocstrings: docstrings as Markdown, and metrics as they are when imported, since declarations make theirs."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

from griffe import Class, Docstring, Extension, Function, Object, Parameter, ParameterKind, Parameters


class RuntimeMetrics(Extension):
    """Takes docstring and signature of each public metric from the class itself."""

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Replace what the source text of a metric has."""
        if not cls.path.startswith("assay.metrics.") or cls.name not in import_module("assay.metrics").__all__:
            return
        kind = getattr(import_module(cls.module.path), cls.name)
        cls.docstring = Docstring(as_markdown(inspect.getdoc(kind) or ""), parent=cls)
        cls.members = {"__init__": Function("__init__", parameters=_parameters(kind), parent=cls)}

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Write a docstring as mkdocstrings reads it."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(docstring: str) -> str:
    """A docstring with the headings that mkdocstrings knows, and others as bold paragraphs."""
    text = re.sub(r"^Example:\n", "Examples:\n", docstring, flags=re.MULTILINE)
    text = re.sub(r"^(Rounding|Source|Formula): ", r"**\1:** ", text, flags=re.MULTILINE)
    return re.sub(r"^Shapes:\n((?:    .*\n?)+)", _shapes, text, flags=re.MULTILINE)


def _shapes(match: re.Match[str]) -> str:
    return f"**Shapes:**\n\n{inspect.cleandoc(match[1])}\n"


def _parameters(kind: type) -> Parameters:
    return Parameters(
        *(
            Parameter(
                each.name,
                annotation=re.sub(r"\b(typing|collections\.abc)\.", "", inspect.formatannotation(each.annotation)),
                kind=ParameterKind[each.kind.name.lower()],
                default=None if each.default is each.empty else repr(each.default),
            )
            for each in inspect.signature(kind).parameters.values()
        )
    )
