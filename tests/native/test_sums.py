"""The compiled sums against the same sums in torch, and both against exact rationals."""

from __future__ import annotations

import math
import shutil
from fractions import Fraction
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import Meter
from assay.metrics import BrierScore, CalinskiHarabaszScore, HingeLoss, LogLoss, Mean, MeanAbsoluteError
from assay.native import library as compiled_library
from assay.native.library import MISSING, library, takes
from assay.native.sums import ProductSums
from assay.tally.sums import exact
from thinning import every_third

needs_library = pytest.mark.skipif(library() is None, reason=MISSING)


def test_the_library_is_there_where_a_compiler_is() -> None:
    if shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")
    assert library() is not None, "run pip install again: _native.so was not built"


def drawn(kind: str, rows: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    normal = torch.randn(rows, 1, generator=generator)
    match kind:
        case "normal":
            return normal
        case "offset":
            return normal + 1e6
        case "lognormal":
            return (10 * torch.randn(rows, 1, generator=generator)).exp() * normal.sign()
        case "any bits":
            bits = torch.randint(-(2**31), 2**31 - 1, (rows, 1), generator=generator, dtype=torch.int32)
            return bits.view(torch.float32).nan_to_num(0, 1, -1)
        case "denormal":
            return torch.randint(0, 2**23, (rows, 1), generator=generator, dtype=torch.int32).view(torch.float32)
        case "cancelling":
            return torch.cat([normal, -normal.flip(0), torch.full((1, 1), 2.0**-140)])[:rows]
        case "largest":
            return torch.full((rows, 1), torch.finfo(torch.float32).max) * normal.sign()
        case "zero":
            return torch.zeros(rows, 1)
    raise AssertionError(kind)


KINDS = ["normal", "offset", "lognormal", "any bits", "denormal", "cancelling", "largest", "zero"]


def zeroed(factors: list[torch.Tensor]) -> list[torch.Tensor]:
    """The factors with those rows zero in which any of them is not finite."""
    keep = torch.stack([factor.double() for factor in factors]).isfinite().all(0)
    return [torch.where(keep, factor, 0.0) for factor in factors]


def in_torch(factors: list[torch.Tensor]) -> torch.Tensor:
    term = exact.parts(factors[0])
    for factor in factors[1:]:
        term = exact.product(term, exact.parts(factor))
    limbs = torch.zeros(1, factors[0].shape[1], exact.num_limbs(len(factors)), dtype=torch.int64)
    exact.add_columns(limbs, [[term]])
    return exact.canonical(limbs[0])


def compiled(factors: list[torch.Tensor]) -> torch.Tensor:
    limbs = torch.zeros(factors[0].shape[1], exact.num_limbs(len(factors)), dtype=torch.int64)
    sums = ProductSums()
    sums.add(limbs, factors, exact.origin(len(factors)))
    sums.run()
    return exact.canonical(limbs)


@every_third
@needs_library
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [1, 1000, 1024, 1025, 5000])
@pytest.mark.parametrize("factors", [1, 2, 3])
def test_same_limbs_as_torch(kind: str, rows: int, factors: int) -> None:
    given_ = [drawn(kind, rows, seed) for seed in range(factors)]
    assert torch.equal(compiled(given_), in_torch(given_))


@needs_library
@given(st.lists(st.tuples(*[st.floats(width=32, allow_nan=False, allow_infinity=False)] * 3), min_size=1, max_size=30))
def test_sum_of_products_is_the_rational_one(rows: list[tuple[float, float, float]]) -> None:
    columns = [torch.tensor([[row[k]] for row in rows], dtype=torch.float32) for k in range(3)]
    (value,) = exact.to_integers(compiled(columns))
    expected = sum((Fraction(a) * Fraction(b) * Fraction(c) for a, b, c in rows), Fraction(0))
    assert int(value) * Fraction(2) ** exact.origin(3) == expected


