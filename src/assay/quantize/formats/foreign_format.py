"""What it takes to read the weights of another library's folder: which tensors belong together, and what they mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from torch import Tensor

Config: TypeAlias = Mapping[str, Any]
"""``quantization_config`` of ``config.json``."""


@dataclass(frozen=True)
class ForeignFormat:
    """A format whose quantized weights are read as floats.

    Attributes:
        marker: what the name of a tensor ends with that every quantized layer has.
        parts: what the names of the tensors of a quantized layer end with; all but the marker may be missing.
        dequantize: the weight of a layer of shape (out, in) in float32, from its tensors and the configuration.
        refused: why folders with a configuration cannot be read, with what to do; empty where they can.
        note: what is left out of a model that is read, such as rounded activations; empty where nothing is.
    """

    marker: str
    parts: tuple[str, ...]
    dequantize: Callable[[Mapping[str, Tensor], Config], Tensor]
    refused: Callable[[Config], str]
    note: Callable[[Config], str] = lambda config: ""
