"""One pass over two million rows, and order statistics of them: `Meter.update` and `compute` against other libraries.

CPU seconds of one thread, the smallest of some rounds in which the candidates take turns; default options, a new meter
each time. The first row is what reading two columns of float32 costs.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

from assay import Meter
from assay.metrics import (
    Accuracy,
    BrierScore,
    CalinskiHarabaszScore,
    DaviesBouldinScore,
    F1Score,
    KendallRankCorrCoef,
    LogLoss,
    Mean,
    MeanAbsoluteError,
    MeanSquaredError,
    Quantile,
    SpearmanCorrCoef,
)
from benchmarks.harness import Table, save

Calls = Mapping[str, Callable[[], Any]]


def of(metric: Any, *batch: torch.Tensor) -> Callable[[], Any]:
    """The value of one update of a new meter."""

    def call() -> Any:
        meter = Meter(value=metric)
        meter.update(*batch)
        return meter.compute()

    return call


def rows_of(size: int) -> dict[str, Calls]:
    random = np.random.default_rng(0)
    target = random.standard_normal(size).astype(np.float32)
    preds = target + random.standard_normal(size).astype(np.float32)
    p, t = torch.from_numpy(preds), torch.from_numpy(target)
    wide, wide_target = p.double(), t.double()
    scores, binary = torch.rand(size, generator=torch.Generator().manual_seed(0)), (t > 0).long()
    labels = torch.from_numpy(random.integers(0, 10, size))
    decided = torch.where(torch.from_numpy(random.random(size) < 0.7), labels, (labels + 1) % 10)
    some, some_target = preds[: size // 2], target[: size // 2]
    calls: dict[str, dict[str, Callable[[], Any]]] = {
        "MSE": {"assay": of(MeanSquaredError(), p, t), "torch": lambda: F.mse_loss(p, t)},
        "MSE, float64": {
            "assay": of(MeanSquaredError(), wide, wide_target),
            "torch": lambda: F.mse_loss(wide, wide_target),
        },
        "MAE": {"assay": of(MeanAbsoluteError(), p, t), "torch": lambda: F.l1_loss(p, t)},
        "mean": {"assay": of(Mean(), p), "torch": p.mean, "numpy": preds.mean},
        "Brier score": {
            "assay": of(BrierScore(), scores, binary),
            "torch": lambda: F.mse_loss(scores, binary.float()),
        },
        "log loss": {
            "assay": of(LogLoss(), scores, binary),
            "torch": lambda: F.binary_cross_entropy(scores, binary.float()),
        },
        "accuracy of labels": {
            "assay": of(Accuracy(num_classes=10), decided, labels),
            "torch": lambda: (decided == labels).double().mean(),
            "numpy": lambda: (decided.numpy() == labels.numpy()).mean(),
        },
        "F1 of scores": {"assay": of(F1Score(), scores, binary), "torch": lambda: _f1(scores, binary)},
        "median": {"assay": of(Quantile(0.5), p), "numpy": lambda: np.median(preds), "torch": p.median},
        "Spearman, half": {"assay": of(SpearmanCorrCoef(), p[: size // 2], t[: size // 2])},
        "Kendall, half": {"assay": of(KendallRankCorrCoef(), p[: size // 2], t[: size // 2])},
    }
    if importlib.util.find_spec("scipy"):
        from scipy import stats

        calls["Spearman, half"]["scipy"] = lambda: stats.spearmanr(some, some_target)
        calls["Kendall, half"]["scipy"] = lambda: stats.kendalltau(some, some_target)
    return {
        "reading two columns": {"torch": lambda: torch.dot(p, t)},
        **calls,
        **_of_clusters(5000),
        **_of_clusters(50_000),
    }


def _of_clusters(size: int) -> dict[str, Calls]:
    random = np.random.default_rng(0)
    points = torch.from_numpy(random.standard_normal((size, 16)).astype(np.float32))
    cluster = torch.from_numpy(random.integers(0, 5, size))
    spread: dict[str, Callable[[], Any]]
    spread = {"assay": of(CalinskiHarabaszScore(num_features=16, num_classes=5), points, cluster)}
    width = {"assay": of(DaviesBouldinScore(num_features=16), points, cluster)}
    if importlib.util.find_spec("torchmetrics"):
        import torchmetrics.functional.clustering as tm

        spread["torchmetrics"] = lambda: tm.calinski_harabasz_score(points, cluster)
        width["torchmetrics"] = lambda: tm.davies_bouldin_score(points, cluster)
    return {f"Calinski-Harabasz, {size:,} x 16": spread, f"Davies-Bouldin, {size:,} x 16": width}


def _f1(scores: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    decided = scores >= 0.5
    hits = (decided & (target == 1)).sum()
    return 2 * hits / (decided.sum() + target.sum())


def smallest(calls: Calls, rounds: int) -> dict[str, float]:
    """The smallest CPU time of each."""
    for call in calls.values():
        call()
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.thread_time()
            call()
            found[name] = min(found[name], time.thread_time() - start)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    listed, raw = [], {}
    for name, calls in rows_of(options.rows).items():
        if options.only and options.only not in name:
            continue
        raw[name] = found = smallest(calls, options.rounds)
        others = {other: took for other, took in found.items() if other != "assay"}
        best = min(others, key=lambda other: others[other]) if others else ""
        ratio = f"{found['assay'] / others[best]:.2f}" if "assay" in found and best else "-"
        ours = f"{1e3 * found['assay']:.2f}" if "assay" in found else "-"
        listed.append([name, ours, f"{1e3 * others[best]:.2f} ({best})" if best else "-", ratio])
    title = f"One pass over {options.rows:,} rows, ms of CPU time"
    save("large", [Table(title, ["metric", "assay", "best other", "ratio"], listed)], raw)


if __name__ == "__main__":
    main()