@needs_library
@given(
    st.sampled_from([32, 1000, 1024, 3001]),
    st.integers(-149, 104),  # where float32 has such numbers
    st.integers(0, 45),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["any sign", "positive", "largest"]),
)
@settings(max_examples=100, deadline=None)
def test_a_sum_of_float32_is_the_rational_one_however_far_its_numbers_spread(rows, least, spread, seed, kind):
    """Narrow blocks are summed with their bounds, in one loop; wider ones in two windows, or number by number."""
    generator = torch.Generator().manual_seed(seed)
    digits = torch.randint(2**23, 2**24, (rows, 1), generator=generator, dtype=torch.int64).double()
    powers = torch.randint(least, min(least + spread, 104) + 1, (rows, 1), generator=generator)
    if kind == "largest":  # whose sum needs the most bits; and one that has the last of them
        digits, powers = torch.full_like(digits, 2**24 - 1), torch.full_like(powers, min(least + spread, 104))
        powers[rows // 2] = least
    signs = torch.randint(0, 2, (rows, 1), generator=generator) if kind == "any sign" else 0
    x = torch.ldexp(digits * (1 - 2 * signs), powers).float()
    expected = sum(map(Fraction, x[:, 0].tolist()))
    for column in (x, x.flip(0), torch.cat([x, x], 1)[:, 1:]):  # side by side, and not
        assert exact.fractions(compiled([column]), 1) == [expected]
    assert Mean()(x[:, 0]).item() == float(expected / rows)


def drawn_wide(kind: str, rows: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    match kind:
        case "any bits":
            bits = torch.randint(-(2**63), 2**63 - 1, (rows, 1), generator=generator)
            return bits.view(torch.float64).nan_to_num(0, 1, -1)
        case "denormal":
            return torch.randint(0, 2**52, (rows, 1), generator=generator).view(torch.float64)
        case "largest":
            return torch.full((rows, 1), torch.finfo(torch.float64).max, dtype=torch.float64)
    return drawn(kind, rows, seed).double() / 3


@needs_library
@pytest.mark.parametrize("kind", ["normal", "lognormal", "any bits", "denormal", "largest"])
def test_float64_alone_and_with_float32_gives_the_same_limbs_as_torch(kind: str) -> None:
    for rows, factors in product((1, 1025), (1, 2, 3)):
        wide = [drawn_wide(kind, rows, seed) for seed in range(factors)]
        assert torch.equal(compiled(wide), in_torch(wide))
        mixed = [drawn("normal", rows, 5), *wide[1:]]
        assert torch.equal(compiled(mixed), in_torch(mixed))
        marked = wide[0].clone()
        marked[rows // 2] = math.inf
        assert torch.equal(compiled([marked, *wide[1:]]), in_torch(zeroed([marked, *wide[1:]])))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("exponent", [-1074, -1070, -1050, -1022, -1000, -970, -500])
def test_absolute_values_of_the_smallest_float64_are_exact(exponent: int, weighted: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    scale = 2.0**exponent
    preds, target, weights = ((torch.randn(60, generator=generator).double() / 3 * 64) for _ in range(3))
    preds, target, weights = preds * scale, target * scale, weights.abs()
    rows = [[Fraction(x) for x in row] for row in zip(*(x.tolist() for x in (preds, target, weights)), strict=True)]
    if weighted:
        expected = sum(w * abs(p - t) for p, t, w in rows) / sum(w for *_, w in rows)
        assert MeanAbsoluteError()(preds, target, weights=weights) == float(expected)
    else:
        assert MeanAbsoluteError()(preds, target) == float(sum(abs(p - t) for p, t, _ in rows) / 60)


@needs_library
def test_strides_and_outputs() -> None:
    x = torch.randn(3000, 4, generator=torch.Generator().manual_seed(0))
    weights = torch.rand(3000, 1).expand(3000, 4)
    views = [x, x.flip(0), weights]
    assert torch.equal(compiled(views), in_torch([view.contiguous() for view in views]))
    wide = x.t().contiguous().t()
    assert torch.equal(compiled([wide]), in_torch([x]))


@needs_library
def test_what_is_not_finite_is_counted_by_kind_and_left_out() -> None:
    x = torch.randn(5000, 1)
    marked = x.clone()
    marked[[3, 2000], 0], marked[1500, 0], marked[[7, 8, 4999], 0] = math.inf, -math.inf, math.nan
    finite = torch.where(marked.isfinite(), x, 0.0)
    assert torch.equal(compiled([marked]), in_torch([finite]))
    for others in ([marked], [x], [x, marked], [marked, x]):
        assert torch.equal(compiled([marked, *others]), in_torch(zeroed([marked, *others])))
    special, strange = torch.zeros(1, 3, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    sums = ProductSums()
    sums.count_special(marked, special, strange)
    sums.run()
    assert special.tolist() == [[2, 1, 3]]
    assert strange.tolist() == [6]
    sums = ProductSums()
    sums.count_special(marked.expand(5000, 1).flip(0)[::2], special)
    sums.run()
    assert special.sum() == 6 + int((~marked.flip(0)[::2].isfinite()).sum())
    assert strange.tolist() == [6]


@needs_library
@pytest.mark.parametrize("kinds", [("normal", "lognormal", "denormal"), ("any bits", "zero", "largest")], ids=str)
def test_sums_of_one_pass_are_those_of_one_product_at_a_time(kinds: tuple[str, ...]) -> None:
    columns = [drawn(kind, 3001, seed) for seed, kind in enumerate(kinds)]
    columns[1][7] = math.nan
    chosen = [[0], [1], [0, 0], [0, 1], [1, 2], [2, 2], [0, 1, 2], [2, 2, 2]]
    sums, special = ProductSums(), torch.zeros(1, 3, dtype=torch.int64)
    sums.count_special(columns[1], special)
    sums.count_special(columns[1], special)  # two terms may be one column
    limbs = [torch.zeros(1, exact.num_limbs(len(places)), dtype=torch.int64) for places in chosen]
    for each, places in zip(limbs, chosen, strict=True):
        sums.add(each, [columns[k] for k in places], exact.origin(len(places)))
    sums.run()
    assert special.tolist() == [[0, 0, 2]]
    for each, places in zip(limbs, chosen, strict=True):
        assert torch.equal(exact.canonical(each), in_torch(zeroed([columns[k] for k in places])))


@needs_library
@pytest.mark.parametrize("x", ["normal", "offset", "denormal", "any bits"])
@pytest.mark.parametrize("y", ["normal", "lognormal", "zero", "largest"])
@pytest.mark.parametrize("has_nan", [False, True])
def test_squares_and_product_of_two_columns_are_those_of_torch(x: str, y: str, has_nan: bool) -> None:
    """They are formed in one loop where the bounds of both columns allow it."""
    columns = [torch.cat([drawn(kind, 3001, seed + k) for k in range(2)], 1) for seed, kind in enumerate((x, y))]
    if has_nan:
        columns[0][1500, 1] = math.nan
    chosen = [[0, 0], [0, 1], [1, 1]]
    sums, limbs = ProductSums(), torch.zeros(3, 2, exact.num_limbs(2), dtype=torch.int64)
    for each, places in zip(limbs, chosen, strict=True):
        sums.add(each, [columns[k] for k in places], exact.origin(2))
    sums.run()
    for each, places in zip(limbs, chosen, strict=True):
        assert torch.equal(exact.canonical(each), in_torch(zeroed([columns[k] for k in places])))


@needs_library
def test_flushing_denormals_does_not_change_a_bit() -> None:
    x = drawn("denormal", 3000, 0)
    expected = compiled([x, torch.full_like(x, 2.0**100)])
    if not torch.set_flush_denormal(True):
        pytest.skip("this processor cannot flush denormals")
    try:
        assert torch.equal(compiled([x, torch.full_like(x, 2.0**100)]), expected)
    finally:
        torch.set_flush_denormal(False)


def test_takes_only_plain_float32() -> None:
    x = torch.zeros(3, 1)
    assert takes(x) == (library() is not None)
    assert not takes(x, x.double())
    assert not takes(torch.nn.Parameter(x))


def test_the_environment_can_turn_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_NATIVE", "0")
    library.cache_clear()
    try:
        assert library() is None
    finally:
        monkeypatch.undo()
        library.cache_clear()


@pytest.mark.parametrize("rows", [1, 33, 1100])
@pytest.mark.parametrize("spread", [1, 10, 40, 300])
def test_products_of_float64_are_exact_however_far_they_spread(spread: int, rows: int) -> None:
    generator = torch.Generator().manual_seed(spread)
    powers = torch.randint(-spread, spread + 1, (2, rows, 1), generator=generator).double()
    x, y = torch.ldexp(torch.randn(2, rows, 1, generator=generator, dtype=torch.float64), powers)
    limbs = torch.zeros(1, exact.num_limbs(2), dtype=torch.int64)
    sums = ProductSums()
    sums.add(limbs, [x, y], exact.origin(2))
    sums.run()
    expected = sum(Fraction(a) * Fraction(b) for a, b in zip(x[:, 0].tolist(), y[:, 0].tolist(), strict=True))
    assert exact.fractions(limbs, 2) == [expected]


@needs_library
@every_third
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kinds", [("normal", "offset"), ("any bits", "denormal"), ("cancelling", "cancelling")])
@pytest.mark.parametrize("dtypes", [(torch.float32, torch.float32), (torch.float32, torch.float64)])
def test_absolute_errors_have_the_bits_of_torch(kinds, dtypes, weighted):
    rows = [
        drawn(kind, 3_000, seed)[:, 0].to(dtype) for seed, (kind, dtype) in enumerate(zip(kinds, dtypes, strict=True))
    ]
    rows[0][5] = rows[0][9] = math.nan
    rows[1][9] = rows[0][17] = rows[1][17] = math.inf
    assert same_states(MeanAbsoluteError(), *rows, **({"weights": torch.rand(3_000)} if weighted else {}))


def same_states(metric, *batch, **weights):
    """Whether compiled code and torch's operators count the same."""

    def counted():
        meter = Meter(value=metric, stage_bytes=0, weighted=bool(weights))
        meter.update(*batch, **weights)
        return [state.items() for state in meter.counts.canonical()[0]]

    ours = counted()
    with compiled_library.in_torch():
        theirs = counted()
    return all(
        name == other and torch.equal(each, its)
        for of_ours, of_theirs in zip(ours, theirs, strict=True)
        for (name, each), (other, its) in zip(sorted(of_ours), sorted(of_theirs), strict=True)
    )


@needs_library
@pytest.mark.parametrize("metric", [BrierScore, LogLoss, HingeLoss])
@pytest.mark.parametrize("ignore_index", [None, -1, 1])
@pytest.mark.parametrize("wrong", ["nothing", "a target", "a score"])
def test_binary_losses_have_the_bits_of_torch(metric, ignore_index, wrong):
    scores, target = torch.rand(2_000), torch.randint(0, 2, (2_000,))
    if ignore_index == -1:
        target[::7] = -1
    target[5], scores[5] = (7 if wrong == "a target" else 0), (1.5 if wrong == "a score" else 1.0)
    assert same_states(metric(ignore_index=ignore_index), scores, target)


@needs_library
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sums_of_clusters_have_the_bits_of_torch(dtype, weighted):
    points, clusters = torch.randn(500, 3, dtype=dtype), torch.randint(-1, 5, (500,))
    points[3, 1] = math.inf
    metric = CalinskiHarabaszScore(num_features=3, num_classes=4)
    assert same_states(metric, points, clusters, **({"weights": torch.rand(500)} if weighted else {}))
