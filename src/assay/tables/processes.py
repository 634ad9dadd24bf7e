"""The fragments of a table counted by several processes of this machine; what a killed one had, another one counts."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

import torch

from assay.errors import AssayWarning, StateError, describe
from assay.progress import ProgressBar
from assay.tables.arrow import arrow
from assay.tables.counting import CountTask
from assay.tables.partial import Partial, merge

TASKS_A_WORKER = 4
"""So that no worker is idle for long at the end, and a killed one loses little."""
MOST_ROUNDS = 3
"""How often all processes may be started without one of them finishing a task."""
_MOST_PARTS = 8


def count_in_processes(task: CountTask, bar: ProgressBar) -> Partial:
    """Count a task with `task.options.workers` processes.

    Raises:
        StateError: processes end again and again, as where memory runs out.
    """
    parts: list[Partial] = []
    left, futile = task.split(TASKS_A_WORKER * task.options.workers), 0
    while left:
        tasks, left = left, _count_round(left, parts, bar)
        futile = futile + 1 if len(left) == len(tasks) else 0
        if futile == MOST_ROUNDS:
            got = f"processes that ended {futile} times before one had counted its fragments"
            do = 'Take fewer workers if memory runs out, and call this under if __name__ == "__main__":'
            raise StateError(describe("workers", got, "processes that run to their end", do))
        if left:
            again = sum(len(each.fragments) for each in left)
            warnings.warn(f"A worker ended: {again} fragments are counted again.", AssayWarning, stacklevel=2)
    return merge(parts)


def _count_round(tasks: Sequence[CountTask], parts: list[Partial], bar: ProgressBar) -> list[CountTask]:
    """Count tasks, add what they counted to the parts, and return those that a killed process left."""
    workers = min(tasks[0].options.workers, len(tasks))
    threads = max(1, (os.cpu_count() or 1) // workers)
    left = []
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _limit_threads, (threads,))
    try:
        futures = {pool.submit(each): each for each in tasks}
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
