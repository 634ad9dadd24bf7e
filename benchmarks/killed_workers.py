"""Runs that lose processes by `kill -9`: seconds with and without, how much was counted again, and whether the bits are
the same.

`ray`: `assay score` of a Parquet folder on a local Ray cluster with two workers, one of which is killed in the middle.
`torchrun`: `evaluate` on four ranks with checkpoints. A rank is killed in the middle, and the run resumes with four
(`--max-restarts`), with two after a whole node was lost (`--nnodes 1:2 --max-restarts`), or with two started by hand.
The model sleeps 20 ms a batch, as one on an accelerator would leave the processor idle.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from assay.metrics import AUROC, Accuracy, F1Score, Mean
from assay.tally.base import Batch

RAY_ROWS, RAY_FRAGMENTS = 1_600_000, 80
SAMPLES, BATCH = 96_000, 64
STEP_S = 0.02


def same_content(report: Any) -> str:
    """Values, intervals, slices and per-sample values of a report, as one text."""
    import dataclasses

    from assay.report import Report

    (section,) = report.sections
    section = dataclasses.replace(section, tables=())
    return Report("", (section,), created="", environment={}).to_json()


def descendants(root: int) -> Iterator[int]:
    """The processes that a process has started, and those that these have."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:  # ended meanwhile
                continue
    found = [root]
    while found:
        parent = found.pop()
        children = [each for each, of in parents.items() if of == parent]
        yield from children
        found += children


@dataclass(frozen=True)
class KillingMean(Mean):
    """A mean; the process that counts the batch in the middle gets a kill -9, once.

    Args:
        folder: where the batches that workers count are noted.
        spared: the process that is not killed.
    """

    folder: str = ""
    spared: int = 0

    def per_sample(self, batch: Batch) -> Tensor:
        if self.folder and os.getpid() != self.spared:
            (Path(self.folder) / uuid.uuid4().hex).touch()
            if len(os.listdir(self.folder)) == RAY_FRAGMENTS // 2:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().per_sample(batch)


