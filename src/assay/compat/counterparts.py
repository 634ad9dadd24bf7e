"""A metric of assay, made from the arguments of its counterpart in another library."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from torch import Tensor

import assay.metrics
from assay.errors import ConfigError, describe
from assay.metrics.base import Metric
from assay.migrate.table import Counterpart


def counterpart(entry: Counterpart, arguments: Mapping[str, Any], **sizes: int) -> Metric:
    """The metric that measures what a name of another library measures with these arguments.

    Args:
        entry: the row of the table.
        arguments: the value of each parameter; what is missing has its default.
        **sizes: `num_classes` and the like, where the library takes them from the data.

    Raises:
        ConfigError: an argument has no counterpart.

    Example:
        >>> from assay.migrate.table import library
        >>> counterpart(library("torchmetrics").entries["MulticlassAccuracy"], {"num_classes": 3, "top_k": 2})
        Accuracy(num_classes=3, top_k=2, average='macro')
    """
    fields = {name: ast.literal_eval(source) for name, source in entry.writes.items()}
    defaults = {name: source for name, source in entry.defaults().items() if source != "..."}
    given = {name: ast.literal_eval(source) for name, source in defaults.items()} | dict(arguments)
    for name in [each.name for each in entry.takes if each.name in given]:
        restricted = entry.rules.get(name, "").startswith("only")
        if restricted and name not in arguments:
            continue  # the default, for which the row was written
        if (field := _field(entry, name, given[name])) is not None:
            fields[field] = _value(entry, name, given[name])
    metric: Metric = getattr(assay.metrics, entry.assay)(**fields, **sizes)
    return metric


def _field(entry: Counterpart, name: str, value: object) -> str | None:
    """The field of assay's metric that an argument becomes; None where it becomes none."""
    kind, _, rest = entry.rules.get(name, "").partition(" ")
    if kind in ("drop", "data", "transform"):
        return None
    if kind in ("only", "among"):
        values = ast.literal_eval(f"[{rest}]")
        if value not in values:
            do = f"Use another value, or keep {entry.name} of the library itself"
            raise ConfigError(describe(name, value, " or ".join(map(repr, values)), do))
        return name if kind == "among" else None
    return kind.removeprefix("=") if kind.startswith("=") else name


def _value(entry: Counterpart, name: str, value: Any) -> Any:
    """An argument as assay's metric takes it."""
    if isinstance(value, Tensor):
        value = value.tolist()
    if isinstance(value, list):
        return tuple(value)
    source = entry.values.get(name, {}).get(str(value))
    return value if source is None else ast.literal_eval(source)
