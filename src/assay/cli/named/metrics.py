"""Metrics as they are written on the command line: ``[name=]metric[:argument=value,...]``."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import assay.metrics
from assay.errors import ConfigError, describe
from assay.metrics.base import Metric


def open_metrics(texts: Sequence[str]) -> dict[str, Metric]:
    """Metrics by name, each as ``[name=]metric[:argument=value,...]``.

    Args:
        texts: what was written; capitals, dashes and the endings "Score" and "Error" may be left out.

    Example:
        >>> open_metrics(["top2=accuracy:num_classes=10,top_k=2"])["top2"].top_k
        2

    Raises:
        ConfigError: no such metric, no such argument, or one name twice.
    """
    if not texts:
        raise ConfigError(describe("--metrics", "none", "one or more", "Write --metrics accuracy:num_classes=10"))
    found: dict[str, Metric] = {}
    for text in texts:
        head, _, arguments = text.partition(":")
        label, _, kind = head.rpartition("=")
        metric = _metric(kind, arguments)
        name = label or kind
        if name in found:
            do = "Give names, as in a=accuracy:num_classes=10"
            raise ConfigError(describe("--metrics", f"{name} twice", "names that differ", do))
        found[name] = metric
    return found


_OF_METRICS = (Metric.__name__, "Arithmetic", "ByClass", "PerOutput")  # what takes metrics cannot be written in a word


def _metric(kind: str, arguments: str) -> Metric:
    known = {name.lower(): name for name in assay.metrics.__all__ if name not in _OF_METRICS}
    wanted = kind.lower().replace("_", "").replace("-", "")
    wanted = next((name for name in (wanted, f"{wanted}score", f"{wanted}error") if name in known), wanted)
    if wanted not in known:
        names = ", ".join(sorted(known))
        raise ConfigError(describe("--metrics", repr(kind), f"one of {names}", "Check the spelling"))
    fields = dict(_argument(each) for each in arguments.split(",") if each)
    cls: Callable[..., Metric] = getattr(assay.metrics, known[wanted])
    try:
        return cls(**fields)
    except TypeError as error:
        allowed = ", ".join(inspect.signature(cls).parameters) or "none"
        got = f"{', '.join(fields) or 'no arguments'} ({error})"
        raise ConfigError(describe(f"--metrics {kind}", got, f"arguments among {allowed}", "Correct them")) from error


def _argument(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        do = "Write accuracy:num_classes=10,average=macro"
        raise ConfigError(describe("--metrics", repr(text), "argument=value", do))
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return name, words[value.lower()]
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value
