"""The same metrics on parts of the samples: by a column, by a function, or by several of them crossed."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from torch import Tensor

from assay.devices.placement import to_host
from assay.errors import ConfigError, describe
from assay.evaluation.batch import Selector
from assay.evaluation.bootstrap_groups import SLICE_GROUPS, BootstrapGroups, Resampled
from assay.evaluation.observers import Array, SampleRows, Tensors, as_bytes, from_bytes, part_of, prefixed
from assay.evaluation.partition import Label, Partition
from assay.meter import Meter

Slices: TypeAlias = "Mapping[str, Any] | Sequence[str | tuple[str, ...]] | None"

MOST_VALUES = 100
MOST_CELLS = 1000
MOST_CROSSED = 9
_BASE = 128  # more than MOST_VALUES; MOST_CROSSED digits fit 63 bits
_BIN = 'Bin it by a function, such as slices={"decade": lambda batch: batch["age"] // 10 * 10}'


@dataclass(frozen=True)
class SliceSpec:
    """Which slices are asked for.

    Attributes:
        selectors: how a batch gives the values of each part.
        slices: by name, the parts that are crossed; one where nothing is.
    """

    selectors: Mapping[str, Selector]
    slices: Mapping[str, tuple[str, ...]]


def parse_slices(slices: Slices) -> SliceSpec:
    """Understand what `evaluate` was given.

    Example:
        >>> parse_slices(["sex", ("sex", "age")]).slices
        {'sex': ('sex',), 'sex x age': ('sex', 'age')}

    Raises:
        ConfigError: it is nothing of what it may be, or a slice is crossed with one that is not there.
    """
    if slices is None:
        return SliceSpec({}, {})
    if isinstance(slices, str) or not isinstance(slices, Mapping | Sequence):
        expected = "names of columns, or selectors by name"
        raise ConfigError(describe("slices", repr(slices), expected, f"Write slices=[{slices!r}]"))
    if not isinstance(slices, Mapping):
        slices = {each if isinstance(each, str) else " x ".join(map(str, each)): each for each in slices}
    selectors = {str(name): each for name, each in slices.items() if not isinstance(each, tuple)}
    crossed = {str(name): tuple(map(str, each)) for name, each in slices.items() if isinstance(each, tuple)}
    for name, parts in crossed.items():
        if len(parts) > MOST_CROSSED:
            got, do = f"{len(parts)} parts", "Cross fewer, or join some of them to one"
            raise ConfigError(describe(f"slices: {name}", got, f"at most {MOST_CROSSED}", do))
        selectors = {**{part: part for part in parts}, **selectors}
    for name, selector in selectors.items():
        if not (isinstance(selector, str | int) or callable(selector)):
            expected = "a name, a position, a function, or a tuple of names to cross"
            raise ConfigError(
                describe(f"slices: {name}", repr(selector), expected, "Pass the name of a part of the batch")
            )
    return SliceSpec(selectors, {str(name): crossed.get(str(name), (str(name),)) for name in slices})


class CodedValues(NamedTuple):
    """The values of samples as numbers of texts, as a column with a dictionary has them."""

    codes: Array
    texts: Sequence[str]


class Coding:
    """The values of one part of the slices as numbers, in the order in which they came."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}

    def codes(self, values: Array) -> Array:
        """The numbers of values.

        Raises:
            ConfigError: there are too many different ones.
        """
        different, where = np.unique(values, return_inverse=True)
        if len(different) > MOST_VALUES:
            self._refuse(map(str, different))
        return np.array([self.code(str(each)) for each in different], np.int64)[where]

    def recoded(self, values: CodedValues) -> Array:
        """The numbers of values that have other numbers; texts that no value has get none."""
        counts = np.bincount(values.codes, minlength=len(values.texts))
        present = np.flatnonzero(counts).tolist()
        if len(present) > MOST_VALUES:
            self._refuse(values.texts[k] for k in present)
        numbers = np.zeros(len(counts), np.int64)
        numbers[present] = [self.code(values.texts[k]) for k in present]
        return values.codes if np.array_equal(numbers[present], present) else numbers[values.codes]

    def code(self, text: str) -> int:
        """The number of one value."""
        if text not in self._codes:
            self._codes[text] = len(self.texts)
            self.texts.append(text)
            if len(self.texts) > MOST_VALUES:
                self._refuse(self.texts)
        return self._codes[text]

    def _refuse(self, texts: Iterable[str]) -> None:
        some = ", ".join(sorted(texts)[:3])
        got = f"more than {MOST_VALUES} different values ({some}, …)"
        raise ConfigError(describe(f"slices: {self.name}", got, f"at most {MOST_VALUES}", _BIN))


