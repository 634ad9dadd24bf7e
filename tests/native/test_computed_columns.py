"""Columns that compiled code computes from others, and the sums of their products, against exact rationals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import pytest
import torch
from torch import Tensor

from assay.native.library import MISSING, library
from assay.native.sums import Kind, checked_column, column_of, computed_column, order_cells, product_of, sum_products
from assay.tally.sums import exact
from thinning import every_third

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)

WORDS, ORIGIN = exact.num_limbs(1), exact.origin(1)
EDGES = [0.0, -0.0, 1.5, -1.5, 1.0, 2.0**-149, -(2.0**-149), 2.0**-120, 2.0**-30, 1 + 2.0**-23, 3e38, -3e38, 2.0**24]


def summed(
    shape: Sequence[int], columns: Sequence[int], products: Sequence[Sequence[int]], cells: Tensor | None = None
) -> list[Fraction]:
    """The sum of each product of columns over the rows of each cell, one output."""
    count = 1 if cells is None else int(cells.max()) + 1
    limbs = torch.zeros(len(products), count, WORDS, dtype=torch.int64)
    described = [
        number
        for limb, places in zip(limbs, products, strict=True)
        for number in (limb.data_ptr(), *product_of(WORDS, ORIGIN, places, WORDS))
    ]
    sum_products(shape, columns, described, None if cells is None else order_cells(cells, count))
    return exact.fractions(limbs, 1)


def differences(x: Tensor, y: Tensor, cells: Tensor | None = None) -> list[Fraction]:
    """The sum of absolute differences over the rows of each cell: both products go into the same limbs."""
    count = 1 if cells is None else int(cells.max()) + 1
    limbs = torch.zeros(count, 1, WORDS, dtype=torch.int64)
    columns = [
        *column_of(x),
        *column_of(y),
        *computed_column(Kind.LARGER, (0, 1)),
        *computed_column(Kind.SMALLER, (0, 1)),
    ]
    products = [number for k in (2, 3) for number in (limbs.data_ptr(), *product_of(WORDS, ORIGIN, [k], WORDS))]
    sum_products(x.shape, columns, products, None if cells is None else order_cells(cells, count))
    return exact.fractions(limbs, 1)


def expected(x: Tensor, y: Tensor) -> Fraction:
    pairs = zip(x.flatten().tolist(), y.flatten().tolist(), strict=True)
    return sum((abs(Fraction(a) - Fraction(b)) for a, b in pairs), Fraction(0))


@pytest.mark.parametrize("dtypes", list(product((torch.float32, torch.float64), repeat=2)))
def test_each_pair_of_edges(dtypes: tuple[torch.dtype, torch.dtype]) -> None:
    for a, b in product(EDGES, EDGES):
        x, y = torch.tensor([[a]], dtype=dtypes[0]), torch.tensor([[b]], dtype=dtypes[1])
        assert differences(x, y) == [expected(x, y)]
        columns = [*column_of(x), *column_of(y), *computed_column(Kind.LARGER, (0, 1))]
        columns += [*computed_column(Kind.SMALLER, (0, 1)), *computed_column(Kind.SIGN, (1,))]
        above, below = (max(x, y).item(), -min(x, y).item()) if x.item() != y.item() else (0, 0)
        sign = (y.item() > 0) - (y.item() < 0)
        given = summed(x.shape, columns, [[2], [3], [4], [4, 1]])
        assert given == [Fraction(above), Fraction(below), sign, abs(Fraction(y.item()))]


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_pair_that_is_not_finite_leaves_the_others(odd: float) -> None:
    x, y = torch.tensor([[3.0], [odd], [-1.0]]), torch.tensor([[1.0], [odd], [4.0]])
    assert differences(x, y) == [7]
    assert differences(x.double(), y) == [7]


def rows_of(kind: str, rows: int, generator: torch.Generator) -> Tensor:
    normal = torch.randn(rows, 1, generator=generator)
    match kind:
        case "normal":
            return normal
        case "whole":  # whose sum needs one window
            return torch.randint(-100, 100, (rows, 1), generator=generator).float()
        case "spread":  # over more bits than a double has
            return torch.ldexp(normal, torch.randint(-120, 120, (rows, 1), generator=generator).float())
        case "wide":  # whose differences have 53 bits or one more
            return torch.ldexp(normal.sign() * 0.75, torch.randint(-28, 2, (rows, 1), generator=generator).float())
        case "subnormal":
            bits = torch.randint(0, 2**23, (rows, 1), generator=generator, dtype=torch.int32)
            return bits.view(torch.float32) * normal.sign()
        case "zero":
            return torch.zeros(rows, 1)
    raise AssertionError(kind)


KINDS = ["normal", "whole", "spread", "wide", "subnormal", "zero"]


@every_third
@pytest.mark.parametrize("kinds", list(product(KINDS, KINDS)), ids="-".join)
def test_differences_of_many_rows(kinds: tuple[str, str]) -> None:
    generator = torch.Generator().manual_seed(len(kinds[0]) + 20 * len(kinds[1]))
    for rows, wide in product((31, 1024, 1025, 2100), (False, True)):
        x, y = (rows_of(kind, rows, generator) for kind in kinds)
        x = x.double() / 3 if wide else x
        assert differences(x, y) == [expected(x, y)]
        apart = x[: rows // 2 * 2 : 2], y[1::2]
        assert differences(*apart) == [expected(*apart)]
        cells = torch.randint(0, 3, (rows,), generator=generator)
        of_cells = [expected(x[cells == k], y[cells == k]) for k in range(int(cells.max()) + 1)]
        assert differences(x, y, cells) == of_cells


@pytest.mark.parametrize("rows", [1, 32, 1000, 1024, 3000])
def test_scores_and_targets_are_summed_and_checked(rows: int) -> None:
    generator = torch.Generator().manual_seed(rows)
    scores, target = torch.rand(rows, 1, generator=generator), torch.randint(0, 2, (rows, 1), generator=generator)
    invalid = torch.zeros(2, dtype=torch.int64)

    def of_rows() -> list[Fraction]:
        columns = [*checked_column(scores, Kind.SCORES, invalid[0]), *checked_column(target, Kind.TARGETS, invalid[1])]
        return summed(scores.shape, columns, [[0, 0], [0, 1], [1]])

    p, t = [Fraction(s) for s in scores[:, 0].tolist()], target[:, 0].tolist()
    dot = sum(a * b for a, b in zip(p, t, strict=True))
    assert of_rows() == [sum(a * a for a in p), dot, sum(t)]
    assert invalid.tolist() == [0, 0]
    for wrong in (math.nan, math.inf, -math.inf, 1 + 2.0**-23, -(2.0**-149)):
        scores[rows // 2] = wrong
        target[-1] = 2 if wrong > 0 else -1
        of_rows()
        assert invalid.tolist() == [1, 1]
        invalid.zero_()
    scores[rows // 2], scores[-1] = 1.0, -0.0
    of_rows()
    assert invalid.tolist() == [0, 1]
