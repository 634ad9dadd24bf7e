"""Sums of per-sample values by the values of a column, of which there may be many: users, shops, queries.

Each group has a few integers: how many samples, and how many of them are right, say; or exact sums. So memory grows
with groups times metrics, and any split of the samples gives the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.evaluation.observe.observers import (
    SampleRows,
    Tensors,
    as_bytes,
    from_bytes,
    part_of,
    parts_of,
    prefixed,
)
from assay.evaluation.observe.per_sample import host_array
from assay.evaluation.observe.slice_values import CodedLists, Coding
from assay.metrics.base import Metric
from assay.tally.sums.windowed import WindowedSums

MOST_GROUPS = 1_000_000
"""Values of one column: each is named in the report."""
_LARGEST = np.finfo(np.float64).max


@dataclass
class GroupedSums:
    """Sums of one per-sample value.

    Attributes:
        counts: yes or no: how many samples of each group are yes, `(groups,)`; None for numbers.
        sums: numbers: the sums of each group.
        squares: those of their squares.
        powers: two sums over all samples: of their third and fourth powers.
        special: for each group the sum of what is not finite.
    """

    counts: NDArray[np.int64] | None
    sums: WindowedSums
    squares: WindowedSums
    powers: WindowedSums
    special: NDArray[np.float64]

    @classmethod
    def zeros(cls, is_yes_or_no: bool) -> GroupedSums:
        """Those of no sample."""
        counts = np.zeros(0, np.int64) if is_yes_or_no else None
        return cls(counts, WindowedSums.zeros(0), WindowedSums.zeros(0), WindowedSums.zeros(2), np.zeros(0))

    def reserve(self, groups: int) -> None:
        """Have room for so many groups."""
        if len(self.special) >= groups:
            return
        self.special = _padded(self.special, groups)
        if self.counts is not None:
            self.counts = _padded(self.counts, groups)
        else:
            self.sums.reserve(groups)
            self.squares.reserve(groups)

    def add(self, terms: NDArray[Any], codes: NDArray[np.int64]) -> None:
        """Add what samples contribute to the sums of their groups."""
        if self.counts is not None:
            self.counts += np.bincount(codes[terms], minlength=len(self.counts))
            return
        values = terms.astype(np.float64)
        is_finite = np.isfinite(values)
        if not is_finite.all():
            with np.errstate(all="ignore"):
                np.add.at(self.special, codes[~is_finite], values[~is_finite])
            values, codes = values[is_finite], codes[is_finite]
        self.sums.add(values, codes)
        self.squares.add(_power(values, 2), codes)
        for k, exponent in enumerate((3, 4)):
            self.powers.add(_power(values, exponent), np.full(len(values), k))

    def state(self) -> dict[str, Tensor]:
        """The sums as tensors."""
        groups, found = len(self.special), {"special": torch.from_numpy(self.special)}
        if self.counts is not None:
            return found | {"counts": torch.from_numpy(self.counts)}
        parts = {"sums": self.sums.tensors(groups), "squares": self.squares.tensors(groups)}
        for name, part in {**parts, "powers": self.powers.tensors(2)}.items():
            found |= prefixed(name, part)
        return found

    def add_state(self, tensors: Tensors, codes: NDArray[np.int64]) -> None:
        """Add what `state` gave, whose groups have these numbers here."""
        with np.errstate(all="ignore"):
            self.special[codes] += tensors["special"].numpy()
        if self.counts is not None:
            self.counts[codes] += tensors["counts"].numpy()
            return
        self.sums.add_tensors(part_of("sums", tensors), codes)
        self.squares.add_tensors(part_of("squares", tensors), codes)
        self.powers.add_tensors(part_of("powers", tensors), np.arange(2))


def _power(values: NDArray[np.float64], exponent: int) -> NDArray[np.float64]:
    """Powers; those that overflow are the largest number."""
    with np.errstate(all="ignore"):
        return np.clip(values**exponent, -_LARGEST, _LARGEST)


def _padded(values: NDArray[Any], size: int) -> NDArray[Any]:
    return np.concatenate([values, np.zeros(size - len(values), values.dtype)])


class TermsOfColumn:
    """What was counted by the values of one column.

    Args:
        name: the column.
    """

    def __init__(self, name: str) -> None:
        self.coding = Coding(name, MOST_GROUPS)
        self.rows = np.zeros(0, np.int64)
        self._sums: dict[str, GroupedSums] = {}

    def count(self, values: Sequence[Any], terms: Mapping[str, NDArray[Any]]) -> None:
        """Count samples.

        Args:
            values: the values of the column, batch by batch.
            terms: by name, what each sample contributes.
        """
        found = self.coding.of_batches(values)
        if found.lengths is not None or isinstance(values[0], CodedLists):
            do = f"Slice by it if it has few values: slices=[{self.coding.name!r}]"
            raise ConfigError(describe(f"by: {self.coding.name}", "lists of values", "one value a sample", do))
        size = self._grown()
        self.rows += np.bincount(found.codes, minlength=size)
        for name, each in terms.items():
            self.sums(name, is_yes_or_no=each.dtype.kind == "b").add(each, found.codes)

    def sums(self, name: str, *, is_yes_or_no: bool = True) -> GroupedSums:
        """What was counted of a per-sample value; nothing yet of a new one."""
        if name not in self._sums:
            self._sums[name] = GroupedSums.zeros(is_yes_or_no)
        self._sums[name].reserve(self._grown())
        return self._sums[name]

    def _grown(self) -> int:
        """How many groups there are, after `rows` has room for all of them."""
        size = len(self.coding.texts)
        if len(self.rows) < size:
            self.rows = _padded(self.rows, size)
        return size

    def state(self) -> dict[str, Tensor]:
        """What was counted, as tensors."""
        tensors = {"texts": as_bytes(self.coding.texts), "rows": torch.from_numpy(self.rows)}
        for number, name in enumerate(sorted(self._sums)):
            tensors |= prefixed(f"sums/{number}", {"name": as_bytes(name), **self.sums(name).state()})
        return tensors

    def add_state(self, tensors: Tensors) -> None:
        """Add what `state` gave; values may have other numbers there."""
        codes = np.array([self.coding.code(text) for text in from_bytes(tensors["texts"])], np.int64)
        self._grown()
        self.rows[codes] += tensors["rows"].numpy()
        for part in parts_of(part_of("sums", tensors)).values():
            self.sums(from_bytes(part["name"]), is_yes_or_no="counts" in part).add_state(part, codes)


class GroupedTerms:
    """The per-sample values of metrics, summed by the values of columns.

    Args:
        columns: the columns.
        metrics: those whose per-sample values are summed.

    Attributes:
        columns: what was counted, by column.
        metrics: those that are counted.
        terms: by metric its numerator and its denominator, as names of per-sample values.
        refused: metrics that are no mean over samples, so that they have no sums by group.
        crossed: metrics with a sample that is in the numerator and not in the denominator.
    """

    def __init__(self, columns: Sequence[str], metrics: Mapping[str, Metric]) -> None:
        self.columns = {name: TermsOfColumn(name) for name in columns}
        self.metrics = metrics
        self.terms: dict[str, tuple[str, str]] = {}
        self.refused: tuple[str, ...] = ()
        self.crossed: frozenset[str] = frozenset()

    def empty(self) -> GroupedTerms:
        """One that has counted nothing."""
        return GroupedTerms(list(self.columns), self.metrics)

    def count(self, rows: SampleRows) -> None:
        """Count rows.

        Raises:
            ConfigError: no metric is a mean over samples.
        """
        terms: dict[str, NDArray[Any]] = {}
        refused = []
        for name, metric in self.metrics.items():
            found = rows.terms_of(metric)
            if found is None:
                refused.append(name)
                continue
            self.terms[name] = (found.numerator, found.denominator)
            terms |= {each: host_array(values) for each, values in found.terms.items() if each not in terms}
            self._note_crossed(name, terms)
        self.refused = tuple(refused)
        if not self.terms:
            got, do = f"{', '.join(refused)}, no mean over samples", 'Add a metric such as "accuracy" or "mae"'
            raise ConfigError(describe(f"by: {next(iter(self.columns))}", got, "a mean over samples", do))
        for part, column in self.columns.items():
            column.count(rows.parts[part], terms)

    def _note_crossed(self, name: str, terms: Mapping[str, NDArray[Any]]) -> None:
        top, bottom = self.terms[name]
        if bottom and terms[top].dtype.kind == "b" and (terms[top] & ~terms[bottom].astype(bool)).any():
            self.crossed |= {name}

    def state(self) -> dict[str, Tensor]:
        """What was counted, as tensors."""
        about = {"terms": self.terms, "refused": self.refused, "crossed": sorted(self.crossed)}
        tensors = {"about": as_bytes(about)}
        for number, column in enumerate(self.columns.values()):
            tensors |= prefixed(f"column/{number}", column.state())
        return tensors

    def add_state(self, tensors: Tensors) -> None:
        """Add what `state` gave."""
        about = from_bytes(tensors["about"])
        self.terms.update({name: tuple(each) for name, each in about["terms"].items()})
        self.refused = self.refused or tuple(about["refused"])
        self.crossed |= frozenset(about["crossed"])
        for column, part in zip(self.columns.values(), _in_order(part_of("column", tensors)), strict=True):
            column.add_state(part)


def _in_order(tensors: Tensors) -> Iterator[dict[str, Tensor]]:
    parts = parts_of(tensors)
    return (parts[str(number)] for number in range(len(parts)))
