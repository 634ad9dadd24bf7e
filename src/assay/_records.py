"""Records: frozen dataclasses that are put in order when made, and that go through JSON and come back equal.

Everything that assay saves as JSON derives from `Record`, which does the same for each class, and knows nothing of it
but the types of its fields:

* making one turns what is numeric (a host tensor, a NumPy array or scalar) into plain Python numbers and tuples, and
  refuses what is not of the declared type;
* `encode` gives what ``json.dumps`` takes, `decode` the value back: tuples are lists, keys are
  strings, and an object whose class has ``parse`` stands as the text that this takes;
* two are equal when their JSON is, so NaN equals NaN and a report equals its own copy;
* a class with a schema, such as ``assay.report/6``, has `to_json`, `from_json`, `save` and `load`. The file holds the
  schema and a digest of its content, so that a damaged, edited, foreign or newer file is refused by name.

JSON has no NaN and no infinities. A field that is a number holds them as the strings ``"NaN"``, ``"Infinity"`` and
``"-Infinity"``. A table cell may be text too, so there they are ``{"number": "NaN"}``. Finite numbers keep every digit.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import operator
import os
import re
import types
import typing
from collections.abc import Collection, Iterable, Mapping
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from assay._atomic import Location, location, write_text
from assay.errors import ConfigError, InputError, StateError, describe

CellValue: TypeAlias = str | int | float | None
"""What a cell of a table holds."""

OPTIONAL = {"optional": True}
"""Of a field that is left out of the file where it has its default: readers that do not know it can read the file."""

_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_SERIES = re.compile(r'\[\n[^\[\]{}"]*(?:"-?(?:NaN|Infinity)"[^\[\]{}"]*)*\]')
_FIELD_TYPES: dict[type[Record], dict[str, Any]] = {}  # reading the types of a class costs 20 µs: once is enough


@typing.dataclass_transform(eq_default=False, frozen_default=True, field_specifiers=(dataclasses.field,))
class Record:
    """The base of what is saved: a subclass is a frozen dataclass, without a decorator."""

    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    record_tag: ClassVar[str] = ""
    _schema: ClassVar[str] = ""
    _older: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, tag: str = "", schema: str = "", older: tuple[str, ...] = ()) -> None:
        """Name a class.

        Args:
            tag: tells the classes of a union apart: it becomes the entry ``"is"`` of their JSON.
            schema: the kind of file and its version, of classes that have a file of their own. The version changes when
                a reader of the old form could not read the new.
            older: schemas that are read, too: their files lack fields, which have defaults.
        """
        cls.record_tag, cls._schema, cls._older = tag, schema, older
        dataclasses.dataclass(frozen=True, eq=False)(cls)

    def __post_init__(self) -> None:
        for name, hint in field_types(type(self)).items():
            value = getattr(self, name)
            if type(value) not in _plain_types(hint):  # as most are
                object.__setattr__(self, name, _normal(hint, value, f"{type(self).__name__}.{name}"))
        self._check()

    def _check(self) -> None:
        """Raise where the fields contradict each other; called when all of them have their types."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and encode(self) == encode(other)

    def __hash__(self) -> int:
        return hash(json.dumps(encode(self), sort_keys=True))

    def to_json(self) -> str:
        """It as JSON, with every digit, its schema and a digest of the whole."""
        text = json.dumps(seal({"schema": self._schema} | encode(self)), indent=1, allow_nan=False)
        # A series of numbers belongs on one line. Strings hold no line break (it is written \\n): only lists match.
        return _SERIES.sub(lambda series: " ".join(series[0].split()), text) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str = "") -> Self:
        """What `to_json` wrote.

        Args:
            text: the JSON.
            where: what to call it in messages, mostly the name of the file.

        Raises:
            StateError: the text was cut short or changed, is of another kind, or of another version.
        """
        where = where or _kind(cls._schema)
        return cls.from_data(read_sealed(text, where, cls._schema, cls._older), where)

    def save(self, path: str | os.PathLike[str]) -> Location:
        """Write it as JSON, to a path or a URL; the file is whole or not there.

        Args:
            path: the file, or a folder that is there, in which it gets the name of its kind, such as ``report.json``.
        """
        return write_text(self._file_at(path), self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Args:
            path: the file, or a folder that holds it under the name of its kind, such as ``report.json``; or a URL.

        Raises:
            StateError: the file was cut short or changed, is of another kind, or of another version.
        """
        file = cls._file_at(path)
        return cls.from_json(read_text(file), os.fspath(file))

    @classmethod
    def _file_at(cls, path: str | os.PathLike[str]) -> Location:
        """The file, or that in a folder: one that is there, or a path that ends like one."""
        file = location("path", path)
        is_folder = os.fspath(path).endswith(("/", os.sep)) or file.is_dir()
        return file / f"{_kind(cls._schema)}.json" if is_folder else file

    @classmethod
    def from_data(cls, data: object, where: str) -> Self:
        """The value that `encode` turned into ``data``; StateError names the place that does not fit."""
        if not isinstance(data, dict):
            raise _unreadable(where, data, f"an object with the fields of {cls.__name__}")
        hints = field_types(cls)
        required = {f.name for f in dataclasses.fields(cls) if _has_no_default(f)}
        if not required <= data.keys() - {"is"} <= hints.keys():
            raise _unreadable(where, f"the fields {sorted(data)}", f"the fields {sorted(hints)}")
        present = [name for name in hints if name in data]
        try:
            return cls(**{name: decode(hints[name], data[name], f"{where}.{name}") for name in present})
        except (InputError, ConfigError) as error:
            raise StateError(f"{where} cannot be read. {error}") from error


def seal(data: Mapping[str, Any]) -> dict[str, Any]:
    """A document with the digest of all other entries under ``digest``.

    It is BLAKE2b of the entries as JSON with sorted keys and no spaces: indenting a file anew keeps it, changing a
    value does not. It detects mistakes and damage, and is no signature.

    Args:
        data: what JSON holds; an old digest is replaced.

    Example:
        >>> seal({"schema": "assay.report/6", "title": "digits"})["digest"]
        '145e9e30366ac90f49df635103c06f69'
    """
    content = {name: value for name, value in data.items() if name != "digest"}
    written = json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
    first = {"schema": content["schema"]} if "schema" in content else {}  # which readers look at before anything else
    return first | {"digest": hashlib.blake2b(written, digest_size=16).hexdigest()} | content


def is_sealed(data: Any) -> bool:
    """Whether a document is a mapping that has the digest of its content.

    Example:
        >>> is_sealed(seal({"a": 1})), is_sealed({"a": 1})
        (True, False)
    """
    return isinstance(data, dict) and "digest" in data and seal(data)["digest"] == data["digest"]


def read_sealed(text: str, where: str, schema: str, older: Collection[str] = ()) -> dict[str, Any]:
    """A document that `seal` sealed, without its schema and its digest.

    Args:
        text: the JSON.
        where: what to call it in messages.
        schema: the one that can be read.
        older: others that can be read, too.

    Raises:
        StateError: the text was cut short or changed, is of another kind, or of another version.
    """
    kind = _kind(schema)
    try:
        data = json.loads(text)
        expected = seal(data)["digest"] if isinstance(data, dict) else None
    except (ValueError, RecursionError) as error:
        got = f"JSON that ends or breaks at character {getattr(error, 'pos', 0):,} of {len(text):,}"
        do = f"The file was cut short or changed: write the {kind} again"
        raise StateError(describe(where, got, f"a whole {kind}", do)) from error
    stated = data.pop("schema", None) if isinstance(data, dict) else None
    if stated != schema and stated not in older:
        raise StateError(describe(where, f"schema {stated!r:.80}", f"schema {schema!r}", _other_schema(stated, schema)))
    digest = data.pop("digest", None)
    if digest != expected:
        got = "no digest" if digest is None else f"digest {digest!r:.40}"
        do = f"The file was changed after it was written: write the {kind} again"
        raise StateError(describe(where, got, f"digest {expected!r}, that of its content", do))
    return typing.cast(dict[str, Any], data)


def _kind(schema: str) -> str:
    return schema.removeprefix("assay.").partition("/")[0]


def _other_schema(stated: object, schema: str) -> str:
    """What to do about a file of another kind or version."""
    name, _, version = str(stated).partition("/")
    expected, _, own = schema.partition("/")
    if name != expected or not version.isdecimal():
        return f"Pass a {_kind(schema)} that assay wrote"
    if int(version) > int(own):
        return "Update assay: a newer version wrote it"
    return f"Write the {_kind(schema)} again with this version of assay"


def read_text(path: str | os.PathLike[str]) -> str:
    """The text of a file.

    Raises:
        StateError: it is not UTF-8.
        OSError: it cannot be read.
    """
    where = os.fspath(path)
    try:
        return location("path", path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if error.strerror is None:  # of a URL, whose message is there
            raise
        message = describe(where, error.strerror, "a file that assay reads", "Check the path")
        raise FileNotFoundError(message) from error
    except UnicodeDecodeError as error:
        message = describe(where, "bytes that are not UTF-8", "a file that assay wrote", "Check the path")
        raise StateError(message) from error


def encode(value: object) -> Any:
    """What ``json.dumps(..., allow_nan=False)`` takes, for a `Record` or anything inside one."""
    if isinstance(value, Record):
        hints = field_types(type(value))
        tag = {"is": value.record_tag} if value.record_tag else {}
        shown = [f.name for f in dataclasses.fields(value) if not f.metadata.get("optional") or _differs(f, value)]
        return tag | {name: _encode_field(hints[name], getattr(value, name)) for name in hints if name in shown}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return {name: encode(item) for name, item in value.items()}
    if hasattr(value, "parse"):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return _word(value)
    return value


def decode(hint: Any, data: Any, where: str) -> Any:
    """The inverse of `encode` for a field whose type is ``hint``."""
    if hint == CellValue:
        return _WORDS.get(str(data.get("number")), data) if isinstance(data, dict) else data
    if isinstance(hint, types.UnionType):
        return _decode_union(hint, data, where)
    if typing.get_origin(hint) is tuple:
        if not isinstance(data, list):
            raise _unreadable(where, data, "a list")
        return tuple([decode(_item(hint, i), entry, f"{where}[{i}]") for i, entry in enumerate(data)])
    if typing.get_origin(hint) is dict:
        item = typing.get_args(hint)[1]
        return {k: decode(item, v, f"{where}.{k}") for k, v in data.items()} if isinstance(data, dict) else data
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.from_data(data, where)
    if hasattr(hint, "parse"):
        return hint.parse(data)
    if hint is float and isinstance(data, str):
        if data not in _WORDS:
            raise _unreadable(where, data, "a number")
        return _WORDS[data]
    return data


def field_types(cls: type[Record]) -> dict[str, Any]:
    """The fields of a `Record` class with their types, in order."""
    if cls not in _FIELD_TYPES:
        hints = typing.get_type_hints(cls)
        _FIELD_TYPES[cls] = {field.name: hints[field.name] for field in dataclasses.fields(cls)}
    return _FIELD_TYPES[cls]


@functools.cache
def _plain_types(hint: Any) -> frozenset[Any]:
    """The types whose values are what the type ``hint`` says, unchanged."""
    if isinstance(hint, types.UnionType):
        return frozenset(typing.get_args(hint))
    return frozenset([hint] if isinstance(hint, type) else [])


def _normal(hint: Any, value: Any, where: str) -> Any:
    """``value`` as the type ``hint`` says, in plain Python."""
    if type(value) in _plain_types(hint):
        return value
    if hint is float:
        return _number(float, value, where)
    if hint is int:
        return _number(operator.index, value, where)
    if isinstance(hint, types.UnionType):
        return _normal_union(hint, value, where)
    if typing.get_origin(hint) is tuple:
        return _normal_tuple(hint, value, where)
    if typing.get_origin(hint) is dict:
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise _unfit(where, value, "a dict with strings as keys")
        return {name: _normal(typing.get_args(hint)[1], item, f"{where}.{name}") for name, item in value.items()}
    if typing.get_origin(hint) is Literal:
        if value not in typing.get_args(hint):
            raise _unfit(where, value, f"one of {', '.join(map(repr, typing.get_args(hint)))}")
        return value
    if not isinstance(value, hint):
        raise _unfit(where, value, "a string" if hint is str else f"a {hint.__name__}")
    return value


def _normal_union(hint: Any, value: Any, where: str) -> Any:
    if hint == CellValue:
        return _cell(value, where)
    choices = typing.get_args(hint)
    if types.NoneType in choices:
        return None if value is None else _normal(choices[0], value, where)
    if not isinstance(value, choices):
        raise _unfit(where, value, f"one of {', '.join(choice.__name__ for choice in choices)}")
    return value


def _normal_tuple(hint: Any, value: Any, where: str) -> tuple[Any, ...]:
    items = typing.get_args(hint)
    if type(value) is tuple and items[-1] is Ellipsis and {*map(type, value)} <= _plain_types(items[0]):
        return value
    if isinstance(value, str | bytes | dict) or not isinstance(value, Iterable):
        raise _unfit(where, value, "a sequence")
    if items[-1] is not Ellipsis and len(value := tuple(value)) != len(items):
        raise _unfit(where, value, f"{len(items)} entries")
    item = items[0]
    series = _series(value) if set(items) <= {item, Ellipsis} and item in (int, float) else None
    if series is not None and series.dtype.kind in ("iuf" if item is float else "iu"):
        return tuple((series.astype(np.float64) if item is float else series).tolist())
    if items[-1] is not Ellipsis:
        return tuple([_normal(_item(hint, i), entry, f"{where}[{i}]") for i, entry in enumerate(value)])
    plain = _plain_types(item)
    return tuple(
        [entry if type(entry) in plain else _normal(item, entry, f"{where}[{i}]") for i, entry in enumerate(value)]
    )


def _item(hint: Any, place: int) -> Any:
    """The type of one entry of a tuple: of the same type each (``tuple[int, ...]``), or each of its own."""
    items = typing.get_args(hint)
    return items[0] if items[-1] is Ellipsis else items[min(place, len(items) - 1)]


def _series(value: Any) -> np.ndarray[Any, Any] | None:
    """``value`` as one array, so that a long series costs one pass; None where NumPy cannot take it (bfloat16)."""
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        return None
    return array if array.ndim == 1 else None


def _number(convert: Any, value: Any, where: str) -> Any:
    expected = "an integer" if convert is operator.index else "a number"
    if isinstance(value, str | bytes | bool):
        raise _unfit(where, value, expected)
    try:
        return convert(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise _unfit(where, value, expected) from error


def _cell(value: Any, where: str) -> CellValue:
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        try:
            return operator.index(value)
        except TypeError:  # a tensor of any dtype has __index__
            pass
    return typing.cast(float, _number(float, value, where))


def _decode_union(hint: Any, data: Any, where: str) -> Any:
    choices = typing.get_args(hint)
    if types.NoneType in choices:
        return None if data is None else decode(choices[0], data, where)
    tag = data.get("is") if isinstance(data, dict) else None
    for choice in choices:
        if choice.record_tag == tag:
            return choice.from_data(data, where)
    raise _unreadable(
        where, tag, f'an object whose "is" is one of {", ".join(choice.record_tag for choice in choices)}'
    )


def _encode_field(hint: Any, value: Any) -> Any:
    if hint == tuple[tuple[CellValue, ...], ...]:
        return [[_encode_field(CellValue, cell) for cell in row] for row in value]
    if hint == CellValue and isinstance(value, float) and not math.isfinite(value):
        return {"number": _word(value)}
    return encode(value)


def _word(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _differs(field: dataclasses.Field[Any], record: Record) -> bool:
    return bool(getattr(record, field.name) != field.default)


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _unfit(where: str, value: object, expected: str) -> InputError:
    got = f"{type(value).__name__} {value!r:.60}"
    return InputError(describe(where, got, expected, "Pass plain Python, NumPy or host tensor values"))


def _unreadable(where: str, got: object, expected: str) -> StateError:
    return StateError(describe(where, f"{got!s:.200}", expected, "Write the file again"))
