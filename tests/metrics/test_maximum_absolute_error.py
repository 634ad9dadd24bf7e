"""The largest absolute error against scikit-learn, Ignite and exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import max_error

from assay.errors import DtypeError, InvalidValuesError, InvalidValuesWarning, ShapeError
from assay.meter import Meter
from assay.metrics import MaximumAbsoluteError

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS)
def test_it_is_scikit_learns(seed):
    preds, target = np.random.default_rng(seed).normal(size=(2, 30))
    found = MaximumAbsoluteError()(torch.from_numpy(preds), torch.from_numpy(target))
    assert float(found) == max_error(target, preds)


@given(SEEDS)
def test_it_is_exact_where_float32_is_not(seed):
    preds, target = torch.randn(2, 30, generator=torch.Generator().manual_seed(seed)) * torch.tensor([[1e5], [1e-3]])
    exact = max(abs(Fraction(p) - Fraction(t)) for p, t in zip(preds.tolist(), target.tolist(), strict=True))
    assert float(MaximumAbsoluteError()(preds, target)) == float(exact)


def test_it_is_ignites():
    regression = pytest.importorskip("ignite.metrics.regression")
    preds, target = torch.randn(2, 50, generator=torch.Generator().manual_seed(0))
    theirs = regression.MaximumAbsoluteError()
    theirs.update((preds, target))
    assert float(MaximumAbsoluteError()(preds, target)) == pytest.approx(theirs.compute(), rel=1e-6)


def test_images_and_weights_change_nothing():
    preds, target = torch.randn(2, 4, 3, 2, generator=torch.Generator().manual_seed(0))
    metric = MaximumAbsoluteError()
    assert metric(preds, target) == metric(preds.flatten(), target.flatten())
    assert metric(preds, target, weights=torch.rand(4)) == metric(preds, target)


def test_a_value_that_is_not_finite_makes_it_nan_with_a_warning():
    meter = Meter(value=MaximumAbsoluteError())
    meter.update(torch.tensor([1.0, float("inf")]), torch.zeros(2))
    with pytest.warns(InvalidValuesWarning, match="got 1 of the values"):
        assert meter.compute()["value"].isnan()


def test_integers_that_a_float_does_not_hold_are_refused():
    with pytest.raises(DtypeError, match=r"int64 beside a narrow float"):
        MaximumAbsoluteError()(torch.zeros(2), torch.zeros(2, dtype=torch.int64))
    assert MaximumAbsoluteError()(torch.zeros(2), torch.ones(2, dtype=torch.int16)) == 1
    with pytest.raises(InvalidValuesError, match="integers are beyond what float64 holds"):
        MaximumAbsoluteError()(torch.zeros(1, dtype=torch.float64), torch.tensor([2**53 + 1]))


def test_shapes_that_differ_are_refused():
    with pytest.raises(ShapeError, match="target"):
        MaximumAbsoluteError()(torch.zeros(2, 3), torch.zeros(2, 4))
