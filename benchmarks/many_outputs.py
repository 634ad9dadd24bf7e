"""The cost of `compute` for 1,000 outputs: compiled quotients, fractions one by one, and TorchMetrics."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from assay.meter import Meter
from assay.tally.sums.totals import Totals
from benchmarks.harness import Candidate, Table, measure, metric, save, titled

OUTPUTS, ROWS = 1_000, 512


def metrics() -> dict[str, tuple[Any, Callable[[], Any] | None]]:
    import torchmetrics.regression as tm

    raw = {"multioutput": "raw_values"}
    return {
        "MSE": (metric("MeanSquaredError", num_outputs=OUTPUTS), lambda: tm.MeanSquaredError(num_outputs=OUTPUTS)),
        "RMSE": (metric("MeanSquaredError", num_outputs=OUTPUTS, squared=False), None),
        "MAE": (metric("MeanAbsoluteError", num_outputs=OUTPUTS), lambda: tm.MeanAbsoluteError(num_outputs=OUTPUTS)),
        "mean error": (metric("MeanError", num_outputs=OUTPUTS), None),
        "R2, mean over outputs": (metric("R2Score", num_outputs=OUTPUTS), tm.R2Score),
        "R2": (metric("R2Score", num_outputs=OUTPUTS, **raw), lambda: tm.R2Score(**raw)),
        "explained variance": (
            metric("ExplainedVariance", num_outputs=OUTPUTS, **raw),
            lambda: tm.ExplainedVariance(**raw),
        ),
        "Pearson": (metric("PearsonCorrCoef", num_outputs=OUTPUTS), lambda: tm.PearsonCorrCoef(num_outputs=OUTPUTS)),
        "concordance": (
            metric("ConcordanceCorrCoef", num_outputs=OUTPUTS),
            lambda: tm.ConcordanceCorrCoef(num_outputs=OUTPUTS),
        ),
    }


@contextmanager
def by_fractions() -> Iterator[None]:
    """Without compiled quotients."""
    compiled = Totals.quotients
    Totals.quotients = lambda totals, formula: None  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Totals.quotients = compiled  # type: ignore[method-assign]


def candidates(own: Any, other: Callable[[], Any] | None) -> dict[str, Candidate]:
    target = torch.randn(ROWS, OUTPUTS)
    preds = target + torch.randn(ROWS, OUTPUTS) / 4
    meter = Meter(value=own)
    meter.update(preds, target)

    def with_fractions(_: int) -> None:
        with by_fractions():
            meter.compute()

    found = {"assay": Candidate(lambda _: meter.compute()), "fractions": Candidate(with_fractions)}
    if other is not None:
        theirs = other()
        theirs.update(preds, target)

        def compute(_: int) -> None:
            theirs._computed = None
            theirs.compute()

        found["torchmetrics"] = Candidate(compute)
    return found


def main() -> None:
    header = ["metric", "assay", "assay, by fractions", "TorchMetrics"]
    table, raw = Table(titled(f"`compute` of {OUTPUTS:,} outputs, ms of CPU time"), header), {}
    for name, (own, other) in metrics().items():
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            costs = measure(candidates(own, other))
        raw[name] = {each: cost.rounds for each, cost in costs.items()}
        own_ms = costs["assay"].median * 1e3
        shown = [f"{costs[each].median * 1e3:.2f}" if each in costs else "-" for each in ("fractions", "torchmetrics")]
        table.rows.append([name, f"{own_ms:.2f}", *shown])
        print(*table.rows[-1], sep=" | ", flush=True)
    table.notes.append("The values by fractions have the same bits. TorchMetrics computes in float32.")
    save("many_outputs", [table], raw)


if __name__ == "__main__":
    main()
