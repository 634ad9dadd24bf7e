"""Ray: fragments of a table counted by the tasks of a cluster, and an aggregation of Ray Data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from assay.data.tables.arrow import arrow
from assay.errors import ConfigError, StateError, describe
from assay.evaluation.arguments.options import Metrics
from assay.integrations.optional_packages import import_package
from assay.progress import ProgressBar
from assay.report import Report
from assay.scoring.counting import CountTask
from assay.scoring.options import ScoreOptions
from assay.scoring.partial import Partial, merge
from assay.scoring.stored_predictions import count, score_table

TASKS_A_CPU = 4
MERGED_AT_ONCE = 16
_NAME = "assay"
_AGAIN = "Give the tasks more memory, or look at the logs of Ray"


def score_on_ray(source: Any, metrics: Metrics, **options: Any) -> Report:
    """`assay.score` on a cluster of Ray, with the same bits.

    Files are counted by tasks, some fragments (row groups) each. Ray runs a task again whose process or machine is
    lost, and merging refuses a fragment twice, so each is counted once. Without a running cluster, Ray starts one here.

    Args:
        source: files, as `assay.score` takes them, at paths that every machine of the cluster can read; or a
            `ray.data.Dataset`, see `ray_aggregate`.
        metrics: see `assay.score`.
        options: those of `assay.score`; a dataset needs `ids`.

    Raises:
        ConfigError: the source is no files, or a dataset without `ids`.
        StateError: Ray lost a task again and again.
        MissingDependencyError: Ray is not installed.

    Source: `ray.remote`, `ray.wait` and `Dataset.aggregate` of Ray 2.60.
    """
    _started()
    if not _is_dataset(source):
        return score_table(source, metrics, ScoreOptions(**options), engine=count_on_ray)
    counted = source.aggregate(ray_aggregate(metrics, **options))[_NAME]
    if counted is None:
        raise ConfigError(describe("dataset", "no rows", "one or more", "Check what was written there"))
    return Partial.from_bytes(counted).checked_report()


def ray_aggregate(metrics: Metrics, **options: Any) -> Any:
    """A `ray.data.aggregate.AggregateFnV2` that counts the blocks of a dataset.

    `dataset.aggregate(...)["assay"]` is what `Partial.from_bytes` reads. Blocks have no place in a file, so the rows
    need ids: a row that comes twice is found by its id. After `groupby` Ray shows an aggregation one column only: use
    `slices=`.

    Args:
        metrics: see `assay.score`.
        options: those of `assay.score`, with `ids`.

    Raises:
        ConfigError: no `ids`.
        MissingDependencyError: Ray is not installed.
    """
    ids = ScoreOptions(**options).ids or ""
    if not ids:
        do = 'Name a column of integers or strings: ids="id"'
        raise ConfigError(describe("ids", "none", "the column that identifies the rows of a dataset", do))
    base: Any = import_package("ray.data.aggregate", "aggregations of its datasets").AggregateFnV2
    accessor: Any = import_package("ray.data.block", "blocks of its datasets").BlockAccessor

    class BlockCounts(base):  # type: ignore[misc]
        def aggregate_block(self, block: Any) -> bytes | None:
            table = accessor.for_block(block).to_arrow()
            return count(table, metrics, _key(table, ids), **options).to_bytes() if len(table) else None

        def combine(self, current_accumulator: bytes, new: bytes) -> bytes:
            return merge(map(Partial.from_bytes, (current_accumulator, new))).to_bytes()

    return BlockCounts(_NAME, lambda: None, on=None, ignore_nulls=True)


def count_on_ray(task: CountTask, bar: ProgressBar) -> Partial:
    """Count a task with as many tasks of Ray as keep its processors busy, and merge them as a tree.

    Raises:
        StateError: Ray lost a task again and again.
    """
    ray = _started()
    processors = int(ray.cluster_resources().get("CPU", 1))
    tasks = task.split(TASKS_A_CPU * processors)
    count_task, merge_parts = ray.remote(_count), ray.remote(_merge)
    rows: Mapping[Any, int] = {count_task.remote(each): each.rows for each in tasks}
    parts = left = list(rows)
    try:
        while left:
            ready, left = ray.wait(left)
            bar.update(advance=sum(rows[each] for each in ready))
        while len(parts) > 1:
            groups = [parts[start : start + MERGED_AT_ONCE] for start in range(0, len(parts), MERGED_AT_ONCE)]
            parts = [merge_parts.remote(*group) for group in groups]
        whole: Partial = ray.get(parts[0])
        return whole
    except ray.exceptions.RayTaskError as error:
        raise error.cause from error
    except ray.exceptions.RayError as error:
        raise StateError(describe("ray", f"a task that was lost ({error})", "a result", _AGAIN)) from error


def _count(task: CountTask) -> Partial:
    return task()


def _merge(*parts: Partial) -> Partial:
    return merge(parts)


def _started() -> Any:
    """Ray, connected to its cluster."""
    ray = import_package("ray", "tasks on a cluster")
    if not ray.is_initialized():
        ray.init()
    return ray


def _is_dataset(source: Any) -> bool:
    """Whether it is a dataset of Ray; without importing `ray.data`, which needs pandas."""
    return type(source).__module__.startswith("ray.data.")


def _key(table: Any, ids: str) -> str:
    """A name for a block, the same whenever it is counted."""
    columns = table.select([name for name in table.column_names if name == ids]).combine_chunks()
    stream = arrow().BufferOutputStream()
    with arrow().ipc.new_stream(stream, columns.schema) as written:
        written.write_table(columns)
    return f"block {hashlib.blake2b(stream.getvalue(), digest_size=8).hexdigest()}"
