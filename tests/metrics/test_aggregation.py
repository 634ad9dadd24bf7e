"""Aggregates against exact rationals and NumPy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from assay.errors import ConfigError, InvalidValuesError, InvalidValuesWarning, NoDataWarning
from assay.meter import Meter
from assay.metrics.aggregation.values import Max, Mean, Min, Sum, Variance

ALL = [Mean, Sum, Max, Min, Variance]


def normal(seed: int, rows: int = 500) -> torch.Tensor:
    return torch.randn(rows, generator=torch.Generator().manual_seed(seed))


DATA = {
    "normal": normal(1),
    "mean 1e6": normal(2) + 1e6,
    "wide": (normal(3) * 20).exp() * normal(4).sign(),
    "cancelling": torch.cat([normal(5) * 1e30, normal(6), -normal(5) * 1e30]),
    "float64": normal(7).double() * 1e150,
    "float16": normal(8).half(),
    "integers": torch.arange(-100, 400),
    "booleans": normal(9) > 0,
    "pictures": normal(10).view(10, 5, 10),
}


@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_aggregates_are_those_of_exact_arithmetic_rounded_once(data, weighted):
    x = DATA[data]
    values = [Fraction(v) for v in x.flatten().tolist()]
    w = torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) if weighted else None
    weights = [Fraction(1)] * len(values) if w is None else [Fraction(v) for v in w.flatten().tolist()]
    total, weight = sum(v * c for v, c in zip(values, weights, strict=True)), sum(weights)
    squares = sum((v - total / weight) ** 2 * c for v, c in zip(values, weights, strict=True))
    assert Sum()(x, weights=w).item() == float(total)
    assert Mean()(x, weights=w).item() == float(total / weight)
    assert Variance()(x, weights=w).item() == float(squares / weight)
    assert Variance(ddof=1)(x, weights=w).item() == float(squares / (weight - 1))
    assert Max()(x, weights=w).item() == float(max(values))
    assert Min()(x, weights=w).item() == float(min(values))


def test_variance_agrees_with_numpy():
    x = normal(1)
    for ddof in (0, 1, 2):
        assert Variance(ddof=ddof)(x).item() == pytest.approx(np.var(x.double().numpy(), ddof=ddof), rel=1e-13)
    with pytest.warns(NoDataWarning, match="for which it is undefined"):
        assert math.isnan(Variance(ddof=1)(x[:1]).item())
    assert Variance()(x[:1]).item() == 0


def test_a_sum_goes_on_beyond_what_float32_counts():
    meter = Meter(s=Sum(), stage_bytes=0)
    for _ in range(18):
        meter.update(torch.ones(2**20))
    assert meter.compute()["s"].item() == 18 * 2**20


@pytest.mark.parametrize("make", ALL)
def test_nan_is_propagated_and_said_or_left_out(make):
    x = torch.tensor([1.0, math.nan, 4.0, math.nan, 2.5])
    with pytest.warns(InvalidValuesWarning, match=": got 2 of the values are NaN"):
        assert math.isnan(make()(x).item())
    kept = torch.tensor([1.0, 4.0, 2.5])
    assert make("ignore")(x) == make()(kept)
    w = torch.tensor([0.5, 3.0, 1.0, 7.0, 2.0])
    assert make("ignore")(x, weights=w) == make()(kept, weights=w[[0, 2, 4]])
    with pytest.warns(NoDataWarning, match="for which it is undefined"):
        assert math.isnan(make("ignore")(torch.tensor([math.nan])).item())


@pytest.mark.parametrize(
    ("values", "total", "high", "low"),
    [
        ([1.0, math.inf], math.inf, math.inf, 1.0),
        ([1.0, -math.inf], -math.inf, 1.0, -math.inf),
        ([math.inf, -math.inf], math.nan, math.inf, -math.inf),
    ],
)
def test_infinities_follow_ieee_754_and_are_said(values, total, high, low):
    x = torch.tensor(values)
    for make in (Sum, Mean):
        with pytest.warns(InvalidValuesWarning, match="of the values are NaN or infinite"):
            assert repr(make()(x).item()) == repr(total)
    with pytest.warns(InvalidValuesWarning, match="of the values are NaN or infinite"):
        assert math.isnan(Variance()(x).item())
    assert Max()(x).item() == high
    assert Min()(x).item() == low


@pytest.mark.parametrize("values", [[0.0], [-0.0], [0.0, -0.0], [-0.0, 0.0]])
def test_an_extreme_of_zeros_has_the_same_bits_in_any_order_with_weights_and_without(values):
    x = torch.tensor(values)
    for make in (Max, Min):
        found = [make()(x), make()(x, weights=torch.ones(len(x)))]
        meter = Meter(make())
        meter.update(x)
        (merged,) = (meter + meter).compute().values()
        assert [repr(each.item()) for each in (*found, merged)] == ["0.0"] * 3


@pytest.mark.parametrize("make", ALL)
def test_without_data(make):
    with pytest.warns(NoDataWarning, match=": got no data"):
        assert math.isnan(make()(torch.zeros(0)).item())


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("make", ALL)
def test_a_number_takes_the_place_of_nan(make, weighted):
    x, is_nan = normal(3), normal(4) > 0
    weights = normal(5).abs() if weighted else None
    expected = make()(x.masked_fill(is_nan, -7.5), weights=weights)
    assert make(-7.5)(x.masked_fill(is_nan, math.nan), weights=weights).item() == expected.item()
    assert make(2)(torch.tensor([1, 4])).item() == make()(torch.tensor([1, 4])).item()


@pytest.mark.parametrize("make", ALL)
def test_nan_raises_where_it_is_not_expected(make):
    assert make("raise")(torch.tensor([3.0, 4.0])).item() == make()(torch.tensor([3.0, 4.0])).item()
    with pytest.raises(InvalidValuesError, match="values are NaN"):
        make("raise")(torch.tensor([3.0, math.nan]))


def test_aggregates_share_their_tallies():
    meter = Meter(Mean(), Sum(), Variance(), Max(), Min(), q=Max("ignore"))
    assert len(meter.tallies) == 2
    meter.update(torch.tensor([1.0, 3.0]))
    read = {name: value.item() for name, value in meter.compute().items()}
    assert read == {"Mean": 2, "Sum": 4, "Variance": 1, "Max": 3, "Min": 1, "q": 3}


def test_what_cannot_be():
    for make in ALL:
        with pytest.raises(ConfigError, match=r"nan_policy: got 'drop', expected .*a number"):
            make("drop")
        with pytest.raises(ConfigError, match="nan_policy: got nan"):
            make(math.nan)
    with pytest.raises(ConfigError, match="ddof: got -1, expected 0 or more"):
        Variance(ddof=-1)
