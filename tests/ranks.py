"""Ranks for tests of what processes do together: threads that exchange in memory, and real gloo processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import forkserver
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


@dataclass
class Group:
    """A process group of threads. It notes the size of every collective, and can be told to fail."""

    size: int
    sizes: list[int] = field(default_factory=list)
    fails: bool = False

    def __post_init__(self) -> None:
        self.barrier = threading.Barrier(self.size)
        self.given: list[torch.Tensor | None] = [None] * self.size
        self.own = threading.local()

    def is_available(self) -> bool:
        return True

    is_initialized = is_available

    def get_rank(self, group: Any = None) -> int:
        return self.own.rank

    def get_world_size(self, group: Any = None) -> int:
        return self.size

    def all_reduce(self, tensor: torch.Tensor, group: Any = None) -> None:
        tensor.copy_(self._all(tensor).sum(0))
        self.barrier.wait(20)

    def all_gather(self, rows: list[torch.Tensor], tensor: torch.Tensor, group: Any = None) -> None:
        for row, given in zip(rows, self._all(tensor), strict=True):
            row.copy_(given)
        self.barrier.wait(20)

    def _all(self, tensor: torch.Tensor) -> torch.Tensor:
        """What all ranks gave."""
        if self.fails:
            raise RuntimeError("Connection closed by peer")
        self.given[self.own.rank] = tensor.clone()
        self.barrier.wait(20)
        assert len({t.shape for t in self.given if t is not None}) == 1, "ranks gave vectors of several lengths"
        if self.own.rank == 0:
            self.sizes.append(tensor.numel())
        return torch.stack(self.given)

    def run(self, act: Callable[[int], Any]) -> list[Any]:
        """What `act(rank)` gives on every rank: its result, or what it raised."""

        def on(rank: int) -> Any:
            self.own.rank = rank
            try:
                return act(rank)
            except Exception as error:
                return error

        with ThreadPoolExecutor(self.size) as pool:
            return list(pool.map(on, range(self.size)))


def preload() -> None:
    """Start the process from which others are forked, unless it runs, with the modules of `preloaded.py`."""
    multiprocessing.set_forkserver_preload(["preloaded"])
    paths = filter(None, (str(Path(__file__).parent), os.environ.get("PYTHONPATH")))
    with mock.patch.dict(os.environ, PYTHONPATH=os.pathsep.join(paths)):  # it is not told sys.path
        forkserver.ensure_running()


def processes(act: Callable[[int, int], Any], size: int, folder: Path) -> list[Any]:
    """What `act(rank, size)` gives in real processes of one gloo group, through JSON.

    They are forked from one process that has imported libraries already, and has run nothing.
    """
    preload()
    mp.start_processes(_process, (act, size, str(folder)), nprocs=size, start_method="forkserver")
    return [json.loads((folder / f"{rank}.json").read_text("utf-8")) for rank in range(size)]


def _process(rank: int, act: Callable[[int, int], Any], size: int, folder: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    try:
        Path(folder, f"{rank}.json").write_text(json.dumps(act(rank, size)), "utf-8")
    finally:
        dist.destroy_process_group()


def as_torchrun(rank: int, size: int) -> None:
    """Tell a process of a group what torchrun would have told it; some hosts ask the environment."""
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(size))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")  # nobody meets there: the group is there already
