from __future__ import annotations

import math
from fractions import Fraction
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from assay.errors import ConfigError, InvalidValuesError, InvalidValuesWarning, NoDataWarning, ShapeError
from assay.meter import Meter
from assay.metrics.aggregation.quantile import Quantile

INTERPOLATIONS = ["linear", "lower", "higher", "nearest", "midpoint"]
SIXTEENTHS = st.integers(0, 16).map(lambda k: k / 16)  # float positions are then exact in NumPy, too


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=30), SIXTEENTHS, st.sampled_from(INTERPOLATIONS))
def test_as_numpy_where_floats_are_exact(values, q, interpolation):
    found = Quantile(q, interpolation)(torch.tensor(values, dtype=torch.float32))
    assert found.item() == np.quantile(np.array(values, dtype=np.float64), q, method=interpolation)


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32), min_size=1, max_size=30), st.decimals(0, 1, places=3))
def test_the_linear_value_is_that_of_exact_arithmetic(values, q):
    position = Fraction(q) * (len(values) - 1)
    ordered = [Fraction(v) for v in sorted(values)]
    below = math.floor(position)
    exact = ordered[below] * (below + 1 - position) + ordered[math.ceil(position)] * (position - below)
    assert Quantile(float(q))(torch.tensor(values)).item() == float(exact)


def test_q_is_the_decimal_that_is_written():
    x = torch.arange(101)
    for q in (0.07, 0.29, 0.58, 0.7):
        for interpolation in INTERPOLATIONS:
            assert Quantile(q, interpolation)(x).item() == round(100 * q)


def test_large_integers_are_rounded_once():
    x = torch.tensor([2**53 + 1, 2**53 + 4])
    assert Quantile(0.5)(x).item() == float(Fraction(2**54 + 5, 2))


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 4)), max_size=12), SIXTEENTHS, st.sampled_from(INTERPOLATIONS)
)
def test_a_weight_repeats_its_sample(pairs, q, interpolation):
    repeated = [value for value, times in pairs for _ in range(times)]
    meter = Meter(q=Quantile(q, interpolation), weighted=True)
    meter.update(
        torch.tensor([[0.0, 0.0]] + [[float(v), float(t)] for v, t in pairs])[:, 0],
        weights=torch.tensor([0.0] + [float(t) for _, t in pairs]),
    )
    expected = (
        Quantile(q, interpolation)(torch.tensor(repeated, dtype=torch.float32)) if repeated else torch.tensor(math.nan)
    )
    assert meter.compute()["q"].item() == pytest.approx(expected.item(), rel=0, abs=0, nan_ok=True)


def test_weights_that_are_no_counts_raise():
    with pytest.raises(InvalidValuesError, match="weights: got fractions, expected integers"):
        Quantile(0.5)(torch.arange(2), weights=torch.tensor([1.0, 0.5]))


def test_the_shape_follows_q_and_the_outputs():
    x = torch.arange(22.0).view(11, 2)
    assert torch.equal(Quantile((0.0, 1.0))(x), torch.tensor([0.0, 21.0], dtype=torch.float64))
    assert Quantile(0.5, num_outputs=2)(x).tolist() == [10, 11]
    assert Quantile((0.0, 0.5, 1.0), num_outputs=2)(x).tolist() == [[0, 1], [10, 11], [20, 21]]


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, math.inf], math.inf),
        ([-math.inf, 1], -math.inf),
        ([-math.inf, math.inf], math.nan),
        ([math.inf, math.inf], math.inf),
    ],
)
def test_infinities_are_values(values, expected):
    assert Quantile(0.5)(torch.tensor(values)).item() == pytest.approx(expected, nan_ok=True)
    assert Quantile(0.5, "lower")(torch.tensor(values)).item() == values[0]
    assert Quantile(1.0)(torch.tensor(values)).item() == values[1]


def test_nan_makes_nan_and_warns():
    with pytest.warns(InvalidValuesWarning, match=": got 1 of the values are NaN"):
        assert Quantile(0.0)(torch.tensor([1.0, math.nan])).isnan()


def test_without_data_it_is_nan_and_warns():
    meter = Meter(median=Quantile(0.5), all=Quantile((0.1, 0.2), num_outputs=2))
    with pytest.warns(NoDataWarning):
        read = meter.compute()
    assert read["median"].isnan()
    assert read["all"].shape == (2, 2)
    assert read["all"].isnan().all()


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
@example([0.0] * 8 + [-0.0], 1, Random(0))
@given(st.lists(st.floats(width=16, allow_nan=False), min_size=1, max_size=40), st.integers(1, 7), st.randoms())
def test_no_split_and_no_dtype_changes_the_bits(values, size, random):
    metric = Quantile((0.0, 0.3, 0.77, 1.0))
    whole = metric(torch.tensor(values))
    for dtype in (torch.float16, torch.float32, torch.float64):
        random.shuffle(values)
        meter = Meter(q=metric, stage_bytes=random.choice([0, 64, 1 << 20]))
        for batch in torch.tensor(values, dtype=dtype).split(size):
            meter.update(batch)
        assert meter.compute()["q"].numpy().tobytes() == whole.numpy().tobytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"q": 1.5}, r"q: got 1.5, expected a number in \[0, 1\]"),
        ({"q": (0.5, -0.1)}, "q: got -0.1"),
        ({"q": math.nan}, "q: got nan"),
        ({"q": 0.5, "interpolation": "cubic"}, "interpolation: got 'cubic', expected 'linear', 'lower'"),
        ({"q": 0.5, "num_outputs": 0}, "num_outputs: got 0, expected 1 or more"),
    ],
)
def test_descriptions_that_cannot_be_raise(arguments, message):
    with pytest.raises(ConfigError, match=message):
        Quantile(**arguments)


def test_a_wrong_number_of_outputs_raises():
    with pytest.raises(ShapeError, match=r"preds: got shape \(N, 3\), expected shape \(N, 2\)"):
        Quantile(0.5, num_outputs=2)(torch.zeros(4, 3))
