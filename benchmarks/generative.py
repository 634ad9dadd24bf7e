"""The Fréchet distance of Inception features, beside a product of matrices in float64 and TorchMetrics."""

from __future__ import annotations

import time

import torch
from torch import Tensor, nn
from torchmetrics.image.fid import FrechetInceptionDistance

from assay.meter import Meter
from benchmarks.harness import Table, measure_once, metric, save, titled

ROWS, FEATURES = 10_000, 2048
BATCH = 500


class Features(nn.Module):
    """A network that gives what it is given."""

    num_features = FEATURES

    def forward(self, features: Tensor) -> Tensor:
        return features


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

    own(0)  # what is loaded at first use is no part of it
    counting = measure_once({"assay": lambda: own(0), "product": product, "TorchMetrics": lambda: theirs(0)})
    meters = {"assay": own(0, 1), "TorchMetrics": theirs(0, 1)}
    values, reading = {}, {}
    for name, meter in meters.items():
        start = time.thread_time()
        value = meter.compute()
        reading[name] = time.thread_time() - start
        values[name] = float(next(iter(value.values())) if isinstance(value, dict) else value)
    ratio = counting["assay"].over(counting["product"])
    columns = ["work", "assay, s", "float64 product, s", "TorchMetrics, s", "assay / product"]
    rows = [
        [f"{ROWS} x {FEATURES} features", *(f"{cost.median:.2f}" for cost in counting.values()), f"{ratio:.2f}"],
        ["the value", f"{reading['assay']:.2f}", "", f"{reading['TorchMetrics']:.2f}", ""],
    ]
    table = Table(titled(f"FID: {values['assay']:.9f}, TorchMetrics {values['TorchMetrics']:.9f}"), columns, rows)
    save(
        "generative",
        [table],
        {
            "counting": {name: list(cost.rounds) for name, cost in counting.items()},
            "reading": {name: [each] for name, each in reading.items()},
        },
    )


if __name__ == "__main__":
    main()
