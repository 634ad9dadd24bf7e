"""10^10 samples on 1,024 ranks, simulated on one: every rank's counts are real, and merged by a tree as ranks would.

A rank counts a block of 10^7 samples by doubling: 10,000 samples that are drawn are counted once, and their counts are
added to themselves until there are a thousand times as many. All counts are then known exactly, and asserted to the
last integer: confusion matrix, histogram of ranked scores, calibration bins, sums and sums of squares of float32
numbers up to 1e18, sums of float64 ones up to 1e300. Prints what a rank sends and how long merging takes, and stops at
the first wrong number.
"""

from __future__ import annotations

import argparse
import time
from fractions import Fraction

import numpy as np
import torch

from assay import AUROC, Accuracy, CalibrationError, ConfusionMatrix, F1Score, Mean, MeanSquaredError, Meter, R2Score
from assay.metrics.base import Metric

DRAWN = 10_000
DISTINCT = 64
"""Ranks with samples of their own; each of their counts stands for as many ranks as are needed."""
REPEATS = 1_000
GROUP = 32
CASES: dict[str, dict[str, Metric]] = {
    "accuracy, macro F1 and confusion matrix, 10 classes": {
        "accuracy": Accuracy(num_classes=10),
        "f1": F1Score(num_classes=10, average="macro"),
        "matrix": ConfusionMatrix(num_classes=10),
    },
    "AUROC in bins and calibration error": {"auroc": AUROC(exact_up_to=0), "ece": CalibrationError()},
    "mean, mean squared error and R² of float32 up to 1e18": {
        "mse": MeanSquaredError(),
        "r2": R2Score(),
    },
    "mean of float64 up to 1e300": {"mean": Mean()},
}


def times(meter: Meter, count: int) -> Meter:
    """A meter that has counted the same samples so many times: merging is addition, so doubling is enough."""
    total, power = meter.fresh(), meter
    while count:
        if count & 1:
            total = total + power
        power = power + power
        count >>= 1
    return total


def drawn(name: str, rank: int) -> tuple[torch.Tensor, ...]:
    """Samples of a rank; those of ranks differ."""
    random = torch.Generator().manual_seed(rank)
    if "classes" in name:
        shape = {"size": (DRAWN,), "generator": random, "dtype": torch.int64}
        return torch.randint(10, **shape), torch.randint(10, **shape)  # type: ignore[call-overload]
    scores = torch.rand(DRAWN, generator=random)
    if "AUROC" in name:
        return scores, (torch.rand(DRAWN, generator=random) < scores).long()
    if "float64" in name:
        return ((scores.double() - 0.5) * 2e300,)
    target = (scores - 0.5) * 2e18
    return target + torch.randn(DRAWN, generator=random) * 1e17, target


def expected_counts(name: str, ranks: int, repeats: int) -> dict[str, object]:
    """Counts by NumPy in Python integers and fractions of any size."""
    repeats *= max(1, ranks // DISTINCT)
    ranks = min(ranks, DISTINCT)
    if "classes" in name:
        matrix = np.zeros((10, 10), object)
        for rank in range(ranks):
            preds, target = (each.numpy() for each in drawn(name, rank))
            matrix += np.bincount(target * 10 + preds, minlength=100).reshape(10, 10).astype(object)
        return {"matrix": matrix * repeats}
    if "AUROC" in name:
        every = [drawn(name, rank) for rank in range(ranks)]
        positives = sum(int(target.sum()) for _, target in every)
        return {"positives": positives * repeats, "rows": ranks * DRAWN * repeats}
    if "float64" in name:
        total = sum(sum(map(Fraction, drawn(name, rank)[0].tolist())) for rank in range(ranks))
        return {"mean": float(total / (ranks * DRAWN))}
    squares = Fraction(0)
    for rank in range(ranks):
        preds, target = (each.double().numpy() for each in drawn(name, rank))
        for p, t in zip(preds.tolist(), target.tolist(), strict=True):
            squares += (Fraction(p) - Fraction(t)) ** 2
    return {"mse": float(squares / (ranks * DRAWN))}


def check(name: str, whole: Meter, ranks: int, repeats: int) -> None:
    """Raise where a count is not the expected one."""
    values, expected = whole.compute(), expected_counts(name, ranks, repeats)
    assert whole.rows == ranks * DRAWN * repeats, whole.rows
    if "matrix" in expected:
        assert (values["matrix"].numpy().astype(object) == expected["matrix"]).all()
    elif "positives" in expected:
        state = next(each for each in whole.states() if "histogram" in each)
        negatives, positives = state["histogram"].sum((0, 2)).tolist()
        assert (positives, negatives + positives) == (expected["positives"], expected["rows"])
    else:
        for metric, value in expected.items():
            assert values[metric].item() == value, (metric, values[metric].item(), value)
    once = whole.fresh().merge(*(counted(name, rank) for rank in range(min(ranks, DISTINCT)))).compute()
    for metric, value in values.items():  # a thousand times the same samples have the same values
        same = torch.equal(value, once[metric]) or (metric == "matrix")
        assert same, (metric, value, once[metric])


def counted(name: str, rank: int) -> Meter:
    meter = Meter(**CASES[name])  # type: ignore[arg-type]
    meter.update(*drawn(name, rank))
    return meter


def tree(meters: list[Meter]) -> tuple[Meter, float]:
    """The sum, 32 at a time, and the seconds on the longest way from a rank to the first one."""
    longest = 0.0
    while len(meters) > 1:
        groups = [meters[start : start + GROUP] for start in range(0, len(meters), GROUP)]
        times_of, merged = [], []
        for group in groups:
            start = time.perf_counter()
            merged.append(group[0].fresh().merge(*group))
            times_of.append(time.perf_counter() - start)
        meters, longest = merged, longest + max(times_of)
    return meters[0], longest


def measure(name: str, ranks: int, repeats: int) -> list[str]:
    """A row of the table.

    Ranks are merged 32 at a time, as in a tree.
    """
    sums, longest, sent, start_cpu, merging = [], 0.0, 0, time.process_time(), 0.0
    counts = [times(counted(name, rank), repeats) for rank in range(min(ranks, DISTINCT))]
    for first in range(0, ranks, GROUP):
        group = [counts[rank % DISTINCT] for rank in range(first, min(ranks, first + GROUP))]
        sent = sum(each.nbytes for state in group[0].states() for each in state.values())
        start = time.process_time()
        merged, took = tree(group)
        merging += time.process_time() - start
        sums.append(merged)
        longest = max(longest, took)
    start = time.process_time()
    whole, took = tree(sums)
    merging += time.process_time() - start
    check(name, whole, ranks, repeats)
    size, way, spent = f"{sent / 1024:,.1f}", f"{1_000 * (longest + took):,.1f}", time.process_time() - start_cpu
    return [name, f"{whole.rows:.2e}", size, f"{1_000 * merging:,.0f}", way, f"{spent:.0f}"]


def main(ranks: int, repeats: int) -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print(f"{ranks:,} ranks of {DRAWN * repeats:,} samples\n")
    print("| counted | samples | KiB a rank sends | merging all, ms of CPU | longest way, ms | all of it, s of CPU |")
    print("|---|--:|--:|--:|--:|--:|")
    for name in CASES:
        print(f"| {' | '.join(measure(name, ranks, repeats))} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ranks", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=REPEATS, help="how often each rank's 10,000 samples are counted")
    main(**vars(parser.parse_args()))
