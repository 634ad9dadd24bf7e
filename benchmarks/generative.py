"""The Fréchet distance of Inception features, beside a product of matrices in float64 and TorchMetrics."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torchmetrics.image.fid import FrechetInceptionDistance

from assay.meter import Meter
from benchmarks.harness import Candidate, Table, measure, metric, save, titled

ROWS, FEATURES = 10_000, 2048
BATCH = 500
ROUNDS = 3
GOAL = 1.5


class Features(nn.Module):
    """A network that gives what it is given."""

    num_features = FEATURES

    def forward(self, features: Tensor) -> Tensor:
        return features


def _call(measured: Callable[[], Any]) -> Candidate:
    return Candidate(lambda number: measured(), most_calls=1)


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.rand(2, ROWS, FEATURES, generator=generator).square_()
    features[1] *= torch.rand(FEATURES, generator=generator)
    generated, real = torch.zeros(BATCH, dtype=torch.bool), torch.ones(BATCH, dtype=torch.bool)

    def own(*groups: int) -> Meter:
        meter = Meter(metric("FrechetDistance", num_features=FEATURES))
        for group in groups:
            for batch in features[group].split(BATCH):
                meter.update(batch, real if group else generated)
        meter.states()
        return meter

    def theirs(*groups: int) -> FrechetInceptionDistance:
        made = FrechetInceptionDistance(feature=Features())
        for group in groups:
            for batch in features[group].split(BATCH):
                made.update(batch, real=bool(group))
        return made

    def product() -> Tensor:
        wide = features[0].double()
        return wide.T @ wide

    counting = measure(
        {"assay": _call(lambda: own(0)), "product": _call(product), "TorchMetrics": _call(lambda: theirs(0))}, ROUNDS
    )
    meters = {"assay": own(0, 1), "TorchMetrics": theirs(0, 1)}
    values, reading = {}, {}
    for name, meter in meters.items():
        start = time.thread_time()
        value = meter.compute()
        reading[name] = time.thread_time() - start
        values[name] = float(next(iter(value.values())) if isinstance(value, dict) else value)
    ratio = counting["assay"].over(counting["product"])
    goal = f"at most {GOAL} ({'met' if ratio <= GOAL else 'NOT MET'})"
    columns = ["", "assay, s", "float64 product, s", "TorchMetrics, s", "assay / product", "goal"]
    rows = [
        [f"{ROWS} x {FEATURES} features", *(f"{cost.median:.2f}" for cost in counting.values()), f"{ratio:.2f}", goal],
        ["the value", f"{reading['assay']:.2f}", "", f"{reading['TorchMetrics']:.2f}", "", ""],
    ]
    table = Table(titled(f"FID: {values['assay']:.9f}, TorchMetrics {values['TorchMetrics']:.9f}"), columns, rows)
    save("generative", [table], {"counting": {n: list(c.rounds) for n, c in counting.items()}, "reading": reading})


if __name__ == "__main__":
    main()
