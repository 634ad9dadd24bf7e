"""The cost of a value for one batch: a metric called once, and `forward` of a metric in a training loop.

`forward` counts a batch and returns the value of that batch alone. Lightning calls it on every step with
`on_step=True`, and so does every progress bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.integrations import as_torchmetric
from benchmarks.harness import Candidate, Table, measure, microseconds, save, titled
from benchmarks.update_cost import Batch, Row, rows

BATCHES = (256, 4_096)


def forward(metric: Any, batches: Sequence[Batch]) -> Candidate:
    """Steps of a loop, each of which returns the value of its batch."""
    return Candidate(lambda k: metric(*batches[k % len(batches)]), reset=metric.reset, most_calls=200)


def candidates(row: Row, batches: Sequence[Batch]) -> dict[str, Candidate]:
    assert row.torchmetrics is not None
    metric = row.assay()
    return {
        "called once": Candidate(lambda k: metric(*batches[k % len(batches)])),
        "forward": forward(as_torchmetric(row.assay()), batches),
        "torchmetrics": forward(row.torchmetrics(), batches),
    }


def main() -> None:
    header = ["metric", "batch", "assay, called once", "assay, forward", "TorchMetrics, forward", "ratio of forward"]
    table, raw = Table(titled("A value for one batch, µs"), header), {}
    for row in rows():
        for count in BATCHES if row.torchmetrics else ():
            costs = measure(candidates(row, [row.data(count) for _ in range(8)]))
            raw[f"{row.name}, {count}"] = {name: cost.rounds for name, cost in costs.items()}
            ratio = costs["forward"].over(costs["torchmetrics"])
            cells = [microseconds(cost.median) for cost in costs.values()]
            table.rows.append([row.name, f"{count:,}", *cells, f"{ratio:.2f}"])
            print(*table.rows[-1], flush=True)
    save("value_cost", [table], raw)


if __name__ == "__main__":
    main()
