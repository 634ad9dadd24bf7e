"""All modules of a model, also those that `named_modules` does not reach."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import nn

OF_TORCH = frozenset(vars(nn.Module())) - {"training"}
"""The attributes that every module has."""
DEEP = 4
"""How many lists and dictionaries inside each other are looked into."""


def every_module(model: Any) -> dict[str, nn.Module]:
    """All modules of a model by name: submodules, and those that lists and other attributes hold."""
    found: dict[str, nn.Module] = {}
    if isinstance(model, nn.Module):
        known = {id(each) for each in model.modules()}
        found |= dict(model.named_modules())
        for name, module in list(found.items()):
            for inner, other in _held(vars(module), name, 0):
                if id(other) not in known:
                    known.add(id(other))
                    found |= {f"{inner}.{sub}".rstrip("."): each for sub, each in every_module(other).items()}
    return found


def _held(value: Any, name: str, depth: int) -> Iterator[tuple[str, nn.Module]]:
    if isinstance(value, nn.Module):
        yield name, value
    elif depth < DEEP and isinstance(value, Mapping | list | tuple):
        entries = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, each in entries:
            if depth or key not in OF_TORCH:
                yield from _held(each, f"{name}.{key}".lstrip("."), depth + 1)
