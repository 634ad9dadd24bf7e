"""Record batches as what is counted: tensors without a copy where that is possible, ids, values of slices, bad rows."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.data.tables.arrow import arrow
from assay.errors import ConfigError, describe
from assay.evaluation.observe.column_bins import ColumnBins
from assay.evaluation.observe.slice_values import CodedLists, CodedValues
from assay.render.text import first_names
from assay.scoring.bad_rows import combined
from assay.scoring.columns import TableColumns
from assay.scoring.number_lists import sample_tensors
from assay.scoring.slice_columns import GrowingDictionary, is_list, nan_as_null, slice_values
from assay.stats.sampling import numbers_of, numbers_of_texts

Mask = NDArray[np.bool_]
_INTEGER = re.compile("-?[0-9]+")
_SMALL = 2**62  # ids below are their own numbers


@dataclass(frozen=True)
class TableRows:
    """Rows that can be counted.

    Attributes:
        preds: a tensor, or a list of raw samples.
        target: the same; None for none.
        weights: a tensor; None for none.
        columns: the named columns of metrics.
        ids: an array of integers, or an Arrow array of strings; None where there are none.
        parts: by the names of what slices are made of, the values.
        places: the numbers of the rows in their file.
        batch: the record batch that they were read from, which has no other rows.
    """

    preds: Any
    target: Any
    weights: Tensor | None
    columns: Mapping[str, Any]
    ids: Any
    parts: Mapping[str, CodedValues | CodedLists]
    places: NDArray[np.int64]
    batch: Any


class RowReader:
    """Reads record batches.

    Args:
        columns: what each column is for.
        takes_raw: predictions and targets are raw samples, such as strings.
        bins: by name, the columns of slices that are cut into ranges.
        classes: integer labels are below this number; None for any.
        ignored: labels outside that are right.
        takes_nan: NaN among predictions is for the metrics to judge.
        takes_labels: targets are labels, so that those in a column of floats or decimals are integers.
        tables: the columns of many values.

    Attributes:
        has_hashed_queries: whether ids of queries were strings, which their hashes stand for.
    """

    def __init__(
        self,
        columns: TableColumns,
        *,
        takes_raw: bool,
        bins: Mapping[str, ColumnBins] | None = None,
        classes: int | None = None,
        ignored: frozenset[int] = frozenset(),
        takes_nan: bool = False,
        takes_labels: bool = False,
        tables: Sequence[str] = (),
    ) -> None:
        self._dictionaries = {name: GrowingDictionary(name) for name in tables}
        self.columns, self._takes_raw, self._bins = columns, takes_raw, dict(bins or {})
        self._classes, self._ignored, self._takes_nan = classes, ignored, takes_nan
        self._takes_labels = takes_labels
        self.has_hashed_queries = False
        self._widths: dict[tuple[str, int], int] = {}
        self._matrices: dict[tuple[str, ...], Tensor] = {}

    def fresh(self) -> RowReader:
        """One that has read nothing."""
        return RowReader(
            self.columns,
            takes_raw=self._takes_raw,
            bins=self._bins,
            classes=self._classes,
            ignored=self._ignored,
            takes_nan=self._takes_nan,
            takes_labels=self._takes_labels,
            tables=tuple(self._dictionaries),
        )

    def read(self, batch: Any, places: NDArray[np.int64]) -> tuple[TableRows, dict[str, Mask]]:
        """The rows of a batch that can be counted, and by reason which of its rows cannot.

        The next call may overwrite the tensors of the rows.

        Args:
            batch: a record batch with the needed columns.
            places: the numbers of its rows in their file.

        Raises:
            ConfigError: a column holds what cannot be measured.
        """
        masks: dict[str, Mask] = {}
        rows = self._read(batch, places, masks)
        bad = combined(masks, batch.num_rows)
        if not bad.any():
            return rows, {}
        good = np.flatnonzero(~bad)
        return self._read(batch.take(arrow().array(good)), places[good], {}), masks

    def ids(self, batch: Any) -> Any:
        """The ids of the rows of a batch: an array of integers, or an Arrow array of strings."""
        return self._ids(batch.column(self.columns.ids), {})

    def query_numbers(self, batch: Any, column: str) -> NDArray[np.int64]:
        """The numbers of the queries that rows are of; of strings their hashes."""
        numbers: NDArray[np.int64] = self._numbers(batch.column(column), column, {}).to(torch.int64).numpy()
        return numbers

    def _read(self, batch: Any, places: NDArray[np.int64], masks: dict[str, Mask]) -> TableRows:
        columns = self.columns
        numbers: dict[str, Any] = {}
        for name in columns.measured:
            if name in columns.in_fields:
                continue
            is_raw = self._takes_raw and name in (*columns.preds, *columns.target)
            numbers[name] = (self._raw if is_raw else self._numbers)(batch.column(name), name, masks)
        preds, target = (
            self._fields(batch, names, fields, masks) if fields else self._joined(numbers, names)
            for names, fields in ((columns.preds, columns.preds_fields), (columns.target, columns.target_fields))
        )
        weights = numbers[columns.weights] if columns.weights else None
        if not self._takes_raw:
            if self._takes_labels and target is not None and target.is_floating_point():
                target = self._labels(target, masks)
            self._judge(preds, target, masks)
        if weights is not None:
            _note(masks, f"a negative weight or NaN in {columns.weights}", ~(weights >= 0) | weights.isinf())
        ids = self._ids(batch.column(columns.ids), masks) if columns.ids else None
        parts = {name: self._coded(batch.column(name), name) for name in columns.coded}
        named = {name: numbers[column] for name, column in columns.named.items()}
        return TableRows(preds, target, weights, named, ids, parts, places, batch)

    def _coded(self, array: Any, name: str) -> CodedValues | CodedLists:
        """The values that slices, tables and clusters are made of."""
        if name == self.columns.cluster:
            array = nan_as_null(array)
        if name in self._dictionaries and not is_list(array.type):
            return self._dictionaries[name].coded(array)
        return slice_values(array, name, self._bins.get(name))

    def _labels(self, target: Tensor, masks: dict[str, Mask]) -> Tensor:
        """Labels in floats, as a column of integers has them where values are missing, as integers."""
        shown = _shown(self.columns.target)
        _note(masks, f"NaN in {shown}", target.isnan())
        is_label = (target == target.trunc()) & (target.abs() < _SMALL)
        _note(masks, f"a label that is no integer in {shown}", ~is_label & ~target.isnan())
        return target.where(is_label, 0).to(torch.int64)

    def _judge(self, preds: Tensor, target: Tensor | None, masks: dict[str, Mask]) -> None:
        """Note the rows whose values no metric can take."""
        for names, values in ((self.columns.preds, preds), (self.columns.target, target)):
            if values is None:
                continue
            if values.is_floating_point():
                if not self._takes_nan and bool(values.sum().isnan()):
                    _note(masks, f"NaN in {_shown(names)}", values.isnan())
            elif self._classes is not None and values.dtype != torch.bool and values.numel():
                low, high = (int(each) for each in values.aminmax())
                if low < 0 or high >= self._classes:
                    bad = (values < 0) | (values >= self._classes)
                    for label in self._ignored:
                        bad &= values != label
                    more = " (more classes need num_classes=, --num-classes)" if self._classes == 2 else ""
                    _note(masks, f"a label outside 0 ... {self._classes - 1}{more} in {_shown(names)}", bad)

    def _joined(self, values: Mapping[str, Any], names: Sequence[str]) -> Any:
        """One column, or several as one matrix, which the next one overwrites."""
        if len(names) < 2:
            return values[names[0]] if names else None
        parts = [values[name] for name in names]
        if not all(isinstance(part, Tensor) and part.ndim == 1 for part in parts):
            got = "columns of strings or lists"
            raise ConfigError(describe(_shown(names), got, "a number a row in each", "Name one column"))
        dtype = torch.result_type(parts[0], parts[1])
        for part in parts[2:]:
            dtype = torch.promote_types(dtype, part.dtype)
        size, joined = len(parts[0]), self._matrices.get(tuple(names))
        if joined is None or joined.dtype != dtype or joined.shape[1] < size:
            joined = self._matrices[tuple(names)] = torch.empty(len(parts), size, dtype=dtype, device="cpu")
        for column, part in zip(joined, parts, strict=True):
            column[:size].copy_(part)
        return joined[:, :size].t()

    def _numbers(self, array: Any, name: str, masks: dict[str, Mask], depth: int = 0) -> Tensor:
        """A column of numbers, of lists of them, or of the names of classes; what is missing is 0 and noted."""
        pa = arrow()
        types = pa.types
        if types.is_null(array.type):
            array = array.cast(pa.float32())
        kind = array.type.value_type if types.is_dictionary(array.type) else array.type
        is_label = name in (*self.columns.preds, *self.columns.target)
        if is_text(kind) or (is_label and self._names(kind) is not None):
            array = self._numbered(array, name, masks)
        elif types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if array.null_count:
            _note(masks, f"no value in {name}", array.is_null().to_numpy(zero_copy_only=False))
        if is_list(array.type):
            return self._lists(array, name, masks, depth)
        if array.null_count and _is_number(array.type):
            array = array.fill_null(False if types.is_boolean(array.type) else 0)
        return tensor_of(array, name)

    def _lists(self, array: Any, name: str, masks: dict[str, Mask], depth: int) -> Tensor:
        """Lists of one length as the rows of a matrix, lists of lists as those of a tensor; others are 0 and noted.

        That length is the one that most lists of the first batch have.
        """
        pa = arrow()
        lengths = pa.compute.list_value_length(array).fill_null(-1).to_numpy(zero_copy_only=False)
        valid = lengths[lengths >= 0]
        width = self._widths.setdefault((name, depth), usual_length(valid)) if len(valid) else 0
        right = lengths == width
        _note(masks, f"a list that has not {width} entries in {name}", ~right & (lengths >= 0))
        inside: dict[str, Mask] = {}
        flat = self._numbers(array.filter(pa.array(right)).flatten(), name, inside, depth + 1)
        for reason, mask in inside.items():
            bad = np.zeros(len(lengths), bool)
            bad[right] = mask.reshape(-1, width).any(1)
            _note(masks, reason, bad)
        matrix = flat.reshape(int(right.sum()), width, *flat.shape[1:])
        if right.all():
            return matrix
        whole = matrix.new_zeros(len(lengths), *matrix.shape[1:])
        whole[torch.from_numpy(right)] = matrix
        return whole

    def _names(self, kind: Any) -> list[str] | None:
        """The labels as a column of this type writes them; None where it has the numbers of the classes."""
        types, labels = arrow().types, self.columns.labels
        lower = [label.lower() for label in labels]
        if types.is_boolean(kind) and sorted(lower) == ["false", "true"]:
            return lower
        if types.is_integer(kind) and all(_INTEGER.fullmatch(label) for label in labels):
            numbers = [str(int(label)) for label in labels]
            return None if numbers == [str(number) for number in range(len(numbers))] else numbers
        return list(labels) if is_text(kind) else None

    def _numbered(self, array: Any, name: str, masks: dict[str, Mask]) -> Any:
        """Names of classes as their numbers; ids of queries as their hashes."""
        pa = arrow()
        is_coded = pa.types.is_dictionary(array.type)
        values = array.dictionary if is_coded else array
        if name in self.columns.named.values() and not self.columns.labels:
            self.has_hashed_queries |= name == self.columns.named.get("indexes")
            texts = array.dictionary_decode() if is_coded else array
            numbers = pa.array(text_numbers(texts.fill_null("")))
            return pa.compute.if_else(texts.is_valid(), numbers, pa.scalar(None, pa.int64()))
        if not self.columns.labels:
            some = sorted({str(each) for each in values.unique().drop_null()[:100].to_pylist()})
            do = f"Write labels={','.join(some[:20])} (--labels), all names in the order of the classes"
            got = f"strings ({first_names(map(repr, some))})"
            if name not in (*self.columns.preds, *self.columns.target):  # weights are no labels
                raise ConfigError(describe(name, got, "numbers", "Name a column of numbers, or cast it"))
            raise ConfigError(describe(name, got, "numbers, or names whose order is known", do))
        names = pa.array(self._names(values.type) or [], pa.large_string())
        numbers = pa.compute.index_in(values.cast(pa.large_string()), value_set=names)
        codes = pa.compute.take(numbers, array.indices) if is_coded else numbers
        unknown = codes.is_null().to_numpy(zero_copy_only=False) & array.is_valid().to_numpy(zero_copy_only=False)
        if unknown.any():
            _note(masks, f"a name that labels lack in {name}", unknown)
        _note(masks, f"no value in {name}", array.is_null().to_numpy(zero_copy_only=False))
        return codes.fill_null(0).cast(pa.int64())

    def _fields(self, batch: Any, names: Sequence[str], fields: Sequence[str], masks: dict[str, Mask]) -> Any:
        """Raw samples, of which each column has a field, such as boxes."""
        if not self._takes_raw:
            do = "Name the columns alone, as in p0..p9, or measure what takes boxes"
            raise ConfigError(describe(", ".join(names), f"fields {', '.join(fields)}", "metrics that take fields", do))
        structs = arrow().StructArray.from_arrays([batch.column(name) for name in names], list(fields))
        return self._raw(structs, ", ".join(names), masks)

    def _raw(self, array: Any, name: str, masks: dict[str, Mask]) -> list[Any]:
        """Raw samples as they are, such as strings, or with tensors, such as boxes."""
        if pa_null := array.null_count:
            _note(masks, f"no value in {name}", array.is_null().to_numpy(zero_copy_only=False))
        values, is_bad = sample_tensors(array)
        _note(masks, f"a list with a missing number, or lists of different lengths in {name}", is_bad)
        return ["" if each is None else each for each in values] if pa_null else values

    def _ids(self, array: Any, masks: dict[str, Mask]) -> Any:
        pa = arrow()
        name = self.columns.ids
        if pa.types.is_dictionary(array.type):
            array = array.dictionary_decode()
        if array.null_count:
            _note(masks, f"no value in {name}", array.is_null().to_numpy(zero_copy_only=False))
        if is_text(array.type):
            return array.fill_null("")
        if not pa.types.is_integer(array.type):
            do = "Name a column of integers or strings, or none"
            raise ConfigError(describe(name, f"values of type {array.type}", "ids", do))
        return tensor_of(array.fill_null(0), name).to(torch.int64).numpy()


def tensor_of(array: Any, name: str) -> Tensor:
    """An array of numbers without nulls as a tensor, which shares its memory where torch can.

    Raises:
        ConfigError: they are no numbers, or larger than torch can hold.
    """
    pa = arrow()
    kind = array.type
    if not _is_number(kind):
        raise ConfigError(describe(name, f"values of type {kind}", "numbers", "Name a column of numbers"))
    if pa.types.is_boolean(kind):
        return torch.from_numpy(np.array(array.to_numpy(zero_copy_only=False)))
    if pa.types.is_decimal(kind):
        array = array.cast(pa.float64())
    elif pa.types.is_unsigned_integer(kind) and kind != pa.uint8():
        try:
            array = array.cast(pa.int64())
        except pa.ArrowInvalid as error:
            got = f"integers of {kind} above 2^63 - 1"
            raise ConfigError(describe(name, got, "integers of 64 bits", "Cast the column")) from error
    if not len(array):
        return torch.from_numpy(np.array(array.to_numpy()))
    values: Tensor = torch.utils.dlpack.from_dlpack(array)
    return values


def id_numbers(ids: Any) -> NDArray[np.int64]:
    """Ids as numbers, as `numbers_of` gives them."""
    if not isinstance(ids, np.ndarray):
        return text_numbers(ids)
    large = np.abs(ids) >= _SMALL if len(ids) else np.zeros(0, bool)
    if not large.any():
        return ids
    numbers = ids.copy()
    numbers[large] = numbers_of(ids[large].tolist())
    return numbers


def row_numbers(ids: Any, places: NDArray[np.int64], file: str, one_file: bool) -> NDArray[np.int64]:
    """The numbers that identify rows: those of their ids, else of their file and their place in it."""
    if ids is not None:
        return id_numbers(ids)
    return places if one_file else places + numbers_of([file])


def text_numbers(array: Any) -> NDArray[np.int64]:
    """The hashes of strings, from the buffers that they lie in."""
    pa = arrow()
    array = array.cast(pa.large_string())
    _, ends, data = array.buffers()
    if ends is None or data is None:
        return numbers_of([""] * len(array))
    offsets = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
    return numbers_of_texts(np.frombuffer(data, np.uint8), offsets)


def _note(masks: dict[str, Mask], reason: str, bad: Any) -> None:
    mask = (bad.flatten(1).any(1) if bad.ndim > 1 else bad).numpy() if isinstance(bad, Tensor) else bad
    if mask.any():
        masks[reason] = masks[reason] | mask if reason in masks else np.array(mask)


def is_text(kind: Any) -> bool:
    types = arrow().types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_number(kind: Any) -> bool:
    types = arrow().types
    return any(each(kind) for each in (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean))


def _shown(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def usual_length(lengths: NDArray[Any]) -> int:
    """The length that most lists have; the greatest of several."""
    found, counts = np.unique(lengths, return_counts=True)
    return int(found[counts == counts.max()][-1])
