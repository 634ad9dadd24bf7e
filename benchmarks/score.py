"""Stored predictions: `assay.score` on rows in memory and in Parquet, against scikit-learn and a loop of TorchMetrics.

Ten classes, two columns to slice by and both crossed: 63 cells, 79 slices. CPU seconds of one run of each, without
intervals. `--rows` sets how many rows. Two options measure ten times as many instead, and print the peak memory:
`--memory` rows that are made while they are read, and `--folder` Parquet files, which are written first where there
are none. `--defaults` measures what a plain `assay score` costs, with no option set; `--classes 3 --sizes 5 4` of so
many classes, and of columns with so many values: 5 + 4 + 20 slices. `--workers 2` measures 300,000
rows of Parquet with slices and intervals, counted by one process and by two.
"""

from __future__ import annotations

import argparse
import itertools
import math
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import sklearn.metrics as sk
import torch

from assay import score
from benchmarks.harness import Table, save

COUNTED = "accuracy,f1:average=macro"
RANKED = COUNTED + ",auroc"
OPTIONS: dict[str, Any] = {
    "preds": "p0..p9",
    "target": "y",
    "slices": ["a", "b", ("a", "b")],
    "confidence_level": None,
    "keep_samples": False,
    "diagnostics": False,
    "progress": False,
}
BATCH = 1 << 17


def rows(count: int, seed: int, classes: int = 10, sizes: Sequence[int] = (9, 7)) -> pa.RecordBatch:
    """Scores of some classes, labels, and two columns with a dictionary."""
    random = np.random.default_rng(seed)
    y = random.integers(0, classes, count)
    scores = random.random((classes, count), dtype=np.float32)
    scores[y, np.arange(count)] += 0.5
    scores /= scores.sum(0)
    parts = {
        name: pa.DictionaryArray.from_arrays(
            pa.array(random.integers(0, size, count), pa.int32()), [f"{name}{k}" for k in range(size)]
        )
        for name, size in zip("ab", sizes, strict=True)
    }
    return pa.RecordBatch.from_pydict({**{f"p{k}": each for k, each in enumerate(scores)}, "y": y, **parts})


def batches(count: int, classes: int = 10, sizes: Sequence[int] = (9, 7)) -> Iterator[pa.RecordBatch]:
    for seed, start in enumerate(range(0, count, BATCH)):
        yield rows(min(BATCH, count - start), seed, classes, sizes)


def regression(count: int) -> pa.Table:
    random = np.random.default_rng(0)
    y = random.standard_normal(count)
    parts = {name: pa.array(random.integers(0, size, count)) for name, size in (("a", 9), ("b", 7))}
    return pa.table({"p": y + random.standard_normal(count), "y": y, **parts})


