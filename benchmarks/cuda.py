"""What runs on an NVIDIA GPU, in one command: updates, CUDA graphs, `sync` over NCCL, and quantized layers.

Times are those of the wall between two synchronizations, with many calls between them; the candidates take turns.
"""

from __future__ import annotations

import copy
import random
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from assay.meter import Meter
from assay.meter.counting import device_counts
from assay.metrics.base import Metric
from assay.quantize import QuantizedLinear, quantize_weight
from assay.tally.triton_check import check_kernels
from benchmarks.harness import Cost, Table, metric, microseconds, save
from benchmarks.update_cost import OTHERS, Batch, Row, rows

BATCHES = (1_024, 65_536, 1 << 20)
MOST_ELEMENTS = 1 << 28
COLUMNS = ("graph", "kernels", "operators", *OTHERS)
LAYER_ROWS = (1, 16, 256)
REFUSED = "benchmarks.cuda: got no CUDA device, expected an NVIDIA GPU. Run it where torch.cuda.is_available() is true."
Step = Callable[[], Any]


def timed(steps: Mapping[str, Step], calls: int, rounds: int = 7) -> dict[str, Cost]:
    """Seconds a call of every candidate, with the device's work done at both ends."""
    costs: dict[str, list[float]] = {name: [] for name in steps}
    shuffled = random.Random(0)
    for step in steps.values():
        for _ in range(3):
            step()
    for _ in range(rounds):
        for name in shuffled.sample(list(steps), len(steps)):
            torch.accelerator.synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                steps[name]()
            torch.accelerator.synchronize()
            costs[name].append((time.perf_counter() - start) / calls)
    return {name: Cost(seconds) for name, seconds in costs.items()}


# --- updates -------------------------------------------------------------------------------------------------------


@contextmanager
def torchs_operators() -> Iterator[None]:
    """Meters that are made inside count without kernels in Triton."""
    with mock.patch.object(device_counts, "uses_triton", return_value=False):
        yield


def meter_step(made: Metric, batch: Batch) -> Step:
    meter = Meter(stage_bytes=0, value=made)
    meter.update(*batch)  # the states of the device are made here
    return lambda: meter.update(*batch)


def graph_step(made: Metric, batch: Batch) -> Step:
    """Replays of a captured update."""
    meter = Meter(stage_bytes=0, value=made)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            meter.update(*batch)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        meter.update(*batch)
    return graph.replay


def other_step(other: Any, batch: Batch, library: str) -> Step:
    if library != "ignite":
        return lambda: other.update(*batch)
    output = batch if len(batch) > 1 else batch[0][:, None]
    return lambda: other.update(output)


def update_steps(row: Row, batch: Batch) -> dict[str, Step]:
    steps = {"kernels": meter_step(row.assay(), batch)}
    with torchs_operators():
        steps["operators"] = meter_step(row.assay(), batch)
    if batch[0].is_cuda and not row.keeps:
        steps["graph"] = graph_step(row.assay(), batch)
    device = batch[0].device
    for library in OTHERS:
        make = getattr(row, library)
        if make is not None:
            other = make(device=device) if library == "ignite" else make().to(device)
            steps[library] = other_step(other, batch, library)
    return steps


def updates(device: torch.device, batches: tuple[int, ...] = BATCHES, calls: int = 50) -> tuple[Table, dict[str, Any]]:
    title = "One update on CUDA, µs between synchronizations"
    table = Table(title, ["metric", "batch", *COLUMNS, "kernels / fastest other"])
    raw = {}
    for row in rows():
        for size in batches:
            if size * row.data(2)[0].numel() // 2 > MOST_ELEMENTS:
                continue
            batch = tuple(each.to(device) for each in row.data(size))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                costs = timed(update_steps(row, batch), calls)
            times = [microseconds(costs[name].median) if name in costs else "-" for name in COLUMNS]
            others = [name for name in OTHERS if name in costs]
            fastest = min(others, key=lambda name: costs[name].median)
            table.rows.append([row.name, f"{size:,}", *times, f"{costs['kernels'].over(costs[fastest]):.2f}"])
            print(*table.rows[-1], sep=" | ", flush=True)
            raw[f"{row.name} @ {size}"] = {name: cost.rounds for name, cost in costs.items()}
    table.notes.append("`graph` replays a captured update, `operators` counts without kernels in Triton.")
    return table, raw


