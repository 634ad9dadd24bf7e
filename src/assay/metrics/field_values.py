"""The arguments of metrics: plain numbers, and the choices of literal types."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import numpy as np

from assay.errors import ConfigError, describe

LARGEST_SIZES: Mapping[str, int] = {
    **dict.fromkeys(("num_classes", "num_labels", "num_groups", "num_outputs", "n_bins"), 1 << 24),
    **dict.fromkeys(("num_features", "num_target_features"), 1 << 24),
    "max_k": 1 << 20,
    "outputs": 1 << 16,  # each has tallies of its own
    **dict.fromkeys(("n_gram", "n_char_order", "n_word_order"), 1 << 10),
}
"""The largest values of arguments that states are sized by: what is beyond them is a mistake, or would take hours."""


def check_size(name: str, value: float) -> None:
    """Raise a `ConfigError` for an argument that asks for states of an impossible size."""
    if value > LARGEST_SIZES.get(name, math.inf):
        do = f"Check {name}: it sizes what is counted"
        raise ConfigError(describe(name, f"{value:,}", f"at most {LARGEST_SIZES[name]:,}", do))


def plain(name: str, value: Any, kind: str) -> Any:
    """A value as a plain `int` (of 64 bits), `float` or `bool`.

    Raises:
        ConfigError: it is of another kind.
    """
    make, expected = _PLAIN[kind]
    try:
        return make(value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ConfigError(describe(name, repr(value), expected, f"Pass {name} as a plain {kind}")) from error


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not -(2**63) <= (whole := operator.index(value)) < 2**63:
        raise TypeError
    return whole


def _real(value: Any) -> float:
    if isinstance(value, bool | str | bytes):
        raise TypeError
    number = float(value)
    return _NAN if math.isnan(number) else number


class _EqualNaN(float):
    """NaN that equals NaN, so that equal arguments are equal: from Python 3.13 on dataclasses compare by field."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, float) and math.isnan(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(type(self))


_NAN = _EqualNaN("nan")


def _truth(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError
    return bool(value)


_PLAIN: dict[str, tuple[Callable[[Any], Any], str]] = {
    "int": (_whole, "an integer of at most 64 bits"),
    "float": (_real, "a number"),
    "bool": (_truth, "True or False"),
}


def number_kind(kind: Any) -> tuple[str, bool] | None:
    """What kind of number a type stands for, and whether it may be None; None where it is no number."""
    options = [getattr(each, "__name__", str(each)) for each in get_args(kind) or (kind,)]
    names = [name for name in options if name != "NoneType"]
    return (names[0], len(options) > 1) if len(names) == 1 and names[0] in _PLAIN else None


def literals_of(kind: Any) -> tuple[Any, ...]:
    """The values of a type that is a `Literal`, with None where that is among them; empty for other types."""
    options = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    found = [each for each in options if get_origin(each) is Literal]
    if len(found) + (NoneType in options) != len(options):
        return ()
    return tuple(value for each in found for value in get_args(each)) + ((None,) if NoneType in options else ())
