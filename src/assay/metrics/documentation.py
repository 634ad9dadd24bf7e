"""Docstrings of metrics: an argument is described once, on its field, and a shared section once, on the base class."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Mapping
from functools import cache
from typing import Any, get_args

SECTIONS = ("Args", "Shapes", "Rounding", "Returns", "Raises", "Example", "Source")
OWN = ("Args", "Example", "Source")
"""Sections that a class does not take from its base."""

ROUNDING: Mapping[str, str] = {
    "exact": "Rounding: the value is that of exact arithmetic on the given inputs, rounded once to float64.",
    "float64": "Rounding: computed in float64 from the samples.",
    "terms": (
        "Rounding: the term of each sample is computed in float32 (float64 where an argument is float64); the sum of\n"
        "the terms is exact."
    ),
}
_HEADING = re.compile(rf"^(?=(?:{'|'.join(SECTIONS)}):)", re.MULTILINE)


def sections(text: str | None) -> dict[str, str]:
    """The parts of a docstring, each with its heading; what stands before the first heading is under "".

    Example:
        >>> sections("The mean.\\n\\nReturns:\\n    A number.\\n\\nSource: Gauss.")
        {'': 'The mean.', 'Returns': 'Returns:\\n    A number.', 'Source': 'Source: Gauss.'}
    """
    summary, *rest = _HEADING.split(inspect.cleandoc(text or ""))
    return {"": summary.strip()} | {part.partition(":")[0]: part.strip() for part in rest}


def fixed_fields(cls: type) -> frozenset[str]:
    """What a class declares as a `ClassVar`: where a base class has a field of that name, it is no field here."""
    return frozenset(name for name, hint in inspect.get_annotations(cls).items() if "ClassVar[" in str(hint))


def field_hints(cls: type) -> dict[str, tuple[Any, str]]:
    """The type and the text of every field that a class itself declares, as `name: Annotated[type, "text"]`."""
    try:
        hints = inspect.get_annotations(cls, eval_str=True)
    except NameError:  # a name that only type checkers see
        hints = inspect.get_annotations(cls)
    fields = {name: hint for name, hint in hints.items() if "ClassVar[" not in str(hint)}
    return {name: get_args(hint)[:2] if hasattr(hint, "__metadata__") else (hint, "") for name, hint in fields.items()}


def docstring(
    written: Mapping[str, str], arguments: Mapping[str, str], inherited: Mapping[str, str], rounding: str
) -> str:
    """The whole docstring of a metric.

    Args:
        written: the sections of its own docstring.
        arguments: the text of every field.
        inherited: the sections of its base class, for those that its own docstring leaves out.
        rounding: of `ROUNDING`.
    """
    shared = {name: part for name, part in inherited.items() if name not in OWN}
    parts = {"Args": _args(arguments), "Rounding": ROUNDING[rounding], **shared, **written}
    return "\n\n".join(parts[name] for name in ("", *SECTIONS) if parts.get(name))


def _args(arguments: Mapping[str, str]) -> str:
    lines = [_argument(name, text) for name, text in arguments.items() if text]
    return "\n".join(["Args:", *lines]) if lines else ""


@cache
def _argument(name: str, text: str) -> str:
    """An argument that many metrics share is wrapped once, as this takes longer than making their classes."""
    return textwrap.fill(f"{name}: {text}", 120, initial_indent="    ", subsequent_indent="        ")
