"""`zero_division=` against scikit-learn, with predictions that never are of some classes."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import sklearn.metrics as sk
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError
from assay.metrics import DiceScore, F1Score, FBetaScore, JaccardIndex, Precision, Recall

PAIRS = {
    Precision: sk.precision_score,
    Recall: sk.recall_score,
    F1Score: sk.f1_score,
    DiceScore: sk.f1_score,
    JaccardIndex: sk.jaccard_score,
}
UNDEFINED = [0, 1, math.nan]
pytestmark = pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
kinds = pytest.mark.parametrize("kind", PAIRS)


def expected(kind, target, preds, average, undefined, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return PAIRS[kind](target, preds, average=average, zero_division=undefined, **more)
        except ValueError:  # the Jaccard index of scikit-learn takes no NaN
            return None


@kinds
@given(st.integers(0, 2**32 - 1), st.sampled_from(UNDEFINED), st.integers(1, 6))
def test_it_is_scikit_learns(kind, seed, undefined, count):
    rng = np.random.default_rng(seed)
    target, preds = rng.integers(0, 4, count), rng.integers(0, 2, count)
    batch = torch.from_numpy(preds), torch.from_numpy(target)
    present = sorted({*target, *preds})
    for average in ("micro", "macro", "weighted"):
        other = expected(kind, target, preds, average, undefined, labels=present)
        found = float(kind(num_classes=4, average=average, zero_division=undefined)(*batch))
        no_value = other is None or math.isnan(found)  # where no class has a value, scikit-learn's mean of NaN is 0
        assert no_value or found == pytest.approx(other, abs=1e-12)
    other = expected(kind, target > 1, preds > 1, "binary", undefined)
    found = float(kind(zero_division=undefined)(*(torch.from_numpy((x > 1).astype(int)) for x in (preds, target))))
    assert other is None or found == pytest.approx(other, nan_ok=True)


@kinds
@given(st.integers(0, 2**32 - 1), st.sampled_from(UNDEFINED))
def test_labels_that_are_never_predicted(kind, seed, undefined):
    rng = np.random.default_rng(seed)
    target, preds = rng.integers(0, 2, (3, 4)), rng.integers(0, 2, (3, 4))
    preds[:, 0] = target[:, 1] = 0
    for average in ("micro", "macro", "weighted", None):
        if average == "weighted" and not target.any():
            continue  # see below
        other = expected(kind, target, preds, average, undefined)
        found = kind(num_labels=4, average=average, zero_division=undefined)(*map(torch.from_numpy, (preds, target)))
        if other is not None and not (found.ndim == 0 and found.isnan()):
            np.testing.assert_allclose(found, other, atol=1e-12)


@kinds
@pytest.mark.parametrize("undefined", UNDEFINED)
def test_a_mean_without_weights_is_undefined(kind, undefined):
    """It is 0 / 0, where scikit-learn gives the mean of all labels."""
    target, preds = torch.zeros(3, 4, dtype=torch.long), torch.tensor([[0, 1, 1, 1], [0, 0, 1, 1], [0, 1, 0, 0]])
    found = kind(num_labels=4, average="weighted", zero_division=undefined)(preds, target)
    assert float(found) == pytest.approx(undefined, nan_ok=True)


def test_the_f_score_of_nothing():
    nothing = torch.zeros(3, dtype=torch.long)
    assert float(FBetaScore(beta=2, zero_division=1)(nothing, nothing)) == 1
    assert FBetaScore(beta=2, zero_division=math.nan)(nothing, nothing).isnan()


@pytest.mark.parametrize("value", [0.5, 2, -1])
def test_other_values_are_refused(value):
    with pytest.raises(ConfigError, match="zero_division: got"):
        Precision(zero_division=value)
