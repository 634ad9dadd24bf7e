"""A model that is named on the command line, with what else its file or folder holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn


@dataclass(frozen=True)
class Model:
    """A model that was named.

    Attributes:
        name: what to call it: the last part of what was written.
        what: what it is, in words.
        model: what is called with a batch.
        classes: the names of its classes, where it brings them.
        folder: where its tokenizer is, if it has one.
    """

    name: str
    what: str
    model: Callable[..., Any]
    classes: tuple[str, ...] = ()
    folder: Path | None = None

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of its weights, which inputs must have; without weights float32, and float64 of the identity."""
        tensors = self.model.parameters() if isinstance(self.model, nn.Module) else ()
        default = torch.float64 if self.is_identity else torch.float32
        return next((tensor.dtype for tensor in tensors if tensor.is_floating_point()), default)

    @property
    def is_identity(self) -> bool:
        """Whether its predictions are its inputs."""
        return isinstance(self.model, nn.Identity)
