"""`score`: predictions that lie in a table become a report."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ParamSpec, Protocol, cast

from assay.data.tables.table_source import TableSource, open_table
from assay.errors import ConfigError, InvalidValuesError, describe
from assay.evaluation.arguments.options import Metrics, takes_options
from assay.evaluation.results.provenance import file_digests, origin_of
from assay.progress import ProgressBar
from assay.report import Report
from assay.scoring.bad_rows import BadRowsError
from assay.scoring.counting import CountTask, Engine, counted, prepared
from assay.scoring.options import ScoreOptions
from assay.scoring.partial import Partial
from assay.scoring.processes import count_in_processes
from assay.scoring.slice_ranges import join_ranges, split_ranges, with_edges
from assay.scoring.where import parse_where

P = ParamSpec("P")


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
    """Compute metrics of predictions in a table: every row once, in constant memory.

    Args:
        source: a path of Parquet, Arrow, CSV or JSON lines, a pattern (`*`), a folder, a URL, or several of these; or
            what gives an Arrow stream: a table of pyarrow, pandas or Polars, a relation of DuckDB; or arrays and lists
            by name; None with `sql`.
        metrics: one, several, several by name, or a meter, which stays as it is; or as they are written on the command
            line, "accuracy,f1:average=macro": then those of classes get as many classes as there are scores or labels.
        preds: the column of the predictions: numbers, strings, lists of numbers, or structs of them, such as boxes; or
            a column for each class, as "p0..p9", "a,b" or a list of names; or a column for each field of a sample, as
            "boxes=found,scores=scores,labels=classes" or a dictionary.
        target: the column that they are compared with; likewise.
        weights: the column of the weights of the rows.
        ids: the column of the ids of the rows; by default their file and their place in it identify them.
        columns: by the names that metrics have for them, further columns that they take, such as `indexes` of
            retrieval; by default the column of that name.
        labels: the names of the classes in the order of their numbers, where columns hold names.
        where: count only the rows for which this holds: "country == 'de' and age >= 18".
        sql: a query of DuckDB instead of a source.
        on_bad: for rows that cannot be counted: "raise" an error at the end, which has the report of all others,
            or "skip" them; the report says how many and where.
        slices: columns to measure parts of the rows by; a tuple of columns for several of them crossed; as text:
            "sex,sex*age". In a column of lists each value is a slice. "age:bins=5" cuts a column of numbers into ranges
            of about as many rows each, for which it is read once more, and "age:edges=18,40,65" at these numbers.
        by: columns of many values, such as users, shops or queries, up to a million each: the report has a table with
            a row for each value, of the metrics that are means over rows, and how much they differ beyond chance.
        cluster: the column of the clusters of rows that may depend on each other, such as the passage of a question:
            intervals, and the tests of `compare` and `gate`, respect them.
        min_slice_size: slices of fewer rows are shown, but never named as the worst.
        confidence_level: of intervals; None for no intervals.
        n_resamples: how often the bootstrap draws, where no closed-form interval is standard.
        keep_samples: keep the per-sample values of the metrics, so that reports can be compared row by row.
        max_kept_samples: keep them of at most this many rows, in memory until the report is saved; see `evaluate`.
        diagnostics: show what the metrics allow: confusion matrix, curves, reliability, a table of classes, residuals.
        show: columns that the report shows of the worst queries of a ranking metric and of their documents, such as
            their text. They are read from the table once more, and only where such a query is.
        classes: names of the classes, for the report; by default `labels`.
        num_classes: the number of classes of metrics that are written as text.
        workers: count with this many processes of this machine, a fragment at a time; the bits are the same. As with
            every use of processes, a script calls this under `if __name__ == "__main__":`.
        progress: draw a bar; None: where the error stream is a terminal.
        seed: of the groups that intervals are drawn from.
        title: of the report.

    Returns:
        The report that `evaluate` gives of the same predictions.

    Raises:
        ConfigError: an option or a column is invalid.
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
    source: Any,
    metrics: Metrics,
    options: ScoreOptions,
    shared: Mapping[str, Any] | None = None,
    engine: Engine | None = None,
) -> Report:
    """`score` with its options as one value.

    Args:
        source: see there.
        metrics: see there.
        options: all the rest.
        shared: arguments for every metric that has them, where metrics are strings.
        engine: what counts the fragments; by default this process, or as many as `options.workers`.
    """
    start = time.perf_counter()
    table = open_table(source, sql=options.sql or "")
    ranges = with_edges(options.slice_ranges, table, None if options.where is None else parse_where(options.where))
    options = replace(options, slices=join_ranges(split_ranges(options.slices)[0], ranges))
    partial = _counted(table, source, metrics, options, shared, engine=engine)
    try:
        report = partial.checked_report(table)
    except BadRowsError:
        raise
    except InvalidValuesError:  # of values that a metric refuses only when it is computed
        if partial.tries or table.is_stream:
            raise
        partial = _counted(table, source, metrics, options, shared, tries=True)
        report = partial.checked_report(table)
    origin = origin_of("score", options, file_digests(source, partial.record.contents))
    return replace(report, device="cpu", duration_s=time.perf_counter() - start, origin=origin)


def count_part(
    source: Any,
    metrics: Metrics,
    options: ScoreOptions,
    shared: Mapping[str, Any] | None,
    number: int,
    parts: int,
    engine: Engine | None = None,
) -> Partial:
    """Count every `parts`-th fragment of a table, from `number` on; the other arguments are those of `score_table`."""
    table = open_table(source, sql=options.sql or "")
    keys = [each.key for each in table.fragments]
    return _counted(table, source, metrics, options, shared, keys[number::parts], engine)


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
        >>> from assay.scoring import merge
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
    engine: Engine | None = None,
    *,
    tries: bool = False,
) -> Partial:
    """What was counted of a table, or of some of its fragments."""
    if engine is None and options.workers > 1 and not tries:
        engine = count_in_processes
    table, known = prepared(table, source, metrics, options, shared)
    keys = [each.key for each in table.fragments]
    wanted = keys if chosen is None else list(chosen)
    if unknown := sorted(set(wanted) - set(keys)):
        do = "Name some of fragments_of(source)"
        raise ConfigError(describe("fragments", unknown[0], f"some of {len(keys)}, such as {keys[0]!r}", do))
    with ProgressBar("Scoring", table.rows, options.progress) as bar:
        if engine is None:
            partial = counted(table, known, options, wanted, bar, tries=tries)
        else:
            partial = engine(CountTask.of(table, known, options, wanted), bar)
        if partial.ids.duplicated and chosen is None and not table.is_stream:
            repeated = partial.ids.repeated()
            partial = counted(table, known, options, wanted, bar, repeated, tries=partial.tries)
    if table.is_whole and chosen is None:
        partial.check_rows(table.name)
    return partial
