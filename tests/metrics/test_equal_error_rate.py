"""The equal error rate against the crossing of scikit-learn's ROC curve, found by SciPy, and against TorchMetrics."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from sklearn.metrics import roc_curve

from assay.errors import NoDataWarning
from assay.metrics import EqualErrorRate

SEEDS = st.integers(0, 2**32 - 1)


def samples(seed, count=60, different=12):
    """Scores with ties, some positives and some negatives."""
    rng = np.random.default_rng(seed)
    target = np.append(rng.integers(0, 2, count - 2), [0, 1])
    return rng.integers(0, different, count) / different, target


def crossing(scores, target, weights=None):
    """Where the two rates are equal on the curve, whose points are joined by straight lines."""
    fpr, tpr, _ = roc_curve(target, scores, sample_weight=weights, drop_intermediate=False)
    place = np.arange(len(fpr))
    where = brentq(lambda x: np.interp(x, place, fpr + tpr) - 1, 0, len(fpr) - 1, xtol=1e-14)
    return np.interp(where, place, fpr)


@given(SEEDS, st.integers(1, 60))
def test_it_is_where_the_curve_meets_the_line_of_equal_errors(seed, different):
    scores, target = samples(seed, different=different)
    found = EqualErrorRate()(torch.from_numpy(scores), torch.from_numpy(target))
    assert float(found) == pytest.approx(crossing(scores, target), abs=1e-12)


@given(SEEDS)
def test_weights_are_counts(seed):
    scores, target = samples(seed)
    weights = np.random.default_rng(seed).integers(1, 5, len(target)) / 4
    found = EqualErrorRate()(*map(torch.from_numpy, (scores, target)), weights=torch.from_numpy(weights))
    assert float(found) == pytest.approx(crossing(scores, target, weights), abs=1e-12)


@given(SEEDS)
def test_classes_and_labels_are_averaged(seed):
    rng = np.random.default_rng(seed)
    scores = rng.dirichlet(np.ones(3), 50)
    target = np.append(rng.integers(0, 3, 47), [0, 1, 2])
    each = [crossing(scores[:, k], target == k) for k in range(3)]
    preds = torch.from_numpy(scores), torch.from_numpy(target)
    np.testing.assert_allclose(EqualErrorRate(num_classes=3, average=None)(*preds), each, atol=1e-12)
    assert float(EqualErrorRate(num_classes=3)(*preds)) == pytest.approx(np.mean(each), abs=1e-12)
    labels = torch.nn.functional.one_hot(preds[1])
    np.testing.assert_allclose(EqualErrorRate(num_labels=3, average=None)(preds[0], labels), each, atol=1e-12)
    pooled = EqualErrorRate(num_labels=3, average="micro")(preds[0], labels)
    assert float(pooled) == pytest.approx(crossing(scores.ravel(), labels.numpy().ravel()), abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "target", "expected"),
    [
        ([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1], Fraction(0)),
        ([0.9, 0.8, 0.2, 0.1], [0, 0, 1, 1], Fraction(1)),
        ([0.5, 0.5, 0.5], [0, 0, 1], Fraction(1, 2)),
        ([0.9, 0.5, 0.5, 0.5], [1, 1, 0, 0], Fraction(1, 3)),
        ([0.9, 0.8, 0.7], [0, 1, 1], Fraction(1)),
    ],
)
def test_it_is_the_exact_fraction(scores, target, expected):
    assert float(EqualErrorRate()(torch.tensor(scores), torch.tensor(target))) == float(expected)


@given(SEEDS)
def test_bounds_from_a_histogram_hold_the_exact_value(seed):
    rng = np.random.default_rng(seed)
    target = np.append(rng.integers(0, 2, 78), [0, 1])
    scores = torch.from_numpy(0.5 + rng.integers(0, 2**16, 80) * 2.0**-24).float()  # many share a bin
    exact = float(EqualErrorRate()(scores, torch.from_numpy(target)))
    found = EqualErrorRate(exact_up_to=0, bounds=True)(scores, torch.from_numpy(target))
    assert found.lower <= exact <= found.upper
    assert found.lower <= found.value <= found.upper


def test_bounds_are_the_least_and_the_largest_value_of_all_orders_in_a_bin():
    places, target = [0.5 + k * 2.0**-24 for k in range(1, 6)], torch.tensor([1, 0, 1, 0, 0])
    every = [float(EqualErrorRate()(torch.tensor(order), target)) for order in permutations(places)]
    found = EqualErrorRate(exact_up_to=0, bounds=True)(torch.tensor(places), target)
    assert (float(found.lower), float(found.upper)) == (min(every), max(every))


def test_it_is_torchmetrics_value_where_a_threshold_has_equal_rates():
    torchmetrics = pytest.importorskip("torchmetrics")
    preds, target = torch.tensor([0.1, 0.4, 0.35, 0.8, 0.7, 0.2]), torch.tensor([0, 0, 1, 1, 1, 0])
    theirs = torchmetrics.functional.classification.binary_eer(preds, target)
    assert float(EqualErrorRate()(preds, target)) == pytest.approx(float(theirs), abs=1e-6)


@pytest.mark.parametrize("only", [0, 1])
def test_one_class_alone_has_none(only):
    with pytest.warns(NoDataWarning, match="EqualErrorRate: got no positives or no negatives"):
        assert EqualErrorRate()(torch.tensor([0.1, 0.9]), torch.full((2,), only)).isnan()
