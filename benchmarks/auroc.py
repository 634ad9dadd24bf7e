"""AUROC and average precision of ten million scores in constant memory: certified width, error, time to read."""

from __future__ import annotations

import time
import warnings

import numpy as np
import torch
from torch import Tensor

from assay.meter import Meter
from benchmarks.harness import Table, metric, save

COUNT, BATCH = 10_000_000, 65_536
SHARES = {"balanced": 0.5, "0.1 % positives": 0.001}
SCALES = {"moderate": 1.0, "over-confident": 8.0}


def samples(share: float, scale: float) -> tuple[Tensor, Tensor]:
    """Sigmoids of Gaussians whose means are 1.5 deviations apart."""
    generator = torch.Generator().manual_seed(0)
    target = (torch.rand(COUNT, generator=generator) < share).long()
    return torch.sigmoid((torch.randn(COUNT, generator=generator) + 1.5 * target - 0.75) * scale), target


def exact(preds: Tensor, target: Tensor) -> tuple[float, float]:
    """AUROC and average precision from sorted scores, with ties, in float64 and int64."""
    order = np.argsort(preds.numpy())[::-1]
    scores, hits = preds.numpy()[order], target.numpy()[order]
    ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    positives, places = np.cumsum(hits)[ends], ends + 1
    found = np.diff(positives, prepend=0)
    passed = np.diff(places - positives, prepend=0)
    pairs = int((found * (places - positives - passed)).sum()) * 2 + int((found * passed).sum())
    total = int(positives[-1])
    auroc = 1 - pairs / (2 * total * (COUNT - total))
    return auroc, float((found * (positives / places)).sum() / total)


def main() -> None:
    header = [
        "scores",
        "metric",
        "exact",
        "error",
        "certified width",
        "bounds hold",
        "state",
        "read",
        "update, per score",
    ]
    table, raw = Table(f"AUROC and average precision of {COUNT:,} float32 scores in constant memory", header), {}
    for confidence, scale in SCALES.items():
        for balance, share in SHARES.items():
            preds, target = samples(share, scale)
            truths = exact(preds, target)
            for name, truth in zip(("AUROC", "AveragePrecision"), truths, strict=True):
                row = measured(name, truth, preds, target)
                table.rows.append([f"{confidence}, {balance}", name, *row])
                print(*table.rows[-1], sep=" | ", flush=True)
                raw[f"{confidence}, {balance}, {name}"] = row
    table.notes.append("Bounds hold to 1e-12, for the rounding of the exact value.")
    save("auroc", [table], raw)


def measured(name: str, truth: float, preds: Tensor, target: Tensor) -> list[str]:
    meter = Meter(value=metric(name, exact_up_to=0, bounds=True))
    start = time.thread_time()
    for scores, labels in zip(preds.split(BATCH), target.split(BATCH), strict=True):
        meter.update(scores, labels)
    spent = time.thread_time() - start
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value, lower, upper = (float(x) for x in meter.compute()["value"])
        seconds.append(time.perf_counter() - start)
    tensors = (x for state in meter.states() for x in state.values() if isinstance(x, Tensor))
    size = sum(x.numel() * x.element_size() for x in tensors)
    return [
        f"{truth:.6f}",
        f"{abs(value - truth):.1e}",
        f"{upper - lower:.1e}",
        "yes" if lower - 1e-12 <= truth <= upper + 1e-12 else "NO",
        f"{size / 1e6:.1f} MB",
        f"{min(seconds):.2f} s",
        f"{spent / COUNT * 1e9:.1f} ns",
    ]


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
