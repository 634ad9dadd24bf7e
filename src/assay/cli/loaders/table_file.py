"""A file of columns (CSV, TSV, Parquet, JSON lines), read with pyarrow as columns are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay._atomic import reading
from assay.cli.loaders.labels import rows_at
from assay.errors import ConfigError, MissingDependencyError, ShapeError, describe

SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl")


class TableFile:
    """The columns of a file.

    Args:
        path: the file; what is in it goes by its ending.
        strings: columns of CSV and TSV that are strings whatever they look like: "007" is no number.

    Attributes:
        names: the columns, in order.
        rows: how many rows there are.
        groups: the row at which each group of rows starts; only Parquet has several.
    """

    def __init__(self, path: Path, strings: Sequence[str] = ()) -> None:
        self.path, self._strings = path, strings
        with self._reading():
            self._file = self._opened()
            if path.suffix == ".parquet":
                self.names: list[str] = list(self._file.schema_arrow.names)
                sizes = [int(self._file.metadata.row_group(k).num_rows) for k in range(self._file.num_row_groups)]
            else:
                self.names = list(self._file.column_names)
                sizes = [int(self._file.num_rows)]
        self.rows = sum(sizes)
        self.groups: list[int] = [sum(sizes[:k]) for k in range(len(sizes))]

    def __getstate__(self) -> dict[str, Any]:
        """Without a file that is mapped into memory, so that workers open it themselves."""
        return {**self.__dict__, "_file": None if self.path.suffix == ".parquet" else self._file}

    def check_numbers(self, name: str) -> None:
        """Raise where a column does not hold numbers or lists of them."""
        types = _arrow().types
        kind = self._value_type(name)
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)):
            do = "Leave it out by naming the columns to use with --features"
            raise ConfigError(describe(f"{self.path}: {name}", f"values of type {kind}", "numbers", do))

    def values(self, name: str) -> Tensor | NDArray[Any]:
        """A column: a tensor of numbers, or an array of texts, or of lists of texts, in which None is missing."""
        types, kind = _arrow().types, self._schema().field(name).type
        if types.is_null(kind) or self.has_strings(name):
            with self._reading():
                values = [each for part in self._parts(name) for each in part.to_pylist()]
                return np.fromiter(values, object, len(values))
        return self.numbers(name)

    def has_strings(self, name: str) -> bool:
        """Whether a column holds strings or lists of them."""
        types = _arrow().types
        kind = self._value_type(name)
        kind = kind.value_type if types.is_dictionary(kind) else kind
        return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind))

    def strings(self, name: str) -> NDArray[Any]:
        """A column of strings, or of lists of strings, whole: an array of objects.

        Raises:
            ConfigError: it holds something else, or None.
        """
        where = f"{self.path}: {name}"
        if not self.has_strings(name):
            got = f"values of type {self._value_type(name)}"
            raise ConfigError(describe(where, got, "strings", "Name a column of strings"))
        with self._reading():
            values = [each for part in self._parts(name) for each in part.to_pylist()]
        missing = [k for k, each in enumerate(values) if each is None or (isinstance(each, list) and None in each)]
        if missing:
            do = 'Write "" where it is empty, or remove the row'
            raise ConfigError(describe(where, f"no string in {rows_at(missing)}", "one each", do))
        return np.fromiter(values, object, len(values))

    def _value_type(self, name: str) -> Any:
        """The type of the values of a column, or of its lists."""
        types = _arrow().types
        kind = self._schema().field(name).type
        while types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
            kind = kind.value_type
        return kind

    def numbers(self, name: str) -> Tensor:
        """A column of numbers, whole."""
        self.check_numbers(name)
        return torch.from_numpy(np.concatenate([self.read(k, [name])[0] for k in range(len(self.groups))]))

    def read(self, group: int, names: Sequence[str]) -> list[NDArray[Any]]:
        """Columns of numbers in a group of rows."""
        with self._reading():
            table = self._part(group, names)
            return [_array(table.column(name), f"{self.path}: {name}", self.groups[group]) for name in names]

    def _parts(self, name: str) -> list[Any]:
        return [self._part(group, [name]).column(name) for group in range(len(self.groups))]

    def _part(self, group: int, names: Sequence[str]) -> Any:
        if self.path.suffix != ".parquet":
            return self._file.select(list(names))
        if self._file is None:
            self._file = self._opened()
        part = self._file.read_row_group(group, columns=list(names))
        if part.num_rows != (rows := [*self.groups, self.rows][group + 1] - self.groups[group]):
            raise ValueError(f"{part.num_rows} rows in row group {group}, which says that it has {rows}")
        return part

    def _schema(self) -> Any:
        return self._file.schema_arrow if self.path.suffix == ".parquet" else self._file.schema

    def _reading(self) -> AbstractContextManager[None]:
        """pyarrow raises its own errors, those of the system, of Unicode and of values for files that are damaged."""
        return reading(self.path, f"a table in {self.path.suffix}", "Write it again, all rows alike")

    def _opened(self) -> Any:
        arrow = _arrow()
        if self.path.suffix == ".parquet":
            return arrow.parquet.ParquetFile(self.path)
        if self.path.suffix == ".jsonl":
            return arrow.json.read_json(self.path)
        options = arrow.csv.ParseOptions(delimiter="\t" if self.path.suffix == ".tsv" else ",")
        types = {name: arrow.string() for name in self._strings}
        # A blank cell is missing, "" is the empty string, and "NA" may be what was predicted.
        blank = {"strings_can_be_null": True, "quoted_strings_can_be_null": False, "null_values": [""]} if types else {}
        convert = arrow.csv.ConvertOptions(column_types=types, **blank)
        return arrow.csv.read_csv(self.path, parse_options=options, convert_options=convert)


def _array(column: Any, where: str, start: int) -> NDArray[Any]:
    """A column as an array; rows of a group count from its start."""
    arrow = _arrow()
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    array = array.chunk(0) if hasattr(array, "chunk") and array.num_chunks == 1 else array
    if array.null_count:
        missing = [start + k for k, valid in enumerate(array.is_valid().to_pylist()) if not valid]
        do = "Fill in or remove these rows, or leave the column out"
        raise ConfigError(describe(where, f"no value in {rows_at(missing)}", "a number each", do))
    types, kind = arrow.types, array.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        lengths = arrow.compute.list_value_length(array).to_numpy(zero_copy_only=False)
        other = np.flatnonzero(lengths != lengths[0]) if len(lengths) else lengths
        if len(other):
            got = (
                f"{lengths[0]} values in {rows_at([start])}, {lengths[other[0]]} in {rows_at([start + int(other[0])])}"
            )
            raise ShapeError(describe(where, got, "as many in each row", "Make lists as long as each other"))
        flat = _array(array.flatten(), where, start)
        return flat.reshape(len(array), int(lengths[0]) if len(lengths) else 0, *flat.shape[1:])
    if types.is_decimal(kind):
        array = array.cast(arrow.float64())
    return np.array(array.to_numpy(zero_copy_only=False))  # a copy: torch wants memory that may be written


def _arrow() -> Any:
    """The package with its parts, imported when it is needed."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.json
        import pyarrow.parquet
        import pyarrow.types
    except ImportError as error:
        raise MissingDependencyError("pyarrow", extra="tables", purpose="CSV, Parquet and JSON lines") from error
    return pyarrow
