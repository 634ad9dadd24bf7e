"""How wide intervals in large slices are, over the true width: the table of docs/coverage.md on slices.

Run: ``python -m benchmarks.slice_widths`` (half a minute of one core). A table of 10^6 rows has five slices of 200,000.
`assay.score` scores it with its defaults. The true width is ``2 · 1.96`` standard deviations of the value over other
samples of the same size: of areas DeLong's, from a million samples, with all covariances of classes; of F1 that of
4,000 draws of the confusion matrix.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import assay.metrics as m
from assay import score
from assay.metrics.base import Metric
from assay.stats.intervals import Array
from assay.stats.rankings import area_moves

ROWS, SLICES = 1_000_000, 5
SIZE = ROWS // SLICES
SHARES = np.array([0.4, 0.3, 0.2, 0.1])
Table = dict[str, Array]


def binary(random: np.random.Generator) -> Table:
    y = random.random(ROWS) < 0.1
    return {"p": 1 / (1 + np.exp(-(random.normal(size=ROWS) + 1.5 * y))), "y": y.astype(int)}


def classes(random: np.random.Generator) -> Table:
    y = random.choice(len(SHARES), ROWS, p=SHARES)
    logits = 1.4 * np.eye(len(SHARES))[y] + random.normal(size=(ROWS, len(SHARES)))
    shares = np.exp(logits)
    return {"p": shares / shares.sum(1, keepdims=True), "y": y}


def area_error(table: Table) -> float:
    """The standard error of the (mean) area of so many samples as a slice has."""
    p, y = table["p"], table["y"]
    scores = [p] if p.ndim == 1 else [column / (1 - column) for column in p.T]
    labels = [y] if p.ndim == 1 else [(y == k).astype(int) for k in range(p.shape[1])]
    moves = np.mean([area_moves(*each)[1] for each in zip(scores, labels, strict=True)], 0)
    return math.sqrt(float(np.sum(moves**2)) * SLICES)


def f1_error(table: Table) -> float:
    """The standard deviation of (macro) F1 over draws of the confusion matrix."""
    p, y = table["p"], table["y"]
    preds = (p >= 0.5).astype(int) if p.ndim == 1 else p.argmax(1)
    count = int(y.max()) + 1
    chances = np.bincount(y * count + preds, minlength=count**2) / len(y)
    drawn = np.random.default_rng(0).multinomial(SIZE, chances, 4_000).reshape(-1, count, count)
    hits = np.diagonal(drawn, axis1=1, axis2=2)
    f1 = 2 * hits / (drawn.sum(1) + drawn.sum(2))
    return float((f1[:, 1] if p.ndim == 1 else f1.mean(1)).std())


CASES: tuple[tuple[str, Callable[..., Table], Metric, Callable[[Table], float]], ...] = (
    ("AUROC", binary, m.AUROC(), area_error),
    ("F1", binary, m.F1Score(), f1_error),
    ("macro AUROC, 4 classes", classes, m.AUROC(num_classes=4), area_error),
    ("macro F1, 4 classes", classes, m.F1Score(num_classes=4, average="macro"), f1_error),
)


def ratios(table: Table, metric: Metric, error: float) -> tuple[list[float], str]:
    """The width of each slice's interval over the true one, and how the interval was found."""
    p = table["p"]
    columns = {"p": pa.array(p if p.ndim == 1 else list(p)), "y": pa.array(table["y"])}
    columns["part"] = pa.array(np.arange(ROWS) % SLICES)
    report = score(pa.table(columns), {"x": metric}, preds="p", target="y", slices="part", progress=False)
    values = [report.of_slice(f"part = {k}").sections[0].values[0] for k in range(SLICES)]
    assert all(value.lower is not None and value.upper is not None for value in values)
    widths = [(value.upper - value.lower) / (2 * 1.959964 * error) for value in values]  # type: ignore[operator]
    return widths, values[0].note


def main(only: str) -> None:
    """Print the table."""
    print("| value | least and largest width over the true one | interval |\n|---|--:|---|")
    for name, draw, metric, error_of in CASES:
        if only in name:
            table = draw(np.random.default_rng(7))
            found, method = ratios(table, metric, error_of(table))
            print(f"| {name} | {min(found):.2f} to {max(found):.2f} | {method} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="values whose names contain this")
    main(**vars(parser.parse_args()))
