"""The pinball loss against scikit-learn, and against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_pinball_loss

from assay.errors import ConfigError
from assay.metrics import MeanAbsoluteError, PinballLoss

ALPHAS = st.floats(0, 1)
SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS, ALPHAS, st.booleans())
def test_it_is_scikit_learns(seed, alpha, weighted):
    preds, target, weights = np.random.default_rng(seed).normal(size=(3, 40))
    weights = np.abs(weights) if weighted else None
    found = PinballLoss(alpha)(
        *map(torch.from_numpy, (preds, target)), weights=None if weights is None else torch.from_numpy(weights)
    )
    assert float(found) == pytest.approx(
        mean_pinball_loss(target, preds, sample_weight=weights, alpha=alpha), rel=1e-12
    )


@given(SEEDS, ALPHAS, st.sampled_from([torch.float32, torch.float64, torch.bfloat16]))
def test_it_is_exact_and_rounded_once(seed, alpha, dtype):
    preds, target = (torch.randn(2, 30, generator=torch.Generator().manual_seed(seed)) * 1e6).to(dtype)
    a, exact = Fraction(alpha), Fraction(0)
    for p, t in zip(preds.tolist(), target.tolist(), strict=True):
        excess = Fraction(p) - Fraction(t)
        exact += excess * (1 - a) if excess > 0 else -excess * a
    assert float(PinballLoss(alpha)(preds, target)) == float(exact / 30)


def test_of_several_outputs_there_is_one_each():
    preds, target = np.random.default_rng(0).normal(size=(2, 20, 3))
    expected = mean_pinball_loss(target, preds, alpha=0.1, multioutput="raw_values")
    found = PinballLoss(0.1, num_outputs=3)(torch.from_numpy(preds), torch.from_numpy(target))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_of_the_median_it_is_half_the_mean_absolute_error():
    preds, target = torch.randn(2, 50, generator=torch.Generator().manual_seed(1))
    assert 2 * float(PinballLoss()(preds, target)) == float(MeanAbsoluteError()(preds, target))


@pytest.mark.filterwarnings("ignore::assay.errors.AssayWarning")
@pytest.mark.parametrize("strange", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_makes_it_nan(strange):
    assert PinballLoss(0.9)(torch.tensor([1.0, strange]), torch.zeros(2)).isnan()


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_what_is_no_quantile_is_refused(alpha):
    with pytest.raises(ConfigError, match=r"alpha: got .*\[0, 1\]"):
        PinballLoss(alpha)
