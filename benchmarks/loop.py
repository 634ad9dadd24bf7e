"""What an evaluation loop costs beyond predicting: assay, Ignite's Engine, Composer and a bare `for`, in the same run.

A small model on ready batches, so that the loop is all there is. One thread, its CPU time, in turns and in a random
order; what an evaluation costs once is left out by taking the difference between many batches and few, and is in the
last column. Composer takes part where `benchmarks.composer_loop` finds it.
"""

from __future__ import annotations

import logging
import os
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from ignite.engine import Engine, create_supervised_evaluator
from ignite.metrics import Accuracy as IgniteAccuracy
from torch import nn

from assay import Accuracy, F1Score, Meter, evaluate
from assay.metrics import Metric
from benchmarks import composer_loop
from benchmarks.harness import Table, microseconds, save

logging.disable(logging.WARNING)
CLASSES, BATCH = 3, 32
MANY = 1100
ROUNDS = int(os.environ.get("BENCHMARK_ROUNDS", "9"))

BARE: dict[str, Any] = {"confidence_level": None, "keep_samples": False, "diagnostics": False}

Batches = list[tuple[torch.Tensor, torch.Tensor]]


def candidates(net: nn.Module) -> dict[str, Callable[[Batches], object]]:
    """Loops by name, each without metrics and with accuracy."""

    def bare(batches: Batches) -> None:
        with torch.inference_mode():
            for x, _ in batches:
                net(x)

    def bare_with_meter(batches: Batches) -> None:
        meter = Meter(Accuracy(num_classes=CLASSES))
        with torch.inference_mode():
            for x, y in batches:
                meter.update(net(x), y)
        meter.compute()

    def bare_with_ignite(batches: Batches) -> None:
        metric = IgniteAccuracy()
        with torch.inference_mode():
            for x, y in batches:
                metric.update((net(x), y))
        metric.compute()

    def step(engine: Engine, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        with torch.inference_mode():
            out: torch.Tensor = net(batch[0])
            return out

    accuracy, f1 = Accuracy(num_classes=CLASSES), F1Score(num_classes=CLASSES, average="macro")
    numbered = {"inputs": 0, "target": 1, "ids": lambda batch: batch[2]}

    def measured(metric: Metric, **more: Any) -> Callable[[Batches], object]:
        options = {**BARE, **more}
        if "ids" not in more:
            return lambda batches: evaluate(net, batches, metric, device="cpu", **options)
        return lambda batches: evaluate(net, with_ids(batches), metric, device="cpu", **options)

    return {
        "bare `for`, no metric": bare,
        "bare `for`, assay's meter": bare_with_meter,
        "bare `for`, Ignite's Accuracy": bare_with_ignite,
        "assay.evaluate, Accuracy, nothing else": measured(accuracy),
        "assay.evaluate, as it comes": measured(accuracy, confidence_level=0.95, keep_samples=True, diagnostics=True),
        "… with two slices": measured(accuracy, slices={"class": 1, "right": lambda batch: batch[0][:, 0] > 0}),
        "… with a bootstrap interval (F1)": measured(f1, confidence_level=0.95),
        "… with ids": measured(accuracy, **numbered),
        "… with ids, and what each sample contributes": measured(accuracy, **numbered, keep_samples=True),
        "Ignite Engine, no metric": lambda b: Engine(step).run(b),
        "Ignite evaluator, no metric": lambda b: create_supervised_evaluator(net).run(b),
        "Ignite evaluator, Accuracy": lambda b: create_supervised_evaluator(net, {"acc": IgniteAccuracy()}).run(b),
        **composer_loop.loops(net, CLASSES),
    }


def with_ids(batches: Batches) -> list[tuple[torch.Tensor, ...]]:
    """The batches with numbers of their samples; made once."""
    if len(batches) not in _made:
        _made[len(batches)] = [torch.arange(BATCH * k, BATCH * (k + 1)) for k in range(len(batches))]
    return [(x, y, numbers) for (x, y), numbers in zip(batches, _made[len(batches)], strict=True)]


_made: dict[int, list[torch.Tensor]] = {}


def spent(act: Callable[[Batches], object], batches: Batches) -> float:
    start = time.thread_time()
    act(batches)
    return time.thread_time() - start


def compared(title: str, net: nn.Module, width: int, many: int) -> tuple[Table, dict[str, list[float]]]:
    """The loops over one model, and their raw times a batch."""
    few = many // 11
    batches = [(torch.randn(BATCH, width), torch.randint(CLASSES, (BATCH,))) for _ in range(many)]
    loops = candidates(net)
    each: dict[str, list[float]] = {name: [] for name in loops}
    whole: dict[str, list[float]] = {name: [] for name in loops}
    shuffled = random.Random(0)
    for act in loops.values():
        act(batches[:few])
    for _ in range(ROUNDS):
        for name in shuffled.sample(list(loops), len(loops)):
            short, long = spent(loops[name], batches[:few]), spent(loops[name], batches)
            each[name].append((long - short) / (many - few))
            whole[name].append(long / many)
    base = "bare `for`, no metric"
    header = ("loop", "µs a batch", "over the bare loop", "ratio to it", "with what it costs once")
    table = Table(f"Loops: {many} ready batches of {BATCH}, {title}", header)
    for name, times in each.items():
        over = statistics.median(a - b for a, b in zip(times, each[base], strict=True))
        ratio = statistics.median(a / b for a, b in zip(times, each[base], strict=True))
        once = microseconds(statistics.median(whole[name]))
        table.rows.append([name, microseconds(statistics.median(times)), signed(over), f"{ratio:.2f}", once])
    return table, each


def signed(seconds: float) -> str:
    return ("-" if seconds < 0 else "+") + microseconds(abs(seconds))


def main() -> None:
    torch.set_num_threads(1)
    mlp = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, CLASSES))
    tiny, tiny_raw = compared(f"Linear(8, {CLASSES})", nn.Linear(8, CLASSES), 8, MANY)
    small, small_raw = compared("a perceptron of 0.27 million weights", mlp, 784, MANY // 5)
    save("loop", [tiny, small], {"tiny": tiny_raw, "small": small_raw})


if __name__ == "__main__":
    main()
