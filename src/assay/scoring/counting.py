"""Fragments of a table are counted: by this process, or as a task of any process that can read the files."""

from __future__ import annotations

import functools
import itertools
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from assay.data.tables.arrow import arrow
from assay.data.tables.content_digests import changed_files
from assay.data.tables.table_source import Fragment, TableSource, open_table
from assay.errors import ConfigError, StateError, describe
from assay.evaluation.arguments.options import Metrics
from assay.evaluation.arguments.preparation import meter_of
from assay.metrics.base import Metric
from assay.metrics.parsing import as_metrics
from assay.progress import ProgressBar
from assay.scoring.options import ScoreOptions
from assay.scoring.partial import Partial
from assay.scoring.query_rows import TableOrigin
from assay.scoring.rows import usual_length
from assay.scoring.schemas import schema_difference
from assay.scoring.slice_columns import is_list


@dataclass(frozen=True)
class CountTask:
    """Fragments of a table in files that are counted together. Calling it counts them; it can be pickled before.

    Attributes:
        paths: what the table was opened from.
        texts: columns of CSV that are strings.
        metrics: what is measured, by name.
        options: how.
        fragments: the keys of the fragments.
        rows: how many rows they have; 0 where that is not known.
        run: tasks of one run have the same, and share the opened table where they share a process.
    """

    paths: tuple[str, ...]
    texts: tuple[str, ...]
    metrics: Mapping[str, Metric]
    options: ScoreOptions
    fragments: tuple[str, ...]
    rows: int
    run: str = field(default_factory=lambda: uuid.uuid4().hex)

    def __call__(self) -> Partial:
        table = _opened_once(self.paths, self.texts, self.run)
        return counted(table, self.metrics, self.options, self.fragments, ProgressBar("", None, False))

    def count_while(self, goes_on: Callable[[], bool], bar: ProgressBar) -> tuple[Partial, CountTask]:
        """Count fragments, asking before each one; and the task of those that are left."""
        table = _opened_once(self.paths, self.texts, self.run)
        partial = Partial(self.metrics, self.options, table.rows or 0, table.manifest)
        left = list(self.fragments)
        while left and goes_on():
            count_fragments(partial, table, [left.pop(0)], bar)
        if partial.has_refused:
            partial = counted(table, self.metrics, self.options, list(partial.fragments), bar, tries=True)
        return partial, replace(self, fragments=tuple(left), rows=max(0, self.rows - partial.rows))

    @classmethod
    def of(
        cls, table: TableSource, metrics: Mapping[str, Metric], options: ScoreOptions, fragments: Sequence[str]
    ) -> CountTask:
        """The task of some fragments of a table.

        Raises:
            ConfigError: the table is not of files, so that other processes cannot read it.
        """
        if not table.paths:
            do = "Write the table to files, or count it in this process"
            got = "a table in memory, a stream or a query"
            raise ConfigError(describe(table.name, got, "files, which other processes can read", do))
        wanted = set(fragments)
        rows = sum(each.rows or 0 for each in table.fragments if each.key in wanted)
        return cls(table.paths, table.texts, metrics, options, tuple(fragments), rows)

    def split(self, parts: int) -> list[CountTask]:
        """At most so many tasks that count the same together, each some fragments in a row."""
        count = len(self.fragments)
        bounds = sorted({count * number // parts for number in range(parts + 1)})
        return [
            replace(self, fragments=self.fragments[start:end], rows=self.rows * (end - start) // count)
            for start, end in itertools.pairwise(bounds)
        ]


Engine: TypeAlias = Callable[[CountTask, ProgressBar], Partial]
"""What has a task counted, split and on any machines, and moves the bar by rows."""


@functools.lru_cache(maxsize=1)
def _opened_once(paths: tuple[str, ...], texts: tuple[str, ...], run: str) -> TableSource:
    """The table of a run."""
    return open_table(paths, texts=texts)


def prepared(
    table: TableSource, source: Any, metrics: Metrics, options: ScoreOptions, shared: Mapping[str, Any] | None
) -> tuple[TableSource, dict[str, Metric]]:
    """A table whose columns were checked, opened again where its strings must stay strings, and the metrics by name.

    Args:
        table: the table.
        source: what it was opened from.
        metrics: see `score`.
        options: how it is measured.
        shared: arguments for every metric that has them, where metrics are strings.

    Raises:
        ConfigError: a column is missing, or a metric is invalid.
    """
    options.table_columns().check(table.schema.names, table.name)
    meter = meter_of(_opened(metrics, table, options, shared), options.weights is not None)
    columns = options.table_columns(sorted(meter.columns))
    columns.check(table.schema.names, table.name)
    if meter.takes_raw and not table.is_typed:
        table = open_table(source, texts=(*columns.preds, *columns.target))
    return table, dict(meter.metrics)


def counted(
    table: TableSource,
    metrics: Mapping[str, Metric],
    options: ScoreOptions,
    keys: Sequence[str],
    bar: ProgressBar,
    repeated: NDArray[np.int64] | None = None,
    *,
    tries: bool = False,
) -> Partial:
    """What was counted of some fragments of a table; once more, row by row, where metrics refuse some of them.

    Args:
        table: the table.
        metrics: what is measured, by name.
        options: how.
        keys: the fragments.
        bar: shows the progress.
        repeated: the numbers of ids that several rows have, of which the first is counted.
        tries: every row is tried before it is counted, as the rows of a stream are, which cannot be read again.
    """
    tries = tries or table.is_stream
    partial = Partial(metrics, options, table.rows or 0, table.manifest, repeated, tries=tries)
    count_fragments(partial, table, keys, bar)
    if tries or not partial.has_refused:
        return partial
    return counted(table, metrics, options, keys, bar, repeated, tries=True)


def count_fragments(partial: Partial, table: TableSource, keys: Sequence[str], bar: ProgressBar) -> None:
    """Count some fragments of a table.

    Raises:
        StateError: a file was written again since the table was opened.
    """
    partial.record.origin = TableOrigin(table.paths, table.texts) if table.paths else None
    needed, wanted = partial.columns.needed, set(keys)
    partial.record.contents = known = dict(table.first_contents(needed))
    files = set()
    for fragment in table.fragments:
        if fragment.key in wanted:
            files.add(fragment.file)
            count_fragment(partial, fragment, table, bar)
    if changed := changed_files(table.contents(needed, files), known):
        do = "Measure again when no program writes to it"
        raise StateError(describe(changed[0], "a file that changed while it was read", "one content", do))


def _opened(metrics: Metrics, table: TableSource, options: ScoreOptions, shared: Mapping[str, Any] | None) -> Any:
    """Metrics that are written as strings, as metrics."""
    count = {} if options.num_classes is None else {"num_classes": options.num_classes}
    shared = {**count, **(shared or {})}
    is_said = shared.keys() & {"num_classes", "num_labels"}
    return as_metrics(metrics, shared, {} if is_said else class_counts(table, options))


def count_fragment(partial: Partial, fragment: Fragment, table: TableSource, bar: ProgressBar) -> None:
    """Count a fragment of a table."""
    partial.record.begin(fragment.key)
    needed = partial.columns.needed
    if difference := schema_difference(fragment.schema, table, needed):
        rows = fragment.rows
        if rows is None:
            known = [name for name in fragment.schema.names if name in table.schema.names][:1]
            rows = sum(batch.num_rows for batch in fragment.scan(known))
        partial.skip(fragment.key, rows, fragment.first, difference)
        return
    if partial.excludes(fragment):
        return
    first, one_file = fragment.first, table.is_one_file
    for batch in fragment.scan(needed):
        partial.count(batch, fragment.key, fragment.file, first, one_file=one_file)
        first += batch.num_rows
        if bar.due:
            bar.update(completed=partial.rows, text=f"{partial.rows / bar.elapsed_s:,.0f} rows/s")


def class_counts(table: TableSource, options: ScoreOptions) -> dict[str, int]:
    """The number of classes, or of labels, that the columns of a table say: an argument of metrics.

    Several scores and one target are of as many classes, several of both of as many labels; else as many classes as
    `labels` has. One score a row is that of a class against another one, and says no number.

    Raises:
        ConfigError: lists of scores have other lengths.
    """
    columns = options.table_columns()
    if columns.preds_fields:
        return {"num_classes": len(columns.labels)} if len(columns.labels) > 1 else {}
    scores, targets = (_width(table, names) for names in (columns.preds, columns.target))
    if scores > 1:
        return {"num_labels" if targets > 1 else "num_classes": scores}
    is_score = arrow().types.is_floating(table.schema.field(columns.preds[0]).type)
    return {"num_classes": len(columns.labels)} if len(columns.labels) > 1 and not is_score else {}


def _width(table: TableSource, names: Sequence[str]) -> int:
    """How many numbers a row has in some columns: several columns, or as most lists of the first batch with any."""
    if len(names) != 1:
        return len(names)
    kind = table.schema.field(names[0]).type
    if not is_list(kind):
        return 1
    size: int = getattr(kind, "list_size", 0)
    if size:
        return size
    for fragment in table.fragments:
        for batch in fragment.scan(names):
            lengths = arrow().compute.list_value_length(batch.column(0)).drop_null()
            if len(lengths):
                return usual_length(lengths.to_numpy())
    return 1
