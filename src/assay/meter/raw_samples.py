"""Raw samples, such as strings, as the columns of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.compiler import is_compiling

from assay.encode.base import Encoder, raw_samples
from assay.errors import ConfigError, StateError, describe
from assay.metrics.base import Metric
from assay.tally.ragged import Ragged


def shared_encoders(metrics: Mapping[str, Metric]) -> tuple[Encoder, ...]:
    """The distinct encoders of metrics.

    Raises:
        ConfigError: the metrics take different things, as strings and tensors.
    """
    kinds = {name: {encoder.takes for encoder in metric.encoders} or {"tensors"} for name, metric in metrics.items()}
    if len(set().union(*kinds.values())) > 1:
        got = ", ".join(f"{' and '.join(sorted(kind))} for {name}" for name, kind in kinds.items())
        do = "Make a meter for each, or Multitask of both"
        raise ConfigError(describe("Meter", f"metrics of {got}", "metrics that take the same samples", do))
    return tuple(dict.fromkeys(encoder for name in sorted(metrics) for encoder in metrics[name].encoders))


def encoded(
    encoders: Iterable[Encoder], preds: Any, target: Any
) -> tuple[Tensor, dict[str, Tensor], dict[str, Ragged]]:
    """Predictions without elements, and what every encoder makes of raw samples: dense and ragged columns.

    Raises:
        InputError: the arguments are no sequences of equal lengths, or a sample cannot be encoded.
    """
    if is_compiling():
        do = "Call update outside of the compiled function"
        raise StateError(describe("update under torch.compile", "raw samples", "tensors", do))
    samples, others = raw_samples(preds, target)
    columns: dict[str, Tensor] = {}
    ragged: dict[str, Ragged] = {}
    for encoder in encoders:
        encoder.check(samples, others)
        rows = encoder.rows(samples, others)
        if isinstance(rows, Ragged):
            ragged[encoder.column] = rows
        else:
            columns[encoder.column] = rows
    device = next((each.device for each in ragged.values()), torch.device("cpu"))
    return torch.empty(len(samples), 0, device=device), columns, ragged
