"""Frozen values that are put in order when made, and that go through JSON and come back equal.

A report is built from a handful of dataclasses. They all derive from `Plain`, which does the same three things for
each, and knows nothing of them but the types of their fields:

* making one turns what is numeric (a host tensor, a NumPy array or scalar) into plain Python numbers and tuples, and
  refuses what is not of the declared type;
* `encode` gives what ``json.dumps`` takes, `decode` the value back;
* two are equal when their JSON is, so NaN equals NaN and a report equals its own copy.

JSON has no NaN and no infinities. A field that is a number holds them as the strings ``"NaN"``, ``"Infinity"`` and
``"-Infinity"``. A table cell may be text too, so there they are ``{"number": "NaN"}``. Finite numbers keep every digit.
"""

from __future__ import annotations

import dataclasses
import json
import math
import operator
import types
import typing
from collections.abc import Iterable
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from assay.errors import ConfigError, InputError, StateError, describe

Cell: TypeAlias = str | int | float | None

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_FIELD_TYPES: dict[type[Plain], dict[str, Any]] = {}  # reading the types of a class costs 20 µs: once is enough


class Plain:
    """The base of every part of a report; subclasses are ``@dataclass(frozen=True, eq=False)``."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    _tag: ClassVar[str] = ""

    def __init_subclass__(cls, tag: str = "") -> None:
        """``tag`` tells the classes of a union apart: it becomes the entry ``"is"`` of their JSON."""
        cls._tag = tag

    def __post_init__(self) -> None:
        for name, hint in field_types(type(self)).items():
            object.__setattr__(self, name, _normal(hint, getattr(self, name), f"{type(self).__name__}.{name}"))
        self._check()

    def _check(self) -> None:
        """Raise where the fields contradict each other; called when all of them have their types."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and encode(self) == encode(other)

    def __hash__(self) -> int:
        return hash(json.dumps(encode(self), sort_keys=True))

    @classmethod
    def from_data(cls, data: object, where: str) -> Self:
        """The value that `encode` turned into ``data``; StateError names the place that does not fit."""
        if not isinstance(data, dict):
            raise _unreadable(where, data, f"an object with the fields of {cls.__name__}")
        hints = field_types(cls)
        required = {f.name for f in dataclasses.fields(cls) if _has_no_default(f)}
        if not required <= data.keys() - {"is"} <= hints.keys():
            raise _unreadable(where, f"the fields {sorted(data)}", f"the fields {sorted(hints)}")
        given = {name: decode(hint, data[name], f"{where}.{name}") for name, hint in hints.items() if name in data}
        try:
            return cls(**given)
        except (InputError, ConfigError) as error:
            raise StateError(f"{where} cannot be read. {error}") from error


def encode(value: object) -> Any:
    """What ``json.dumps(..., allow_nan=False)`` takes, for a `Plain` or anything inside one."""
    if isinstance(value, Plain):
        hints = field_types(type(value))
        tag = {"is": value._tag} if value._tag else {}
        return tag | {name: _encode_field(hint, getattr(value, name)) for name, hint in hints.items()}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return _word(value)
    return value


def decode(hint: Any, data: Any, where: str) -> Any:
    """The inverse of `encode` for a field whose type is ``hint``."""
    if hint == Cell:
        return _WORDS.get(str(data.get("number")), data) if isinstance(data, dict) else data
    if isinstance(hint, types.UnionType):
        return _decode_union(hint, data, where)
    if typing.get_origin(hint) is tuple:
        if not isinstance(data, list):
            raise _unreadable(where, data, "a list")
        item = typing.get_args(hint)[0]
        return tuple([decode(item, entry, f"{where}[{i}]") for i, entry in enumerate(data)])
    if isinstance(hint, type) and issubclass(hint, Plain):
        return hint.from_data(data, where)
    if hint is float and isinstance(data, str):
        if data not in _WORDS:
            raise _unreadable(where, data, "a number")
        return _WORDS[data]
    return data


def field_types(cls: type[Plain]) -> dict[str, Any]:
    """The fields of a `Plain` class with their types, in order."""
    if cls not in _FIELD_TYPES:
        hints = typing.get_type_hints(cls)
        _FIELD_TYPES[cls] = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
    return _FIELD_TYPES[cls]


def _normal(hint: Any, value: Any, where: str) -> Any:
    """``value`` as the type ``hint`` says, in plain Python."""
    if hint == Cell:
        return _cell(value, where)
    if isinstance(hint, types.UnionType):
        return _normal_union(hint, value, where)
    if typing.get_origin(hint) is tuple:
        return _normal_tuple(typing.get_args(hint)[0], value, where)
    if typing.get_origin(hint) is dict:
        if not isinstance(value, dict) or not all(isinstance(text, str) for pair in value.items() for text in pair):
            raise _unfit(where, value, "a dict of strings")
        return dict(value)
    if hint is float:
        return _number(float, value, where)
    if hint is int:
        return _number(operator.index, value, where)
    if not isinstance(value, hint):
        raise _unfit(where, value, "a string" if hint is str else f"a {hint.__name__}")
    return value


def _normal_union(hint: Any, value: Any, where: str) -> Any:
    choices = typing.get_args(hint)
    if types.NoneType in choices:
        return None if value is None else _normal(choices[0], value, where)
    if not isinstance(value, choices):
        raise _unfit(where, value, f"one of {', '.join(choice.__name__ for choice in choices)}")
    return value


def _normal_tuple(item: Any, value: Any, where: str) -> tuple[Any, ...]:
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        raise _unfit(where, value, "a sequence")
    series = _series(value) if item in (int, float) else None
    if series is not None and series.dtype.kind in ("iuf" if item is float else "iu"):
        return tuple((series.astype(np.float64) if item is float else series).tolist())
    return tuple([_normal(item, entry, f"{where}[{i}]") for i, entry in enumerate(value)])


def _series(value: Any) -> np.ndarray[Any, Any] | None:
    """``value`` as one array, so that a long series costs one pass; None where NumPy cannot take it (bfloat16)."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None
    return array if array.ndim == 1 else None


def _number(convert: Any, value: Any, where: str) -> Any:
    expected = "a whole number" if convert is operator.index else "a number"
    if isinstance(value, str | bytes | bool):
        raise _unfit(where, value, expected)
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise _unfit(where, value, expected) from error


def _cell(value: Any, where: str) -> Cell:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        try:
            return operator.index(value)
        except TypeError:  # a tensor has __index__ whatever its dtype
            pass
    return typing.cast(float, _number(float, value, where))


def _decode_union(hint: Any, data: Any, where: str) -> Any:
    choices = typing.get_args(hint)
    if types.NoneType in choices:
        return None if data is None else decode(choices[0], data, where)
    tag = data.get("is") if isinstance(data, dict) else None
    for choice in choices:
        if choice._tag == tag:
            return choice.from_data(data, where)
    raise _unreadable(where, tag, f'an object whose "is" is one of {", ".join(choice._tag for choice in choices)}')


def _encode_field(hint: Any, value: Any) -> Any:
    if hint == tuple[tuple[Cell, ...], ...]:
        return [[{"number": _word(c)} if _is_special(c) else c for c in row] for row in value]
    return encode(value)


def _is_special(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _unfit(where: str, value: object, expected: str) -> InputError:
    got = f"{type(value).__name__} {value!r:.60}"
    return InputError(describe(where, got, expected, "Pass plain Python, NumPy or host tensor values"))


def _unreadable(where: str, got: object, expected: str) -> StateError:
    return StateError(describe(where, f"{got!s:.200}", expected, "Write the report again with Report.save"))