# --- one process over NCCL -----------------------------------------------------------------------------------------


def sync_over_nccl(device: torch.device, backend: str = "nccl") -> Table:
    """`sync` of five metrics in a group of one process: what it costs without any waiting for others."""
    import torch.distributed as dist
    import torchmetrics as tm

    preds, target = torch.randn(1_000, 10, device=device), torch.randint(0, 10, (1_000,), device=device)
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group(backend, init_method=f"file://{folder}/rendezvous", rank=0, world_size=1)
        try:
            names = ("Accuracy", "Precision", "Recall", "F1Score", "ConfusionMatrix")
            meter = Meter(**{name: metric(name, num_classes=10) for name in names})
            meter.update(preds, target)
            classes = [getattr(tm.classification, f"Multiclass{name}") for name in names]
            other = tm.MetricCollection([each(num_classes=10) for each in classes]).to(device)
            other.update(preds, target)

            def synchronize_other() -> None:
                for each in other.values():
                    each.sync(distributed_available=lambda: True)
                    each.unsync()

            steps = {"assay": lambda: copy.deepcopy(meter).sync(), "torchmetrics": synchronize_other}
            costs = timed(steps, calls=5)
        finally:
            dist.destroy_process_group()
    table = Table(
        f"sync of 5 metrics, one process over {backend}, µs", ["assay", "TorchMetrics", "assay / TorchMetrics"]
    )
    ratio = costs["assay"].over(costs["torchmetrics"])
    table.rows.append([*(microseconds(costs[name].median) for name in steps), f"{ratio:.2f}"])
    table.notes.append("assay copies the meter in each call, as a meter is synchronized once.")
    return table


# --- quantized layers ----------------------------------------------------------------------------------------------


@torch.no_grad()
def layers(device: torch.device, size: int = 4_096, calls: int = 50) -> Table:
    """Linear layers of int8 and int4 weights beside the dense one."""
    table = Table(
        f"A linear layer of {size} × {size}, bfloat16, µs",
        ["rows", "dense", "int8", "int4", "int8 / dense", "int4 / dense"],
    )
    dense = nn.Linear(size, size, bias=False, dtype=torch.bfloat16)
    made: dict[str, nn.Module] = {"dense": dense}
    for scheme in ("int8", "int4"):
        made[scheme] = QuantizedLinear(quantize_weight(dense.weight, scheme), dtype=torch.bfloat16)
    made = {name: each.to(device) for name, each in made.items()}
    for count in LAYER_ROWS:
        x = torch.randn(count, size, dtype=torch.bfloat16, device=device)
        costs = timed({name: _multiply(layer, x) for name, layer in made.items()}, calls)
        times = [microseconds(costs[name].median) for name in made]
        ratios = [f"{costs[name].over(costs['dense']):.2f}" for name in ("int8", "int4")]
        table.rows.append([str(count), *times, *ratios])
    return table


def _multiply(layer: nn.Module, x: Tensor) -> Step:
    return lambda: layer(x)


def main() -> int:
    if not torch.cuda.is_available():
        print(REFUSED)
        return 1
    device = torch.device("cuda", torch.cuda.current_device())
    test = check_kernels(device)
    print(f"self-test of the kernels: {'passed' if test.passed else test.failures}", flush=True)
    table, raw = updates(device)
    save("cuda", [table, sync_over_nccl(device), layers(device)], raw)
    return 0 if test.passed else 1


if __name__ == "__main__":
    sys.exit(main())
