"""`assay.score(by=)`: accuracy of each of many users, with all else at its default, beside DuckDB's `group by`.

CPU seconds of one thread, the smallest of three runs of each in one process, after a run of few rows. DuckDB gives
counts and means; assay intervals, tails and the heterogeneity, too. `--rows`, `--users`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import torch

from assay import score
from benchmarks.harness import Table, save

PLAIN: dict[str, Any] = {"preds": "p", "target": "y", "progress": False}
VALUES_ALONE: dict[str, Any] = {"confidence_level": None, "keep_samples": False, "diagnostics": False}


def rows(count: int, users: int) -> pa.Table:
    random = np.random.default_rng(0)
    y = random.integers(0, 2, count)
    p = np.clip(0.3 * y + 0.7 * random.random(count), 0, 1).astype(np.float32)
    user = random.integers(0, users, count)
    return pa.table({"p": p, "y": y, "user": user, "name": pa.array([f"user {k}" for k in user])})


def seconds(call: Callable[[], Any]) -> float:
    found = []
    for _ in range(3):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def with_duckdb(table: pa.Table, column: str) -> Callable[[], Any]:
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    connection.register("t", table)
    query = f"select {column}, count(*), avg(((p >= 0.5) = (y = 1))::int) from t group by {column} order by 3"
    return lambda: connection.sql(query).fetchnumpy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**6)
    parser.add_argument("--users", type=int, default=10**5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = rows(options.rows, options.users)
    score(table.slice(0, 1000), "accuracy", **PLAIN, by=["user"])
    found: dict[str, float] = {
        "accuracy, default options": seconds(lambda: score(table, "accuracy", **PLAIN)),
        "the same with by=user": seconds(lambda: score(table, "accuracy", **PLAIN, by=["user"])),
        "by=user, values alone": seconds(lambda: score(table, "accuracy", **PLAIN, **VALUES_ALONE, by=["user"])),
        "by=name (strings), values alone": seconds(
            lambda: score(table, "accuracy", **PLAIN, **VALUES_ALONE, by=["name"])
        ),
        "accuracy and mae, by=user": seconds(lambda: score(table, "accuracy,mae", **PLAIN, by=["user"])),
        "DuckDB, group by user": seconds(with_duckdb(table, "user")),
        "DuckDB, group by name": seconds(with_duckdb(table, "name")),
    }
    listed = [[what, f"{took:.2f}"] for what, took in found.items()]
    title = f"{options.rows:,} rows, {options.users:,} users, CPU s, smallest of three"
    save("score_by", [Table(title, ["what", "CPU s"], listed)], found)


if __name__ == "__main__":
    main()