def on_ray(rows: int) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    import ray  # type: ignore[import-not-found, unused-ignore]

    import assay
    from assay.integrations import score_on_ray

    options: dict[str, Any] = {"preds": "p", "target": "y", "slices": ["g"], "progress": False, "n_resamples": 25}
    with tempfile.TemporaryDirectory() as folder:
        random = np.random.default_rng(0)
        scores = random.random(rows, dtype=np.float32)
        table = pa.table({"p": scores, "y": (random.random(rows) < scores).astype(np.int64), "g": np.arange(rows) % 5})
        source, noted = f"{folder}/t.parquet", Path(folder, "noted")
        pq.write_table(table, source, row_group_size=rows // RAY_FRAGMENTS)
        noted.mkdir()

        def metrics(killing: str) -> dict[str, Any]:
            mean = KillingMean(folder=killing, spared=os.getpid())
            return {"mean": mean, "accuracy": Accuracy(), "AUROC": AUROC(), "F1": F1Score()}

        start = time.perf_counter()
        expected = same_content(assay.score(source, metrics(""), **options))
        show(f"{rows:,} rows", "one process, no Ray", time.perf_counter() - start, "")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        score_on_ray(source, metrics(""), **options)  # workers have started
        for name, killing in (("Ray, 2 workers", ""), ("Ray, 2 workers, one killed", str(noted))):
            start = time.perf_counter()
            report = score_on_ray(source, metrics(killing), **options)
            wall = time.perf_counter() - start
            batches = len(os.listdir(noted))
            if killing and batches <= RAY_FRAGMENTS:
                raise SystemExit(f"{batches} of {RAY_FRAGMENTS} fragments were counted: no worker was killed")
            again = f"; {batches - RAY_FRAGMENTS} fragments counted again" if killing else ""
            show(
                f"{rows:,} rows",
                name,
                wall,
                ("same bits" if same_content(report) == expected else "OTHER BITS") + again,
            )
        ray.shutdown()


def evaluate_ranks(folder: str, dies: str) -> None:
    """What each process of torchrun does."""
    import torch
    from torch.utils.data import TensorDataset

    from assay import evaluate

    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    scores = torch.rand(SAMPLES, generator=generator)
    data = TensorDataset(scores, (torch.rand(SAMPLES, generator=generator) < scores).long())
    metrics = {"accuracy": Accuracy(), "AUROC": AUROC(), "F1": F1Score()}
    report = evaluate(
        SleepingModel(dies),
        data,
        metrics,
        batch_size=BATCH,
        device="cpu",
        resume=folder,
        run_id="killed",
        checkpoint_every=0.5,
        rank_timeout_s=20.0,
        progress=False,
    )
    if os.environ.get("RANK", "0") == "0":
        (section,) = report.sections
        run = {row[0]: row[1] for table in section.tables if table.name == "Run" for row in table.rows}
        content = same_content(report)
        Path(f"{folder}.json").write_text(json.dumps([content, run["samples from checkpoints"], run["processes"]]))


class SleepingModel:
    """Gives its input back after some time; the process of rank 1 ends in the middle of its first start if told so."""

    def __init__(self, dies: str = "") -> None:
        self.dies, self.batches = dies, 0

    def __call__(self, x: Any) -> Any:
        time.sleep(STEP_S)
        self.batches += 1
        is_first = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0"
        middle = SAMPLES // BATCH // int(os.environ.get("WORLD_SIZE", "1")) // 2
        if self.dies == "rank" and is_first and os.environ.get("RANK") == "1" and self.batches == middle:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return SleepingModel, ()


def torchrun(folder: Path, dies: str, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "torch.distributed.run", *arguments, "-m", "benchmarks.killed_workers"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    log = open(f"{folder}.log", "ab")  # noqa: SIM115 - the process writes to it
    return subprocess.Popen([*command, "rank", str(folder), dies], env=environment, stdout=log, stderr=log)


def on_ranks(folder: Path) -> None:
    expected = ""

    def finished(name: str, run: Path, start: float) -> None:
        nonlocal expected
        wall = time.perf_counter() - start
        if not Path(f"{run}.json").exists():
            raise SystemExit(f"{name}: no report\n" + Path(f"{run}.log").read_text()[-3000:])
        content, resumed, processes = json.loads(Path(f"{run}.json").read_text())
        expected = expected or content
        again = f"{resumed} of {SAMPLES:,} from checkpoints, {processes} ranks at the end"
        show("torchrun", name, wall, f"{'same bits' if content == expected else 'OTHER BITS'}; {again}")

    start = time.perf_counter()
    torchrun(folder / "whole", "", "--nproc-per-node=4").wait()
    finished("4 ranks", folder / "whole", start)

    start = time.perf_counter()
    torchrun(folder / "restarted", "rank", "--nproc-per-node=4", "--max-restarts=1").wait()
    finished("4 ranks, one killed, --max-restarts=1", folder / "restarted", start)

    start = time.perf_counter()
    torchrun(folder / "by-hand", "rank", "--nproc-per-node=4", "--max-restarts=0").wait()
    torchrun(folder / "by-hand", "", "--nproc-per-node=2").wait()
    finished("4 ranks, one killed, started again by hand with 2", folder / "by-hand", start)

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    elastic = ("--nnodes=1:2", "--nproc-per-node=2", "--max-restarts=3", "--rdzv-backend=c10d", "--rdzv-id=killed")
    conf = f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-conf=last_call_timeout=5"
    start = time.perf_counter()
    run = folder / "node"
    first = torchrun(run, "", *elastic, *conf)
    time.sleep(2)
    second = torchrun(run, "", *elastic, *conf)
    while not any(run.glob("rank-3*.safetensors")):  # all four ranks have written a checkpoint
        time.sleep(0.2)
        if first.poll() is not None:
            raise SystemExit("the first node ended\n" + Path(f"{run}.log").read_text()[-3000:])
    time.sleep(3)
    for each in [second.pid, *descendants(second.pid)]:
        os.kill(each, signal.SIGKILL)
    second.wait()
    first.wait()
    finished("2 nodes of 2 ranks, one node killed, --nnodes=1:2 --max-restarts=3", run, start)


def show(*cells: Any) -> None:
    print(
        "| " + " | ".join(f"{each:.1f}" if isinstance(each, float) else str(each) for each in cells) + " |", flush=True
    )


def main(parts: Sequence[str]) -> None:
    """Print the tables."""
    print("| what | run | wall s | result |\n|---|---|--:|---|")
    if "ray" in parts:
        on_ray(RAY_ROWS)
    if "torchrun" in parts:
        with tempfile.TemporaryDirectory() as folder:
            on_ranks(Path(folder))


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:  # torchrun's
        evaluate_ranks(*sys.argv[2:4])
    else:
        parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
        parser.add_argument("parts", nargs="*", default=["ray", "torchrun"], choices=["ray", "torchrun"])
        main(**vars(parser.parse_args()))
