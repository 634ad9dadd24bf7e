"""The fragments of a table counted by several processes of this machine; what a killed one had, another one counts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from multiprocessing.process import BaseProcess

import torch

from assay.data.tables.arrow import arrow
from assay.errors import AssayWarning, StateError, describe
from assay.progress import ProgressBar
from assay.scoring.counting import CountTask
from assay.scoring.partial import Partial, merge

TASKS_A_WORKER = 4
"""So that no worker is idle for long at the end, and a killed one loses little."""
MOST_ROUNDS = 3
"""How often all processes may be started without one of them finishing a task."""
_MOST_PARTS = 8


def count_in_processes(task: CountTask, bar: ProgressBar) -> Partial:
    """Count a task with `task.options.workers` processes; this one counts until the first of them has started.

    Raises:
        StateError: processes end again and again, as where memory runs out.
    """
    workers = max(1, min(task.options.workers, len(task.fragments)))
    others = set(active_children())
    pool = _pool(workers)
    try:
        started = pool.submit(_started)
        own, rest = task.count_while(lambda: not started.done(), bar)
    except BaseException:
        _stop(pool, others)
        raise
    parts, left, futile = [own], rest.split(TASKS_A_WORKER * workers), 0
    if not left:
        _stop(pool, others)
    while left:
        tasks, left = left, _count_round(pool, left, parts, bar)
        pool = _pool(min(workers, len(left))) if left else pool
        futile = futile + 1 if len(left) == len(tasks) else 0
        if futile == MOST_ROUNDS:
            got = f"processes that ended {futile} times before one had counted its fragments"
            do = 'Take fewer workers if memory runs out, and call this under if __name__ == "__main__":'
            raise StateError(describe("workers", got, "processes that run to their end", do))
        if left:
            again = sum(len(each.fragments) for each in left)
            warnings.warn(f"A worker ended: {again} fragments are counted again.", AssayWarning, stacklevel=2)
    return merge(parts)


def _pool(workers: int) -> ProcessPoolExecutor:
    threads = max(1, (os.cpu_count() or 1) // workers)
    return ProcessPoolExecutor(workers, get_context("spawn"), _limit_threads, (threads,))


def _started() -> None:
    """What a process does first."""


def _stop(pool: ProcessPoolExecutor, others: set[BaseProcess]) -> None:
    """End a pool whose processes may still be starting; `others` are not of it."""
    for process in set(active_children()) - others:
        process.terminate()
    pool.shutdown(cancel_futures=True)


def _count_round(
    pool: ProcessPoolExecutor, tasks: Sequence[CountTask], parts: list[Partial], bar: ProgressBar
) -> list[CountTask]:
    """Count tasks, add what they counted to the parts, and return those that a killed process left."""
    left = []
    futures = {}
    try:
        for task in tasks:
            try:
                futures[pool.submit(task)] = task
            except BrokenProcessPool:
                left.append(task)
        for future in as_completed(futures):
            try:
                parts.append(future.result())
            except BrokenProcessPool:
                left.append(futures[future])
                continue
            bar.update(advance=futures[future].rows)
            if len(parts) == _MOST_PARTS:
                parts[:] = [merge(parts)]
    finally:
        pool.shutdown(cancel_futures=True)
    return left


def _limit_threads(threads: int) -> None:
    torch.set_num_threads(threads)
    arrow().set_cpu_count(threads)