def by_cell(table: pa.Table) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Scores and labels of all rows and of every slice, selected as with pandas."""
    p = np.stack([table[f"p{k}"].to_numpy() for k in range(10)], 1)
    y, a, b = (table[name] for name in ("y", "a", "b"))
    y = y.to_numpy()
    a, b = (each.combine_chunks().indices.to_numpy() for each in (a, b))
    yield p, y
    for k, j in itertools.product((*range(9), None), (*range(7), None)):
        if k is not None or j is not None:
            some = ((a == k) if k is not None else True) & ((b == j) if j is not None else True)
            yield p[some], y[some]


def with_sklearn(table: pa.Table, ranked: bool) -> None:
    for p, y in by_cell(table):
        decided = p.argmax(1)
        sk.accuracy_score(y, decided)
        sk.f1_score(y, decided, average="macro")
        if ranked:
            sk.roc_auc_score(y, p, multi_class="ovr", average="macro")


def with_torchmetrics(table: pa.Table, ranked: bool) -> None:
    from torchmetrics.classification import MulticlassAccuracy, MulticlassAUROC, MulticlassF1Score

    for p, y in by_cell(table):
        metrics = [MulticlassAccuracy(10, average="micro"), MulticlassF1Score(10)]
        metrics += [MulticlassAUROC(10)] if ranked else []
        for some in zip(torch.from_numpy(p).split(BATCH), torch.from_numpy(y).split(BATCH), strict=True):
            for metric in metrics:
                metric.update(*some)
        for metric in metrics:
            metric.compute()


def seconds(call: Callable[[], Any]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def write_parts(folder: Path, count: int) -> None:
    """Ten Parquet files with so many rows in all, unless the folder is there."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    for k in range(10):
        with pq.ParquetWriter(folder / f"part{k}.parquet", rows(0, 0).schema) as writer:
            for j in range(10):
                writer.write_batch(rows(count // 100, 10 * k + j))


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def all_seconds() -> tuple[float, float]:
    """Seconds on the clock, and CPU seconds of this process and of those that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return time.perf_counter(), sum(each.ru_utime + each.ru_stime for each in used)


def by_workers(workers: int, count: int = 300_000) -> None:
    """What several processes cost: they start, import torch, and hand over what they counted."""
    names = ["what", "s", "CPU s"]
    options = {**OPTIONS, "slices": ["a", "b"], "confidence_level": 0.95}
    listed, found = [], {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(pa.Table.from_batches([rows(count, 0)]), path, row_group_size=count // 16)
        score(path, COUNTED, **options)
        for number in (1, workers):
            before = all_seconds()
            score(path, COUNTED, **options, workers=number)
            clock, cpu = (after - start for start, after in zip(before, all_seconds(), strict=True))
            what = f"{number} process{'es' if number > 1 else ''}"
            listed.append([what, f"{clock:.1f}", f"{cpu:.1f}"])
            found |= {f"{what}, s": clock, f"{what}, CPU s": cpu}
    save("score_workers", [Table(f"{count:,} rows, 16 slices, intervals", names, listed)], found)


def by_default(count: int, classes: int, sizes: Sequence[int]) -> None:
    """What a plain `assay score` costs: intervals, per-sample values and details, as no option turns them off."""
    table = pa.Table.from_batches(batches(count, classes, sizes))
    plain = {name: OPTIONS[name] for name in ("target", "slices", "progress")}
    took = seconds(lambda: score(table, RANKED, preds=f"p0..p{classes - 1}", **plain))
    slices = sum(sizes) + math.prod(sizes)
    what = f"{count:,} rows, {classes} classes, {slices} slices, accuracy, macro F1, AUROC, default options"
    print(f"{what}: {took:.1f} CPU s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--defaults", action="store_true")
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--sizes", type=int, nargs=2, default=(9, 7))
    parser.add_argument("--others", action=argparse.BooleanOptionalAction, default=True)
    options = parser.parse_args()
    torch.set_num_threads(1)
    score(pa.Table.from_batches([rows(1000, 0)]), RANKED, **OPTIONS)
    if options.defaults:
        by_default(options.rows, options.classes, options.sizes)
        return
    if options.workers > 1:
        by_workers(options.workers)
        return
    if options.memory:
        took = seconds(lambda: score(batches(10 * options.rows), COUNTED, **OPTIONS))
        print(f"{10 * options.rows:,} rows: {took:.1f} CPU s with making them, {peak_gb():.2f} GB at most")
        return
    if options.folder:
        write_parts(options.folder, 10 * options.rows)
        took = seconds(lambda: score(f"{options.folder}/*.parquet", COUNTED, **OPTIONS))
        print(f"{10 * options.rows:,} rows of Parquet: {took:.1f} CPU s, {peak_gb():.2f} GB at most")
        return
    table = pa.Table.from_batches(batches(options.rows))
    numbers = regression(options.rows)
    of_numbers = {**OPTIONS, "preds": "p"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(table, path, row_group_size=1 << 20)
        work: dict[str, dict[str, Callable[[], Any]]] = {
            "accuracy, macro F1": {
                "assay": lambda: score(table, COUNTED, **OPTIONS),
                "scikit-learn": lambda: with_sklearn(table, False),
                "TorchMetrics": lambda: with_torchmetrics(table, False),
            },
            "accuracy, macro F1, from Parquet": {"assay": lambda: score(path, COUNTED, **OPTIONS)},
            "accuracy, macro F1, AUROC": {
                "assay": lambda: score(table, RANKED, **OPTIONS),
                "scikit-learn": lambda: with_sklearn(table, True),
                "TorchMetrics": lambda: with_torchmetrics(table, True),
            },
            "R2 and MAE in float64": {"assay": lambda: score(numbers, "r2,mae", **of_numbers)},
        }
        found: dict[str, dict[str, list[float]]] = {}
        for what, candidates in work.items():
            found[what] = {}
            for name, call in candidates.items() if options.others else [("assay", candidates["assay"])]:
                found[what][name] = [seconds(call)]
                print(f"{name}: {what}: {found[what][name][0]:.2f} s", flush=True)
    by = ("assay", "scikit-learn", "TorchMetrics")
    listed = [[what, *(f"{took[name][0]:.2f}" if name in took else "-" for name in by)] for what, took in found.items()]
    title = f"Stored predictions: {options.rows:,} rows, 79 slices, values alone, CPU s of one run"
    note = "Values alone: `confidence_level=None, keep_samples=False, diagnostics=False`."
    save("score", [Table(title, ["what", *by], listed, [note])], found)


if __name__ == "__main__":
    main()
