"""Intervals of averages over rankings of the same samples: a table of docs/intervals.md.

Run: ``python -m benchmarks.averaged_rankings`` (five minutes), or a part: ``--only classes``. Labels that are
independent, labels of which three are copies of the first with noise, and classes against the rest. The true value is
that of a million samples.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from assay.stats.averaged_rankings import AREA, PRECISION, RankedValue, averaged_intervals
from assay.stats.intervals import Array

Random = np.random.Generator
Flags = NDArray[np.bool_]
Draw = Callable[[Random, int], tuple[Array, Flags]]
SIZES = (50, 200, 1_000)
TRUTH = 1_000_000
Average = Literal["macro", "micro"]


def independent(random: Random, n: int) -> tuple[Array, Flags]:
    """Scores and labels, a row a sample: four labels that have nothing in common."""
    labels = random.random((n, 4)) < 0.3
    return 1.2 * labels + random.normal(size=(n, 4)), labels


def copies(shift: float, random: Random, n: int) -> tuple[Array, Flags]:
    """Four labels that are the same in 97 of 100 cases, with scores whose noise is mostly the same."""
    labels = (random.random((n, 1)) < 0.3) ^ (random.random((n, 4)) < 0.03)
    noise = 0.95 * random.normal(size=(n, 1)) + math.sqrt(1 - 0.95**2) * random.normal(size=(n, 4))
    return shift * labels + noise, labels


def classes(random: Random, n: int) -> tuple[Array, Flags]:
    """Each of three classes against the rest."""
    target = np.eye(3)[random.integers(0, 3, n)]
    return 1.4 * target + random.normal(size=(n, 3)), target > 0


SOURCES: dict[str, Draw] = {
    "4 independent labels": independent,
    "4 labels, copies with noise": lambda random, n: copies(1.2, random, n),
    "the same, a good model": lambda random, n: copies(3.2, random, n),
    "3 classes": classes,
}
METRICS: dict[str, RankedValue] = {"average precision": PRECISION, "AUROC": AREA}


def value_of(scores: Array, labels: Flags, of: RankedValue, average: Average) -> float:
    """The value by the definition."""
    if average == "micro":
        scores, labels = scores.reshape(-1, 1), labels.reshape(-1, 1)
    found = []
    for column in range(scores.shape[1]):
        positive = labels[np.argsort(-scores[:, column]), column]
        hits = np.cumsum(positive)
        if of is PRECISION:
            found.append((hits / np.arange(1, len(hits) + 1))[positive].mean())
        else:
            found.append(hits[~positive].sum() / (hits[-1] * np.count_nonzero(~positive)))
    return float(np.mean(found))


def cell(draw: Draw, truth: dict[tuple[str, Average], float], n: int, draws: int) -> dict[tuple[str, Average], str]:
    """Of each metric and average: how often the truth is below and above the interval, and that of a gate."""
    random, missed = np.random.default_rng(n), {key: np.zeros((0, 4)) for key in truth}
    for _ in range(draws):
        scores, labels = draw(random, n)
        rankings = [(each, own.astype(int)) for each, own in zip(scores.T, labels.T, strict=True)]
        for (metric, average), value in truth.items():
            found = averaged_intervals(rankings, METRICS[metric], average=average)
            if found is not None:
                (lower, upper), (least, most) = found
                row = [[value < lower, value > upper, value < least, value > most]]
                missed[metric, average] = np.concatenate([missed[metric, average], row])
    return {
        key: "{:.1f} / {:.1f}; {:.1f} / {:.1f}".format(*100 * rows.mean(0)) if len(rows) > draws / 2 else "-"
        for key, rows in missed.items()
    }


def main(draws: int, only: str) -> None:
    """Print the table."""
    print(
        f"| samples | metric | value | {' | '.join(f'n = {n:,}' for n in SIZES)} |\n|---|---|--:|{'---|' * len(SIZES)}"
    )
    for about, draw in SOURCES.items():
        if only not in about:
            continue
        many = draw(np.random.default_rng(1), TRUTH)
        truth = {
            (metric, average): value_of(*many, METRICS[metric], average)
            for metric in METRICS
            for average in get_args(Average)
        }
        cells = [cell(draw, truth, n, draws) for n in SIZES]
        for (metric, average), value in truth.items():
            line = " | ".join(each[metric, average] for each in cells)
            print(f"| {about} | {average} {metric} | {value:.2f} | {line} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=800)
    parser.add_argument("--only", default="", help="samples whose description contains this")
    main(**vars(parser.parse_args()))
