"""The signature of a metric: one line that says all of it, as sacrebleu's do, and the metric that a line stands for.

``f1|average:macro|classes:10|zero_division:0|n:898|weighted:no|assay:0.2.0``: the metric; every option, as defaults may
differ between versions; the number of samples; whether they had weights; and the version of assay, last. Options that
are None are left out. `zero_division` and others are the names of the arguments, ``classes`` and ``labels`` those of
`num_classes` and `num_labels`. Strings are percent-encoded, so neither ``|`` nor ``:`` nor a space is in one.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import fields
from importlib import metadata
from typing import Any
from urllib.parse import quote, unquote

import assay.metrics
from assay.errors import ConfigError, describe
from assay.metrics.base import Metric
from assay.metrics.parsing import SHORT

_WORDS = {"yes": True, "no": False, "none": None}
_NAMES = {"num_classes": "classes", "num_labels": "labels"}
_SHORT = {name: short for short, (name, preset) in reversed(SHORT.items()) if not preset}
_AFTER = ("n", "weighted", "assay")
_FUNCTION = "fn="
_SAFE = "_-.+*@=<>/^$"


@functools.cache
def _version() -> str:
    try:
        return metadata.version("assay")
    except metadata.PackageNotFoundError:
        return "unknown"


def signature(metric: Metric, n: int, *, weighted: bool = False) -> str:
    """One line that says what a value is of.

    Args:
        metric: the metric.
        n: how many samples were counted.
        weighted: whether they had weights.

    Example:
        >>> signature(assay.metrics.F1Score(num_classes=10), 898).partition("|logits")[0]
        'f1|average:macro|classes:10'
    """
    return "|".join([*_parts(metric), f"n:{n}", f"weighted:{_written(weighted)}", f"assay:{_version()}"])


def parse_signature(text: str) -> Metric:
    """The metric that a signature stands for.

    Raises:
        ConfigError: it is no signature, or one of a metric with a function, which no line holds.

    Example:
        >>> metric = assay.metrics.F1Score(num_classes=10)
        >>> parse_signature(signature(metric, 898)) == metric
        True
    """
    parts = text.split("|")
    if tuple(part.partition(":")[0] for part in parts[-len(_AFTER) :]) != _AFTER:
        do = "Pass Value.signature, unchanged"
        raise ConfigError(describe("signature", repr(text), "metric|option:value|...|n:...|weighted:...|assay:...", do))
    try:
        return _metric(parts[: -len(_AFTER)])
    except (ConfigError, AttributeError, KeyError, TypeError, ValueError, SyntaxError) as error:
        got = f"{text!r:.200} ({error})"
        raise ConfigError(describe("signature", got, "that of a metric here", "Pass Value.signature")) from error


def _parts(metric: Metric) -> list[str]:
    """The name of a metric, and its options in the order of their names."""
    name = type(metric).__name__
    options = {}
    for field in fields(metric):  # type: ignore[arg-type]
        value = getattr(metric, field.name)
        if field.init and value is not None:
            written = _written(value) if field.compare else _FUNCTION + quote(_name_of(value), safe=_SAFE)
            options[_NAMES.get(field.name, field.name)] = written
    return [_SHORT.get(name, name.lower()), *(f"{key}:{value}" for key, value in sorted(options.items()))]


def _name_of(value: Any) -> str:
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def _written(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return next(word for word, meant in _WORDS.items() if meant is value)
    if isinstance(value, str):
        text = quote(value, safe=_SAFE)
        return f"'{text}" if not text or _meant(text) != value else text
    if isinstance(value, tuple):
        return f"[{','.join(map(_written, value))}]"
    return f"({';'.join(_parts(value))})" if isinstance(value, Metric) else repr(value)


def _meant(text: str) -> Any:
    """The value of an option."""
    if text.startswith(_FUNCTION):
        do = "Pass the metric itself"
        raise ConfigError(describe("signature", f"the function {text!r:.80}", "options that a line holds", do))
    if text.startswith("("):
        return _metric(_split(text[1:-1], ";"))
    if text.startswith("["):
        return tuple(map(_meant, _split(text[1:-1], ",")))
    if text.startswith("'"):
        return unquote(text[1:])
    if text in _WORDS:
        return _WORDS[text]
    try:
        return float(text) if text in ("inf", "-inf", "nan") else ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return unquote(text)


def _metric(parts: list[str]) -> Metric:
    head, *options = parts
    classes = {name.lower(): name for name in assay.metrics.__all__}
    cls = getattr(assay.metrics, SHORT[head][0] if head in SHORT else classes[head])
    names = {short: name for name, short in _NAMES.items()}
    own = {field.name for field in fields(cls)}
    given = dict.fromkeys(own)
    for option in options:
        key, _, value = option.partition(":")
        given[names[key] if names.get(key) in own else key] = _meant(value)
    metric: Metric = cls(**{field.name: given[field.name] for field in fields(cls) if field.init})
    return metric


def _split(text: str, sign: str) -> list[str]:
    """The parts of a text between signs outside of brackets."""
    parts, depth = [""], 0
    for each in text:
        depth += (each in "([") - (each in ")]")
        if each == sign and not depth:
            parts.append("")
        else:
            parts[-1] += each
    return parts if text else []
