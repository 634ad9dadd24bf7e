"""What `evaluate` costs over a bare `for`, with all that it costs once: accuracy and macro F1 of a small model.

One thread and its CPU time. By default there are intervals, replicates of F1 for comparisons, and per-sample values.
"""

from __future__ import annotations

import logging
import sys
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from assay import Accuracy, F1Score, evaluate
from benchmarks.harness import Candidate, Cost, Table, measure, microseconds, save

CLASSES, WIDTH = 3, 8
SIZES = ((32, 600), (256, 300))
"""Samples of a batch, and batches."""
BARE, NOTHING, DEFAULT = "bare `for`", "evaluate, no intervals, no samples", "evaluate, as it comes"

Batches = list[tuple[Tensor, Tensor]]


def bare(net: nn.Module, batches: Batches, _: int) -> None:
    with torch.inference_mode():
        for x, _target in batches:
            net(x)


def evaluated(net: nn.Module, batches: Batches, options: dict[str, Any], _: int) -> None:
    metrics = {"accuracy": Accuracy(num_classes=CLASSES), "f1": F1Score(num_classes=CLASSES, average="macro")}
    evaluate(net, batches, metrics, device="cpu", progress=False, **options)


def candidates(size: int, count: int) -> dict[str, Candidate]:
    net = nn.Linear(WIDTH, CLASSES)
    batches = [(torch.randn(size, WIDTH), torch.randint(CLASSES, (size,))) for _ in range(count)]
    return {
        BARE: Candidate(partial(bare, net, batches)),
        NOTHING: Candidate(partial(evaluated, net, batches, {"confidence_level": None, "keep_samples": False})),
        DEFAULT: Candidate(partial(evaluated, net, batches, {})),
    }


def rows_of(size: int, count: int, costs: dict[str, Cost]) -> list[list[str]]:
    """For each candidate: µs a batch, those over the bare loop, and the ratio to it."""
    base = min(costs[BARE].rounds) / count
    rows = []
    for name, cost in costs.items():
        each = min(cost.rounds) / count
        rows.append([name, str(size), f"{count:,}", microseconds(each), f"+{(each - base) * 1e6:.0f}"])
    return rows


def main(small: bool = False) -> None:
    logging.disable(logging.WARNING)
    header = ("loop", "batch", "batches", "µs a batch", "over the bare loop")
    table, raw = Table(f"evaluate: accuracy and macro F1, Linear({WIDTH}, {CLASSES})", header), {}
    for size, count in ((32, 20),) if small else SIZES:
        costs = measure(candidates(size, count), rounds=1 if small else 9)
        table.rows += rows_of(size, count, costs)
        raw[str(size)] = {name: cost.rounds for name, cost in costs.items()}
    table.notes.append("The least of nine rounds, with all that an evaluation costs once.")
    save("evaluate_cost", [table], raw)


if __name__ == "__main__":
    main("--small" in sys.argv)
