"""Terms of two columns that compiled code computes: the bits of torch, and sums by NumPy and fractions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.native import pair_terms
from assay.native.library import MISSING, in_torch, library
from assay.tally.base import Batch, State
from assay.tally.rows.row_terms import Cosine, Divergence
from assay.tally.rows.vector_terms import DivergenceOfMean
from assay.tally.sums.float_terms import (
    AbsolutePower,
    FloatTerm,
    LogCosh,
    PercentageError,
    SquaredLogError,
    SymmetricPercentageError,
)
from assay.tally.sums.row_sums import RowTerm, sum_each_row
from assay.tally.sums.sums import Sums
from thinning import draws

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)

Floats = NDArray[np.float32] | NDArray[np.float64]
LEAST = 1.17e-06
EDGES = [
    *(0.0, -0.0, 1.0, -1.0, 1.5, 0.1, 7.0, 1e-6, LEAST, 1.2e-6, 1e-30),
    *(2.0**-149, 1e-40, 2.0**-126, 3e38, -3e38, 3.4e38, -3.4e38, math.inf, -math.inf, math.nan),
]
TERMS = [
    *(PercentageError(), SymmetricPercentageError(), SquaredLogError(), LogCosh()),
    *(AbsolutePower(p) for p in (1.0, 3.0, 4.0, 7.0, 2.5)),
]


def counted(term: FloatTerm, preds: Tensor, target: Tensor) -> State:
    tally = Sums(frozenset({term}))
    state = tally.zero(torch.device("cpu"))
    tally.add(state, Batch(preds, target, None, compiled=True))
    return tally.canonicalize(state, len(preds))


def pairs(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    preds, target = torch.tensor(list(product(EDGES, EDGES)), dtype=torch.float64).to(dtype).unbind(1)
    return preds, target


@pytest.mark.parametrize("dtypes", list(product((torch.float32, torch.float64), repeat=2)), ids=str)
@pytest.mark.parametrize("term", TERMS, ids=str)
def test_terms_have_the_bits_of_torch(term: FloatTerm, dtypes: tuple[torch.dtype, torch.dtype]) -> None:
    generator = torch.Generator().manual_seed(3)
    sides = [torch.randn(2, rows, generator=generator).unbind() for rows in (0, 1, 31, 256, 1500)]
    sides += [tuple(torch.rand(2, rows, generator=generator)) for rows in (5, 256)]
    edges = list(zip(*(each.split(1) for each in pairs(torch.float64)), strict=True))
    sides += [edges[5 * place % len(edges)] for place in draws(len(edges))]  # one alone, and below all together
    sides += [pairs(torch.float64), tuple(torch.randn(300, 4, generator=generator)[:, ::3].unbind(1))]
    for preds, target in sides:
        preds, target = preds.to(dtypes[0]), target.to(dtypes[1])
        compiled = counted(term, preds, target)
        with in_torch():
            other = counted(term, preds, target)
        assert all(torch.equal(compiled[name], other[name]) for name in other)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("term", TERMS, ids=str)
def test_narrow_floats_are_those_of_float32(term: FloatTerm, dtype: torch.dtype) -> None:
    preds, target = pairs(dtype)
    narrow, wide = counted(term, preds, target), counted(term, preds.float(), target.float())
    assert all(torch.equal(narrow[name], wide[name]) for name in wide)


def percentages(x: Floats, y: Floats) -> Floats:
    return np.abs(x - y) / np.maximum(np.abs(y), x.dtype.type(LEAST))


def symmetric_percentages(x: Floats, y: Floats) -> Floats:
    return 2 * (np.abs(x - y) / np.maximum(np.abs(x) + np.abs(y), x.dtype.type(LEAST)))


def cubes(x: Floats, y: Floats) -> Floats:
    error = np.abs(x - y)
    return error * (error * error)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("term", "oracle"),
    [
        (PercentageError(), percentages),
        (SymmetricPercentageError(), symmetric_percentages),
        (AbsolutePower(3.0), cubes),
    ],
    ids=["percentage", "symmetric", "cube"],
)
def test_sums_are_those_of_the_terms_by_numpy(
    term: FloatTerm, oracle: Callable[[Floats, Floats], Floats], dtype: type[np.floating]
) -> None:
    generator = np.random.default_rng(5)
    x, y = (generator.normal(size=1300).astype(dtype) for _ in range(2))
    x[:3], y[:4] = (0, 1e-7, 2.0**-140), (0, 0, 1e-8, 2.0**-149)
    tally = Sums(frozenset({term}))
    totals = tally.compute(counted(term, torch.from_numpy(x), torch.from_numpy(y)))
    assert totals[term] == [sum(map(Fraction, oracle(x, y).tolist()), Fraction(0))]


@pytest.mark.parametrize(
    ("preds", "target", "expected"),
    [(3e38, -3e38, 2.0), (-3.4e38, 3.4e38, 2.0), (3.4e38, 3.4e38, 0.0), (2e38, 3e38, 1 / 3)],
)
def test_errors_too_large_for_a_float_are_halved(preds: float, target: float, expected: float) -> None:
    state = counted(PercentageError(), torch.tensor([preds]), torch.tensor([target]))
    (value,) = Sums(frozenset({PercentageError()})).compute(state)[PercentageError()]
    assert float(value) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("term", TERMS, ids=str)
def test_what_is_not_finite_is_counted_once_and_leaves_the_others(term: FloatTerm) -> None:
    tally = Sums(frozenset({term}))
    state = tally.zero(torch.device("cpu"))
    for preds, target in (([2.0, math.nan], [1.0, 1.0]), ([2.0, math.inf], [1.0, 1.0])):
        tally.add(state, Batch(torch.tensor(preds), torch.tensor(target), None, compiled=True))
    place = tally._leaves.index(term)
    special, invalid = state["special"][place, 0].tolist(), int(state["invalid"][place])
    assert special[2] >= 1
    assert sum(special) == invalid == 2


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_logarithms_are_those_of_numpy(scale: float) -> None:
    generator = np.random.default_rng(7)
    x, y = (generator.random(999) * scale for _ in range(2))
    x[:2], y[:2] = (1e-300, 0), (0, 1e-200)
    pair = torch.from_numpy(x), torch.from_numpy(y)
    logs = SquaredLogError()(*pair).numpy()
    np.testing.assert_allclose(logs, (np.log1p(x) - np.log1p(y)) ** 2, rtol=1e-9, atol=1e-30)
    coshes = LogCosh()(*pair).numpy()
    np.testing.assert_allclose(coshes, np.logaddexp(x - y, y - x) - np.log(2), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("first", [1.0, 1e-30, 1e-300, 1e30, 0.0, -1.0, math.nan, math.inf])
def test_shares_are_plain_where_no_share_and_no_sum_leaves_the_normal_numbers(first: float, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(9)
    sides = [torch.rand(4, 3, generator=generator, dtype=torch.float64) + 0.1 for _ in range(2)]
    sides[1][2, 1] = first
    largest, tiny = (2.0**64, 2.0**-126) if dtype == torch.float32 else (2.0**512, 2.0**-1022)
    for p, q in (sides, sides[::-1]):
        p, q = p.to(dtype), q.to(dtype)
        low, high = (float(end([p.numpy(), q.numpy()])) for end in (np.min, np.max))
        found = pair_terms.divergences(p, q, sum_each_row)
        assert (found is not None) == (low > 0 and high <= largest and low / (high * 3) >= 2 * tiny)
        assert found is None or torch.equal(found, Divergence()._of_probabilities(p, q))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (5, 1), (7, 3), (40, 10), (2, 700)])
@pytest.mark.parametrize("term", [Divergence(), DivergenceOfMean()], ids=repr)
def test_terms_of_rows_have_the_bits_of_torch(
    term: RowTerm, shape: tuple[int, int], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    for p, q in _rows(shape, dtype):
        found = term(Batch(p, q, compiled=True)).values[0]
        with monkeypatch.context() as patch:
            patch.setattr(pair_terms, "takes_rows", lambda *_: False)
            expected = term(Batch(p, q, compiled=True)).values[0]
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (5, 1), (7, 3), (40, 10), (2, 700)])
def test_cosines_are_those_of_operators(shape: tuple[int, int], dtype: torch.dtype) -> None:
    odd = ((0, 0), (math.nan, -0.5), (math.inf, 1))
    for (p, q), (first, last) in zip(_rows(shape, dtype), odd, strict=True):
        x, y = p - 0.4, 1e30 * q
        x.view(-1)[0], y.view(-1)[-1] = first, last
        found = Cosine()(Batch(x, y, compiled=True)).values[0]
        x, y = (each / each.abs().amax(1, keepdim=True) for each in (x, y))
        xx, yy, xy = (sum_each_row(each) for each in (x * x, y * y, x * y))
        expected = (xy / (xx.sqrt() * yy.sqrt())).clamp(-1, 1)
        torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def _rows(shape: tuple[int, int], dtype: torch.dtype) -> Iterator[tuple[Tensor, Tensor]]:
    """Positive numbers, also such that are far from each other."""
    generator = torch.Generator().manual_seed(sum(shape))
    for power in (1.0, 1e-3, 40.0):
        p, q = (torch.rand(2, *shape, generator=generator, dtype=torch.float64) ** power + 1e-6).to(dtype)
        yield p, q


def test_cosines_of_rows_without_direction() -> None:
    x = torch.tensor([[0.0, 0.0], [1.0, math.nan], [-math.inf, 1.0], [3e38, 3e38], [1e-42, 0.0]])
    y = torch.tensor([[1.0, 2.0], [1.0, 1.0], [1.0, 1.0], [-3e38, -3e38], [2e-43, 0.0]])
    found = Cosine()(Batch(x, y, compiled=True)).values[0].view(-1)
    assert found[:3].isnan().all()
    assert found[3:].tolist() == [-1, 1]
