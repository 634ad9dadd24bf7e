"""MAP, MRR, nDCG, recall at 10 and hit rate at 10 of many queries, beside TorchMetrics."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torchmetrics.retrieval

from assay.meter import Meter
from benchmarks.harness import Table, measure_once, metric, save, titled

QUERIES, DOCUMENTS, RELEVANT = 10_000, 100, 0.1
METRICS: dict[str, dict[str, Any]] = {
    "RetrievalMAP": {},
    "RetrievalMRR": {},
    "RetrievalNormalizedDCG": {},
    "RetrievalRecall": {"top_k": 10},
    "RetrievalHitRate": {"top_k": 10},
}


def main() -> None:
    generator = torch.Generator().manual_seed(0)
    preds = torch.rand(QUERIES, DOCUMENTS, generator=generator)
    target = (torch.rand(QUERIES, DOCUMENTS, generator=generator) < RELEVANT).long()
    indexes = torch.arange(QUERIES)[:, None].expand(QUERIES, DOCUMENTS).reshape(-1)
    shuffled = torch.randperm(indexes.numel(), generator=generator)
    documents = tuple(column.reshape(-1)[shuffled] for column in (preds, target, indexes))

    def by_index() -> dict[str, torch.Tensor]:
        meter = Meter(*(metric(name, **options) for name, options in METRICS.items()))
        meter.update(*documents[:2], indexes=documents[2])
        return meter.compute()

    def by_row() -> dict[str, torch.Tensor]:
        meter = Meter(*(metric(name, by_row=True, **options) for name, options in METRICS.items()))
        meter.update(preds, target)
        return meter.compute()

    def theirs() -> dict[str, torch.Tensor]:
        found = {}
        for name, options in METRICS.items():
            each = getattr(torchmetrics.retrieval, name)(**options)
            each.update(*documents[:2], indexes=documents[2])
            found[name] = each.compute()
        return found

    ways: dict[str, Callable[[], dict[str, torch.Tensor]]] = {"indexes=": by_index, "(Q, D) rows": by_row}
    calls = {**ways, "TorchMetrics": theirs}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for way in ways.values():
            way()  # what is loaded at first use is no part of it
        costs = measure_once(calls)
    what = "MAP, MRR, nDCG, recall and hit rate at 10 together"
    title = f"Retrieval: {what}, of {QUERIES:,} queries of {DOCUMENTS} documents"
    table = Table(titled(title), ["columns", "assay, s", "TorchMetrics, s", "times as fast"])
    for name in ways:
        own, other = costs[name], costs["TorchMetrics"]
        ratio = 1 / own.over(other)
        table.rows.append([name, f"{own.median:.3f}", f"{other.median:.2f}", f"{ratio:.0f}"])
    other = list(costs["TorchMetrics"].rounds)
    save("retrieval", [table], {name: {"assay": list(costs[name].rounds), "TorchMetrics": other} for name in ways})


if __name__ == "__main__":
    main()
