"""Sums of terms against exact rationals: any dtype, any split, compiled and not."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import DtypeError, ShapeError
from assay.tally.base import Batch, BatchLayout, TensorLayout, merge
from assay.tally.sums import sums
from assay.tally.sums.float_terms import PercentageError, SquaredLogError
from assay.tally.sums.sums import Sums
from assay.tally.sums.terms import PREDS, TARGET, AbsoluteError, AbsoluteValue, Product, Term, sign_of_difference
from thinning import every_third

CPU = torch.device("cpu")
XX, XY = Product(PREDS, PREDS), Product(PREDS, TARGET)
TERMS: frozenset[Term] = frozenset({PREDS, TARGET, XX, XY, AbsoluteError(), AbsoluteValue("target")})
DTYPES = [
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.float64,
    torch.int8,
    torch.uint8,
    torch.int32,
    torch.int64,
]


@pytest.fixture(params=["compiled", "torch"])
def compiled(request, monkeypatch) -> bool:
    """Both ways of adding; the first falls back to the second where nothing was compiled."""
    if request.param == "torch":
        monkeypatch.setattr(sums, "takes", lambda *columns: False)
    return request.param == "compiled"


def counted(tally: Sums, *batches: tuple[torch.Tensor | None, ...], compiled: bool = True, cached: int = 1 << 15):
    state = tally.zero(CPU)
    rows = 0
    for given_ in batches:
        tally.add(state, Batch(*given_, cached, compiled))
        rows += len(given_[0])
    return tally.canonicalize(state, rows)


def exactly(x: torch.Tensor) -> list[Fraction]:
    return [Fraction(v) for v in x.tolist()]


def bits(state) -> dict[str, list]:
    return {name: value.tolist() for name, value in state.items()}


def drawn(dtype: torch.dtype, seed: int, rows: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype.is_floating_point:
        wide = torch.randn(rows, generator=generator, dtype=torch.float64)
        spread = torch.randint(-12, 12, (rows,), generator=generator)
        return (wide * 2.0**spread).clamp(-60000, 60000).to(dtype)
    info = torch.iinfo(dtype)
    return torch.randint(info.min, info.max, (rows,), generator=generator, dtype=dtype)


@every_third
@pytest.mark.parametrize(("left", "right"), list(itertools.product(DTYPES, DTYPES)), ids=str)
def test_every_pair_of_dtypes_is_exact(left, right):
    x, y = drawn(left, 1, 23), drawn(right, 2, 23)
    tally = Sums(TERMS)
    read = tally.compute(counted(tally, (x, y)))
    pairs = list(zip(exactly(x), exactly(y), strict=True))
    assert read.count == [23]
    assert read.weight == [23]
    assert read[PREDS] == [sum(a for a, _ in pairs)]
    assert read[TARGET] == [sum(b for _, b in pairs)]
    assert read[XX] == [sum(a * a for a, _ in pairs)]
    assert read[XY] == [sum(a * b for a, b in pairs)]
    assert read[AbsoluteError()] == [sum(abs(a - b) for a, b in pairs)]
    assert read[AbsoluteValue("target")] == [sum(abs(b) for _, b in pairs)]


@given(
    seed=st.integers(0, 2**20),
    cuts=st.lists(st.integers(0, 300), max_size=4),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
    cached=st.sampled_from([1, 7, 1 << 15]),
    weighted=st.booleans(),
    compiled=st.booleans(),
)
def test_any_split_gives_the_same_bits(seed, cuts, dtype, cached, weighted, compiled):
    x, y = drawn(dtype, seed, 300), drawn(dtype, seed + 1, 300)
    w = drawn(torch.float32, seed + 2, 300) if weighted else None
    tally = Sums(TERMS, weighted=weighted)
    whole = counted(tally, (x, y, w), compiled=False)
    ends = [0, *sorted(cuts), 300]
    parts = [
        counted(tally, (x[a:b], y[a:b], None if w is None else w[a:b]), compiled=compiled, cached=cached)
        for a, b in itertools.pairwise(ends)
    ]
    assert bits(tally.canonicalize(merge(tally, parts[::-1]), 300)) == bits(whole)


def test_weights_are_exact(compiled):
    x, y, w = (drawn(torch.float32, seed, 100) for seed in (1, 2, 3))
    tally = Sums(TERMS, weighted=True)
    read = tally.compute(counted(tally, (x, y, w), compiled=compiled))
    rows = list(zip(exactly(x), exactly(y), exactly(w), strict=True))
    assert read.count == [100]
    assert read.weight == [sum(c for _, _, c in rows)]
    assert read[XY] == [sum(a * b * c for a, b, c in rows)]
    assert read[AbsoluteError()] == [sum(abs(a - b) * c for a, b, c in rows)]


def test_outputs_are_summed_one_by_one(compiled):
    x, y = drawn(torch.float32, 1, 60).view(20, 3), drawn(torch.float32, 2, 60).view(20, 3)
    w = drawn(torch.float32, 3, 20)
    tally = Sums(TERMS, num_outputs=3, weighted=True)
    read = tally.compute(counted(tally, (x, y, w), compiled=compiled))
    for k in range(3):
        rows = zip(exactly(x[:, k]), exactly(y[:, k]), exactly(w), strict=True)
        assert read[XY][k] == sum(a * b * c for a, b, c in rows)


def test_one_output_takes_every_element_and_weights_are_spread_over_them(compiled):
    x, y, w = drawn(torch.float32, 1, 24).view(4, 3, 2), drawn(torch.float32, 2, 24).view(4, 3, 2), torch.arange(4.0)
    tally = Sums(frozenset({XY}), weighted=True)
    read = tally.compute(counted(tally, (x, y, w), compiled=compiled))
    assert read.count == [18]  # the first six have weight 0
    assert read.weight == [6 * 6]
    assert read[XY] == [
        sum(
            a * b * c
            for row_x, row_y, c in zip(x.flatten(1), y.flatten(1), exactly(w), strict=True)
            for a, b in zip(exactly(row_x), exactly(row_y), strict=True)
        )
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, math.inf], math.inf),
        ([1.0, -math.inf], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.inf, math.nan], math.nan),
        ([3.0e38, 3.0e38], Fraction(torch.tensor(3.0e38).item()) * 2),
    ],
)
def test_a_sum_of_values_is_that_of_ieee_754(values, expected, compiled):
    x = torch.tensor(values)
    tally = Sums(frozenset({PREDS, XX}), arguments=("preds",))
    state = counted(tally, (x,), compiled=compiled)
    read = tally.compute(state)
    assert repr(read[PREDS]) == repr([expected])
    strange = sum(not math.isfinite(v) for v in values)
    assert math.isnan(read[XX][0]) == bool(strange)
    found = [(problem.what, problem.count, problem.fatal) for problem in tally.invalid_values(state)]
    assert found == ([("values are NaN or infinite", strange, False)] if strange else [])


@given(st.lists(st.sampled_from([1.0, -2.5, math.inf, -math.inf, math.nan]), min_size=1, max_size=9), st.booleans())
def test_values_that_are_not_finite_settle_alike_however_they_are_split(values, weighted):
    x = torch.tensor(values)
    y, w = x.flip(0), torch.ones(len(x)) if weighted else None
    tally = Sums(TERMS, weighted=weighted)
    whole = counted(tally, (x, y, w))
    rows = [(x[k : k + 1], y[k : k + 1], None if w is None else w[k : k + 1]) for k in range(len(x))]
    assert bits(counted(tally, *rows, compiled=False)) == bits(whole)
    halves = [counted(tally, *rows[:3]), counted(tally, *rows[3:])]
    assert bits(tally.canonicalize(merge(tally, halves), len(x))) == bits(whole)


def test_nan_is_left_out_when_asked(compiled):
    x = torch.tensor([1.0, math.nan, 4.0])
    tally = Sums(frozenset({PREDS}), arguments=("preds",), nan_policy="ignore")
    state = counted(tally, (x,), compiled=compiled)
    assert tally.compute(state).weight == [2]
    assert tally.compute(state)[PREDS] == [5]
    assert tally.invalid_values(state) == []
    weighted = Sums(frozenset({PREDS}), weighted=True, arguments=("preds",), nan_policy="ignore")
    read = weighted.compute(counted(weighted, (x, None, torch.tensor([2.0, 8.0, 0.5])), compiled=compiled))
    assert (read.weight, read[PREDS]) == ([Fraction(5, 2)], [4])


def test_nan_is_left_out_with_a_warning_when_asked(compiled):
    x = torch.tensor([1.0, math.nan, 4.0, math.nan])
    tally = Sums(frozenset({PREDS}), arguments=("preds",), nan_policy="warn")
    state = counted(tally, (x,), (x[:2],), compiled=compiled)
    assert (tally.compute(state).weight, tally.compute(state)[PREDS]) == ([3], [6])
    (problem,) = tally.invalid_values(state)
    assert (problem.count, problem.fatal) == (3, False)
    assert tally.invalid_values(counted(tally, (x[:1],), compiled=compiled)) == []
    assert Sums(frozenset({PREDS}), arguments=("preds",), nan_policy="ignore").union(tally) is None


def test_a_term_that_is_undefined_for_finite_values_is_an_error_and_one_that_overflows_a_warning():
    tally = Sums(frozenset({SquaredLogError()}))
    undefined = counted(tally, (torch.tensor([1.0, -3.0]), torch.tensor([1.0, 2.0])))
    (problem,) = tally.invalid_values(undefined)
    assert (problem.count, problem.fatal) == (1, True)
    assert problem.what == "terms of SquaredLogError() are NaN, which needs preds and target above -1"
    too_large = Sums(frozenset({PercentageError()}))
    overflown = counted(too_large, (torch.tensor([1.0, 3e38]), torch.tensor([1.0, 0.0])))
    (problem,) = too_large.invalid_values(overflown)
    assert (problem.count, problem.fatal) == (1, False)
    assert too_large.compute(overflown)[PercentageError()] == [math.inf]
    given_nan = counted(tally, (torch.tensor([1.0, math.nan]), torch.tensor([1.0, 2.0])))
    assert [p.fatal for p in tally.invalid_values(given_nan)] == [False]


def test_any_number_of_samples_is_exact():
    x = torch.tensor([0.1, -3.0])
    tally = Sums(frozenset({PREDS, XX}), arguments=("preds",))
    state = counted(tally, (x,))
    once = tally.compute(state)
    for _ in range(40):  # 2 ** 41 samples
        state = tally.canonicalize(merge(tally, [state, state]), 0)
    many = tally.compute(state)
    assert many.count == [2**41]
    assert many[PREDS] == [once[PREDS][0] * 2**40]
    assert many[XX] == [once[XX][0] * 2**40]


def test_a_join_holds_both_and_a_part_is_what_would_have_been_counted():
    x, y = drawn(torch.float32, 1, 50), drawn(torch.float32, 2, 50)
    one, other = Sums(frozenset({PREDS, XX}), 1), Sums(frozenset({XY, SquaredLogError()}), None)
    both = one.union(other)
    assert isinstance(both, Sums)
    assert other.union(one) == both
    assert both.union(one) == both
    state = counted(both, (x.abs(), y.abs()))
    for wanted in (one, other):
        assert bits(both.extract(state, wanted)) == bits(counted(wanted, (x.abs(), y.abs())))


@pytest.mark.parametrize(
    "other",
    [
        Sums(TERMS, 2),
        Sums(TERMS, weighted=True),
        Sums(frozenset({PREDS}), arguments=("preds",)),
        Sums(TERMS, nan_policy="ignore"),
    ],
)
def test_sums_of_other_data_do_not_join(other):
    assert Sums(TERMS).union(other) is None


def test_ten_thousand_outputs_take_less_than_100_megabytes():
    for weighted in (False, True):
        state = Sums(frozenset({PREDS, TARGET, XX, XY, Product(TARGET, TARGET)}), 10_000, weighted).zero(CPU)
        assert sum(value.nbytes for value in state.values()) < 100e6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_an_update_waits_for_nothing(count_ops, dtype, compiled):
    x, y, w = drawn(dtype, 1, 100), drawn(dtype, 2, 100), torch.rand(100)
    for tally, given_ in (
        (Sums(TERMS), (x, y, None)),
        (Sums(TERMS, weighted=True), (x, y, w)),
        (Sums(frozenset({PREDS}), None, False, ("preds",), True), (x, None, None)),
    ):
        state = tally.zero(CPU)
        with count_ops() as counts:
            tally.add(state, Batch(*given_, 1 << 15, compiled))
        assert counts.syncs == []


def test_the_number_of_operators_does_not_grow(count_ops):
    x, y = torch.rand(1000), torch.rand(1000)
    for terms, most in ((frozenset({PREDS}), 60), (TERMS - {AbsoluteError(), AbsoluteValue("target")}, 160)):
        tally = Sums(terms)
        state = tally.zero(CPU)
        with count_ops() as counts:
            tally.add(state, Batch(x, y))
        assert 0 < counts.calls <= most


def layout(preds: tuple[int, ...], target=None, weights=None, dtype=torch.float32) -> BatchLayout:
    return BatchLayout(
        TensorLayout(dtype, preds),
        None if target is None else TensorLayout(torch.float32, target),
        None if weights is None else TensorLayout(torch.float32, weights),
    )


@pytest.mark.parametrize(
    ("tally", "given_", "error", "message"),
    [
        (Sums(TERMS), layout((3,)), ShapeError, "target: got nothing, expected a tensor of the shape of preds."),
        (Sums(TERMS), layout((), (1,)), ShapeError, r"target: got shape \(N, 1\) with preds of shape \(N,\)"),
        (Sums(TERMS), layout((), (), dtype=torch.complex64), DtypeError, "preds: got torch.complex64, expected real"),
        (Sums(TERMS, 3), layout((4,), (4,)), ShapeError, r"preds: got shape \(N, 4\), expected shape \(N, 3\)."),
        (Sums(TERMS, 1), layout((4,), (4,)), ShapeError, r"expected shape \(N,\) or \(N, 1\). Give num_outputs"),
        (Sums(TERMS), layout((4,), (4,), (2,)), ShapeError, r"weights: got shape \(N, 2\), expected shape \(N,\) or"),
    ],
)
def test_layouts_that_cannot_be_summed(tally, given_, error, message):
    with pytest.raises(error, match=message):
        tally.check(given_)


@given(st.integers(-(2**63), 2**63 - 1), st.floats(width=32, allow_nan=False))
def test_a_float_and_an_integer_are_compared_exactly(whole, real):
    integer, number = torch.tensor([whole]), torch.tensor([real], dtype=torch.float32)
    expected = (whole > real) - (whole < real)  # Python compares them exactly
    assert sign_of_difference(integer, number).tolist() == [expected]
    assert sign_of_difference(number, integer).tolist() == [-expected]


@pytest.mark.parametrize("near", [2.0**63, -(2.0**63), 2.0**53, 16777216.0, 0.5, -0.5])
def test_a_float_and_its_neighbours_among_the_integers_are_compared_exactly(near):
    for dtype in (torch.float32, torch.float64):
        for step in (-2, -1, 0, 1):
            whole = min(max(int(near) + step, -(2**63)), 2**63 - 1)
            found = sign_of_difference(torch.tensor([near], dtype=dtype), torch.tensor([whole]))
            assert found.tolist() == [(near > whole) - (near < whole)]
