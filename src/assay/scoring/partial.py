"""What was counted of some fragments of a table: it adds up, can be saved, and becomes the report of all of them."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay._atomic import Location, reading, write_whole
from assay.data.tables.content_digests import changed_files
from assay.data.tables.table_source import Fragment, TableSource
from assay.errors import ConfigError, InputError, StateError, describe
from assay.evaluation.arguments.preparation import meter_of, sample_observers
from assay.evaluation.data.coverage import Coverage
from assay.evaluation.observe.observers import SampleRows, part_of, prefixed
from assay.evaluation.observe.per_sample import PerSampleRecorder
from assay.evaluation.observe.slices import Slicer
from assay.evaluation.results.diagnostics import choose_diagnostics
from assay.evaluation.results.final_report import CountedSamples, section_of
from assay.meter import Meter
from assay.meter.arguments import Arguments
from assay.meter.cells import put_together, uncounted
from assay.meter.file import MeterDescription, sparse
from assay.metrics.base import Metric
from assay.report import Report, Table
from assay.scoring.bad_rows import BadRows, BadRowsError
from assay.scoring.columns import TableColumns
from assay.scoring.label_rules import class_count, ignored_labels, takes_labels
from assay.scoring.options import ScoreOptions
from assay.scoring.part_files import COUNT_AGAIN, EXPECTED, as_bytes, bytes_of, manifest_digest, packed, unpacked
from assay.scoring.query_rows import RowsOfQueries, TableOrigin, with_worst_queries
from assay.scoring.row_ids import MOST_IDS, RowIds
from assay.scoring.row_selection import RowSelection
from assay.scoring.row_trials import RowTrial, arguments_of
from assay.scoring.rows import RowReader, TableRows, row_numbers
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
        fragments: by key, how many rows each had.
        manifest: the keys of all fragments of the table; None where that is not known.
        contents: by file, the digest of its content, which must be the same in all partials.
        origin: where the fragments were read from; None where they cannot be read again.
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
        self.origin: TableOrigin | None = None
        self.contents: dict[str, str] = {}
        self.options, self.expected = options, expected
        self.manifest = None if manifest is None else tuple(manifest)
        meter = meter_of(metrics, options.weights is not None)
        self.metrics: dict[str, Metric] = dict(metrics)
        self.diagnostics = choose_diagnostics(
            metrics, meter.weighted, options.classes or _classes(options), options.diagnostics
        )
        self._whole = meter.fresh({**metrics, **self.diagnostics.metrics})
        self.observers = sample_observers(
            meter.fresh(stage_bytes=0),
            options.slice_spec,
            options,
            expected,
            alone=True,
            keeps_documents=False,
        )
        slicer = self.observers.get("slices")
        self._slicer = slicer if isinstance(slicer, Slicer) else None
        self._rest = self._whole.fresh() if self._slicer is None else uncounted(self._whole, self._slicer.like)
        self._total: Meter | None = None
        self._known_manifest: tuple[tuple[str, ...], str] | None = None
        self._known_contents = ""
        self.columns: TableColumns = options.table_columns(sorted(meter.columns))
        self.fragments: dict[str, int] = {}
        self.ids = RowIds()
        reader = RowReader(
            self.columns,
            takes_raw=meter.takes_raw,
            bins={name: each.bins() for name, each in options.slice_ranges.items()},
            classes=class_count(metrics.values()),
            ignored=ignored_labels(metrics.values()),
            takes_labels=takes_labels(metrics.values()),
            takes_nan=any(getattr(each, "nan_policy", "raise") != "raise" for each in metrics.values()),
        )
        where = None if options.where is None else parse_where(options.where)
        self.tries, self._trial = tries, RowTrial(meter)
        self._selection = RowSelection(reader, where, repeated, self._trial if tries else None)

    @property
    def bad(self) -> BadRows:
        """The rows that cannot be counted, and why."""
        return self._selection.bad

    @property
    def filtered(self) -> int:
        """How many rows do not match the condition."""
        return self._selection.filtered

    @property
    def meter(self) -> Meter:
        """What was counted of all rows: the sum of the slices, and what no slice needs."""
        if self._total is None:
            of_slices = [] if self._slicer is None else [self._slicer.total()]
            self._total = put_together(self._whole, *of_slices, *([] if self._rest is None else [self._rest]))
        return self._total

    @property
    def rows(self) -> int:
        """How many rows were looked at."""
        return sum(self.fragments.values())

    def begin(self, key: str) -> None:
        """Note that a fragment is counted.

        Raises:
            StateError: it was counted before.
        """
        if key in self.fragments:
            do = "Count each fragment once, and merge each partial once"
            raise StateError(describe("fragments", f"{key!r} twice", "each fragment once", do))
        self.fragments[key] = 0

    @property
    def _query_rows(self) -> RowsOfQueries:
        return RowsOfQueries(self._selection, self.origin, self.options.sql or "", self.contents)

    def excludes(self, fragment: Fragment) -> bool:
        """Note a fragment that has no row to count, where its file says so."""
        where = self._selection.where
        if where is None or fragment.rows is None or not where.excludes(fragment):
            return False
        self.fragments[fragment.key] += fragment.rows
        self._selection.filtered += fragment.rows
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
        rows = self._selection.rows(batch, key, np.arange(first, first + batch.num_rows, dtype=np.int64))
        if not len(rows.places):
            return
        try:
            arguments = arguments_of(self._whole, rows)
        except InputError:
            if not self._whole.takes_raw:
                raise
            rows = self._selection.not_refused(rows, key, self._trial)
            if not len(rows.places):
                return
            arguments = arguments_of(self._whole, rows)
        self._count(rows, arguments, file, one_file)

    def _count(self, rows: TableRows, arguments: Arguments, file: str, one_file: bool) -> None:
        index, ids, numbers = self._named(rows, file, one_file)
        raw = None
        if self._whole.takes_raw:
            raw = list(zip(rows.preds, rows.target or [""] * len(rows.preds), strict=True))
        parts = {name: [values] for name, values in rows.parts.items()}
        self._total = None
        with torch.no_grad():
            if self._rest is not None:
                self._rest.count(arguments)
            sample_rows = SampleRows(arguments, index, ids, 0, parts, raw, numbers)
            for observer in self.observers.values():
                if not getattr(observer, "idle", False):
                    observer.count(sample_rows)
        self.ids.add(SampleDigest.of(numbers, None), [numbers] if self.columns.ids else [])

    def _named(
        self, rows: TableRows, file: str, one_file: bool
    ) -> tuple[NDArray[np.int64] | None, list[Any] | None, NDArray[np.int64]]:
        """The integers or the strings that rows are called by, and the numbers that identify them."""
        recorder = self.observers.get("samples")
        is_kept = "queries" in self.observers or (isinstance(recorder, PerSampleRecorder) and not recorder.full)
        numbers = row_numbers(rows.ids, rows.places, file, one_file)
        if self.columns.ids:
            if isinstance(rows.ids, np.ndarray):
                return rows.ids, None, numbers
            return None, rows.ids.to_pylist() if is_kept else None, numbers
        if one_file:
            return rows.places, None, numbers
        return None, [f"{file}:{row}" for row in rows.places.tolist()] if is_kept else None, numbers

    @property
    def has_refused(self) -> bool:
        """Whether values were counted that a metric refuses, so that the rows must be tried."""
        return bool(self.meter.invalid_values())

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
            self._check_mergeable(other._measured, other.fragments)
            self._check_manifest(other)
            self._add_contents(other.contents)
            self.origin = self.origin or other.origin
            self.fragments |= other.fragments
            self.bad.merge(other.bad)
            self.ids.add(other.ids.digest, other.ids.numbers)
            self._selection.filtered += other.filtered
            self._selection.reader.has_hashed_queries |= other._selection.reader.has_hashed_queries
            for name, observer in self.observers.items():
                observer.add_state(other.observers[name].state())
        if self._rest is not None:
            self._rest.merge(*(other._rest for other in others if other._rest is not None))
        self._total = None
        return self

    def _check_mergeable(self, measured: Any, fragments: Mapping[str, int], where: str = "merge") -> None:
        """Raise where what was counted elsewhere is of other metrics or options, or counted here, too."""
        if measured != self._measured:
            do = "Count all fragments with equal metrics and options"
            raise StateError(describe(where, "a partial of other metrics or options", "one of the same", do))
        if twice := sorted(self.fragments.keys() & fragments.keys()):
            do = "Merge each partial once"
            raise StateError(describe(where, f"the fragment {twice[0]!r} twice", "each fragment once", do))

    def _check_manifest(self, other: Partial) -> None:
        if other.manifest is None or self.manifest == other.manifest:
            return
        if self.manifest is not None:
            raise _other_table("merge")
        self.manifest, self.expected = other.manifest, other.expected

    def _add_contents(self, contents: Mapping[str, str], where: str = "merge") -> None:
        """Have the digests of the files of other fragments, too, or raise where one was written again."""
        if changed := changed_files(contents, self.contents):
            got = f"{changed[0]!r} with other content than in the partials before"
            do = "The file was written again: count all of its fragments again"
            raise StateError(describe(where, got, "one content of each file", do))
        self.contents |= contents

    @cached_property
    def _measured(self) -> Any:
        """What is measured, as plain values of JSON."""
        described = MeterDescription.of(self.metrics, self._whole.weighted, 0).to_json()
        return json.loads(json.dumps([json.loads(described), self.options.to_json()]))

    @property
    def missing(self) -> list[str]:
        """The fragments of the manifest that were not counted."""
        return [key for key in self.manifest or () if key not in self.fragments]

    def check_rows(self, where: str = "table") -> None:
        """Raise where the whole table has no row that is measured; a part of it may have none.

        Raises:
            ConfigError: there is no row, or none that matches the condition.
        """
        if not self.rows:
            raise ConfigError(describe(where, "no rows", "one or more", "Check what was written there"))
        if self.filtered == self.rows:
            got = f"no row that matches {self.options.where!r}"
            raise ConfigError(describe(f"{where}: where", got, "one or more", "Correct the condition"))

    def report(self, table: TableSource | None = None) -> Report:
        """The report of the whole table.

        Args:
            table: the table, which is read once more for what is shown of its worst queries; by default what the
                fragments were read from, as far as it is there.

        Raises:
            ConfigError: there is no row, or none that matches the condition.
            StateError: fragments of the manifest are missing, or there is one that it lacks.
            BadRowsError: rows of fragments that were counted apart have one id.
            InvalidValuesError: values were counted that cannot be, such as scores outside [0, 1].
        """
        if self.missing:
            shown = ", ".join(self.missing[:3]) + (", ..." if len(self.missing) > 3 else "")
            got = f"{len(self.missing)} of {len(self.manifest or ())} fragments not counted ({shown})"
            raise StateError(describe("report", got, "all fragments", "Count them, and merge all partials"))
        unknown = sorted(self.fragments.keys() - set(self.manifest)) if self.manifest is not None else []
        if unknown:
            do = "Merge partials of one table"
            raise StateError(describe("report", f"the fragment {unknown[0]!r}", "one of the manifest", do))
        self.check_rows()
        if self.ids.duplicated:
            got = f"{self.ids.duplicated:,} rows whose id in {self.columns.ids} other rows have"
            do = "Give each row an id of its own, or count all fragments of files at once, which leaves them out"
            raise BadRowsError(describe("table", got, "none", do))
        counted = CountedSamples(self.meter, self.metrics, self.diagnostics, self.observers)
        coverage = self.coverage()
        tables = [coverage.table(), self._run()]
        notes = [f"Every row once: {coverage}."]
        if self.bad.total:
            tables.append(self.bad.table())
            reasons = "; ".join(f"{self.bad.counts[each]:,} with {each}" for each in sorted(self.bad.counts))
            notes.append(f"{self.bad.total:,} of {self.rows:,} rows were left out: {reasons}.")
        if self.filtered:
            notes.append(f"{self.filtered:,} of {self.rows:,} rows do not match where={self.options.where!r}.")
        if self.ids.numbers is None:
            notes.append(f"Duplicate ids were not looked for, as there are more than {MOST_IDS:,} rows.")
        section, _, more = section_of(counted, self.options, tables)
        section, unread = with_worst_queries(section, counted, self._query_rows, table)
        return Report(self.options.title, (section,), notes=(*notes, *more, *unread))

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

    def coverage(self) -> Coverage:
        """What became of the rows."""
        by = f"its id in the column {self.columns.ids}" if self.columns.ids else "its file and its place there"
        expected = self.rows - self.filtered
        missed = expected - self.meter.rows - self.bad.total
        return Coverage(expected, self.meter.rows, self.ids.duplicated, missed, self.bad.total, 0, by)

    def _run(self) -> Table:
        rows = [
            ("rows", f"{self.rows:,}"),
            ("fragments (files or row groups)", f"{len(self.fragments):,}"),
            ("sum of hashed ids", f"{self.ids.digest.ids:016x}"),
            ("exclusive or of hashed ids", f"{self.ids.digest.ids_xor:016x}"),
            ("seed", f"{self.options.seed}"),
        ]
        return Table("Run", ("what", "value"), tuple(rows))

    def about(self) -> dict[str, Any]:
        """What was measured and which fragments were counted, as plain values."""
        return {
            "measured": self._measured,
            "fragments": self.fragments,
            "manifest": None if self.manifest is None else manifest_digest(as_bytes(self.manifest)),
            "contents": manifest_digest(as_bytes(self.contents)),
            "expected": self.expected,
            "bad": self.bad.to_json(),
            "filtered": self.filtered,
            "ids": asdict(self.ids.digest),
            "hashed queries": self._selection.reader.has_hashed_queries,
            "origin": None if self.origin is None else asdict(self.origin),
        }

    def to_file(self, path: str | os.PathLike[str]) -> Location:
        """Write what was counted to a safetensors file; a crash leaves the old file or the new one, never a part."""
        return write_whole(path, lambda part: part.write_bytes(self.to_bytes()))

    def to_bytes(self) -> bytes:
        """What was counted as the bytes of a safetensors file, which a task can return."""
        tensors = {} if self._rest is None else prefixed("meter", sparse(self._rest.state_dict()))
        for name, observer in self.observers.items():
            tensors |= prefixed(f"observer {name}", observer.state())
        if self.ids.numbers is not None:
            tensors["ids"] = torch.from_numpy(np.concatenate([np.empty(0, np.int64), *self.ids.numbers]))
        if self.manifest is not None:
            tensors["manifest"] = _compressed(self.manifest)
        if self.contents:
            tensors["contents"] = _compressed(self.contents)
        return packed(self.about(), tensors)

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
        self._check_mergeable(about["measured"], about["fragments"], where)
        self._check_packed_manifest(about, tensors, where)
        if "contents" in tensors and self._known_contents != about["contents"]:
            self._add_contents(_decompressed(tensors["contents"]), where)
            self._known_contents = about["contents"]
        if self._rest is not None:
            self._rest._merge_packed(part_of("meter", tensors))
        for name, observer in self.observers.items():
            observer.add_state(part_of(f"observer {name}", tensors))
        self.fragments |= about["fragments"]
        self.bad.merge(BadRows.from_json(about["bad"]))
        self.ids.add(SampleDigest(**about["ids"]), [tensors["ids"].numpy()] if "ids" in tensors else None)
        self._selection.filtered += about["filtered"]
        self._selection.reader.has_hashed_queries |= about["hashed queries"]
        if self.origin is None and about["origin"] is not None:
            self.origin = TableOrigin(*map(tuple, about["origin"].values()))
        self._total = None

    def _check_packed_manifest(self, about: dict[str, Any], tensors: Mapping[str, Tensor], where: str) -> None:
        """Have the manifest of a file, or raise where there is another one; an equal one is not read."""
        if about["manifest"] is None:
            return
        if self.manifest is None:
            self.manifest, self.expected = tuple(_decompressed(tensors["manifest"])), about["expected"]
        if self._known_manifest is None or self._known_manifest[0] is not self.manifest:
            self._known_manifest = self.manifest, manifest_digest(as_bytes(self.manifest))
        if self._known_manifest[1] != about["manifest"]:
            raise _other_table(where)


def _other_table(where: str) -> StateError:
    do = "Count all fragments of one table, and none of another"
    return StateError(describe(where, "partials of different tables", "one manifest", do))


def _compressed(names: Any) -> Tensor:
    return torch.frombuffer(bytearray(zlib.compress(as_bytes(names), 1)), dtype=torch.uint8)


def _decompressed(data: Tensor) -> Any:
    return json.loads(zlib.decompress(data.numpy().tobytes()))


def _classes(options: ScoreOptions) -> tuple[str, ...]:
    return options.table_columns().labels


def merge(partials: Iterable[Partial | str | os.PathLike[str]], manifest: Sequence[str] | None = None) -> Partial:
    """The sum of partials, which stay as they are. Adding up is associative, to the bit: sums may be merged in turn.

    Args:
        partials: what `count` gave, or files that `Partial.to_file` wrote, as paths or URLs. They are added one after
            the other, so memory does not grow with their number where they are files or come from a generator.
        manifest: the names of all fragments, where the partials do not know them: without one of them is no report.

    Raises:
        ConfigError: there is none.
        StateError: of other metrics or options, a fragment twice, or a file that is no partial.
    """
    total: Partial | None = None
    some: list[Partial] = []
    for each in partials:
        if total is None:
            first = each if isinstance(each, Partial) else Partial.from_file(each)
            names = first.manifest if manifest is None else manifest
            total = Partial(first.metrics, first.options, first.expected, names)
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
