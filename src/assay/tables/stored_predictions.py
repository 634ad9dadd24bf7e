"""`score`: predictions that lie in a table become a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, Protocol, TypeAlias, cast

from assay.errors import ConfigError, describe
from assay.evaluation.options import takes_options
from assay.evaluation.preparation import meter_of
from assay.meter import Meter
from assay.metrics.base import Metric
from assay.metrics.parsing import open_metrics
from assay.progress import ProgressBar
from assay.report import Report
from assay.tables.arrow import arrow
from assay.tables.options import ScoreOptions
from assay.tables.partial import Partial
from assay.tables.rows import is_list, is_text
from assay.tables.source import Fragment, TableSource, open_table

P = ParamSpec("P")
Metrics: TypeAlias = "str | Metric | Meter | Mapping[str, Metric] | Sequence[Metric] | Sequence[str]"


class Score(Protocol[P]):
    """A function that measures a table, with options `P`."""

    def __call__(self, source: Any, metrics: Metrics, *args: P.args, **options: P.kwargs) -> Report:
        """Measure."""


class Count(Protocol[P]):
    """A function that counts fragments of a table, with options `P`."""

    def __call__(
        self,
        source: Any,
        metrics: Metrics,
        fragments: str | Sequence[str] | None = None,
        *args: P.args,
        **options: P.kwargs,
    ) -> Partial:
        """Count."""


def _takes(options: Callable[P, ScoreOptions]) -> Callable[[Callable[..., Report]], Score[P]]:
    """Give a function the fields of a dataclass as its keyword arguments, with their types."""
    return lambda function: cast("Score[P]", takes_options(options)(function))


def _takes_count(options: Callable[P, ScoreOptions]) -> Callable[[Callable[..., Partial]], Count[P]]:
    return lambda function: cast("Count[P]", takes_options(options)(cast(Any, function)))


@_takes(ScoreOptions)
def score(source: Any, metrics: Metrics, **options: Any) -> Report:
    """Measure predictions that lie in a table: every row once, in constant memory.

    Args:
        source: a path of Parquet, Arrow, CSV or JSON lines, a pattern (`*`), a folder, a URL, or several of these; or
            what gives an Arrow stream: a table of pyarrow, pandas or Polars, a relation of DuckDB; None with `sql`.
        metrics: one, several, several by name, or a meter, which stays as it is; or as they are written on the command
            line, "accuracy,f1:average=macro": then those of classes get as many classes as there are scores or labels.
        preds: the column of the predictions: numbers, strings, or lists of numbers; or a column for each class, as
            "p0..p9", "a,b" or a list of names.
        target: the column that they are compared with; likewise.
        weights: the column of the weights of the rows.
        ids: the column of the ids of the rows; by default their file and their place in it identify them.
        columns: by the names that metrics have for them, columns that they take besides, such as `indexes` of
            retrieval; by default the column of that name.
        labels: the names of the classes in the order of their numbers, where columns hold names.
        where: count only the rows for which this holds: "country == 'de' and age >= 18".
        sql: a query of DuckDB instead of a source.
        on_bad: what rows are that cannot be counted: "raise" an error at the end, which has the report of all others,
            or "skip" them; the report says how many and where.
        slices: columns to measure parts of the rows by; a tuple of columns for several of them crossed.
        min_slice_size: slices of fewer rows are shown, but never named as the worst.
        confidence_level: of intervals; None for no intervals.
        n_resamples: how often the bootstrap draws, where no closed-form interval is standard.
        keep_samples: keep the per-sample values of the metrics, so that reports can be compared row by row.
        diagnostics: show what the metrics allow: confusion matrix, curves, reliability, a table of classes, residuals.
        classes: names of the classes, for the report; by default `labels`.
        progress: draw a bar; None: where the error stream is a terminal.
        seed: of the groups that intervals are drawn from.
        title: of the report.

    Returns:
        The report that `evaluate` gives of the same predictions.

    Raises:
        ConfigError: an option or a column cannot be.
        StateError: a file cannot be read.
        BadRowsError: rows cannot be counted; its attribute `report` is that of all other rows.

    Example:
        >>> import pyarrow as pa
        >>> from assay import Accuracy
        >>> table = pa.table({"p": [0, 1, 1], "y": [0, 1, 0], "sex": ["f", "m", "f"]})
        >>> report = score(table, Accuracy(num_classes=2), preds="p", target="y", slices=["sex"])
        >>> round(report.sections[0].values[0].value, 4), [each.name for each in report.sections[0].slices]
        (0.6667, ['sex = f', 'sex = m'])
    """
    return score_table(source, metrics, ScoreOptions(**options))


def score_table(
    source: Any, metrics: Metrics, options: ScoreOptions, shared: Mapping[str, Any] | None = None
) -> Report:
    """`score` with its options as one value.

    Args:
        source: see there.
        metrics: see there.
        options: all the rest.
        shared: arguments for every metric that has them, where metrics are strings.
    """
    start = time.perf_counter()
    partial = _counted(open_table(source, sql=options.sql or ""), source, metrics, options, shared)
    return replace(partial.checked_report(), device="cpu", duration_s=time.perf_counter() - start)


def count_part(
    source: Any, metrics: Metrics, options: ScoreOptions, shared: Mapping[str, Any] | None, number: int, parts: int
) -> Partial:
    """Count every `parts`-th fragment of a table, from `number` on; the other arguments are those of `score_table`."""
    table = open_table(source, sql=options.sql or "")
    keys = [each.key for each in table.fragments]
    return _counted(table, source, metrics, options, shared, keys[number::parts])


@_takes_count(ScoreOptions)
def count(source: Any, metrics: Metrics, fragments: str | Sequence[str] | None = None, **options: Any) -> Partial:
    """Count some fragments of a table: tasks on any number of machines count theirs, and `merge` adds them up.

    Args:
        source: a table, see `score`; or record batches, such as a task of Spark or Ray gets.
        metrics: see `score`.
        fragments: the names of those to count, out of `fragments_of(source)`; all by default. Of record batches, the
            name that they have together, which no other task uses: what is counted twice under one name is refused.
        options: see `score`.

    Example:
        >>> import pyarrow as pa
        >>> from assay import Accuracy
        >>> from assay.tables import merge
        >>> parts = [pa.table({"p": [0, 1], "y": [0, 1]}), pa.table({"p": [1], "y": [0]})]
        >>> partials = [
        ...     count(part, Accuracy(num_classes=2), f"part {k}", preds="p", target="y") for k, part in enumerate(parts)
        ... ]
        >>> merge(partials, manifest=["part 0", "part 1"]).report().sections[0].values[0].value
        0.6666666666666666
    """
    plain = ScoreOptions(**options)
    table = open_table(source, sql=plain.sql or "")
    if isinstance(fragments, str):
        table = table.named(fragments)
        fragments = None
    return _counted(table, source, metrics, plain, None, fragments)


def fragments_of(source: Any) -> tuple[str, ...]:
    """The names of the fragments of a table: row groups of Parquet, other files whole."""
    return tuple(each.key for each in open_table(source).fragments)


def _counted(
    table: TableSource,
    source: Any,
    metrics: Metrics,
    options: ScoreOptions,
    shared: Mapping[str, Any] | None,
    chosen: Sequence[str] | None = None,
) -> Partial:
    """What was counted of a table, or of some of its fragments."""
    options.table_columns().check(table.schema.names, table.name)
    meter = meter_of(_opened(metrics, table, options, shared), options.weights is not None)
    columns = options.table_columns(sorted(meter.columns))
    columns.check(table.schema.names, table.name)
    if meter.takes_raw and not table.is_typed:
        table = open_table(source, texts=(*columns.preds, *columns.target))
    keys = [each.key for each in table.fragments]
    wanted = keys if chosen is None else list(chosen)
    if unknown := sorted(set(wanted) - set(keys)):
        do = "Name some of fragments_of(source)"
        raise ConfigError(describe("fragments", unknown[0], f"some of {len(keys)}, such as {keys[0]!r}", do))
    partial = Partial(meter.metrics, options, table.rows or 0, table.manifest)
    _count_all(partial, table, wanted)
    if partial.ids.duplicated and chosen is None and not table.is_stream:
        repeated = partial.ids.repeated()
        partial = Partial(meter.metrics, options, table.rows or 0, table.manifest, repeated)
        _count_all(partial, table, wanted)
    if not partial.rows and chosen is None:
        raise ConfigError(describe(table.name, "no rows", "one or more", "Check what was written there"))
    if partial.rows and partial.filtered == partial.rows:
        got = f"no row that matches {options.where!r}"
        raise ConfigError(describe(f"{table.name}: where", got, "one or more", "Correct the condition"))
    return partial


def _opened(metrics: Metrics, table: TableSource, options: ScoreOptions, shared: Mapping[str, Any] | None) -> Any:
    """Metrics that are written as strings, as metrics."""
    if isinstance(metrics, str):
        metrics = [metrics]
    if not isinstance(metrics, Sequence) or not all(isinstance(each, str) for each in metrics):
        return metrics
    is_said = shared is not None and shared.keys() & {"num_classes", "num_labels"}
    defaults = {} if is_said else class_counts(table, options)
    return open_metrics([str(each) for each in metrics], shared, defaults)


def _count_all(partial: Partial, table: TableSource, keys: Sequence[str]) -> None:
    with ProgressBar("Scoring", table.rows, partial.options.progress) as bar:
        for fragment in table.fragments:
            if fragment.key in keys:
                count_fragment(partial, fragment, table, bar)


def count_fragment(partial: Partial, fragment: Fragment, table: TableSource, bar: ProgressBar) -> None:
    """Count a fragment of a table."""
    partial.begin(fragment.key)
    needed = partial.columns.needed
    if difference := _difference(fragment.schema, table, needed):
        rows = fragment.rows
        if rows is None:
            known = [name for name in fragment.schema.names if name in table.schema.names][:1]
            rows = sum(batch.num_rows for batch in fragment.scan(known))
        partial.skip(fragment.key, rows, fragment.first, difference)
        return
    first, one_file = fragment.first, table.is_whole and len({each.file for each in table.fragments}) == 1
    for batch in fragment.scan(needed):
        partial.count(batch, fragment.key, fragment.file, first, one_file=one_file)
        first += batch.num_rows
        if bar.due:
            bar.update(completed=partial.rows, text=f"{partial.rows / bar.elapsed_s:,.0f} rows/s")


def _difference(schema: Any, table: TableSource, needed: Sequence[str]) -> str:
    """How the columns of a file differ from those of the table; empty where they do not."""
    for name in needed:
        if name in table.folders:
            continue
        if name not in schema.names:
            return f"another schema: no column {name}"
        kind, expected = schema.field(name).type, table.schema.field(name).type
        if table.is_typed and not _fits(kind, expected):
            return f"another schema: {name} is {kind} instead of {expected}"
    return ""


def _fits(kind: Any, expected: Any) -> bool:
    """Whether values of a type keep their meaning as those of another one."""
    types = arrow().types
    if types.is_dictionary(kind) or types.is_dictionary(expected):
        kind, expected = (each.value_type if types.is_dictionary(each) else each for each in (kind, expected))
    if is_list(kind) and is_list(expected):
        return _fits(kind.value_type, expected.value_type)
    if types.is_floating(kind) and types.is_floating(expected):
        return bool(kind.bit_width <= expected.bit_width)
    both = ((types.is_integer(each), is_text(each)) for each in (kind, expected))
    return bool(kind == expected or any(map(all, zip(*both, strict=True))))


def class_counts(table: TableSource, options: ScoreOptions) -> dict[str, int]:
    """The number of classes, or of labels, that the columns of a table say: an argument of metrics.

    Several scores and one target are of as many classes, several of both of as many labels; else as many classes as
    `labels` has.

    Raises:
        ConfigError: lists of scores have other lengths.
    """
    columns = options.table_columns()
    scores, targets = (_width(table, names) for names in (columns.preds, columns.target))
    if scores > 1:
        return {"num_labels" if targets > 1 else "num_classes": scores}
    return {"num_classes": len(columns.labels)} if len(columns.labels) > 1 else {}


def _width(table: TableSource, names: Sequence[str]) -> int:
    """How many numbers a row has in some columns: several columns, or the list in the first row."""
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
            for row in batch.column(0):
                if row.is_valid:
                    return len(row)
    return 1
