"""The association of categories: against SciPy, exact fractions and the definitions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.stats import entropy
from scipy.stats.contingency import association, crosstab

from assay.errors import ConfigError, InvalidValuesError, NoDataWarning, ShapeError
from assay.metrics import CramersV, PearsonsContingencyCoefficient, TheilsU, TschuprowsT
from thinning import draws

CORRECTED = (CramersV, TschuprowsT)
PLAIN = {
    CramersV(bias_correction=False): "cramer",
    TschuprowsT(bias_correction=False): "tschuprow",
    PearsonsContingencyCoefficient(): "pearson",
}
EVERY = (*CORRECTED, PearsonsContingencyCoefficient, TheilsU)


def categories(seed: int, low: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    """Up to 40 samples of two variables with at least `low` categories; at times one determines the other."""
    rng = np.random.default_rng(seed)
    while True:
        size = int(rng.integers(3, 41))
        preds, target = (rng.choice(rng.normal(size=rng.integers(2, 6)), size) for _ in range(2))
        target = np.sign(preds) if seed % 9 == 0 else target
        if min(len(np.unique(preds)), len(np.unique(target))) >= low:
            return torch.from_numpy(preds), torch.from_numpy(target)


def table_of(preds, target) -> np.ndarray:
    return crosstab(preds.numpy(), target.numpy()).count


@pytest.mark.parametrize("metric", PLAIN, ids=repr)
def test_it_is_scipys(metric):
    for seed in draws(200):
        preds, target = categories(seed)
        expected = association(table_of(preds, target), method=PLAIN[metric])
        assert float(metric(preds, target)) == pytest.approx(expected, rel=1e-12, abs=1e-12), seed


def exact_phi(table: np.ndarray) -> Fraction:
    rows, columns, n = table.sum(1), table.sum(0), int(table.sum())
    expected = {(i, j): Fraction(int(rows[i]) * int(columns[j]), n) for i, j in np.ndindex(table.shape)}
    return sum((int(table[cell]) - each) ** 2 / each for cell, each in expected.items()) / n


@pytest.mark.parametrize("kind", CORRECTED)
def test_the_correction_of_the_bias_is_bergsmas(kind):
    for seed in draws(200):
        preds, target = categories(seed)
        table = table_of(preds, target)
        (r, c), n = table.shape, int(table.sum())
        if n <= max(r, c):
            continue
        phi = max(Fraction(0), exact_phi(table) - Fraction((r - 1) * (c - 1), n - 1))
        rows, columns = (k - 1 - Fraction((k - 1) ** 2, n - 1) for k in (r, c))
        below = min(rows, columns) if kind is CramersV else math.sqrt(rows * columns)
        expected = min(1.0, math.sqrt(phi / below))
        assert float(kind()(preds, target)) == pytest.approx(expected, rel=1e-14), seed


def test_theils_u_is_the_share_of_the_entropy_that_is_explained():
    for seed in draws(200):
        preds, target = categories(seed)
        joint = table_of(preds, target) / len(preds)
        above = entropy(joint.sum(1)) + entropy(joint.sum(0)) - entropy(joint.ravel())
        expected = above / entropy(joint.sum(1))
        assert float(TheilsU()(preds, target)) == pytest.approx(expected, rel=1e-12, abs=1e-12), seed
        assert float(TheilsU()(preds, preds)) == 1


@pytest.mark.parametrize("kind", EVERY)
def test_independent_categories_are_0_to_the_bit(kind):
    preds, target = torch.tensor([1.5, 1.5, 7, 7, 7, 7]), torch.tensor([0, 1, 0, 0, 1, 1])
    assert float(kind()(preds, target)) == 0
    assert float(kind(num_classes=8)(preds.long(), target)) == 0


@pytest.mark.parametrize("kind", EVERY)
def test_a_table_of_known_categories_gives_the_bits_of_kept_samples(kind):
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        preds, target = torch.randint(0, 5, (2, 50), generator=generator)
        value = float(kind()(preds, target))
        assert float(kind(num_classes=5)(preds, target)) == value
        assert float(kind(num_classes=9)(torch.eye(9)[preds], target)) == value
        weights = torch.randint(0, 3, (50,), generator=generator)
        weighted = float(kind()(preds, target, weights=weights))
        assert weighted == float(kind()(preds.repeat_interleave(weights), target.repeat_interleave(weights)))
        assert weighted == float(kind(num_classes=5)(preds, target, weights=weights.float()))


@pytest.mark.parametrize("kind", EVERY)
def test_a_nan_is_an_error_a_category_or_left_out_as_the_caller_says(kind):
    nan = math.nan
    preds = torch.tensor([0.0, nan, 1, 1, 2, 2, 2, nan, 1])
    target = torch.tensor([0, 1, 1, 1, 2, nan, 2, nan, 0])
    with pytest.raises(InvalidValuesError, match="4 of the labels are NaN"):
        kind()(preds, target)
    there = ~(preds.isnan() | target.isnan())
    assert float(kind(nan_strategy="drop")(preds, target)) == float(kind()(preds[there], target[there]))
    for value in (0.0, -3.0):
        metric = kind(nan_strategy="replace", nan_replace_value=value)
        assert float(metric(preds, target)) == float(kind()(preds.nan_to_num(value), target.nan_to_num(value)))
    weights = torch.arange(9)
    expected = float(kind()(preds[there], target[there], weights=weights[there]))
    assert float(kind(nan_strategy="drop")(preds, target, weights=weights)) == expected


@pytest.mark.parametrize("kind", [*CORRECTED, TheilsU])
def test_of_a_single_category_nothing_is_explained(kind):
    with pytest.warns(NoDataWarning):
        assert kind()(torch.zeros(5), torch.arange(5)).isnan()
    with pytest.warns(NoDataWarning):
        assert kind()(torch.zeros(0), torch.zeros(0)).isnan()


@pytest.mark.parametrize("kind", CORRECTED)
def test_a_category_for_each_sample_has_no_correction(kind):
    samples = torch.arange(5)
    with pytest.warns(NoDataWarning):
        assert kind()(samples, samples).isnan()
    assert float(kind(bias_correction=False)(samples, samples)) == 1


def test_counts_are_exact_for_any_number_of_samples():
    """Of 4e15 samples, whose products do not fit int64."""
    many, few = 10**15, 10**15 - 10**6
    cells = torch.tensor([[0, 0, many], [0, 1, few], [1, 0, few], [1, 1, many]])
    table = np.array([[many, few], [few, many]], dtype=object)
    value = float(CramersV(bias_correction=False)(cells[:, 0], cells[:, 1], weights=cells[:, 2]))
    assert value == pytest.approx(math.sqrt(exact_phi(table)), rel=1e-15)


@pytest.mark.parametrize("kind", EVERY)
def test_bad_arguments_raise_one_clear_error(kind):
    with pytest.raises(ConfigError, match="nan_strategy: got 'skip'"):
        kind(nan_strategy="skip")
    with pytest.raises(ConfigError, match="None with num_classes"):
        kind(nan_strategy="drop", num_classes=3)
    with pytest.raises(ConfigError, match="nan_replace_value: got 'a'"):
        kind(nan_replace_value="a")
    with pytest.raises(ShapeError, match="target"):
        kind()(torch.zeros(3), torch.zeros(3, 2))
