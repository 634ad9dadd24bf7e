"""Groups of gloo processes, each forked from one that has imported torch, which run one case after the other.

A case that does not end is ended from outside, with its group; the next case has a new one.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

PRELOADED = [
    "assay.evaluation.evaluate_model",
    "torch.distributed.fsdp",
    "torch.distributed.pipelining",
    "torch.distributed.tensor.parallel",
]
LIMIT_S = 60.0
KILLED, NO_END = "killed", "no end"


@dataclass(frozen=True)
class Case:
    """Something that all processes of a group do.

    Attributes:
        name: of the row and the library.
        size: how many processes there are.
        act: gives what is shown for a process; of its rank and a folder that all processes see.
        ends_group: whether a process may not be there afterwards.
        limit_s: how long it may take.
        after: a case whose files it needs.
    """

    name: str
    size: int
    act: Callable[[int, Path], Any]
    ends_group: bool = False
    limit_s: float = LIMIT_S
    after: str = ""


def results(
    cases: Sequence[Case],
    find: Callable[[str], Case],
    told: Callable[[str], None] = lambda _: None,
    preloaded: Sequence[str] = (),
) -> dict[str, list[Any]]:
    """What each case gave on each process, by its name: JSON, `KILLED`, or `NO_END`.

    Args:
        cases: to run.
        find: gives a case by its name, in any process.
        told: is told what each case gave.
        preloaded: further modules that are imported once.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*PRELOADED, *preloaded])
    found: dict[str, list[Any]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        waiting = sorted(cases, key=lambda case: (bool(case.after), case.size, case.ends_group))
        while waiting:
            group = [waiting.pop(0)]
            while waiting and waiting[0].size == group[0].size and not group[-1].ends_group and not waiting[0].after:
                group.append(waiting.pop(0))
            done = _run(context, group, folder, found, find, told)
            waiting = group[done:] + waiting
    return found


def _run(context: Any, group: list[Case], folder: Path, found: dict[str, list[Any]], find, told) -> int:
    """Run cases until one does not end; how many have a result."""
    size = group[0].size
    names = [case.name for case in group]
    meeting = tempfile.mkdtemp(dir=folder)
    ranks = [
        context.Process(target=_work, args=(find, names, rank, size, meeting, str(folder))) for rank in range(size)
    ]
    for each in ranks:
        each.start()
    try:
        for number, case in enumerate(group):
            start = time.monotonic()
            files = [Path(meeting, f"{number}.{rank}.json") for rank in range(size)]
            while not all(file.exists() or not rank.is_alive() for file, rank in zip(files, ranks, strict=True)):
                if time.monotonic() - start > case.limit_s:
                    break
                time.sleep(0.02)
            time.sleep(0.05 if case.ends_group else 0)
            found[case.name] = [
                json.loads(file.read_text("utf-8")) if file.exists() else NO_END if rank.is_alive() else KILLED
                for file, rank in zip(files, ranks, strict=True)
            ]
            told(f"{case.name}: {found[case.name]} ({time.monotonic() - start:.1f} s)")
            if case.ends_group or any(each in (KILLED, NO_END) for each in found[case.name]):
                return number + 1
        return len(group)
    finally:
        for each in ranks:
            each.join(5 if each.exitcode is None and not group[-1].ends_group else 0.2)
            each.kill()
            each.join()


def _work(find, names: Sequence[str], rank: int, size: int, meeting: str, folder: str) -> None:
    torch.set_num_threads(1)
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(size), LOCAL_WORLD_SIZE=str(size))
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29500")  # nobody meets there: the group is there already
    dist.init_process_group("gloo", init_method=f"file://{meeting}/meeting", rank=rank, world_size=size)
    with open(Path(meeting, f"{rank}.log"), "w", encoding="utf-8") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    for number, name in enumerate(names):
        try:
            result = find(name).act(rank, Path(folder))
        except Exception as error:
            if os.environ.get("MESHES_TRACE"):
                traceback.print_exc()
            result = f"{type(error).__name__}: {error}"
        file = Path(meeting, f"{number}.{rank}.json")
        file.with_suffix(".part").write_text(json.dumps(result), "utf-8")
        file.with_suffix(".part").rename(file)
    os._exit(0)  # a group of which one member is gone would wait for it
