"""The same metrics on parts of the samples: by a column, by a function, or by several of them crossed."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.evaluation.data.batch import Selector
from assay.evaluation.nested_batch import structure
from assay.evaluation.observe.bootstrap_groups import SLICE_GROUPS, BootstrapGroups, Resampled
from assay.evaluation.observe.observers import Array, SampleRows, Tensors, as_bytes, from_bytes, part_of, prefixed
from assay.evaluation.observe.partition import Label, Partition
from assay.evaluation.observe.slice_values import BASE, MOST_CROSSED, Coding, SliceCodes, SlicePlaces, crossed
from assay.meter import Meter

Slices: TypeAlias = "str | Mapping[str, Any] | Sequence[str | tuple[str, ...]] | None"

MOST_CELLS = 1000
_RANGE = re.compile(r"\[[^, ]+, [^, ]+[\])]")


@dataclass(frozen=True)
class SliceSpec:
    """Which slices are asked for.

    Attributes:
        selectors: how a batch gives the values of each part.
        slices: by name, the parts that are crossed; one where nothing is.
        tables: the parts of many values, of which each gives one table.
    """

    selectors: Mapping[str, Selector]
    slices: Mapping[str, tuple[str, ...]]
    tables: tuple[str, ...] = ()

    def with_tables(self, by: Slices) -> SliceSpec:
        """These slices, and tables by further parts.

        Raises:
            ConfigError: parts are crossed, or a name stands for two selectors.
        """
        tables = parse_slices(by)
        for name, parts in tables.slices.items():
            if parts != (name,):
                do = "Add a part that joins both, and name that"
                raise ConfigError(describe("by", f"{name!r}, which crosses parts", "one part each", do))
            if self.selectors.get(name, tables.selectors[name]) != tables.selectors[name]:
                do = "Use another name for one of them"
                raise ConfigError(describe("by", f"{name!r}, which slices have as another part", "the same part", do))
        return SliceSpec({**self.selectors, **tables.selectors}, self.slices, tuple(tables.slices))


def split_text(slices: Any) -> Any:
    """Slices that are written as one text, as a list: "sex,sex*age" is sex, and sex crossed with age.

    All else stays as it is: in a list every name is that of a column.

    Example:
        >>> split_text("sex, sex*age:edges=18,65")
        ['sex', ('sex', 'age:edges=18,65')]
    """
    if not isinstance(slices, str):
        return slices
    names = re.split(r",\s*(?![-+.\d])", slices)  # not within age:edges=18,65
    crossed = [tuple(map(str.strip, each.split("*"))) for each in names]
    return [each if len(each) > 1 else each[0] for each in crossed]


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
    slices = split_text(slices)
    if not isinstance(slices, Mapping | Sequence):
        expected = "names of columns, or selectors by name"
        raise ConfigError(describe("slices", repr(slices), expected, 'Write slices="sex,sex*age"'))
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
            do = "Pass the name of a part of the batch, or make the values a column of the data"
            got = text if len(text := repr(selector)) <= 60 else structure(selector)
            raise ConfigError(describe(f"slices: {name}", got, expected, do))
    return SliceSpec(selectors, {str(name): crossed.get(str(name), (str(name),)) for name in slices})


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
        self._places = SlicePlaces(self._codings, most)
        self._lists: frozenset[str] | None = None
        self._finer: dict[str, str] = {}
        self._partitions: dict[str, Partition] = {}
        self._every: Partition | None = None

    @property
    def lists(self) -> tuple[str, ...]:
        """The parts of which samples have lists of values, so that a sample is in several slices."""
        return tuple(sorted(self._lists or ()))

    def empty(self) -> Slicer:
        """One that has counted nothing."""
        return Slicer(self.slices, self.like, self._most, self._groups_like)

    def count(self, rows: SampleRows) -> None:
        """Count rows into the meters of their slices."""
        codes = {part: coding.of_batches(rows.parts[part]) for part, coding in self._codings.items()}
        self._expect(frozenset(part for part, each in codes.items() if each.lengths is not None))
        codes = {part: each.as_lists() if part in self.lists else each for part, each in codes.items()}
        for name, parts in self.slices.items():
            if name not in self._partitions and name not in self._groups:
                continue
            index, cells = crossed([codes[part] for part in parts])
            entries = rows if index is None else rows.take(index)
            if name in self._partitions:
                self._partitions[name].count(entries, cells, self._labels(parts))
                self._check_cells(name)
            if name in self._groups:
                self._groups[name].count(entries, cells, self._labels(parts))
        if self._every is not None:
            self._every.count(rows, np.zeros(len(rows), np.int64), lambda code: ())
        self._places.add(codes, len(rows))

    def total(self) -> Meter:
        """A meter with what was counted of all samples: each is in one slice of those by parts without lists."""
        whole = [self._partitions[name] for name in self._without_lists()]
        whole = whole or ([] if self._every is None else [self._every])
        return min(whole, key=len).total() if whole else self.like.fresh()

    def _without_lists(self) -> list[str]:
        return [name for name in self._partitions if not {*self.slices[name]} & {*self.lists}]

    def _expect(self, lists: frozenset[str]) -> None:
        """Note of which parts samples have lists: slices by those are no sums of the meters of a crossing.

        Raises:
            ConfigError: the first samples had single values.
        """
        if self._lists is None:
            self._lists = lists
            self._finer = {name: _finest(parts, self.slices, lists) for name, parts in self.slices.items()}
            self._partitions = {name: Partition(self.like) for name in self.slices if self._finer[name] == name}
            self._every = None if self._without_lists() else Partition(self.like)
        elif late := sorted(lists - self._lists):
            got, do = "lists after single values", "Make every value a list, also of one"
            raise ConfigError(describe(f"slices: {late[0]}", got, "lists from the first sample on", do))

    def _labels(self, parts: tuple[str, ...]) -> Callable[[int], Label]:
        texts = [self._codings[part].texts for part in parts]
        return lambda code: tuple(each[code // BASE**k % BASE] for k, each in enumerate(texts))

    def _check_cells(self, name: str) -> None:
        cells = len(self._partitions[name])
        if cells > MOST_CELLS:
            expected = f"at most {MOST_CELLS}"
            raise ConfigError(describe(f"slices: {name}", f"{cells} slices", expected, "Cross fewer, or bin them"))

    def state(self) -> dict[str, Tensor]:
        """What was counted, as tensors."""
        texts = as_bytes({part: coding.texts for part, coding in self._codings.items()})
        tensors = {"rows": torch.tensor(self._places.rows, device="cpu"), "texts": texts, **self._places.state()}
        if self._lists is not None:
            tensors["lists"] = as_bytes(self.lists)
        for name, partition in self._partitions.items():
            tensors.update(prefixed(f"meters {name}", partition.state()))
        if self._every is not None:
            tensors.update(prefixed("every", self._every.state()))
        for name, groups in self._groups.items():
            tensors.update(prefixed(f"groups {name}", groups.state()))
        return tensors

    def add_state(self, tensors: Tensors) -> None:
        """Add what `state` gave; values may have other numbers there."""
        if "lists" not in tensors:  # nothing was counted
            return
        lists = frozenset(from_bytes(tensors["lists"]))
        self._expect(lists)
        if lists != self._lists:
            got, do = "lists on some processes, single values on others", "Make every value a list, also of one"
            name = min(lists ^ (self._lists or lists))
            raise ConfigError(describe(f"slices: {name}", got, "lists everywhere", do))
        codes = {}
        for part, texts in from_bytes(tensors["texts"]).items():
            renumbered = np.array([self._codings[part].code(text) for text in texts], np.int64)
            places, lengths = tensors[f"place {part}"].numpy(), tensors.get(f"lengths {part}")
            numbers = renumbered[places] if len(texts) else places
            codes[part] = SliceCodes(numbers, None if lengths is None else lengths.numpy())
        self._places.add(codes, int(tensors["rows"]))
        for name, partition in self._partitions.items():
            partition.add_state(part_of(f"meters {name}", tensors))
            self._check_cells(name)
        if self._every is not None:
            self._every.add_state(part_of("every", tensors))
        for name, groups in self._groups.items():
            groups.add_state(part_of(f"groups {name}", tensors))

    def _meters(self, name: str) -> dict[Label, Meter]:
        """The meters of slices by one name; those of parts of a crossing have what its cells counted."""
        finer = self._finer[name]
        places = [self.slices[finer].index(part) for part in self.slices[name]]
        partition = self._partitions[finer]
        return partition.grouped(lambda label: tuple(label[k] for k in places))

    def results(self, order: Array | None) -> list[SliceResult]:
        """The slices, those of one name in the order of their values.

        Args:
            order: the order of the samples in the report; None where none are kept.
        """
        results = []
        self._expect(frozenset())  # where nothing was counted
        members = cache(partial(self._members, order=order))
        for name, parts in self.slices.items():
            meters = self._meters(name)
            for label in sorted(meters, key=lambda each: tuple(map(_rank, each))):
                masks = [members(part, text) for part, text in zip(parts, label, strict=True)]
                known = [mask for mask in masks if mask is not None]
                chosen = np.logical_and.reduce(known) if len(known) == len(masks) else None
                title = ", ".join(f"{part} = {text}" for part, text in zip(parts, label, strict=True))
                results.append(SliceResult(title, meters[label], chosen, label, self._groups.get(name)))
        return results

    def _members(self, part: str, text: str, order: Array | None) -> Array | None:
        """Which samples have a value, in the order of the report; None where that is not kept."""
        whole = self._places.whole(part)
        if order is None or whole is None or self._places.rows != len(order):
            return None
        have = whole.codes == self._codings[part].code(text)
        if whole.lengths is not None:
            starts = np.cumsum(whole.lengths) - whole.lengths
            have = np.logical_or.reduceat(have, starts) if len(starts) else np.zeros(0, bool)
        return np.asarray(have[order])


def _finest(parts: tuple[str, ...], slices: Mapping[str, tuple[str, ...]], lists: Collection[str]) -> str:
    """The name of the slices that cross the most columns, with all of these; the first of several.

    A sample with a list of values is in several cells of a crossing, which do not add up to slices by others.
    """
    crossings = [
        name for name, others in slices.items() if set(parts) <= set(others) and not {*others} - {*parts} & {*lists}
    ]
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
        self,
        confidence_level: float,
        n_resamples: int,
        without: Collection[str],
        with_interval: Collection[str],
        elements: int,
    ) -> Resampled:
        """Intervals and replicates of the values that have no others."""
        if self.groups is None:
            return Resampled()
        return self.groups.resampled(confidence_level, n_resamples, without, with_interval, self.label, elements)


def _rank(text: str) -> tuple[int, float, str]:
    """Numbers and ranges of them in their order, then texts in theirs; NaN, which has no order, is a text."""
    with contextlib.suppress(ValueError):
        number = float(text[1:].partition(", ")[0] if _RANGE.fullmatch(text) else text)
        if not math.isnan(number):
            return 0, number, text
    return 1, 0.0, text
