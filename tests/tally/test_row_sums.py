"""Exact sums over rows against fractions: integers, floats, weights, several numbers a row, and infinite values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import pytest
import torch

from assay.errors import DtypeError, ShapeError
from assay.tally.base import Batch, BatchLayout, TensorLayout, merge
from assay.tally.rows.row_terms import RowNumbers
from assay.tally.scores.labelled_scores import score_spec
from assay.tally.scores.losses import SquaredProbabilities
from assay.tally.sums.row_sums import RowSums, RowTerm, RowTotals, RowValues, SumShape

CPU = torch.device("cpu")
WIDTH = 3


def totals(tally: RowSums, *batches: Batch) -> RowTotals:
    states = []
    for batch in batches:
        states.append(tally.zero(CPU))
        tally.add(states[-1], batch)
    return tally.compute(tally.canonicalize(merge(tally, states), 0))


def draw(dtype: torch.dtype, rows: int = 50) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    if dtype.is_floating_point:
        return (torch.randn(rows, WIDTH, generator=generator, dtype=torch.float64) * 1e3).to(dtype)
    return torch.randint(-(2**62), 2**62, (rows, WIDTH), generator=generator).to(dtype)


def exact(values: torch.Tensor, weights: torch.Tensor) -> list[Fraction]:
    rows = [[Fraction(x) * Fraction(w) for x in row] for row, w in zip(values.tolist(), weights.tolist(), strict=True)]
    return [sum(column, Fraction(0)) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("weights", [None, torch.float16, torch.float64, torch.int64], ids=str)
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.float16, torch.float32, torch.float64])
def test_sums_are_exact_for_every_dtype_and_split(dtype, weights, compiled):
    values = draw(dtype)
    w = None if weights is None else (torch.rand(50, generator=torch.Generator().manual_seed(1)) * 9).to(weights)
    tally = RowSums(RowNumbers(WIDTH), w is not None)
    whole = totals(tally, Batch(values, None, w, compiled=compiled))
    known = torch.ones(50) if w is None else w
    assert whole.sums == (exact(values, known),)
    assert whole.count == 50
    assert whole.weight == sum(map(Fraction, known.tolist()))
    parts = [slice(0, 1), slice(1, 1), slice(1, 50)]
    batches = [Batch(values[s], None, None if w is None else w[s], compiled=not compiled) for s in parts]
    assert totals(tally, *batches) == whole


def test_sums_of_integers_do_not_wrap():
    values = torch.full((1000, 1), 2**63 - 1)
    assert totals(RowSums(RowNumbers()), Batch(values), Batch(values)).sums == ([2000 * Fraction(2**63 - 1)],)


@dataclass(frozen=True)
class Several(RowTerm):
    """Two numbers for each row into one sum, their squares into two, and what is below zero is invalid."""

    @property
    def sums(self) -> tuple[SumShape, ...]:
        return (SumShape(), SumShape(2, power=2))

    @property
    def invalid(self) -> tuple[str, ...]:
        return ("numbers are negative",)

    def check(self, layout: BatchLayout) -> None:
        pass

    def __call__(self, batch: Batch) -> RowValues:
        x = batch.preds
        return RowValues(x, x, counted=x[:, 0] >= 0, invalid=[(x < 0).any(1)])


@pytest.mark.parametrize("compiled", [False, True])
def test_several_sums_squares_and_rows_that_do_not_count(compiled):
    x = torch.tensor([[0.1, 0.2], [-1.0, math.nan], [3.0, 0.3]])
    a, b, c = (Fraction(v) for v in (x[0, 0].item(), x[0, 1].item(), x[2, 1].item()))
    plain = totals(RowSums(Several()), Batch(x, compiled=compiled))
    assert plain == RowTotals(2, 2, ([a + b + 3 + c], [a**2 + 9, b**2 + c**2]))
    w = torch.tensor([0.5, 7.0, 2.0])
    weighted = totals(RowSums(Several(), True), Batch(x, None, w, compiled=compiled))
    assert weighted == RowTotals(2, Fraction(5, 2), ([(a + b) / 2 + 6 + 2 * c], [a**2 / 2 + 18, b**2 / 2 + 2 * c**2]))
    state = RowSums(Several()).zero(CPU)
    RowSums(Several()).add(state, Batch(x, compiled=compiled))
    (problem,) = RowSums(Several()).invalid_values(state)
    assert (problem.what, problem.count, problem.fatal) == ("numbers are negative", 1, True)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_that_are_not_finite_make_sums_as_ieee_has_it(dtype, compiled):
    inf = math.inf
    x = torch.tensor([[1, inf, -inf, inf, math.nan], [1, 1, 1, -inf, inf], [inf, 2, 2, 2, 2]], dtype=dtype)

    def sums(rows: torch.Tensor, weights: torch.Tensor | None = None) -> list[float]:
        tally = RowSums(RowNumbers(5), weights is not None)
        batch = Batch(rows, None, weights, compiled=compiled)
        reversed_ = Batch(rows.flip(0), None, None if weights is None else weights.flip(0), compiled=compiled)
        assert repr(totals(tally, batch)) == repr(totals(tally, reversed_))
        return [float(v) for v in totals(tally, batch).sums[0]]

    assert repr(sums(x)) == repr([inf, inf, -inf, math.nan, math.nan])
    assert repr(sums(x, torch.tensor([2.0, 1.0, 0.0]))) == repr([3.0, inf, -inf, math.nan, math.nan])
    assert sums(x, torch.tensor([0.0, 0.0, 0.5]))[1:] == [1, 1, 1, 1]
    state = RowSums(RowNumbers(5)).zero(CPU)
    RowSums(RowNumbers(5)).add(state, Batch(x, compiled=compiled))
    (problem,) = RowSums(RowNumbers(5)).invalid_values(state)
    assert (problem.count, problem.fatal) == (7, False)


def test_weights_of_rows_that_do_not_count_may_be_any():
    x = torch.tensor([[0.5, 0.5], [-1.0, 0.0]])
    for bad, count in ((0, 1), (1, 0)):
        weights = torch.ones(2)
        weights[bad] = math.nan
        tally = RowSums(Several(), True)
        state = tally.zero(CPU)
        tally.add(state, Batch(x, None, weights))
        assert int(state["bad_weights"]) == count


def test_rows_of_another_layout_raise():
    def check(tail: tuple[int, ...], dtype: torch.dtype = torch.float32, weights: tuple[int, ...] = ()) -> None:
        columns = TensorLayout(dtype, tail), None, TensorLayout(torch.float32, weights)
        RowSums(RowNumbers(2), True).check(BatchLayout(*columns))

    check((2,))
    with pytest.raises(ShapeError, match=r"preds: got shape \(N, 3\), expected shape \(N, 2\)"):
        check((3,))
    with pytest.raises(DtypeError, match=r"preds: got torch\.complex64"):
        check((2,), torch.complex64)
    with pytest.raises(ShapeError, match=r"weights: got shape \(N, 2\)"):
        check((2,), weights=(2,))


@pytest.mark.parametrize("rows", [1, 31, 1024, 2500])
@pytest.mark.parametrize("wrong", ["nothing", "score", "NaN", "target"])
def test_brier_scores_are_summed_in_one_pass_with_the_bits_of_torch(rows: int, wrong: str) -> None:
    generator = torch.Generator().manual_seed(rows)
    scores = torch.rand(2 * rows, generator=generator)[::2]
    target = torch.randint(0, 2, (rows,), generator=generator)
    scores[: rows // 3] = torch.tensor([0.0, -0.0, 1.0, 2.0**-149, 2.0**-126, 0.5]).repeat(rows)[: rows // 3]
    match wrong:
        case "score":
            scores[rows // 2] = 1 + 2.0**-23
        case "NaN":
            scores[-1] = math.nan
        case "target":
            target[rows // 2] = 2
    tally = RowSums(SquaredProbabilities(score_spec(None)))
    states = []
    for compiled in (True, False):
        states.append(tally.zero(torch.device("cpu")))
        for _ in range(2):
            tally.add(states[-1], Batch(scores, target, None, compiled=compiled))
    canonical = [tally.canonicalize(each, 2 * rows) for each in states]
    assert all(torch.equal(canonical[0][name], canonical[1][name]) for name in tally.fields)
    assert int(states[0]["invalid"].sum()) == (0 if wrong == "nothing" else 2)
