"""One array in JSON: as few bytes as its values need, with a digest that tells when a byte was changed.

Integers in equal steps are two numbers. Booleans are bits. Other integers, or their differences where that is
shorter, and floats take the smallest type that holds them exactly. What is left is compressed (zlib) and written in
base64. Arrays of many samples are columns of an Arrow file beside the JSON (`sample_files`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import zlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from assay._records import Record
from assay.errors import DtypeError, InputError, ShapeError, StateError, describe

Array: TypeAlias = NDArray[Any]

FORMS = ("range", "bits", "numbers", "differences", "text", "file")
_INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64")
_FLOATS = ("float16", "float32", "float64")


class ColumnFile(Protocol):
    """A file that holds arrays by name."""

    path: Any

    def column(self, name: str) -> Array:
        """One of the arrays."""


@dataclass(frozen=True, eq=False)
class PackedArray(Record):
    """An array of booleans, integers, floats or strings; made by `PackedArray.of`.

    Args:
        form: how it is written, one of ``FORMS``.
        dtype: the type of the numbers that were written.
        count: how many values there are.
        size: how many bytes they are before compression.
        digest: BLAKE2b of these bytes.
        data: the bytes, compressed, in base64; for a range its first value and its step; for a file its name and the
            column, and size and digest are those of the file.

    Raises:
        InputError: the data do not unpack to what the other fields say.
    """

    form: str
    dtype: str
    count: int
    size: int
    digest: str
    data: str

    @classmethod
    def of(cls, values: Any, what: str = "values") -> Self:
        """Pack a sequence.

        Args:
            values: one-dimensional: a list, an array, a host tensor.
            what: what to call it in messages.

        Raises:
            ShapeError: it has not one dimension.
            DtypeError: it is neither boolean, nor integers within int64, nor floats, nor strings.

        Example:
            >>> PackedArray.of(range(1000)).data
            '0 1'
            >>> PackedArray.of([True, False, True]).values
            array([ True, False,  True])
        """
        array = _array(values, what)
        if array.dtype.kind == "O":
            return cls._pack("text", "str", len(array), json.dumps(array.tolist(), separators=(",", ":")).encode())
        if array.dtype.kind == "b":
            return cls._pack("bits", "bool", len(array), np.packbits(array).tobytes())
        if array.dtype.kind == "f":
            return cls._numbers("numbers", _narrowed(array, _FLOATS))
        steps = np.diff(array)  # wraps around where a step leaves int64, and comes back when it is summed
        step = int(steps[0]) if len(steps) else 1
        if (steps == step).all() and (not len(steps) or int(array[0]) + step * len(steps) == int(array[-1])):
            return cls._range(array, step)
        plain = cls._numbers("numbers", _narrowed(array, _INTEGERS))
        apart = cls._numbers("differences", _narrowed(np.concatenate([array[:1], steps]), _INTEGERS))
        return min(plain, apart, key=lambda packed: len(packed.data))

    @classmethod
    def _range(cls, array: Array, step: int) -> Self:
        data = f"{int(array[0]) if len(array) else 0} {step}"
        return cls("range", "int64", len(array), 0, _digest(f"{data} {len(array)}".encode()), data)

    @classmethod
    def _numbers(cls, form: str, array: Array) -> Self:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return cls._pack(form, array.dtype.name, len(array), little.tobytes())

    @classmethod
    def _pack(cls, form: str, dtype: str, count: int, raw: bytes) -> Self:
        data = base64.b64encode(zlib.compress(raw, 6)).decode("ascii")
        return cls(form, dtype, count, len(raw), _digest(raw), data)

    @classmethod
    def in_file(cls, packed: PackedArray, file: ColumnFile, column: str, name: str, digest: str) -> Self:
        """An array that was written to a file.

        Args:
            packed: the array.
            file: the file.
            column: the column of the file.
            name: the name of the file, seen from the folder of the report.
            digest: of the file.
        """
        kind = {"text": "str", "bits": "bool"}.get(packed.form, packed.dtype)
        return cls("file", kind, len(packed), 0, digest, f"{name}#{column}").attached(file, column)

    def attached(self, file: ColumnFile, column: str) -> Self:
        """This array, whose values are in a column of a file."""
        copy = replace(self)
        object.__setattr__(copy, "_column", (file, column))
        return copy

    @property
    def file(self) -> ColumnFile | None:
        """The file that the values are in; None where they are in JSON, or it is not known where the file is."""
        column: tuple[ColumnFile, str] | None = self.__dict__.get("_column")
        return None if column is None else column[0]

    @property
    def is_text(self) -> bool:
        """Whether the values are strings."""
        return self.form == "text" or (self.form == "file" and self.dtype == "str")

    @property
    def is_yes_or_no(self) -> bool:
        """Whether the values are booleans."""
        return self.form == "bits" or (self.form == "file" and self.dtype == "bool")

    def _check(self) -> None:
        if self.form not in FORMS:
            raise _broken(f"form {self.form!r:.40}", f"one of {', '.join(FORMS)}")
        if self.form == "file":  # it is read when it is needed
            return
        if self.form == "range":
            self._ends()
        elif len(self.values) != self.count:
            raise _broken(f"{len(self.values)} values", f"{self.count} values, as its count says")

    def __len__(self) -> int:
        return self.count

    @property
    def values(self) -> Array:
        """The array, read-only: bool, int64, float64, or objects that are str; of a file it is read each time."""
        if self.form != "file":
            return self._values
        if "_column" not in self.__dict__:
            do = "Read the report with Report.load, from the folder that it was written to"
            raise StateError(describe(f"samples in {self.data.partition('#')[0]}", "no folder", "one", do))
        file, column = self.__dict__["_column"]
        array: Array = file.column(column)
        if len(array) != self.count:
            raise _broken(f"{len(array)} values", f"{self.count} values, as its count says")
        array.setflags(write=False)
        return array

    @cached_property
    def _values(self) -> Array:
        array = self._unpacked()
        array.setflags(write=False)
        return array

    def _unpacked(self) -> Array:
        if self.form == "range":
            return self._stepped()
        raw = _inflated(self.data, self.size)
        if _digest(raw) != self.digest:
            raise _broken("bytes that do not have the stored digest", "the bytes that were written")
        if self.form == "text":
            return _texts(raw)
        if self.form == "bits":
            return _bits(raw, self.count)
        if self.dtype not in (*_INTEGERS, *_FLOATS) or len(raw) != self.count * np.dtype(self.dtype).itemsize:
            raise _broken(f"{len(raw)} bytes of {self.dtype!r:.40}", f"{self.count} numbers")
        stored = np.frombuffer(raw, np.dtype(self.dtype).newbyteorder("<"))
        array = stored.astype(np.float64 if stored.dtype.kind == "f" else np.int64)
        return np.cumsum(array) if self.form == "differences" else array

    def _stepped(self) -> Array:
        first, step = self._ends()
        return first + step * np.arange(self.count, dtype=np.int64)

    def _ends(self) -> tuple[int, int]:
        """The first value and the step of a range; without making it, however long a damaged file says it is."""
        try:
            first, step = map(int, self.data.split())
        except ValueError as error:
            raise _broken(f"{self.data!r:.40}", "a first number and a step") from error
        if _digest(f"{self.data} {self.count}".encode()) != self.digest:
            raise _broken("a range that does not have the stored digest", "the range that was written")
        if self.count < 0 or not all(-(2**63) <= end < 2**63 for end in (first, first + step * max(0, self.count - 1))):
            raise _broken(f"{self.count} numbers from {first} by {step}", "numbers within int64")
        return first, step


def _array(values: Any, what: str) -> Array:
    """``values`` as bool, int64, float64 or object (texts), one-dimensional, in the order of bytes of this machine."""
    sequence = values if hasattr(values, "__array__") or isinstance(values, range) else list(values)
    try:
        array = np.asarray(sequence)
    except (TypeError, ValueError, RuntimeError) as error:  # a tensor elsewhere, or bfloat16, or a ragged list
        raise _unfit(what, f"{type(values).__name__} that NumPy does not take ({error!s:.80})") from error
    if array.ndim != 1:
        raise ShapeError(describe(what, f"shape {array.shape}", "one value for each sample", "Pass one dimension"))
    if not len(array) and array.dtype.kind != "O":
        return array.astype(np.bool_ if array.dtype.kind == "b" else np.int64 if array.dtype.kind in "iu" else float)
    if array.dtype.kind in "OUT":
        if not all(isinstance(each, str) for each in sequence):  # NumPy would have made texts of numbers among texts
            raise _unfit(what, ", ".join(sorted({type(each).__name__ for each in sequence})))
        return _objects([str(each) for each in sequence])
    if array.dtype.kind == "b":
        return array.astype(np.bool_)
    if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
        return array.astype(np.float64)
    if array.dtype.kind in "iu" and (array.dtype != np.uint64 or int(array.max()) < 2**63):
        return array.astype(np.int64)
    raise _unfit(what, array.dtype)


def narrowed(array: Array) -> Array:
    """An array of booleans, int64 or float64 in the smallest type that holds every value exactly."""
    return array if array.dtype.kind == "b" else _narrowed(array, _FLOATS if array.dtype.kind == "f" else _INTEGERS)


def _narrowed(array: Array, choices: tuple[str, ...]) -> Array:
    """``array`` in the first of ``choices`` that holds every value exactly."""
    for name in choices:
        with np.errstate(over="ignore", invalid="ignore"):
            narrow = array.astype(name)
        if np.array_equal(narrow.astype(array.dtype), array, equal_nan=array.dtype.kind == "f"):
            return narrow
    return array


def _inflated(data: str, size: int) -> bytes:
    """The bytes behind ``data``; never more than the size that was stored, whatever was put there."""
    inflater = zlib.decompressobj()
    try:
        raw = inflater.decompress(base64.b64decode(data.encode("ascii"), validate=True), max(1, size + 1))
    except (ValueError, binascii.Error, zlib.error, OverflowError, MemoryError) as error:
        raise _broken("bytes that do not unpack", "zlib in base64") from error
    if len(raw) != size or (size and not inflater.eof):
        raise _broken(f"{len(raw)} bytes{' or more' if len(raw) > size else ''}", f"{size} bytes")
    return raw


def _texts(raw: bytes) -> Array:
    try:
        texts = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise _broken("a text that is not JSON", "a list of texts") from error
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise _broken("JSON of another kind", "a list of texts")
    return _objects(texts)


def _objects(texts: list[str]) -> Array:
    """Texts as they are: NumPy's own text type drops NUL characters at the end."""
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def _bits(raw: bytes, count: int) -> Array:
    if not 0 <= count <= 8 * len(raw) or len(raw) != (count + 7) // 8:
        raise _broken(f"{len(raw)} bytes of bits", f"{count} bits")
    return np.unpackbits(np.frombuffer(raw, np.uint8), count=count).astype(np.bool_)


def _digest(raw: bytes) -> str:
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def _broken(got: str, expected: str) -> InputError:
    return InputError(describe("PackedArray", got, expected, "The file was changed or damaged: write the report again"))


def _unfit(what: str, got: object) -> DtypeError:
    expected = "booleans, integers within int64, floats of at most 64 bits, or strings"
    return DtypeError(describe(what, got, expected, "Convert them first"))
