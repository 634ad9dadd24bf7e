"""For mkdocstrings: docstrings as Markdown; metrics and records as they are when imported: their bases add to them."""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from griffe import Class, Docstring, Extension, Function, Object, Parameter, ParameterKind, Parameters

sys.path.insert(0, str(Path(__file__).parent))
from docstrings import as_markdown


class RuntimeMetrics(Extension):
    """Takes docstring and signature of each public metric, and the signature of each record, from the class itself."""

    def on_class(self, *, cls: Class, **_: Any) -> None:
        """Replace what the source text of a metric has, and add the signature that a record gets from its base."""
        if any(str(base) == "Record" for base in cls.bases):
            kind = getattr(import_module(cls.module.path), cls.name)
            cls.members["__init__"] = Function("__init__", parameters=_parameters(kind), parent=cls)
        if not cls.path.startswith("assay.metrics.") or cls.name not in import_module("assay.metrics").__all__:
            return
        kind = getattr(import_module(cls.module.path), cls.name)
        cls.docstring = cls.docstring or Docstring("", parent=cls)  # the one that is there knows how it is parsed
        cls.docstring.value = as_markdown(inspect.getdoc(kind) or "")
        cls.members = {"__init__": Function("__init__", parameters=_parameters(kind), parent=cls)}

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Write a docstring as mkdocstrings reads it."""
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def _parameters(kind: type) -> Parameters:
    return Parameters(
        *(
            Parameter(
                each.name,
                annotation=_annotation(each.annotation),
                kind=ParameterKind[each.kind.name.lower()],
                default=None if each.default is each.empty else repr(each.default),
            )
            for each in inspect.signature(kind).parameters.values()
        )
    )


def _annotation(of: Any) -> str:
    return of if isinstance(of, str) else re.sub(r"\b(typing|collections\.abc)\.", "", inspect.formatannotation(of))
