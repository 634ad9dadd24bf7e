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
from collections.abc import Iterable, Iterator
from dataclasses import replace
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
_LEVEL = 4  # of zlib: labels take a quarter of the time of level 6, and 1.4 % more bytes; bits take level 1
_TRIED = 1 << 16  # integers whose packed sizes say whether they or their differences take less
CHUNK_ROWS = 1 << 18
"""Values of large arrays that are in memory at a time."""


class ColumnFile(Protocol):
    """A file that holds arrays by name."""

    path: Any

    def chunks(self, name: str) -> Iterator[Array]:
        """One of the arrays, `CHUNK_ROWS` values at a time."""


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
        if (stepped := cls.of_equal_steps([array])) is not None:
            return stepped
        steps = np.diff(array)  # wraps around where a step leaves int64, and comes back when it is summed
        forms = {"numbers": array, "differences": np.concatenate([array[:1], steps])}
        tried = {form: cls._numbers(form, _narrowed(each[:_TRIED], _INTEGERS)) for form, each in forms.items()}
        form = min(tried, key=lambda each: len(tried[each].data))
        return tried[form] if len(array) <= _TRIED else cls._numbers(form, _narrowed(forms[form], _INTEGERS))

    @classmethod
    def of_equal_steps(cls, chunks: Iterable[Array]) -> Self | None:
        """Integers in equal steps, from arrays that follow each other; None where they are anything else.

        Args:
            chunks: arrays of int64.

        Example:
            >>> PackedArray.of_equal_steps([np.array([3, 5]), np.array([7])]).data
            '3 2'
        """
        first, step, last, count = 0, None, np.empty(0, np.int64), 0
        for chunk in chunks:
            if chunk.dtype.kind != "i":
                return None
            if not len(chunk):
                continue
            joined = np.concatenate([last, chunk])
            if not count:
                first = int(chunk[0])
            if len(joined) > 1:
                steps = np.diff(joined)  # wraps around where a step leaves int64
                step = int(steps[0]) if step is None else step
                if (steps != step).any() or int(joined[0]) + step * len(steps) != int(joined[-1]):
                    return None
            last, count = chunk[-1:], count + len(chunk)
        data = f"{first} {1 if step is None else step}"
        return cls("range", "int64", count, 0, _digest(f"{data} {count}".encode()), data)

    @classmethod
    def _numbers(cls, form: str, array: Array) -> Self:
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        return cls._pack(form, array.dtype.name, len(array), little.tobytes())

    @classmethod
    def _pack(cls, form: str, dtype: str, count: int, raw: bytes) -> Self:
        data = base64.b64encode(zlib.compress(raw, 1 if form == "bits" else _LEVEL)).decode("ascii")
        return cls(form, dtype, count, len(raw), _digest(raw), data)

    @classmethod
    def in_file(cls, count: int, kind: str, file: ColumnFile, column: str, name: str, digest: str) -> Self:
        """An array that was written to a file.

        Args:
            count: how many values it has.
            kind: the dtype that they have in the file, or `"str"`.
            file: the file.
            column: the column of the file.
            name: the name of the file, seen from the folder of the report.
            digest: of the file.
        """
        return cls("file", kind, count, 0, digest, f"{name}#{column}").attached(file, column)

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
        array, rows = np.empty(0, np.int64), 0
        for chunk in self.chunks():
            if not rows:
                array = np.empty(self.count, chunk.dtype)
            array[rows : rows + len(chunk)] = chunk[: self.count - rows]
            rows += len(chunk)
        if rows != self.count:
            raise _broken(f"{rows} values", f"{self.count} values, as its count says")
        array.setflags(write=False)
        return array

    def chunks(self) -> Iterator[Array]:
        """The array, `CHUNK_ROWS` values at a time: of a file, no more than that is read into memory."""
        if self.form == "file":
            file, column = self._file_and_column()
            yield from file.chunks(column)
        elif self.form == "range":
            first, step = self._ends()
            for start in range(0, self.count, CHUNK_ROWS):
                yield first + step * np.arange(start, min(start + CHUNK_ROWS, self.count), dtype=np.int64)
        else:
            for start in range(0, self.count, CHUNK_ROWS):
                yield self._values[start : start + CHUNK_ROWS]

    def take(self, rows: Array) -> Array:
        """Some of the values, of which no more than `CHUNK_ROWS` are read into memory at a time.

        Args:
            rows: their positions.

        Example:
            >>> PackedArray.of([5, 7, 11]).take(np.array([2, 0]))
            array([11,  5])
        """
        if self.form not in ("file", "range"):
            return self.values[rows]
        found, start = np.empty(len(rows), object if self.is_text else np.int64), 0
        for number, chunk in enumerate(self.chunks()):
            if not number:
                found = found.astype(chunk.dtype)
            inside = (rows >= start) & (rows < start + len(chunk))
            found[inside] = chunk[rows[inside] - start]
            start += len(chunk)
        return found

    @property
    def kind(self) -> str:
        """The smallest dtype that holds every value exactly, or `"str"`."""
        return self.dtype if self.form == "file" else narrowest([self.values])

    def _file_and_column(self) -> tuple[ColumnFile, str]:
        column: tuple[ColumnFile, str] | None = self.__dict__.get("_column")
        if column is None:
            do = "Read the report with Report.load, from the folder that it was written to"
            raise StateError(describe(f"samples in {self.data.partition('#')[0]}", "no folder", "one", do))
        return column

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


def narrowest(chunks: Iterable[Array]) -> str:
    """The smallest dtype that holds every value of some arrays exactly: its name, or `"str"` of strings.

    Args:
        chunks: arrays of booleans, of integers, of floats, or of objects that are str.

    Example:
        >>> narrowest([np.array([1, 2]), np.array([300])]), narrowest([np.array([0.1])])
        ('int16', 'float64')
    """
    choices: list[str] = []
    for chunk in chunks:
        kind = chunk.dtype.kind
        if kind in "bO":
            return "bool" if kind == "b" else "str"
        choices = choices or list(_FLOATS if kind == "f" else _INTEGERS)
        choices = [name for name in choices if name == choices[-1] or _fits(chunk, name)]
    return choices[0] if choices else "int64"


def _fits(array: Array, name: str) -> bool:
    if array.dtype.name == name:
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        return np.array_equal(array.astype(name).astype(array.dtype), array, equal_nan=array.dtype.kind == "f")


def _narrowed(array: Array, choices: tuple[str, ...]) -> Array:
    """``array`` in the first of ``choices`` that holds every value exactly."""
    return array.astype(next((name for name in choices if _fits(array, name)), array.dtype.name))


def _inflated(data: str, size: int) -> bytes:
    """The bytes behind ``data``; never more than the size that was stored."""
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
