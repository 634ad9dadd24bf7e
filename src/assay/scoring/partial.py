"""What was counted of some fragments of a table: it adds up, can be saved, and becomes the report of all of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay._atomic import Location, reading, write_whole
from assay.data.tables.table_source import Fragment, TableSource
from assay.errors import ConfigError, InputError, StateError, describe
from assay.evaluation.arguments.preparation import meter_of
from assay.evaluation.observe.sample_hashes import digest_of
from assay.evaluation.results.diagnostics import choose_diagnostics
from assay.evaluation.results.provenance import file_digests, origin_of
from assay.meter import Meter
from assay.meter.file import MeterDescription
from assay.meter.inputs.arguments import Arguments
from assay.metrics.base import Metric
from assay.report import Report
from assay.scoring.bad_rows import BadRows
from assay.scoring.columns import TableColumns
from assay.scoring.fragment_record import FragmentRecord
from assay.scoring.label_rules import class_count, ignored_labels, takes_labels
from assay.scoring.options import ScoreOptions
from assay.scoring.part_files import COUNT_AGAIN, EXPECTED, bytes_of, packed, reading_counts, unpacked
from assay.scoring.row_counts import RowCounts
from assay.scoring.row_ids import RowIds
from assay.scoring.row_selection import RowSelection
from assay.scoring.row_trials import RowTrial, arguments_of
from assay.scoring.rows import RowReader, TableRows, row_numbers
from assay.scoring.table_report import coverage_of, table_report
from assay.scoring.where import parse_where
from assay.stats.sampling import SampleDigest

_MERGED_AT_ONCE = 256


class Partial:
    """What was counted of fragments.

    Args:
        metrics: what is measured, by name.
        options: how.
        expected: how many rows the whole table has; 0 where that is not known.
        manifest: the keys of all fragments of the table; None where that is not known.
        repeated: the numbers of ids that several rows have, of which the first is counted.
        tries: every row is tried before it is counted, so that those which metrics refuse are noted as bad.

    Attributes:
        record: which fragments were counted, and of which table.
        selection: the rows that are counted, with those that cannot be.
        counts: what was counted of them.
        diagnostics: what is shown next to the metrics.
        ids: the ids of rows.
        columns: what each column of the table is for.
        tries: whether every row is tried before it is counted.
    """

    def __init__(
        self,
        metrics: Mapping[str, Metric],
        options: ScoreOptions,
        expected: int = 0,
        manifest: Sequence[str] | None = None,
        repeated: NDArray[np.int64] | None = None,
        *,
        tries: bool = False,
    ) -> None:
        self.metrics, self.options = dict(metrics), options
        self.record = FragmentRecord(manifest, expected)
        meter = meter_of(metrics, options.weights is not None)
        classes = options.classes or options.table_columns().labels
        self.diagnostics = choose_diagnostics(metrics, meter.weighted, classes, options.diagnostics)
        whole = meter.fresh({**metrics, **self.diagnostics.metrics})
        self.counts = RowCounts(whole, meter, options, expected)
        self.columns: TableColumns = options.table_columns(sorted(meter.columns))
        self._is_of_files = False
        self.ids, self.tries, self._trial = RowIds(), tries, RowTrial(meter)
        where = None if options.where is None else parse_where(options.where)
        reader = _reader(self.columns, meter, options)
        self.selection = RowSelection(reader, where, repeated, self._trial if tries else None)

    @property
    def fragments(self) -> dict[str, int]:
        """By key, how many rows each fragment had."""
        return self.record.rows

    @property
    def manifest(self) -> tuple[str, ...] | None:
        """The keys of all fragments of the table; None where that is not known."""
        return self.record.manifest

    @property
    def bad(self) -> BadRows:
        """The rows that cannot be counted, and why."""
        return self.selection.bad

    @property
    def meter(self) -> Meter:
        """What was counted of all rows."""
        return self.counts.meter

    @property
    def rows(self) -> int:
        """How many rows were looked at."""
        return sum(self.fragments.values())

    @property
    def missing(self) -> list[str]:
        """The fragments of the manifest that were not counted."""
        return self.record.missing

    @property
    def has_refused(self) -> bool:
        """Whether values were counted that a metric refuses, so that the rows must be tried."""
        return bool(self.meter.invalid_values())

    def excludes(self, fragment: Fragment) -> bool:
        """Note a fragment that has no row to count, where its file says so."""
        where = self.selection.where
        if where is None or fragment.rows is None or not where.excludes(fragment):
            return False
        self.fragments[fragment.key] += fragment.rows
        self.selection.filtered += fragment.rows
        return True

    def count(self, batch: Any, key: str, file: str, first: int, *, one_file: bool) -> None:
        """Count a record batch of a fragment.

        Args:
            batch: the rows, with the columns that are needed.
            key: the fragment.
            file: the file that it is of.
            first: the number of the first row in that file.
            one_file: the table has no other file.
        """
        self.fragments[key] += batch.num_rows
        rows = self.selection.rows(batch, key, np.arange(first, first + batch.num_rows, dtype=np.int64))
        if not len(rows.places):
            return
        try:
            arguments = arguments_of(self.counts.whole, rows)
        except InputError:
            if not self.counts.whole.takes_raw:
                raise
            rows = self.selection.not_refused(rows, key, self._trial)
            if not len(rows.places):
                return
            arguments = arguments_of(self.counts.whole, rows)
        self._count(rows, arguments, file, one_file)

    def _count(self, rows: TableRows, arguments: Arguments, file: str, one_file: bool) -> None:
        index, ids, numbers = self._named(rows, file, one_file)
        self.counts.count(rows, arguments, index, ids, numbers, self.columns.cluster)
        self.ids.add(digest_of(numbers), [numbers] if self.columns.ids else [])

    def _named(
        self, rows: TableRows, file: str, one_file: bool
    ) -> tuple[NDArray[np.int64] | None, list[Any] | None, NDArray[np.int64]]:
        """The integers or the strings that rows are called by, and the numbers that identify them."""
        is_kept = self.counts.keeps_names
        numbers = row_numbers(rows.ids, rows.places, file, one_file)
        if self.columns.ids:
            if isinstance(rows.ids, np.ndarray):
                return rows.ids, None, numbers
            return None, rows.ids.to_pylist() if is_kept else None, numbers
        if one_file:
            return rows.places, None, numbers
        return None, [f"{file}:{row}" for row in rows.places.tolist()] if is_kept else None, numbers

    def skip(self, key: str, rows: int, first: int, reason: str) -> None:
        """Note that a whole fragment cannot be counted, and why."""
        self.fragments[key] += rows
        self.bad.add(reason, key, np.arange(first, first + rows))

    def merge(self, *others: Partial) -> Partial:
        """Add what was counted of other fragments; they stay as they are.

        Raises:
            StateError: of other metrics or options, or a fragment that was counted before.
        """
        for other in others:
            self._check_measured(other._measured, "merge")
            self.record.check_fragments(other.fragments, "merge")
            self.record.check_manifest(other.manifest, other.record.expected, "merge")
            self.record.check_contents(other.record.contents, "merge")
            self.record.add(other.record)
            self._is_of_files |= other._is_of_files
            self.ids.add(other.ids.digest, other.ids.numbers)
            self.selection.add(other.bad, other.selection.filtered, other.selection.reader.has_hashed_queries)
        self.counts.merge([other.counts for other in others])
        return self

    def _check_measured(self, measured: Any, where: str) -> None:
        """Raise where what was counted elsewhere is of other metrics or options."""
        if measured != self._measured:
            do = "Count all fragments with equal metrics and options"
            raise StateError(describe(where, "a partial of other metrics or options", "one of the same", do))

    @cached_property
    def _measured(self) -> Any:
        """What is measured, as plain values of JSON."""
        described = MeterDescription.of(self.metrics, self.counts.whole.weighted, 0).to_json()
        return json.loads(json.dumps([json.loads(described), self.options.to_json()]))

    def check_rows(self, where: str = "table") -> None:
        """Raise where the whole table has no row that is measured; a part of it may have none.

        Raises:
            ConfigError: there is no row, or none that matches the condition.
        """
        if not self.rows:
            raise ConfigError(describe(where, "no rows", "one or more", "Check what was written there"))
        if self.selection.filtered == self.rows:
            got = f"no row that matches {self.options.where!r}"
            raise ConfigError(describe(f"{where}: where", got, "one or more", "Correct the condition"))

    def report(self, table: TableSource | None = None) -> Report:
        """The report of the whole table.

        Args:
            table: the table, which is read once more for what is shown of its worst queries; by default what the
                fragments were read from, if it is there.

        Raises:
            ConfigError: there is no row, or none that matches the condition.
            StateError: fragments of the manifest are missing, or there is one that it lacks.
            BadRowsError: rows of fragments that were counted apart have one id.
            InvalidValuesError: invalid values were counted, such as scores outside [0, 1].
        """
        self.record.check_complete()
        self.check_rows()
        with reading_counts(self._is_of_files):
            if self._is_of_files and (missed := coverage_of(self).missed):
                raise ValueError(f"{self.meter.rows:,} rows, {self.meter.rows + missed:,} in the fragments")
            report = table_report(self, table)
        return replace(report, origin=origin_of("merge", self.options, file_digests(None, self.record.contents)))

    def checked_report(self, table: TableSource | None = None) -> Report:
        """The report, unless rows are bad and that is to be an error; see `report`.

        Raises:
            BadRowsError: there are bad rows, and they are not to be skipped.
            StateError, InvalidValuesError: see `report`.
        """
        if not self.meter.rows and self.bad.total:
            raise self.bad.error(self.rows)
        report = self.report(table)
        if self.bad.total and self.options.on_bad == "raise":
            raise self.bad.error(self.rows, report)
        return report

    def about(self) -> dict[str, Any]:
        """What was measured and which fragments were counted, as plain values."""
        record = self.record.to_json()
        origin = record.pop("origin")
        return {
            "measured": self._measured,
            **record,
            "bad": self.bad.to_json(),
            "filtered": self.selection.filtered,
            "ids": asdict(self.ids.digest),
            "hashed queries": self.selection.reader.has_hashed_queries,
            "origin": origin,
        }

    def to_file(self, path: str | os.PathLike[str]) -> Location:
        """Write what was counted to a safetensors file; a crash leaves the old file or the new one, never a part."""
        return write_whole(path, lambda part: part.write_bytes(self.to_bytes()))

    def to_bytes(self) -> bytes:
        """What was counted as the bytes of a safetensors file, which a task can return."""
        tensors = self.counts.tensors()
        if self.ids.numbers is not None:
            tensors["ids"] = torch.from_numpy(np.concatenate([np.empty(0, np.int64), *self.ids.numbers]))
        return packed(self.about(), tensors | self.record.tensors())

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Partial:
        """What `to_file` wrote.

        Raises:
            StateError: the file is cut short, changed, of another version, or of something else.
        """
        with reading(path, EXPECTED, COUNT_AGAIN):
            return cls.from_bytes(bytes_of(path), os.fspath(path))

    @classmethod
    def from_bytes(cls, data: bytes, where: str = "partial") -> Partial:
        """What `to_bytes` gave.

        Args:
            data: the bytes.
            where: what messages call them.

        Raises:
            StateError: they are cut short, changed, of another version, or of something else.
        """
        about, tensors = unpacked(data, where)
        described, values = about["measured"]
        description = MeterDescription.from_json(json.dumps(described), where)
        partial = cls(description.made((), where), ScoreOptions.from_json(values))
        partial._add(about, tensors, where)
        return partial

    def merge_bytes(self, data: bytes, where: str = "partial") -> Partial:
        """`merge` with what `to_bytes` gave, without making a partial of it.

        Args:
            data: the bytes.
            where: what messages call them.

        Raises:
            StateError: see `merge` and `from_bytes`.
        """
        self._add(*unpacked(data, where), where)
        return self

    def merge_file(self, path: str | os.PathLike[str]) -> Partial:
        """`merge` with what `to_file` wrote, without making a partial of it.

        Raises:
            StateError: see `merge` and `from_file`.
        """
        with reading(path, EXPECTED, COUNT_AGAIN):
            return self.merge_bytes(bytes_of(path), os.fspath(path))

    def _add(self, about: dict[str, Any], tensors: Mapping[str, Tensor], where: str) -> None:
        """Add what `unpacked` gave."""
        self._check_measured(about["measured"], where)
        self._is_of_files = True
        self.record.add_packed(about, tensors, where)
        self.counts.add_tensors(tensors)
        self.ids.add(SampleDigest(**about["ids"]), [tensors["ids"].numpy()] if "ids" in tensors else None)
        self.selection.add(BadRows.from_json(about["bad"]), about["filtered"], about["hashed queries"])


def _reader(columns: TableColumns, meter: Meter, options: ScoreOptions) -> RowReader:
    metrics = meter.metrics.values()
    return RowReader(
        columns,
        takes_raw=meter.takes_raw,
        bins={name: each.bins() for name, each in options.slice_ranges.items()},
        classes=class_count(metrics),
        ignored=ignored_labels(metrics),
        takes_labels=takes_labels(metrics),
        tables=options.slice_spec.tables,
        takes_nan=any(getattr(each, "nan_policy", "raise") != "raise" for each in metrics),
    )


def merge(partials: Iterable[Partial | str | os.PathLike[str]], manifest: Sequence[str] | None = None) -> Partial:
    """The sum of partials, which stay as they are. Adding up is associative, to the bit: sums may be merged in turn.

    Args:
        partials: what `count` gave, or files that `Partial.to_file` wrote, as paths or URLs. They are added one after
            the other, so memory does not grow with their number where they are files or come from a generator.
        manifest: the names of all fragments, where the partials do not know them: without one of them is no report.

    Raises:
        ConfigError: nothing was counted.
        StateError: of other metrics or options, a fragment twice, or a file that is no partial.
    """
    total: Partial | None = None
    some: list[Partial] = []
    for each in partials:
        if total is None:
            first = each if isinstance(each, Partial) else Partial.from_file(each)
            names = first.manifest if manifest is None else manifest
            total = Partial(first.metrics, first.options, first.record.expected, names)
        if isinstance(each, Partial):
            some.append(each)
        else:
            total.merge_file(each)
        if len(some) == _MERGED_AT_ONCE:
            total.merge(*some)
            some.clear()
    if total is None:
        raise ConfigError(describe("merge", "no partial", "one or more", "Pass what count gave, or files of partials"))
    return total.merge(*some)
