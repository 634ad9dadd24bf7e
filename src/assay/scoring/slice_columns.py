"""Columns that slices and tables are made of, as numbers of strings."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.data.tables.arrow import arrow
from assay.errors import ConfigError, describe
from assay.evaluation.observe.column_bins import ColumnBins
from assay.evaluation.observe.slice_values import MISSING, CodedLists, CodedValues, value_text


def numbers_of_column(array: Any, name: str) -> NDArray[Any]:
    """A column of numbers; NaN where a value is missing.

    Raises:
        ConfigError: it holds something else.
    """
    pa = arrow()
    types, kind = pa.types, array.type
    if types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if types.is_null(kind) or types.is_decimal(kind):
        array = array.cast(pa.float64())
    elif not (types.is_integer(kind) or types.is_floating(kind)):
        do = f"Slice by its values: --slice {name}"
        raise ConfigError(describe(f"slices: {name}", f"values of type {kind}", "one number a row to cut", do))
    numbers: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return numbers


def is_list(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def nan_as_null(array: Any) -> Any:
    """A column in which NaN is a missing value, as pandas writes them in columns of numbers."""
    pa = arrow()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if not pa.types.is_floating(array.type):
        return array
    is_missing = pa.compute.is_null(array, nan_is_null=True)
    return pa.compute.if_else(is_missing, pa.scalar(None, array.type), array)


def slice_values(array: Any, name: str, bins: ColumnBins | None) -> CodedValues | CodedLists:
    """The values that slices are made of: one of each row, or a list of them; or the range that each is in."""
    if bins is not None:
        return CodedValues(bins.places(numbers_of_column(array, name)), bins.names)
    if not is_list(array.type):
        return _coded(array, name)
    compute = arrow().compute
    values, rows = compute.list_flatten(array), compute.list_parent_indices(array)
    if is_list(values.type):
        got = f"values of type {array.type}"
        raise ConfigError(describe(f"slices: {name}", got, "a value, or a list of values", "Flatten the lists"))
    return CodedLists(_coded(values, name), rows.to_numpy(zero_copy_only=False).astype(np.int64), len(array))


def _coded(array: Any, name: str) -> CodedValues:
    """The values that slices are made of as numbers of texts."""
    pa = arrow()
    if pa.types.is_dictionary(array.type) and array.dictionary.null_count:
        array = array.dictionary_decode()
    if not pa.types.is_dictionary(array.type):
        try:
            array = array.dictionary_encode()
        except pa.ArrowNotImplementedError as error:
            got, do = f"values of type {array.type}", "Name a column of strings or numbers"
            raise ConfigError(describe(f"slices: {name}", got, "one value a row", do)) from error
    texts, codes = _texts(array.dictionary), array.indices
    if codes.null_count:
        codes, texts = codes.fill_null(len(texts)), [*texts, MISSING]
    return CodedValues(codes.to_numpy(zero_copy_only=False).astype(np.int64), texts)


def _texts(array: Any) -> list[str]:
    """Values as slices are named."""
    values = array.to_numpy(zero_copy_only=False)
    if values.dtype.kind in "iub":
        return list(map(str, values.tolist()))
    return [value_text(str(each)) for each in (values + 0.0 if values.dtype.kind == "f" else values)]  # -0.0 is 0.0


class GrowingDictionary:
    """The values of a column of many values, which all of its batches share: each becomes a string once.

    Args:
        name: of the column.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._texts: list[str] = [MISSING]
        self._values: Any = None

    def coded(self, array: Any) -> CodedValues:
        """The values of a batch as numbers of strings, of a list that grows."""
        pa = arrow()
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if self._values is None:
            self._values = pa.array([], array.type)
        if not array.type.equals(self._values.type) or pa.types.is_nested(array.type):
            return _coded(array, self._name)
        encoded = array.dictionary_encode()
        known = pa.compute.index_in(encoded.dictionary, value_set=self._values)
        if known.null_count:
            new = encoded.dictionary.filter(known.is_null())
            self._values = pa.concat_arrays([self._values, new])
            self._texts += _texts(new)
            known = pa.compute.index_in(encoded.dictionary, value_set=self._values)
        numbers = np.append(known.to_numpy(), -1).astype(np.int64) + 1
        return CodedValues(numbers[encoded.indices.fill_null(-1).to_numpy()], self._texts)