class Slicer:
    """Meters of all slices, and, where it is kept, which sample is in which.

    Args:
        slices: by name, the parts that are crossed.
        like: the meter that those of the slices are made like.
        most: how many samples' places are kept; 0 for none.
        groups: like which the groups of each slice are made, for the bootstrap; None for none.
    """

    def __init__(
        self, slices: Mapping[str, tuple[str, ...]], like: Meter, most: int, groups: BootstrapGroups | None = None
    ) -> None:
        self.slices, self.like, self._most, self._groups_like = slices, like, most, groups
        self._groups = {} if groups is None else {name: groups.empty(SLICE_GROUPS) for name in slices}
        self._codings = {part: Coding(part) for parts in slices.values() for part in parts}
        self._finer = {name: _finest(parts, slices) for name, parts in slices.items()}
        self._partitions = {name: Partition(like) for name in slices if self._finer[name] == name}
        self._places: dict[str, list[Array]] = {part: [] for part in self._codings}
        self._rows = 0

    def empty(self) -> Slicer:
        """One that has counted nothing."""
        return Slicer(self.slices, self.like, self._most, self._groups_like)

    def count(self, rows: SampleRows) -> None:
        """Count rows into the meters of their slices."""
        codes = {part: self._codes(coding, rows.parts[part]) for part, coding in self._codings.items()}
        for name, parts in self.slices.items():
            if name not in self._partitions and name not in self._groups:
                continue
            combined = reduce(np.add, [codes[part] * _BASE**k if k else codes[part] for k, part in enumerate(parts)])
            if name in self._partitions:
                self._partitions[name].count(rows, combined, self._labels(parts))
                self._check_cells(name)
            if name in self._groups:
                self._groups[name].count(rows, combined, self._labels(parts))
        self._keep(codes, len(rows))

    @staticmethod
    def _codes(coding: Coding, batches: Sequence[Any]) -> Array:
        if isinstance(batches[0], CodedValues):
            return np.concatenate([coding.recoded(each) for each in batches])
        return coding.codes(_values(batches, coding.name))

    def _labels(self, parts: tuple[str, ...]) -> Callable[[int], Label]:
        texts = [self._codings[part].texts for part in parts]
        return lambda code: tuple(each[code // _BASE**k % _BASE] for k, each in enumerate(texts))

    def _check_cells(self, name: str) -> None:
        cells = len(self._partitions[name])
        if cells > MOST_CELLS:
            expected = f"at most {MOST_CELLS}"
            raise ConfigError(describe(f"slices: {name}", f"{cells} slices", expected, "Cross fewer, or bin them"))

    def _keep(self, codes: Mapping[str, Array], rows: int) -> None:
        self._rows += rows
        if self._rows > self._most:
            self._places = {part: [] for part in self._places}
            return
        for part, each in codes.items():
            self._places[part].append(each.astype(np.uint8))

    def total(self) -> Meter:
        """A meter with what was counted of all samples: each is in one slice of those by the same parts."""
        return min(self._partitions.values(), key=len).total()

    def state(self) -> dict[str, Tensor]:
        """What was counted, as tensors."""
        tensors = {"rows": torch.tensor(self._rows), "texts": as_bytes({p: c.texts for p, c in self._codings.items()})}
        for part, places in self._places.items():
            tensors[f"place {part}"] = torch.from_numpy(np.concatenate(places or [np.empty(0, np.uint8)]))
        for name, partition in self._partitions.items():
            tensors.update(prefixed(f"meters {name}", partition.state()))
        for name, groups in self._groups.items():
            tensors.update(prefixed(f"groups {name}", groups.state()))
        return tensors

    def add_state(self, tensors: Tensors) -> None:
        """Add what `state` gave; values may have other numbers there."""
        codes = {}
        for part, texts in from_bytes(tensors["texts"]).items():
            renumbered = np.array([self._codings[part].code(text) for text in texts], np.int64)
            places = tensors[f"place {part}"].numpy()
            codes[part] = renumbered[places] if len(texts) else places
        self._keep(codes, int(tensors["rows"]))
        for name, partition in self._partitions.items():
            partition.add_state(part_of(f"meters {name}", tensors))
            self._check_cells(name)
        for name, groups in self._groups.items():
            groups.add_state(part_of(f"groups {name}", tensors))

    def _meters(self, name: str) -> dict[Label, Meter]:
        """The meters of slices by one name; those of parts of a crossing are sums of its meters."""
        finer, parts = self._finer[name], self.slices[name]
        meters = self._partitions[finer].meters
        if finer == name:
            return meters
        places = [self.slices[finer].index(part) for part in parts]
        members: dict[Label, list[Meter]] = {}
        for label, meter in meters.items():
            members.setdefault(tuple(label[k] for k in places), []).append(meter)
        return {label: self.like.fresh().merge(*each) for label, each in members.items()}

    def results(self, order: Array | None) -> list[SliceResult]:
        """The slices, those of one name in the order of their values.

        Args:
            order: the order of the samples in the report; None where none are kept.
        """
        results = []
        texts = {part: np.array(coding.texts, object) for part, coding in self._codings.items()}
        if order is not None and self._rows == len(order):
            placed = {part: np.concatenate(each)[order] for part, each in self._places.items() if each}
        else:
            placed = {}
        for name, parts in self.slices.items():
            meters = self._meters(name)
            for label in sorted(meters, key=lambda each: tuple(map(_rank, each))):
                members = None
                if placed.keys() >= set(parts):
                    members = np.logical_and.reduce(
                        [texts[part][placed[part]] == text for part, text in zip(parts, label, strict=True)]
                    )
                title = ", ".join(f"{part} = {text}" for part, text in zip(parts, label, strict=True))
                results.append(SliceResult(title, meters[label], members, label, self._groups.get(name)))
        return results


def _finest(parts: tuple[str, ...], slices: Mapping[str, tuple[str, ...]]) -> str:
    """The name of the slices that cross the most columns, with all of these; the first of several."""
    crossings = [name for name, others in slices.items() if set(parts) <= set(others)]
    return max(crossings, key=lambda name: len(set(slices[name])))


@dataclass(frozen=True)
class SliceResult:
    """One slice.

    Attributes:
        name: which samples.
        meter: what was counted of it.
        members: which samples it has, where that is known.
        label: what it is called among the groups.
        groups: the groups of all slices by the same parts; None where there are none.
    """

    name: str
    meter: Meter
    members: Array | None
    label: Label = ()
    groups: BootstrapGroups | None = None

    def resampled(
        self, confidence_level: float, n_resamples: int, without: Collection[str], elements: int
    ) -> Resampled:
        """Intervals and replicates of the values that have no others."""
        if self.groups is None:
            return Resampled()
        return self.groups.resampled(confidence_level, n_resamples, without, self.label, elements)

    def values(self, names: Iterable[str]) -> dict[str, Any]:
        """What metrics read of it; one that has too little data returns NaN, which is no warning here."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self.meter.compute(only=names)


def _values(batches: Sequence[Any], part: str) -> Array:
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
    return array.astype(str) if array.dtype.kind == "O" else array


def _rank(text: str) -> tuple[int, float, str]:
    """Numbers in their order, then texts in theirs; NaN, which has no order, is a text."""
    with contextlib.suppress(ValueError):
        number = float(text)
        if not math.isnan(number):
            return 0, number, text
    return 1, 0.0, text
