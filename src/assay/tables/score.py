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
from assay.progress import ProgressBar
from assay.report import Report
from assay.tables.options import ScoreOptions
from assay.tables.partial import Partial
from assay.tables.source import Fragment, TableSource, open_table

P = ParamSpec("P")
Metrics: TypeAlias = "Metric | Meter | Mapping[str, Metric] | Sequence[Metric]"


class Score(Protocol[P]):
    """A function that measures a table, with options `P`."""

    def __call__(self, source: Any, metrics: Metrics, *args: P.args, **options: P.kwargs) -> Report:
        """Measure."""


def _takes(options: Callable[P, ScoreOptions]) -> Callable[[Callable[..., Report]], Score[P]]:
    """Give a function the fields of a dataclass as its keyword arguments, with their types."""
    return lambda function: cast("Score[P]", takes_options(options)(function))


@_takes(ScoreOptions)
def score(source: Any, metrics: Metrics, **options: Any) -> Report:
    """Measure predictions that lie in a table: every row once, in constant memory.

    Args:
        source: a path of Parquet, Arrow, CSV or JSON lines, a pattern (`*`), a folder, a URL, or several of these; or
            what gives an Arrow stream: a table of pyarrow, pandas or Polars, a relation of DuckDB; None with `sql`.
        metrics: one, several, several by name, or a meter, which stays as it is.
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


def score_table(source: Any, metrics: Metrics, options: ScoreOptions) -> Report:
    """`score` with its options as one value."""
    start = time.perf_counter()
    meter = meter_of(metrics, options.weights is not None)
    columns = options.table_columns(sorted(meter.columns))
    texts = (*columns.preds, *columns.target) if meter.takes_raw else ()
    table = open_table(source, texts=texts, sql=options.sql or "")
    columns.check(table.schema.names, table.name)
    partial = Partial(meter.metrics, options, table.rows or 0, [each.key for each in table.fragments])
    with ProgressBar("Scoring", table.rows, options.progress) as bar:
        for fragment in table.fragments:
            count_fragment(partial, fragment, table, bar)
    if not partial.rows:
        raise ConfigError(describe(table.name, "no rows", "one or more", "Check what was written there"))
    if not partial.meter.rows:
        raise partial.bad.error(partial.rows) if partial.bad.total else _nothing_left(table, partial)
    report = replace(partial.report(), device="cpu", duration_s=time.perf_counter() - start)
    if partial.bad.total and options.on_bad == "raise":
        raise partial.bad.error(partial.rows, report)
    return report


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
    first, one_file = fragment.first, len({each.file for each in table.fragments}) == 1
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
        if table.is_typed and kind != expected:
            return f"another schema: {name} is {kind} instead of {expected}"
    return ""


def _nothing_left(table: TableSource, partial: Partial) -> ConfigError:
    got = f"no row that matches {partial.options.where!r}"
    return ConfigError(describe(f"{table.name}: where", got, "one or more", "Correct the condition"))
