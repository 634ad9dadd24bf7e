"""Metrics of audio and shapes beside TorchMetrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torchmetrics.audio
import torchmetrics.functional.audio
import torchmetrics.shape

from assay.meter import Meter
from benchmarks.harness import Candidate, Table, measure, metric, save, titled

SIGNALS, SOURCES, CLOUDS = (64, 16000), (16, 4, 16000), (256, 50, 3)
ROUNDS = 5


def _call(measured: Callable[[], Any], number: int) -> None:
    measured()


def _own(name: str, preds: Any, target: Any, **options: Any) -> torch.Tensor:
    meter = Meter(metric(name, **options))
    meter.update(preds, target)
    value: torch.Tensor = next(iter(meter.compute().values()))
    return value


def _theirs(make: Callable[[], Any], preds: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    each = make()
    each.update(preds, target)
    value: torch.Tensor = each.compute()
    return value


def main() -> None:
    generator = torch.Generator().manual_seed(0)

    def pair(shape: tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
        target = torch.randn(shape, generator=generator)
        return target + torch.randn(shape, generator=generator) / 10, target

    signals, sources, clouds = pair(SIGNALS), pair(SOURCES), pair(CLOUDS)
    few = tuple(each[:16] for each in signals)
    si_sdr = torchmetrics.functional.audio.scale_invariant_signal_distortion_ratio
    permuted = partial(torchmetrics.audio.PermutationInvariantTraining, si_sdr)
    rows: dict[str, tuple[Any, Any, Callable[[], Any]]] = {
        "SignalNoiseRatio": (signals, signals, torchmetrics.audio.SignalNoiseRatio),
        "ScaleInvariantSignalNoiseRatio": (signals, signals, torchmetrics.audio.ScaleInvariantSignalNoiseRatio),
        "PermutationInvariantTraining": (sources, sources, permuted),
        "SignalDistortionRatio": ([list(each) for each in few], few, torchmetrics.audio.SignalDistortionRatio),
        "ProcrustesDisparity": ([list(each) for each in clouds], clouds, torchmetrics.shape.ProcrustesDisparity),
    }
    table = Table(titled("Audio and shapes"), ["metric", "size", "assay, s", "TorchMetrics, s", "times as fast"])
    saved = {}
    for name, (own, theirs, make) in rows.items():
        calls = {"assay": partial(_own, name, *own), "TorchMetrics": partial(_theirs, make, *theirs)}
        costs = measure({k: Candidate(partial(_call, call), most_calls=1) for k, call in calls.items()}, ROUNDS, 0.001)
        medians = [f"{costs[each].median:.4f}" for each in calls]
        size = " x ".join(map(str, theirs[0].shape))
        table.rows.append([name, size, *medians, f"{1 / costs['assay'].over(costs['TorchMetrics']):.2f}"])
        saved[name] = {each: list(cost.rounds) for each, cost in costs.items()}
    save("audio", [table], saved)


if __name__ == "__main__":
    main()
