"""`AUROC(max_fpr=)` against scikit-learn, whose definition it is, and the bounds that a histogram gives."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from torchmetrics.functional.classification import binary_auroc

from assay.errors import ConfigError, NoDataWarning
from assay.metrics import AUROC

SEEDS = st.integers(0, 2**32 - 1)
RATES = st.floats(0.001, 1)


@given(SEEDS, RATES, st.integers(1, 60), st.booleans())
def test_it_is_scikit_learns(seed, max_fpr, different, weighted):
    rng = np.random.default_rng(seed)
    target = np.append(rng.integers(0, 2, 58), [0, 1])
    scores = rng.integers(0, different, 60) / different
    weights = rng.integers(1, 9, 60) / 4 if weighted else None
    expected = roc_auc_score(target, scores, max_fpr=max_fpr, sample_weight=weights)
    found = AUROC(max_fpr=max_fpr)(
        torch.from_numpy(scores),
        torch.from_numpy(target),
        weights=None if weights is None else torch.from_numpy(weights),
    )
    assert float(found) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "max_fpr", "expected"),
    [
        ([0.1, 0.2, 0.8, 0.9], 0.5, Fraction(1)),
        ([0.9, 0.8, 0.2, 0.1], 0.5, Fraction(1, 3)),
        ([0.5, 0.5, 0.5, 0.5], 0.25, Fraction(1, 2)),
        ([0.1, 0.6, 0.5, 0.9], 0.5, Fraction(2, 3)),
    ],
)
def test_it_is_the_exact_fraction(scores, max_fpr, expected):
    found = AUROC(max_fpr=max_fpr)(torch.tensor(scores), torch.tensor([0, 0, 1, 1]))
    assert float(found) == float(expected)


@given(SEEDS, RATES)
def test_bounds_from_a_histogram_hold_the_exact_value(seed, max_fpr):
    rng = np.random.default_rng(seed)
    target = torch.from_numpy(np.append(rng.integers(0, 2, 78), [0, 1]))
    scores = torch.from_numpy(0.5 + rng.integers(0, 2**16, 80) * 2.0**-24).float()  # many share a bin
    exact = float(AUROC(max_fpr=max_fpr)(scores, target))
    found = AUROC(max_fpr=max_fpr, exact_up_to=0, bounds=True)(scores, target)
    assert found.lower <= exact <= found.upper
    assert found.lower <= found.value <= found.upper


@given(SEEDS, st.floats(0.3, 0.95))
def test_at_thresholds_it_is_torchmetrics(seed, max_fpr):
    rng = np.random.default_rng(seed)
    target = torch.from_numpy(np.append(rng.integers(0, 2, 58), [0, 1]))
    scores = torch.from_numpy(np.append(rng.integers(0, 9, 58), [1, 3]) / 10).float()  # none reaches the highest
    expected = binary_auroc(scores, target, max_fpr=max_fpr, thresholds=[0.0, 0.2, 0.3, 0.5, 0.7, 0.85])
    found = AUROC(max_fpr=max_fpr, thresholds=[0.0, 0.2, 0.3, 0.5, 0.7, 0.85])(scores, target)
    assert float(found) == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("max_fpr", [0, -0.5, 1.5, float("nan")])
def test_what_is_no_rate_is_refused(max_fpr):
    with pytest.raises(ConfigError, match="max_fpr: got"):
        AUROC(max_fpr=max_fpr)


def test_it_is_for_binary_data():
    with pytest.raises(ConfigError, match=r"max_fpr: got .*not binary"):
        AUROC(max_fpr=0.5, num_classes=3)


def test_without_negatives_there_is_no_value():
    with pytest.warns(NoDataWarning, match="negatives"):
        assert AUROC(max_fpr=0.5)(torch.tensor([0.1, 0.9]), torch.tensor([1, 1])).isnan()
