"""Columns of numbers that slices are made of by ranges: ``age:bins=5``, ``age:edges=18,40,65``."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.data.tables.table_source import TableSource
from assay.errors import ConfigError, describe
from assay.evaluation.observe.column_bins import ColumnBins, quantile_edges
from assay.evaluation.observe.slices import split_text
from assay.scoring.columns import check_names
from assay.scoring.slice_columns import numbers_of_column
from assay.scoring.where import Where

_RANGES = re.compile(r"(?P<column>.+):(?P<kind>bins|edges|between)=(?P<numbers>[^:=]*)", re.DOTALL)
_COMPACTED = 1 << 22


@dataclass(frozen=True)
class SliceRanges:
    """How a column is cut.

    Args:
        column: its name.
        count: into so many ranges of about as many rows each; 0 where the edges are known.
        edges: rising numbers; a range holds its lower edge and not its upper one, the last range holds both.
    """

    column: str
    count: int = 0
    edges: tuple[float, ...] = ()

    @property
    def written(self) -> str:
        """What `parse_ranges` takes."""
        if self.count:
            return f"{self.column}:bins={self.count}"
        return f"{self.column}:between={','.join(map(repr, self.edges))}"

    def bins(self) -> ColumnBins:
        """The ranges.

        Raises:
            ConfigError: they are not known before all rows were seen.
        """
        if not self.count:
            return ColumnBins(self.column, self.edges)
        got = f"{self.written} of rows that are counted apart, or read once"
        do = f"Write --slice {self.column}:edges=18,40,65 with edges that fit, the same for all parts"
        raise ConfigError(describe("slices", got, "edges that are known before", do))


def split_ranges(slices: Any) -> tuple[Any, dict[str, SliceRanges]]:
    """Slices by columns, and by name the columns that are cut; they are cut in all slices.

    Example:
        >>> split_ranges("sex, age:bins=5, sex*age:bins=5")[0]
        {'sex': 'sex', 'age': 'age', 'sex x age': ('sex', 'age')}

    Raises:
        ConfigError: invalid ranges, or two kinds of one column.
    """
    slices = split_text(slices)
    if not isinstance(slices, Mapping | Sequence):
        return slices, {}
    ranges: dict[str, SliceRanges] = {}

    def plain(selector: Any) -> Any:
        if isinstance(selector, tuple):
            return tuple(map(plain, selector))
        found = parse_ranges(selector) if isinstance(selector, str) else None
        if found is None:
            return selector
        if ranges.setdefault(found.column, found) != found:
            got = f"{ranges[found.column].written} and {found.written}"
            do = "Cut a column in one way, or add another column"
            raise ConfigError(describe(f"slices: {found.column}", got, "the same ranges in all slices", do))
        return found.column

    if isinstance(slices, Mapping):
        return {name: plain(each) for name, each in slices.items()}, ranges
    selectors = [plain(each) for each in slices]
    names = [" x ".join(map(str, each)) if isinstance(each, tuple) else each for each in selectors]
    return dict(zip(names, selectors, strict=True)), ranges


def join_ranges(slices: Any, ranges: Mapping[str, SliceRanges]) -> Any:
    """What `split_ranges` takes apart."""

    def written(selector: Any) -> Any:
        if isinstance(selector, tuple):
            return tuple(map(written, selector))
        return ranges[selector].written if isinstance(selector, str) and selector in ranges else selector

    return {name: written(each) for name, each in slices.items()} if ranges else slices


def parse_ranges(written: str) -> SliceRanges | None:
    """Understand ``age:bins=5`` or ``age:edges=18,40,65``; None for the name of a column.

    Example:
        >>> parse_ranges("age:edges=18,65").bins().labels
        ('[-inf, 18)', '[18, 65)', '[65, inf]')

    Raises:
        ConfigError: fewer than two bins, or edges that do not rise.
    """
    match = _RANGES.fullmatch(written)
    if match is None:
        return None
    column, numbers = match["column"], match["numbers"]
    where = f"--slice {written}"
    if match["kind"] == "bins":
        if not (numbers.isdigit() and int(numbers) > 1):
            do = f"Write --slice {column}:bins=5"
            raise ConfigError(describe(where, f"{numbers!r} bins", "an integer of 2 or more", do))
        return SliceRanges(column, int(numbers))
    try:
        edges = tuple(map(float, numbers.split(",")))
    except ValueError:
        edges = ()
    inner = all(map(math.isfinite, edges)) or match["kind"] == "between"
    if not edges or not inner or list(edges) != sorted(set(edges)):
        do = f"Write --slice {column}:edges=18,40,65"
        raise ConfigError(describe(where, f"edges {numbers!r}", "rising numbers", do))
    return SliceRanges(column, 0, edges if match["kind"] == "between" else (-math.inf, *edges, math.inf))


def with_edges(ranges: Mapping[str, SliceRanges], table: TableSource, where: Where | None) -> dict[str, SliceRanges]:
    """The same ranges with edges: quantiles of the columns, which are read for it.

    Args:
        ranges: by column.
        table: the table.
        where: the condition on rows; None for all rows.

    Raises:
        ConfigError: a column holds no numbers, or the table can be read once only.
    """
    counted = [each for each in ranges.values() if each.count]
    if counted and table.is_stream:
        counted[0].bins()
    known = dict(ranges)
    for each in counted:
        check_names(f"{table.name}: slices", (each.column,), table.schema.names)
        values, counts = _distinct(each, table, where)
        edges = quantile_edges(values, counts, each.count)
        known[each.column] = SliceRanges(each.column, 0, tuple(edges.tolist()))
    return known


def _distinct(ranges: SliceRanges, table: TableSource, where: Where | None) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The finite values of a column in their order, and how many rows have each."""
    values, counts = np.empty(0), np.empty(0, np.int64)
    waiting: list[NDArray[Any]] = []
    names = tuple(dict.fromkeys((ranges.column, *(() if where is None else where.names))))
    for fragment in table.fragments:
        if set(names) - {*fragment.schema.names, *table.folders}:
            continue  # a file of another schema, whose rows are not counted
        for batch in fragment.scan(names):
            kept = batch if where is None else batch.filter(where.keep(batch))
            waiting.append(numbers_of_column(kept.column(ranges.column), ranges.column))
            if sum(map(len, waiting)) > _COMPACTED:
                values, counts = _compacted(values, counts, waiting)
                waiting = []
    values, counts = _compacted(values, counts, waiting)
    if not len(values):
        do = f"Leave out --slice {ranges.written}"
        raise ConfigError(describe(f"slices: {ranges.written}", "no finite number", "numbers", do))
    return values, counts


def _compacted(
    values: NDArray[Any], counts: NDArray[np.int64], waiting: Sequence[NDArray[Any]]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Distinct values and how many there are, with those that wait."""
    more = np.concatenate([np.empty(0, waiting[0].dtype if waiting else np.float64), *waiting])
    new, times = np.unique(more[np.isfinite(more)], return_counts=True)
    if not len(values):
        return new, times
    both, place = np.unique(np.concatenate([values, new]), return_inverse=True)
    return both, np.bincount(place, np.concatenate([counts, times]), len(both)).astype(np.int64)
