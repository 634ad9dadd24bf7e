"""One small batch of images and signals, counted and computed: a new meter against a new metric of TorchMetrics.

CPU microseconds of one thread, the smallest of some rounds in which the candidates take turns; default options.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torchmetrics import audio, image

from assay import Meter
from assay.metrics import (
    ErrorRelativeGlobalDimensionlessSynthesis,
    PeakSignalNoiseRatio,
    ScaleInvariantSignalDistortionRatio,
    SignalNoiseRatio,
    TotalVariation,
)
from benchmarks.harness import Table, save
from benchmarks.large import smallest


def rows_of() -> dict[str, tuple[Any, Callable[[], Any], Sequence[torch.Tensor]]]:
    """For each row the metric, what makes that of TorchMetrics, and the batch."""
    generator = torch.Generator().manual_seed(0)
    pictures = list(torch.rand(2, 4, 3, 32, 32, generator=generator))
    signals = list(torch.randn(2, 4, 1000, generator=generator))
    ergas = ErrorRelativeGlobalDimensionlessSynthesis, image.ErrorRelativeGlobalDimensionlessSynthesis
    peak = PeakSignalNoiseRatio(data_range=1.0), lambda: image.PeakSignalNoiseRatio(data_range=1.0)
    return {
        "PSNR, 4 × 3 × 32 × 32": (*peak, pictures),
        "total variation, 4 × 3 × 32 × 32": (TotalVariation(), image.TotalVariation, pictures[:1]),
        "ERGAS, 4 × 3 × 32 × 32": (ergas[0](), ergas[1], pictures),
        "SNR, 4 × 1,000": (SignalNoiseRatio(), audio.SignalNoiseRatio, signals),
        "SI-SDR, 4 × 1,000": (
            ScaleInvariantSignalDistortionRatio(),
            audio.ScaleInvariantSignalDistortionRatio,
            signals,
        ),
    }


def value_of(made: Callable[[], Any], batch: Sequence[torch.Tensor]) -> Callable[[], Any]:
    def call() -> Any:
        metric = made()
        metric.update(*batch)
        return metric.compute()

    return call


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    options = parser.parse_args()
    torch.set_num_threads(1)
    listed, raw = [], {}
    for name, (metric, theirs, batch) in rows_of().items():
        calls = {
            "assay": value_of(lambda metric=metric: Meter(value=metric), batch),  # type: ignore[misc]
            "assay, called": lambda metric=metric, batch=batch: metric(*batch),  # type: ignore[misc]
            "TorchMetrics": value_of(theirs, batch),
        }
        raw[name] = found = smallest(calls, options.rounds)
        ratio = found["assay"] / found["TorchMetrics"]
        listed.append([name, *(f"{1e6 * took:.0f}" for took in found.values()), f"{ratio:.2f}"])
    head = ["metric", "assay", "assay, called", "TorchMetrics", "assay / TorchMetrics"]
    save("one_batch", [Table("One small batch, µs of CPU time", head, listed)], raw)


if __name__ == "__main__":
    main()
