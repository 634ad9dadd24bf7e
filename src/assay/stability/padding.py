"""The same samples with more padding, and with something else in it."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.evaluation.data.batch import Arguments

ADDED = 3
"""Positions of padding that are added."""
_MASKS = ("attention_mask", "mask", "padding_mask", "key_padding_mask", "src_key_padding_mask")
_TRUE_IS_PADDING = ("key_padding_mask", "src_key_padding_mask")


@dataclass(frozen=True)
class PaddedInputs:
    """Arguments with more padding.

    Attributes:
        arguments: positions and keywords of a call.
        other: the same, with something else in the padding; None without a mask.
        is_left: whether padding stands in front.
        length: how many positions there were before.
    """

    arguments: Arguments
    other: Arguments | None
    is_left: bool
    length: int

    def original(self, outputs: Tensor) -> Tensor:
        """Outputs for the positions that there were before, where outputs have positions."""
        if outputs.ndim < 2 or outputs.shape[1] != self.length + ADDED:
            return outputs
        return outputs[:, ADDED:] if self.is_left else outputs[:, : self.length]


def padded(model: Any, arguments: Arguments, padding: int | None) -> PaddedInputs | None:
    """Samples with more padding; None where neither a mask nor a value of padding says which positions are padding.

    Args:
        model: whose signature names the positions.
        arguments: what it is given.
        padding: the token that is padding, for a model without a mask.
    """
    named = _named(model, arguments)
    mask = next((name for name in _MASKS if isinstance(named.get(name), Tensor) and named[name].ndim == 2), None)
    tokens = [each for each in named.values() if isinstance(each, Tensor) and each.ndim >= 2]
    if mask is None and (padding is None or not tokens):
        return None
    length = int((tokens[0] if mask is None else named[mask]).shape[1])
    valid = _valid(named, mask, padding, tokens)
    is_left = bool((~valid[:, 0]).any()) and bool(valid[:, -1].all())

    def added(name: str, value: Any) -> Any:
        if not isinstance(value, Tensor) or value.ndim < 2 or value.shape[1] != length:
            return value
        fill = 1 if name in _TRUE_IS_PADDING else 0 if name == mask or padding is None else padding
        more = value.new_full((len(value), ADDED, *value.shape[2:]), fill)
        return torch.cat([more, value] if is_left else [value, more], 1)

    longer = {name: added(name, value) for name, value in named.items()}
    other = None if mask is None else {n: _refilled(v, longer[mask], mask, n == mask) for n, v in longer.items()}
    return PaddedInputs(_like(arguments, longer), None if other is None else _like(arguments, other), is_left, length)


def _valid(named: dict[str, Any], mask: str | None, padding: int | None, tokens: list[Tensor]) -> Tensor:
    if mask is None:
        found = tokens[0].ne(0 if padding is None else padding)
        return found if found.ndim == 2 else found.flatten(2).any(2)
    return _is_valid(named[mask], mask)


def _is_valid(mask: Tensor, name: str) -> Tensor:
    return ~mask.bool() if name in _TRUE_IS_PADDING else mask.bool()


def _refilled(value: Any, mask: Tensor, name: str, is_mask: bool) -> Any:
    """A tensor with the values of the first valid position in its padding."""
    if is_mask or not isinstance(value, Tensor) or value.ndim < 2 or value.shape[:2] != mask.shape:
        return value
    valid = _is_valid(mask, name)
    first = value[torch.arange(len(value), device=value.device), valid.int().argmax(1)]
    shape = (*valid.shape, *[1] * (value.ndim - 2))
    return torch.where(valid.reshape(shape), value, first[:, None])


def _named(model: Any, arguments: Arguments) -> dict[str, Any]:
    """All arguments by name; positions without one by their number."""
    args, kwargs = arguments
    try:
        names = list(inspect.signature(getattr(model, "forward", model)).parameters)
    except (TypeError, ValueError):
        names = []
    names += [str(k) for k in range(len(names), len(args))]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _like(arguments: Arguments, named: dict[str, Any]) -> Arguments:
    args, kwargs = arguments
    values = list(named.values())
    return tuple(values[: len(args)]), dict(zip(kwargs, values[len(args) :], strict=True))


def valid_outputs(outputs: Tensor, arguments: Arguments, model: Any) -> Tensor:
    """Outputs with 0 at positions that are padding: what is computed there is of no interest."""
    named = _named(model, arguments)
    mask = next((name for name in _MASKS if isinstance(named.get(name), Tensor) and named[name].ndim == 2), None)
    if mask is None or outputs.ndim < 3 or outputs.shape[:2] != named[mask].shape:
        return outputs
    valid = _is_valid(named[mask], mask).to(outputs.device)
    return torch.where(valid.reshape(*valid.shape, *[1] * (outputs.ndim - 2)), outputs, 0.0)
