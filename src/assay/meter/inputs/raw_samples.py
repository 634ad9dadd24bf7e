"""Encoders: raw samples, such as strings, and what functions of the caller give, as the columns of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from assay.encode.base import TENSORS, Encoder
from assay.errors import ConfigError, describe
from assay.metrics.base import Metric
from assay.tally.ragged import Ragged


def shared_encoders(metrics: Mapping[str, Metric]) -> tuple[Encoder, ...]:
    """The distinct encoders of metrics.

    Raises:
        ConfigError: the metrics take different things, as strings and tensors; or two functions have one name.
    """
    kinds = {name: {encoder.takes for encoder in metric.encoders} or {TENSORS} for name, metric in metrics.items()}
    if len(set().union(*kinds.values())) > 1:
        got = ", ".join(f"{' and '.join(sorted(kind))} for {name}" for name, kind in kinds.items())
        do = "Make a meter for each, or Multitask of both"
        raise ConfigError(describe("Meter", f"metrics of {got}", "metrics that take the same samples", do))
    distinct: dict[str, Encoder] = {}
    for encoder in (each for name in sorted(metrics) for each in metrics[name].encoders):
        other = distinct.setdefault(encoder.column, encoder)
        if not (other.function is encoder.function or other.function == encoder.function):
            do = "Give each function a name of its own: name='...'"
            raise ConfigError(describe("Meter", f"two functions for {encoder.column}", "one", do))
    return tuple(distinct.values())


def encoded(
    encoders: Iterable[Encoder], preds: Any, target: Any, columns: Mapping[str, Any]
) -> tuple[Tensor, dict[str, Tensor], dict[str, Ragged]]:
    """Predictions without elements, and what every encoder makes of the arguments: dense and ragged columns.

    Raises:
        InputError: the arguments are no sequences of equal lengths, or a sample cannot be encoded.
    """
    dense: dict[str, Tensor] = {}
    ragged: dict[str, Ragged] = {}
    for encoder in encoders:
        rows = encoder.encode(preds, target, {name: columns[name] for name in sorted(encoder.columns)})
        if isinstance(rows, Ragged):
            ragged[encoder.column] = rows
        else:
            dense[encoder.column] = rows
    parts: list[Tensor | Ragged] = [*ragged.values(), *dense.values()]
    return torch.empty(len(parts[0]), 0, device=parts[0].device), dense, ragged
