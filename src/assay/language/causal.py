"""A causal language model, whoever wrote it: token ids in, logits out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from assay.errors import ConfigError, ShapeError, describe
from assay.evaluation.model.pipelines import PipelineModel

_POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_positions")


class CausalModel(nn.Module):
    """A model that gives, for each token of `(B, T)`, logits of the next one, `(B, T, V)`.

    Models of Hugging Face are asked to keep no cache of keys. Of what a model gives, a tensor, `logits`, or the first
    of a tuple is taken.

    Args:
        model: a module or a function of token ids.

    Raises:
        ConfigError: it cannot be called.
        ShapeError: when run: the model gives something else, such as one row of logits a text.

    Example:
        >>> import torch
        >>> CausalModel(nn.Embedding(256, 256))(torch.tensor([[1, 2, 3]])).shape
        torch.Size([1, 3, 256])
    """

    def __init__(self, model: Callable[..., Any]) -> None:
        super().__init__()
        if not callable(model):
            raise ConfigError(describe("model", repr(model)[:80], "a module or a function", "Make the model first"))
        self.model = model
        self._options = {"use_cache": False} if takes(model, "use_cache") else {}

    @property
    def positions(self) -> int | None:
        """How many tokens the model can hold, as its configuration or its attribute `max_positions` says."""
        return positions_of(self.model)

    def forward(self, input_ids: Tensor) -> Tensor | None:
        outputs = self.model(input_ids, **self._options)
        if outputs is None and isinstance(self.model, PipelineModel):
            return None
        result = logits_of(outputs)
        if result.ndim != 3 or result.shape[:2] != input_ids.shape:
            shape = tuple(input_ids.shape)
            do = "Pass a causal language model; one that gives (B, V, T) needs movedim(1, -1)"
            if result.ndim == 3 and len(result) == len(input_ids):
                do += ", and one with some tokens on each process a DTensor with Shard(1)"
            expected = f"logits of shape {(*shape, 'V')} for ids of shape {shape}".replace("'", "")
            raise ShapeError(describe("outputs of the model", f"shape {tuple(result.shape)}", expected, do))
        return result


def takes(model: Callable[..., Any], name: str) -> bool:
    """Whether a model takes an argument of this name."""
    try:
        return name in inspect.signature(getattr(model, "forward", model)).parameters
    except (TypeError, ValueError):
        return False


def positions_of(model: Any) -> int | None:
    """How many tokens a model can hold; None where it does not say."""
    for holder in (getattr(model, "config", None), model):
        for name in _POSITIONS:
            value = getattr(holder, name, None)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def vocabulary_of(model: Any) -> int | None:
    """How many tokens a model knows, as its configuration says; None where it does not."""
    size = getattr(getattr(model, "config", None), "vocab_size", None)
    return size if isinstance(size, int) and size > 0 else None


def logits_of(outputs: Any) -> Tensor:
    """The logits in what a model gave.

    Raises:
        ConfigError: there are none.
    """
    first = outputs[0] if isinstance(outputs, tuple | list) and outputs else None
    named = outputs.get("logits") if isinstance(outputs, dict) else getattr(outputs, "logits", None)
    for result in (outputs, named, first):
        if isinstance(result, Tensor):
            return result
    expected = "a tensor, or an output with logits"
    do = "Pass a causal language model, or wrap it in a function that gives its logits"
    raise ConfigError(describe("outputs of the model", type(outputs).__name__, expected, do))
