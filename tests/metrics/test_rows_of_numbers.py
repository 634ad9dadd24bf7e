"""Distances of vectors, ensembles, divergences and entropies against SciPy, torch, Ignite and TorchMetrics."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torchmetrics
from ignite.metrics import Entropy as IgniteEntropy
from ignite.metrics import JSDivergence
from ignite.metrics import MutualInformation as IgniteMutualInformation
from scipy.spatial.distance import jensenshannon
from scipy.special import softmax
from scipy.stats import entropy

from assay.errors import ConfigError, DtypeError, InvalidValuesError, ShapeError
from assay.metrics import (
    ContinuousRankedProbabilityScore,
    Entropy,
    JensenShannonDivergence,
    KLDivergence,
    MeanPairwiseDistance,
    MutualInformation,
)
from assay.tally.base import Batch
from assay.tally.rows.row_terms import Divergence
from assay.tally.rows.vector_terms import DivergenceOfMean
from thinning import draws

SEEDS = draws(200)


@pytest.mark.parametrize("term", [Divergence(), DivergenceOfMean()])
def test_divergences_of_ordinary_rows_take_a_shorter_way_to_the_same_bits(term):
    """Rows of positive numbers of which none is tiny beside the others; all others go the long way."""
    shorter = 0
    for seed in SEEDS:
        generator = np.random.default_rng(seed)
        shape, scale = (1 + seed % 9, 1 + seed % 5), (0, 1, 5, 40)[seed % 4]
        dtype = (torch.float32, torch.float64)[seed % 2]
        p, q = (torch.from_numpy(np.exp(scale * generator.normal(size=shape))).to(dtype) for _ in range(2))
        if seed % 5 == 0:
            p[0, 0], q[-1, -1] = ((0, 1), (1, -1), (math.nan, 1), (1, math.nan), (math.inf, 1))[seed // 5 % 5]
        rows, expected = term(Batch(p, q, compiled=True)), term(Batch(p, q))
        shorter += not rows.invalid
        assert rows.values[0].dtype == dtype
        torch.testing.assert_close(rows.values[0], expected.values[0], rtol=0, atol=0, equal_nan=True)
        assert rows.invalid or not any(each.any() for each in expected.invalid)
    assert len(SEEDS) // 3 < shorter < len(SEEDS)


def tensors(*arrays):
    return tuple(torch.from_numpy(np.asarray(each)) for each in arrays)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3, math.inf])
def test_distances_are_norms(p):
    for seed in SEEDS:
        x, y = np.random.default_rng(seed).normal(size=(2, 1 + seed % 9, 1 + seed % 5))
        weights = np.random.default_rng(seed).integers(1, 9, len(x)) / 4
        each = np.linalg.norm(x - y, ord=p, axis=1)
        found = MeanPairwiseDistance(p)(*tensors(x, y), weights=torch.from_numpy(weights))
        assert float(found) == pytest.approx(np.average(each, weights=weights), rel=1e-12)


def test_distances_with_eps_are_torchs_and_large_ones_do_not_overflow():
    x, y = torch.randn(2, 20, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = torch.nn.functional.pairwise_distance(x, y).mean()
    assert float(MeanPairwiseDistance(eps=1e-6)(x, y)) == pytest.approx(float(expected), rel=1e-12)
    assert float(MeanPairwiseDistance()(torch.full((1, 4), 1e30), torch.zeros(1, 4))) == pytest.approx(2e30)
    assert float(MeanPairwiseDistance()(torch.ones(2, 4), torch.ones(2, 4))) == 0


def brute_force(x: np.ndarray, y: np.ndarray) -> float:
    spread = np.abs(x[:, :, None] - x[:, None, :]).mean((1, 2)) / 2
    return float(np.mean(np.abs(x - y[:, None]).mean(1) - spread))


def test_ensembles_are_scored_as_by_all_pairs():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        x, y = rng.integers(-5, 6, (1 + seed % 7, 1 + seed % 6)) / 4, rng.normal(size=1 + seed % 7)
        found = float(ContinuousRankedProbabilityScore()(*tensors(x, y)))
        assert found == pytest.approx(brute_force(x, y), rel=1e-12, abs=1e-14)
    x, y = torch.randn(30, 6), torch.randn(30)
    other = torchmetrics.regression.ContinuousRankedProbabilityScore()
    other.update(x, y)
    assert float(ContinuousRankedProbabilityScore()(x, y)) == pytest.approx(float(other.compute()), rel=1e-5)


def test_jensen_shannon_is_scipys_squared():
    for seed in SEEDS:
        p, q = np.random.default_rng(seed).gamma(0.5, size=(2, 1 + seed % 6, 2 + seed % 4))
        if seed % 3 == 0:
            p[:, 0] = q[:, -1] = 0
        expected = np.mean(jensenshannon(p, q, axis=1) ** 2)
        assert float(JensenShannonDivergence()(*tensors(p, q))) == pytest.approx(expected, rel=1e-10, abs=1e-14)
        logs = tensors(*(np.log(x / x.sum(1, keepdims=True) + 1e-300) for x in (p, q)))
        assert float(JensenShannonDivergence(log_prob=True)(*logs)) == pytest.approx(expected, rel=1e-10, abs=1e-14)


def test_jensen_shannon_is_torchmetrics_and_ignites():
    p, q = torch.rand(2, 9, 4, generator=torch.Generator().manual_seed(1))
    for how in ("mean", "sum"):
        expected = torchmetrics.functional.regression.jensen_shannon_divergence(p, q, reduction=how)
        assert float(JensenShannonDivergence(reduction=how)(p, q)) == pytest.approx(float(expected), rel=1e-5)
    other = JSDivergence()
    other.update((p, q))
    assert float(JensenShannonDivergence()(p.softmax(1), q.softmax(1))) == pytest.approx(other.compute(), rel=1e-5)


def test_distributions_that_are_equal_or_apart():
    assert float(JensenShannonDivergence()(torch.eye(3), torch.eye(3))) == 0
    found = float(JensenShannonDivergence()(torch.eye(3), torch.eye(3).roll(1, 0)))
    assert found == pytest.approx(math.log(2))


@pytest.mark.parametrize("bad", [[-0.5, 1.5], [0.0, 0.0], [math.nan, 1.0], [math.inf, 1.0]])
def test_what_is_no_distribution_raises(bad):
    for metric in (JensenShannonDivergence(), KLDivergence()):
        for rows in ((bad, [0.5, 0.5]), ([0.5, 0.5], bad)):
            with pytest.raises(InvalidValuesError, match=r"rows have (negative probabilities|NaN, or a sum)"):
                metric(*(torch.tensor([row]) for row in rows))


@pytest.mark.parametrize("kind", [JensenShannonDivergence, KLDivergence])
def test_rows_whose_sum_is_beyond_float32_are_distributions(kind):
    p, q = torch.tensor([[3e38, 3e38, 1e38]]), torch.tensor([[1e38, 3e38, 3e38]])
    expected = float(kind()(p.double(), q.double()))
    assert float(kind()(p, q)) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("kind", [JensenShannonDivergence, KLDivergence])
def test_integers_are_no_probabilities(kind):
    with pytest.raises(DtypeError, match=r"preds: got torch\.int64"):
        kind()(torch.tensor([[1, 2]]), torch.tensor([[1, 2]]))


@pytest.mark.parametrize("kind", [JensenShannonDivergence, KLDivergence])
@pytest.mark.parametrize("bad", [[-math.inf, -math.inf], [math.inf, 0.0], [math.nan, 0.0]])
def test_logarithms_without_a_distribution_raise(kind, bad):
    for rows in ((bad, [-1.0, -0.5]), ([-1.0, -0.5], bad)):
        with pytest.raises(InvalidValuesError, match="rows have NaN, or a sum"):
            kind(log_prob=True)(*(torch.tensor([row]) for row in rows))


def test_entropies_are_scipys_and_ignites():
    for seed in SEEDS:
        logits = np.random.default_rng(seed).normal(size=(1 + seed % 9, 2 + seed % 5)) * 10
        weights = np.random.default_rng(seed).integers(1, 9, len(logits)) / 4
        shares = softmax(logits, axis=1)
        expected = np.average(entropy(shares, axis=1), weights=weights)
        found = Entropy(logits=True)(*tensors(logits), weights=torch.from_numpy(weights))
        assert float(found) == pytest.approx(expected, rel=1e-11, abs=1e-15)
        assert float(Entropy()(*tensors(shares))) == pytest.approx(np.mean(entropy(shares, axis=1)), rel=1e-12)
        mean = entropy(np.average(shares, axis=0, weights=weights))
        metric = MutualInformation(shares.shape[1], logits=True)
        found = metric(*tensors(logits), weights=torch.from_numpy(weights))
        assert float(found) == pytest.approx(mean - expected, abs=1e-12)
    for ours, theirs in ((Entropy(logits=True), IgniteEntropy()), (metric, IgniteMutualInformation())):
        theirs.update((*tensors(logits), torch.zeros(len(logits))))
        assert float(ours(*tensors(logits))) == pytest.approx(theirs.compute(), rel=1e-6)


def test_sure_predictions_have_no_entropy():
    assert float(Entropy()(torch.eye(3))) == 0
    assert float(Entropy(logits=True)(torch.tensor([[1000.0, 0.0, -math.inf]]))) == 0
    assert float(MutualInformation(3)(torch.eye(3))) == pytest.approx(math.log(3))
    assert float(MutualInformation(3)(torch.eye(3)[[1, 1]])) == 0


@pytest.mark.parametrize("metric", [Entropy(), MutualInformation(2)])
@pytest.mark.parametrize("bad", [[-0.5, 1.5], [math.nan, 1.0], [3.0, 4.0]])
def test_scores_that_are_no_probabilities_raise(metric, bad):
    with pytest.raises(InvalidValuesError, match="logits=True"):
        metric(torch.tensor([bad]))


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match="preds: got"):
        MeanPairwiseDistance()(torch.zeros(3), torch.zeros(3))
    with pytest.raises(ShapeError, match="preds: got"):
        ContinuousRankedProbabilityScore()(torch.zeros(3, 4), torch.zeros(3, 4))
    with pytest.raises(ShapeError, match="weights: got"):
        Entropy()(torch.full((3, 2), 0.5), weights=torch.ones(3, 2))
    with pytest.raises(ShapeError):
        MutualInformation(3)(torch.full((3, 2), 0.5))
    for arguments in ({"p": 0.5}, {"eps": -1}, {"eps": math.inf}):
        with pytest.raises(ConfigError):
            MeanPairwiseDistance(**arguments)


def test_integers_are_subtracted_as_integers():
    assert MeanPairwiseDistance()(torch.tensor([[2**24 + 1]]), torch.tensor([[2**24]])) == 1
    assert ContinuousRankedProbabilityScore()(torch.tensor([[2**24 + 1]]), torch.tensor([2**24])) == 1
