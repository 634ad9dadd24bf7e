"""How often intervals of averages over classes have the true value between their ends: a table of docs/intervals.md.

Run: ``python -m benchmarks.confusion_coverage`` (two minutes). A level of 95 %; in per cent: covered, and how wide the
interval is beside ``2 × 1.96`` standard deviations of the values.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from assay.metrics import (
    BalancedAccuracy,
    CohenKappa,
    F1Score,
    JaccardIndex,
    MatthewsCorrCoef,
    Precision,
    Recall,
    Specificity,
)
from assay.metrics.classification.agreement import AgreementMetric
from assay.metrics.classification.label_metrics import LabelMetric
from assay.stats.intervals import Array
from assay.tally.labels.confusion import Counts

PRIORS = {
    "3 even": np.full(3, 1 / 3),
    "3 of 0.9, 0.07, 0.03": np.array([0.9, 0.07, 0.03]),
    "10 uneven": np.array([0.4, 0.2, 0.1, 0.1, 0.06, 0.05, 0.04, 0.03, 0.015, 0.005]),
}


def matrix(priors: Array, right: float) -> Array:
    """The probabilities of a confusion matrix; a class is taken for another as often as that one is there."""
    classes = len(priors)
    wrong = np.where(np.eye(classes, dtype=bool), 0, priors)
    return priors[:, None] * (right * np.eye(classes) + (1 - right) * wrong / wrong.sum(1, keepdims=True))


def true_value(metric: LabelMetric, chances: Array) -> float:
    """The value of probabilities in the place of counts."""
    if isinstance(metric, BalancedAccuracy):
        return float(np.mean(chances.diagonal() / chances.sum(1)))
    return (metric.slopes if isinstance(metric, AgreementMetric) else metric._slopes)(chances)[0]  # type: ignore


def measured(metric: LabelMetric, chances: Array, size: int, draws: int) -> tuple[float, float, float]:
    """The share that is covered, the width, and the share that has an interval."""
    random = np.random.default_rng(0)
    truth = true_value(metric, chances)
    values, ends = [], []
    for _ in range(draws):
        counts = Counts(random.multinomial(size, chances.ravel()).reshape(1, *chances.shape))
        values.append(float(metric.compute(counts)))
        if (found := metric.interval(counts, 0.95, size)) is not None:
            ends.append(found)
    if not ends:
        return float("nan"), float("nan"), 0.0
    lower, upper = np.array(ends).T
    width = float(np.median(upper - lower)) / (2 * 1.96 * float(np.std(values)))
    return 100 * float(np.mean((lower <= truth) & (truth <= upper))), width, 100 * len(ends) / draws


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", default="", help="metrics with this in their name")
    options = parser.parse_args()
    sizes = (100, 1000, 10000)
    print("| metric | classes | right | " + " | ".join(f"n = {size:,}" for size in sizes) + " |")
    print("|---|---|--:|" + "--:|" * len(sizes))
    averages = (F1Score, Precision, Recall, JaccardIndex, Specificity)
    kinds = [(f"macro {kind.__name__}", partial(kind, average="macro")) for kind in averages]
    kinds += [("weighted F1Score", partial(F1Score, average="weighted"))]
    kinds += [(kind.__name__, partial(kind)) for kind in (MatthewsCorrCoef, CohenKappa, BalancedAccuracy)]
    kinds += [("quadratic CohenKappa", partial(CohenKappa, weights="quadratic"))]
    for title, kind in kinds:
        if options.only not in title:
            continue
        for name, priors in PRIORS.items():
            metric = kind(num_classes=len(priors))
            for right in (0.7, 0.95):
                cells = []
                for size in sizes:
                    covered, width, known = measured(metric, matrix(priors, right), size, options.draws)
                    cells.append("-" if known < 50 else f"{covered:.1f}, {width:.2f}")
                print(f"| {title} | {name} | {right} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
