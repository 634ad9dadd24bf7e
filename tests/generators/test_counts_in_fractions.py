"""Metrics of labels, of numbers and of queries on random data, against their definitions in fractions.

Data has weights, ties, ignored labels, offsets, several dtypes and absent classes; it is counted in random batches by
meters that are merged in a random order. An exact value is within one rounding of the fraction; a mean of values of
classes may miss some units of the last place.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from assay.meter import Meter
from assay.metrics import (
    Accuracy,
    CohenKappa,
    ConfusionMatrix,
    ExplainedVariance,
    F1Score,
    FBetaScore,
    JaccardIndex,
    MeanAbsoluteError,
    MeanSquaredError,
    Metric,
    Precision,
    R2Score,
    Recall,
    WeightedMeanAbsolutePercentageError,
)
from metrics.retrieval import orders
from metrics.retrieval.test_values import CASES, flat, queries

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::assay.errors.AssayWarning")]
DATA_SETS = 150
FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
TINY = Fraction(1, 10**310)
NAN = Fraction(-(10**6))  # stands for a quotient by 0


def divided(a: Fraction, b: Fraction) -> Fraction:
    return a / b if b else NAN


def counted(rng: random.Random, metrics: dict[str, Metric], columns: Sequence[Any], names: Sequence[str]):
    """The values of a meter that is the sum, in a random order, of meters that counted parts of the rows in batches."""
    rows, weighted = len(columns[0]), names == ["weights"] and columns[2] is not None
    order, meters = torch.tensor(rng.sample(range(rows), rows)), []
    cuts = sorted({0, rows, *(rng.randint(0, rows) for _ in range(rng.randint(0, 5)))})
    for start, end in pairwise(cuts):
        if not meters or rng.random() < 0.5:
            meters.append(Meter(**metrics, weighted=weighted))
        taken = [None if each is None else each[order[start:end]] for each in columns]
        named = {name: value for name, value in zip(names, taken[2:], strict=True) if value is not None}
        meters[-1].update(*taken[:2], **named)
    rng.shuffle(meters)
    total = meters[0]
    for each in meters[1:]:
        total = total + each
    return total.compute()


def weights_of(rng: random.Random, rows: int) -> Tensor | None:
    kind = rng.choice(["none", "whole", "fractions", "far apart", "float16"])
    if kind == "none":
        return None
    if kind == "whole":
        return torch.tensor([rng.randint(0, 3) for _ in range(rows)])
    if kind == "far apart":
        return torch.tensor([rng.random() * 10.0 ** rng.randint(-30, 30) for _ in range(rows)], dtype=torch.float64)
    return torch.tensor([rng.random() for _ in range(rows)]).to(torch.float16 if kind == "float16" else torch.float32)


def in_fractions(tensor: Tensor) -> list[Fraction]:
    return [Fraction(each) for each in tensor.double().tolist()]


def check(found: Tensor, expected: Sequence[Fraction], digits: float, what: object, unit: float = 0.0) -> None:
    """Raise unless each value is that of exact arithmetic but for `digits` of it, and `unit`."""
    values = found.double().flatten().tolist()
    assert len(values) == len(expected), what
    for value, exact in zip(values, expected, strict=True):
        if exact == NAN:
            assert math.isnan(value), (what, value)
        else:
            assert abs(Fraction(value) - exact) <= abs(exact) * Fraction(digits) + Fraction(unit) + TINY, (what, value)


# Labels


class Table:
    """A weighted confusion matrix."""

    def __init__(self, cells: list[list[Fraction]]) -> None:
        self.cells, self.size = cells, len(cells)
        self.tp = [cells[k][k] for k in range(self.size)]
        self.support = [sum(row) for row in cells]
        self.predicted = [sum(row[k] for row in cells) for k in range(self.size)]
        self.fn = [a - b for a, b in zip(self.support, self.tp, strict=True)]
        self.fp = [a - b for a, b in zip(self.predicted, self.tp, strict=True)]
        self.total = sum(self.support, Fraction(0))
        self.tn = [self.total - a - b - c for a, b, c in zip(self.tp, self.fp, self.fn, strict=True)]

    def quotients(self, of: Callable[..., tuple[Fraction, Fraction]], average: str | None) -> list[Fraction]:
        """A quotient of counts for each class, or averaged; a class without label or prediction counts in no mean."""
        each = list(zip(self.tp, self.fp, self.fn, self.tn, strict=True))
        if average == "micro":
            return [zero_where_undefined(self.total, *of(*map(sum, zip(*each, strict=True))))]
        present = [bool(tp + fp + fn) for tp, fp, fn, _ in each]
        values = [divided(*of(*counts)) for counts in each]
        values = [0 if there and each == NAN else each for there, each in zip(present, values, strict=True)]
        if average is None:
            return [each if there else NAN for there, each in zip(present, values, strict=True)]
        shares = self.support if average == "weighted" else [Fraction(there) for there in present]
        return [divided(sum(s * v for s, v in zip(shares, values, strict=True)), sum(shares))]


def zero_where_undefined(total: Fraction, a: Fraction, b: Fraction) -> Fraction:
    return a / b if b else (Fraction(0) if total else NAN)


QUOTIENTS: list[tuple[Any, dict[str, Any], Callable[..., tuple[Any, Any]]]] = [
    (Precision, {}, lambda tp, fp, fn, tn: (tp, tp + fp)),
    (Recall, {}, lambda tp, fp, fn, tn: (tp, tp + fn)),
    (F1Score, {}, lambda tp, fp, fn, tn: (2 * tp, 2 * tp + fp + fn)),
    (FBetaScore, {"beta": 2.0}, lambda tp, fp, fn, tn: (5 * tp, 5 * tp + fp + 4 * fn)),
    (JaccardIndex, {}, lambda tp, fp, fn, tn: (tp, tp + fp + fn)),
]


@pytest.mark.parametrize("part", range(2))
def test_labels(part):
    for seed in range(part * DATA_SETS, (part + 1) * DATA_SETS):
        rng = random.Random(seed)
        classes, rows = rng.randint(2, 6), rng.randint(1, 40)
        used = rng.randint(1, classes)
        preds = torch.tensor([rng.randrange(classes) for _ in range(rows)])
        target = torch.tensor([rng.choice([rng.randrange(used), -1]) for _ in range(rows)])
        weights = weights_of(rng, rows)
        cells = [[Fraction(0)] * classes for _ in range(classes)]
        shares = [Fraction(1)] * rows if weights is None else in_fractions(weights)
        for p, y, w in zip(preds.tolist(), target.tolist(), shares, strict=True):
            if y >= 0:
                cells[y][p] += w
        table = Table(cells)
        given = {"num_classes": classes, "ignore_index": -1}
        metrics: dict[str, Metric] = {"matrix": ConfusionMatrix(**given), "accuracy": Accuracy(**given)}
        expected = {
            "matrix": [cell for row in cells for cell in row],
            "accuracy": [divided(sum(table.tp), table.total)],
        }
        for kind, more, of in QUOTIENTS:
            for average in ("micro", "macro", "weighted", None):
                metrics[f"{kind.__name__}_{average}"] = kind(**given, **more, average=average)
                expected[f"{kind.__name__}_{average}"] = table.quotients(of, average)
        agreement = sum(a * b for a, b in zip(table.support, table.predicted, strict=True))
        metrics["kappa"] = CohenKappa(**given)
        expected["kappa"] = [divided(table.total * sum(table.tp) - agreement, table.total**2 - agreement)]
        found = counted(rng, metrics, [preds, target, weights], ["weights"])
        for name, exact in expected.items():
            is_mean = name.endswith(("macro", "weighted"))  # of values of classes, each of which is rounded
            check(found[name], exact, 1e-15 if is_mean else 2.3e-16, (seed, name), 0.0)


# Numbers


def means(x: list[Fraction], y: list[Fraction], w: list[Fraction]) -> Iterator[tuple[Metric, Fraction]]:
    """Metrics of a mean and what they are."""
    total = sum(w)

    def mean(values: Any) -> Fraction:
        return divided(sum(a * b for a, b in zip(w, values, strict=True)), total)

    def product(a: list[Fraction], b: list[Fraction]) -> Fraction:
        return mean([p * q for p, q in zip(a, b, strict=True)]) - mean(a) * mean(b)

    errors = [a - b for a, b in zip(x, y, strict=True)]
    squared = mean([each**2 for each in errors])
    yield MeanSquaredError(), squared
    yield MeanAbsoluteError(), mean(map(abs, errors))
    if total and product(y, y):
        yield R2Score(), 1 - squared / product(y, y)
        yield ExplainedVariance(), 1 - product(errors, errors) / product(y, y)
    if total and sum(a * abs(b) for a, b in zip(w, y, strict=True)):
        yield WeightedMeanAbsolutePercentageError(), mean(map(abs, errors)) / mean(map(abs, y))


def test_numbers():
    for seed in range(DATA_SETS):
        rng = random.Random(seed)
        rows, kind = rng.randint(1, 30), rng.choice(FLOATS)
        offset = rng.choice([0, 0, 1, 1000, -3e4])
        spread = rng.choice([1, 1e-3, 300])
        x, y = (torch.tensor([rng.gauss(offset, spread) for _ in range(rows)]).to(kind) for _ in range(2))
        if rng.random() < 0.2:
            y = y[:1].expand(rows)
        weights = weights_of(rng, rows)
        w = [Fraction(1)] * rows if weights is None else in_fractions(weights)
        expected = {
            type(metric).__name__: (metric, exact) for metric, exact in means(in_fractions(x), in_fractions(y), w)
        }
        found = counted(rng, {n: m for n, (m, _) in expected.items()}, [x, y, weights], ["weights"])
        for name, (_, exact) in expected.items():
            if "Squared" in name or "R2" in name or "Variance" in name or kind == torch.float64:
                check(found[name], [exact], 2.3e-16, (seed, name))
            else:  # a difference of float32 numbers is rounded to float32 before it is counted
                check(found[name], [exact], 2e-7, (seed, name))


# Queries


def test_queries_in_batches_of_any_dtype():
    for seed in range(1000, 1000 + DATA_SETS):
        rng, data = random.Random(seed), queries(seed)
        scores, relevance, indexes = flat(data)
        ignored = rng.randint(0, 4)
        more = torch.tensor([rng.choice([0.0, 1.0, -3.0]) for _ in range(ignored)])
        columns = (
            torch.cat([scores, more]).to(rng.choice(FLOATS)),
            torch.cat([relevance, torch.full((ignored,), -100)]),
            torch.cat(
                [indexes, torch.tensor([rng.choice(indexes.tolist()) for _ in range(ignored)], dtype=torch.int64)]
            ),
        )
        metrics = {name: type(metric)(**{**vars(metric), "ignore_index": -100}) for name, (metric, _) in CASES.items()}
        found = counted(rng, metrics, columns, ["indexes"])
        for name, (_, definition) in CASES.items():
            values = [orders.expectation(definition, *query) or 0 for query in data]
            assert float(found[name]) == pytest.approx(float(sum(values) / len(values)), rel=1e-12, abs=1e-12), (
                seed,
                name,
            )
