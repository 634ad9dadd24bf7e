"""What a pretend device costs: µs of CPU time an operator, outside, beside and on it, with both engines.

One process for each situation, as pretend devices are opened one at a time; a plain process is measured in every round
as well, so that what a busy machine costs shows.

python -m benchmarks.pretend_overhead
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.harness import Table, microseconds, save

ROUNDS = 7
DEVICE = "cuda:1"
# name -> (engine, whether the tensors are on the pretend device)
SITUATIONS = {
    "CPU": ("", False),
    "CPU beside native": ("native", False),
    "CPU beside Python": ("python", False),
    "on native": ("native", True),
    "on Python": ("python", True),
}
Steps = dict[str, Callable[[], Any]]


def steps(device: torch.device) -> Steps:
    """What is measured, on tensors of this device."""
    torch.manual_seed(0)
    small, large = torch.randn(64, 10).to(device), torch.randn(1024, 1024).to(device)
    index, number = torch.arange(63, -1, -1).to(device), torch.tensor(1.0).to(device)
    found: Steps = {
        "add 64×10": lambda: small + small,
        "view": lambda: small.view(10, 64),
        "index by a tensor": lambda: small[index],
        "item": number.item,
        "add 1024×1024": lambda: large + large,
        "TorchMetrics MulticlassAccuracy update": _update(device),
        "CNN training step": _training(_cnn(), torch.randn(16, 1, 16, 16), device),
        "transformer training step": _training(_transformer(), torch.randn(8, 16, 32), device),
    }
    return found


def _update(device: torch.device) -> Callable[[], Any]:
    from torchmetrics.classification import MulticlassAccuracy

    metric = MulticlassAccuracy(num_classes=10, validate_args=False).to(device)
    scores, target = torch.randn(64, 10).to(device), torch.randint(10, (64,)).to(device)
    return lambda: metric.update(scores, target)


def _cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(),
        nn.Flatten(), nn.Linear(400, 10),
    )  # fmt: skip


class _Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mean(1)


def _transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
    return nn.Sequential(nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), _Mean(), nn.Linear(32, 10))


def _training(model: nn.Module, batch: Tensor, device: torch.device) -> Callable[[], Any]:
    model, batch = model.to(device), batch.to(device)
    target = torch.randint(10, (len(batch),)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(batch), target).backward()
        optimizer.step()

    return step


@contextlib.contextmanager
def _situation(name: str) -> Iterator[tuple[torch.device, Any]]:
    engine, on_it = SITUATIONS[name]
    if not engine:
        yield torch.device("cpu"), None
        return
    from assay.pretend import pretend

    with pretend(DEVICE, engine=engine) as pretended:
        yield (pretended.device if on_it else torch.device("cpu")), pretended


def one_round(name: str, seconds: float) -> dict[str, float | str]:
    """CPU seconds a call of every step in one situation, or why it cannot be had."""
    costs: dict[str, float | str] = {}
    torch.set_num_threads(1)
    with _situation(name) as (device, pretended):
        forget = pretended.events.clear if pretended is not None else lambda: None
        try:
            every = steps(device)
        except Exception as error:  # building the steps runs the engine, too
            return {"": type(error).__name__}
        for step, run in every.items():
            try:
                costs[step] = _cost(run, forget, seconds)
            except Exception as error:
                costs[step] = type(error).__name__
    return costs


def _cost(run: Callable[[], Any], forget: Callable[[], Any], seconds: float) -> float:
    """CPU seconds a call, of the whole process: autograd runs the backward of a device in a thread of its own."""
    run()
    start = time.process_time()
    run()
    calls = max(3, int(seconds / max(time.process_time() - start, 1e-6)))
    run()
    forget()
    gc.disable()
    start = time.process_time()
    for _ in range(calls):
        run()
    cost = (time.process_time() - start) / calls
    gc.enable()
    forget()
    return cost


def rounds(number: int, seconds: float) -> dict[str, dict[str, list[float | str]]]:
    """Situation -> step -> what each round found; the situations take turns."""
    found: dict[str, dict[str, list[float | str]]] = {name: {} for name in SITUATIONS}
    for turn in range(number):
        for name in SITUATIONS:
            command = [sys.executable, "-m", "benchmarks.pretend_overhead", "--one", name, "--seconds", str(seconds)]
            done = subprocess.run(command, capture_output=True, text=True)
            costs = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {"": "failed"}
            for step, cost in costs.items():
                found[name].setdefault(step, []).append(cost)
            print(f"\rround {turn + 1} of {number}: {name:24}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


def table(found: dict[str, dict[str, list[float | str]]]) -> Table:
    """The medians, and how many times as long as on the CPU."""
    result = Table("What a pretend device costs, µs of CPU time a call", ("", *SITUATIONS))
    for step in found["CPU"]:
        plain = _median(found["CPU"][step])
        row = [step]
        for name in SITUATIONS:
            cost = _median(found[name].get(step, found[name].get("", ["failed"])))
            row.append(cost if isinstance(cost, str) else _cell(cost, plain, name))
        result.rows.append(row)
    return result


def _median(costs: list[float | str]) -> float | str:
    numbers = [cost for cost in costs if not isinstance(cost, str)]
    return statistics.median(numbers) if numbers else f"refused ({costs[0]})"


def _cell(cost: float, plain: float | str, name: str) -> str:
    ratio = "" if name == "CPU" or isinstance(plain, str) else f" ({cost / plain:.1f}×)"
    return microseconds(cost) + ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", choices=list(SITUATIONS), help="one situation, once")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=0.05, help="CPU time of one measurement")
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(one_round(asked.one, asked.seconds)))
        return
    found = rounds(asked.rounds, asked.seconds)
    result = table(found)
    result.notes.append(
        "Tensors of the pretend `cuda:1`, or CPU tensors while it is open; one thread of torch, the CPU time of the "
        "whole process, medians over the rounds. Most of `item` is the note of where the process synchronizes with "
        "the device."
    )
    save("pretend_overhead", [result], found)


if __name__ == "__main__":
    main()
