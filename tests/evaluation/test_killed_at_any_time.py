"""A process that is killed at a random moment of an evaluation ends all others with one error, in time."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from assay import evaluate
from evaluation.test_mesh import METRIC, OneBroken, network, pipeline_of_training, tensor_parallel
from ranks import preload

SEED, TRIALS = 20, 30
TIMEOUT_S = 4.0
LATER_S = 8.0
"""For what comes after the limit: the margin of collectives, and a machine that is busy."""


def sharded(model, on=None):
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=on)
    return fully_shard(model, mesh=on)


def both(rank):
    on = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    return sharded(tensor_parallel(on["tp"]), on["dp"])


KINDS = {
    "whole": (3, lambda rank: network()),
    "fsdp2": (2, lambda rank: sharded(network())),
    "tp": (2, lambda rank: tensor_parallel(init_device_mesh("cpu", (2,), mesh_dim_names=("tp",)))),
    "pipeline": (2, pipeline_of_training),
    "fsdp2 x tp": (4, both),
}
"""How many processes share a model, and what each of them has."""


class Slow(OneBroken):
    """Samples that take a while to load, so that a run has many moments."""

    def __getitem__(self, k):
        time.sleep(0.002)
        return super().__getitem__(k)


def run(rank, size, kind, folder, victim, delay):
    """One process: what it gave, and when it ended."""
    torch.set_num_threads(1)
    log = os.open(f"{folder}/{rank}.log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    model = KINDS[kind][1](rank)
    dist.barrier()
    start = time.monotonic()
    if rank == victim:
        killer = threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL))
        killer.daemon = True
        killer.start()
    try:
        options = {"resume": f"{folder}/kept", "checkpoint_every": 0.02, "rank_timeout_s": TIMEOUT_S}
        report = evaluate(model, Slow(-1), METRIC, device="cpu", batch_size=8, n_resamples=25, **options)
        report.save(f"{folder}/report{rank}.json")
        found = [report.sections[0].values[0].value]
    except Exception as error:
        found = [type(error).__name__, str(error)]
    part = Path(folder, f"{rank}.part")
    part.write_text(json.dumps([time.monotonic() - start, *found]), "utf-8")
    part.rename(Path(folder, f"{rank}.json"))
    os._exit(0)


def trial(kind, folder, victim=None, delay=0.0):
    """What each process gave that was not killed, with how long it took; None of one that did not end."""
    size = KINDS[kind][0]
    context = multiprocessing.get_context("forkserver")
    preload()
    folder.mkdir()
    ranks = [context.Process(target=run, args=(k, size, kind, str(folder), victim, delay)) for k in range(size)]
    for each in ranks:
        each.start()
    until = time.monotonic() + 60 + delay
    for each in ranks:
        each.join(max(0.0, until - time.monotonic()))
        each.kill()
        each.join()
    files = [folder / f"{rank}.json" for rank in range(size)]
    return [json.loads(each.read_text("utf-8")) if each.exists() else None for each in files]


@pytest.mark.slow
def test_a_process_that_is_killed_at_any_moment_ends_all_others_with_one_error(tmp_path):
    draw = random.Random(SEED)
    usual, right = {}, {}
    for kind in KINDS:
        found = trial(kind, tmp_path / kind)
        usual[kind], right[kind] = max(seconds for seconds, *_ in found), found[0][1]
        assert all(value == right[kind] for _, value in found), kind
    ended = 0
    for number in range(TRIALS):
        kind = [*KINDS][number % len(KINDS)]
        victim, delay = draw.randrange(KINDS[kind][0]), draw.uniform(0, usual[kind])
        what = f"trial {number}: {kind}, rank {victim} killed after {delay:.2f} of {usual[kind]:.2f} s"
        for rank, found in enumerate(trial(kind, tmp_path / str(number), victim, delay)):
            if rank == victim:
                continue
            assert found is not None, f"{what}: rank {rank} did not end"
            seconds, *result = found
            if result != [right[kind]]:  # else it had all that it needs of the other one
                assert result[0] == "RankError", f"{what}: rank {rank} {result}"
                assert seconds < delay + TIMEOUT_S + LATER_S, f"{what}: rank {rank} after {seconds:.1f} s"
                ended += 1
    assert ended > TRIALS // 2
