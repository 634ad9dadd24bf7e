"""A table in one file, read as columns are needed: whole columns, or rows of groups."""

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
from assay.data.labels import rows_at
from assay.data.tables.arrow import arrow
from assay.data.tables.formats import suffix_of
from assay.data.tables.table_source import TableSource, open_whole
from assay.errors import ConfigError, MissingDependencyError, ShapeError, describe


class TableFile:
    """The columns of a file.

    Args:
        path: the file; what is in it goes by its ending.
        strings: columns of CSV and TSV that are strings, also if they look like numbers, such as "007".

    Attributes:
        names: the columns, in order.
        rows: how many rows there are.
        groups: the row at which each group of rows starts; only Parquet has several.
    """

    def __init__(self, path: Path, strings: Sequence[str] = ()) -> None:
        self.path, self._strings = path, strings
        with self._reading():
            self._table: TableSource | None = open_whole(str(path), strings)
            sizes = [each.rows or 0 for each in self._table.fragments]
            self._schema = self._table.schema
        self.names: list[str] = [name for name in self._schema.names if name not in self._table.folders]
        self.rows = sum(sizes)
        self.groups: list[int] = [sum(sizes[:k]) for k in range(len(sizes))]

    def __getstate__(self) -> dict[str, Any]:
        """Without what was opened, so that workers open the file themselves."""
        return {**self.__dict__, "_table": None}

    def check_numbers(self, name: str) -> None:
        """Raise where a column does not hold numbers or lists of them."""
        types = arrow().types
        kind = self._value_type(name)
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind)):
            do = "Leave it out by naming the columns to use as features"
            raise ConfigError(describe(f"{self.path}: {name}", f"values of type {kind}", "numbers", do))

    def values(self, name: str) -> Tensor | NDArray[Any]:
        """A column: a tensor of numbers, or an array of texts, or of lists of texts, in which None is missing."""
        types, kind = arrow().types, self._schema.field(name).type
        if types.is_null(kind) or self.has_strings(name):
            with self._reading():
                values = [each for part in self._parts(name) for each in part.to_pylist()]
                return np.fromiter(values, object, len(values))
        return self.numbers(name)

    def has_strings(self, name: str) -> bool:
        """Whether a column holds strings or lists of them."""
        types = arrow().types
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
        types = arrow().types
        kind = self._schema.field(name).type
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

    def frame(self, names: Sequence[str]) -> Any:
        """Columns as a frame of pandas.

        Raises:
            MissingDependencyError: pandas is absent.
        """
        with self._reading():
            table = arrow().concat_tables([self._part(group, names) for group in range(len(self.groups))])
        try:
            return table.to_pandas()
        except ImportError as error:
            raise MissingDependencyError("pandas", extra="pandas", purpose="tables for an estimator") from error

    def _parts(self, name: str) -> list[Any]:
        return [self._part(group, [name]).column(name) for group in range(len(self.groups))]

    def _part(self, group: int, names: Sequence[str]) -> Any:
        if self._table is None:
            self._table = open_whole(str(self.path), self._strings)
        pa, fragment = arrow(), self._table.fragments[group]
        schema = pa.schema([self._schema.field(name) for name in names])
        part = pa.Table.from_batches(list(fragment.scan(names)), schema)
        if part.num_rows != fragment.rows:
            raise ValueError(f"{part.num_rows} rows in row group {group}, which says that it has {fragment.rows}")
        return part

    def _reading(self) -> AbstractContextManager[None]:
        """pyarrow raises its own errors, those of the system, of Unicode and of values for files that are damaged."""
        return reading(self.path, f"a table in {suffix_of(self.path)}")


def _array(column: Any, where: str, start: int) -> NDArray[Any]:
    """A column as an array; rows of a group count from its start."""
    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    array = array.chunk(0) if hasattr(array, "chunk") and array.num_chunks == 1 else array
    if array.null_count:
        missing = [start + k for k, valid in enumerate(array.is_valid().to_pylist()) if not valid]
        do = "Fill in or remove these rows, or leave the column out"
        raise ConfigError(describe(where, f"no value in {rows_at(missing)}", "a number each", do))
    types, kind = arrow().types, array.type
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        lengths = arrow().compute.list_value_length(array).to_numpy(zero_copy_only=False)
        other = np.flatnonzero(lengths != lengths[0]) if len(lengths) else lengths
        if len(other):
            got = (
                f"{lengths[0]} values in {rows_at([start])}, {lengths[other[0]]} in {rows_at([start + int(other[0])])}"
            )
            raise ShapeError(describe(where, got, "as many in each row", "Make lists as long as each other"))
        flat = _array(array.flatten(), where, start)
        return flat.reshape(len(array), int(lengths[0]) if len(lengths) else 0, *flat.shape[1:])
    if types.is_decimal(kind):
        array = array.cast(arrow().float64())
    return np.array(array.to_numpy(zero_copy_only=False))  # a copy: torch wants memory that may be written
