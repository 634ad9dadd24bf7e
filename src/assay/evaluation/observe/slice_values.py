"""The values that slices are made of as numbers: one of each sample, or a list of them, such as tags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from assay.devices.placement import to_host
from assay.errors import ConfigError, describe
from assay.report.per_sample.packed_array import Array

MOST_VALUES = 100
MOST_CROSSED = 9
BASE = 128
"""Above the number of any value: the numbers of a crossing are digits to this base, of which 9 fit 63 bits."""
MISSING = "missing"
"""The name of what has no value; see `value_text`."""
_BIN = (
    'Bin it by a function, such as slices={"decade": lambda batch: batch["age"] // 10 * 10}; '
    "in a table add a column of ranges, and slice by that"
)
_LISTS = (list, tuple, set, frozenset, np.ndarray)


class CodedValues(NamedTuple):
    """The values of samples as numbers of texts, as a column with a dictionary has them."""

    codes: Array
    texts: Sequence[str]


class CodedLists(NamedTuple):
    """Lists of values: the numbers of all values, which sample each is of, and how many samples there are."""

    values: CodedValues
    samples: Array
    rows: int


class SliceCodes(NamedTuple):
    """The numbers of the values of samples.

    Attributes:
        codes: of samples with one value each `(N,)`, or of all values, sample after sample.
        lengths: how many values each sample has, 1 or more; None where each has one.
    """

    codes: Array
    lengths: Array | None = None

    def as_lists(self) -> SliceCodes:
        """The same, where samples with one value are lists of one."""
        return self if self.lengths is not None else SliceCodes(self.codes, np.ones(len(self.codes), np.int64))


class Coding:
    """The values of one part of the slices as numbers, in the order in which they came.

    Args:
        name: of the part.
        most: how many different values it may have.
    """

    def __init__(self, name: str, most: int = MOST_VALUES) -> None:
        self.name, self.most = name, most
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}
        self._source: Sequence[str] = ()
        self._numbers: Array = np.empty(0, np.int64)

    def of_batches(self, batches: Sequence[Any]) -> SliceCodes:
        """The numbers of the values of some batches.

        Raises:
            ConfigError: there are too many different ones, or values of another shape.
        """
        if isinstance(batches[0], CodedValues):
            return SliceCodes(np.concatenate([self.recoded(each) for each in batches]))
        if isinstance(batches[0], CodedLists):
            return self._of_lists([(self.recoded(each.values), each.samples, each.rows) for each in batches])
        if any(map(_has_lists, batches)):
            lists = [_lists(each) for each in batches]
            counted = [np.array([len(each) for each in batch], np.int64) for batch in lists]
            texts = [np.array([text for each in batch for text in each], str) for batch in lists]
            codes = [self.codes(each) for each in texts]
            samples = [np.repeat(np.arange(len(each)), each) for each in counted]
            return self._of_lists(list(zip(codes, samples, map(len, counted), strict=True)))
        return SliceCodes(self.codes(values_of_batches(batches, self.name)))

    def _of_lists(self, batches: Sequence[tuple[Array, Array, int]]) -> SliceCodes:
        """Each value of a sample once; a sample without any is in the slice of those."""
        rows, parts = 0, []
        for codes, samples, count in batches:
            without = np.setdiff1d(np.arange(count), samples)
            added = np.full(len(without), self.code(MISSING) if len(without) else 0)
            keys = np.concatenate([samples, without]) * BASE + np.concatenate([codes, added])
            parts.append(np.unique(keys.astype(np.int64)) + rows * BASE)
            rows += count
        keys = np.concatenate(parts)
        return SliceCodes(keys % BASE, np.bincount(keys // BASE, minlength=rows))

    def codes(self, values: Array) -> Array:
        """The numbers of values.

        Raises:
            ConfigError: there are too many different ones.
        """
        different, where = np.unique(values, return_inverse=True)
        if len(different) > self.most:
            self._refuse(map(str, different))
        return np.array([self.code(_name(each)) for each in different], np.int64)[where]

    def recoded(self, values: CodedValues) -> Array:
        """The numbers of values that have other numbers; texts that no value has get none.

        With many values, batches that share a list of texts, which grows, have theirs looked up once.
        """
        if self.most > MOST_VALUES:
            return self._of_source(values)
        counts = np.bincount(values.codes, minlength=len(values.texts))
        present = np.flatnonzero(counts).tolist()
        if len(present) > self.most:
            self._refuse(values.texts[k] for k in present)
        numbers = np.zeros(len(counts), np.int64)
        numbers[present] = [self.code(values.texts[k]) for k in present]
        return values.codes if np.array_equal(numbers[present], present) else numbers[values.codes]

    def _of_source(self, values: CodedValues) -> Array:
        if values.texts is not self._source:
            self._source, self._numbers = values.texts, np.empty(0, np.int64)
        new = values.texts[len(self._numbers) :]
        self._numbers = np.concatenate([self._numbers, np.array(list(map(self.code, new)), np.int64)])
        return self._numbers[values.codes]

    def code(self, text: str) -> int:
        """The number of one value."""
        if text not in self._codes:
            self._codes[text] = len(self.texts)
            self.texts.append(text)
            if len(self.texts) > self.most:
                self._refuse(self.texts)
        return self._codes[text]

    def _refuse(self, texts: Iterable[str]) -> None:
        some = ", ".join(sorted(texts)[:3])
        got = f"more than {self.most:,} different values ({some}, …)"
        do = _BIN if self.most > MOST_VALUES else f'Pass by="{self.name}" for one table of all of its values. {_BIN}'
        raise ConfigError(describe(f"slices: {self.name}", got, f"at most {self.most:,}", do))


def crossed(parts: Sequence[SliceCodes]) -> tuple[Array | None, Array]:
    """Samples in the cells of crossed parts.

    Returns:
        Which sample each entry is, None where each sample is one; and the numbers of the cells, digits to `BASE`.

    Example:
        >>> crossed([SliceCodes(np.array([1, 2])), SliceCodes(np.array([0, 1, 1]), np.array([2, 1]))])
        (array([0, 0, 1]), array([  1, 129, 130]))
    """
    index: Array | None = None
    cells: Array | None = None
    for k, (codes, lengths) in enumerate(parts):
        digits = codes * BASE**k if k else codes
        if lengths is None:
            digits = digits if index is None else digits[index]
            cells = digits if cells is None else cells + digits
            continue
        rows = np.arange(len(lengths)) if index is None else index
        times = lengths[rows]
        index, first = np.repeat(rows, times), (np.cumsum(lengths) - lengths)[rows]
        within = np.arange(len(index)) - np.repeat(np.cumsum(times) - times, times)
        digits = digits[np.repeat(first, times) + within]
        cells = digits if cells is None else np.repeat(cells, times) + digits
    assert cells is not None, "slices are made of one part or more"
    return index, cells


class SlicePlaces:
    """Which values each sample has, of at most so many samples.

    Args:
        parts: the names of what slices are made of.
        most: how many samples at most; of more than that nothing is kept.
    """

    def __init__(self, parts: Iterable[str], most: int) -> None:
        self._parts: dict[str, list[SliceCodes]] = {part: [] for part in parts}
        self._most, self.rows = most, 0

    def add(self, codes: Mapping[str, SliceCodes], rows: int) -> None:
        """Add samples."""
        self.rows += rows
        if self.rows > self._most:
            self._parts = {part: [] for part in self._parts}
            return
        for part, each in codes.items():
            self._parts[part].append(SliceCodes(each.codes.astype(np.uint8), each.lengths))

    def whole(self, part: str) -> SliceCodes | None:
        """The numbers of all samples; None where they are not kept."""
        kept = self._parts[part]
        if not kept:
            return None
        if len(kept) > 1:
            lengths = [each.lengths for each in kept if each.lengths is not None]
            codes = np.concatenate([each.codes for each in kept])
            kept[:] = [SliceCodes(codes, np.concatenate(lengths) if lengths else None)]
        return kept[0]

    def state(self) -> dict[str, Tensor]:
        """What is kept, as tensors."""
        tensors = {}
        for part in self._parts:
            codes, lengths = self.whole(part) or SliceCodes(np.empty(0, np.uint8))
            tensors[f"place {part}"] = torch.from_numpy(codes)
            if lengths is not None:
                tensors[f"lengths {part}"] = torch.from_numpy(lengths)
        return tensors


def _has_lists(values: Any) -> bool:
    if isinstance(values, Tensor) or (isinstance(values, np.ndarray) and values.dtype.kind != "O"):
        return False
    return any(isinstance(each, _LISTS) for each in values)


def _lists(values: Iterable[Any]) -> list[list[str]]:
    """The values of each sample as strings; one that is no list is a list of one, None of none."""
    lists = []
    for each in values:
        each = each.tolist() if isinstance(each, Tensor) else each
        entries = list(each) if isinstance(each, _LISTS) else [] if each is None else [each]
        lists.append(list(map(_text, entries)))
    return lists


def values_of_batches(batches: Sequence[Any], part: str) -> Array:
    """The values of some batches as one array of numbers, or of texts."""
    arrays = [_array(each) for each in batches]
    for array in arrays:
        if array.ndim != 1:
            got = f"values of shape {array.shape}"
            raise ConfigError(describe(f"slices: {part}", got, "one value a sample", "Choose a part or a function"))
    if len({array.dtype.kind for array in arrays}) > 1:
        arrays = [array.astype(str) for array in arrays]
    return np.concatenate(arrays)


def _array(values: Any) -> Array:
    if isinstance(values, Tensor):
        values = to_host(values.float() if values.dtype == torch.bfloat16 else values).numpy()
    array = np.asarray(values)
    if array.dtype.kind == "U" and not isinstance(values, np.ndarray):
        array = np.asarray(values, object)  # as strings, NaN would be the text "nan"
    if array.dtype.kind == "O" or (array.dtype.kind == "U" and (np.char.find(array, MISSING) >= 0).any()):
        return np.array(list(map(_text, array.flat)), str).reshape(array.shape)
    return array


def _text(value: Any) -> str:
    """A value as slices are named; None and NaN, by which arrays and frames say so, are missing."""
    return value_text(value) if isinstance(value, str) else _name(value)


def _name(value: Any) -> str:
    """The name of a number, or of a string that `value_text` gave."""
    return MISSING if value is None or value != value else str(value)


def value_text(text: str) -> str:
    """The name of a value: the string, in quotes where it would read as what has no value.

    Example:
        >>> print(value_text("de"), value_text("missing"), value_text("'missing'"))
        de 'missing' "'missing'"
    """
    return repr(text) if text.strip("'\"\\") == MISSING else text
