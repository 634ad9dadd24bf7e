"""Rankings of the labels of each row against scikit-learn and TorchEval; likelihood ratios, DET curves, LogAUC."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import sklearn.metrics as sk
import torch
import torcheval.metrics.functional as torcheval
import torchmetrics.functional.classification as torchmetrics

from assay import Meter
from assay.errors import ConfigError, InputError, InvalidValuesError, NoDataWarning
from assay.metrics import (
    DETCurve,
    LogAUC,
    MultilabelCoverageError,
    MultilabelRankingAveragePrecision,
    MultilabelRankingLoss,
    NegativeLikelihoodRatio,
    NormalizedEntropy,
    PositiveLikelihoodRatio,
    TopKMultilabelAccuracy,
    WeightedCalibration,
)
from thinning import draws

SEEDS = draws(200)
RANKINGS = {
    MultilabelCoverageError: sk.coverage_error,
    MultilabelRankingLoss: sk.label_ranking_loss,
    MultilabelRankingAveragePrecision: sk.label_ranking_average_precision_score,
}


def rows(seed: int):
    """Scores with ties; rows in which no label or all labels are right are frequent."""
    rng = np.random.default_rng(seed)
    count, labels = 1 + seed % 9, 2 + seed % 5
    return rng.integers(0, 1 + seed % 7, (count, labels)) / 4, rng.integers(0, 2, (count, labels))


@pytest.mark.parametrize("kind", RANKINGS)
def test_rankings_are_scikit_learns(kind):
    for seed in SEEDS:
        scores, target = rows(seed)
        weights = np.random.default_rng(seed).integers(1, 9, len(scores)) / 4 if seed % 2 else None
        expected = RANKINGS[kind](target, scores, sample_weight=weights)
        found = kind(scores.shape[1])(
            *map(torch.from_numpy, (scores, target)), weights=None if weights is None else torch.from_numpy(weights)
        )
        assert float(found) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("criteria", ["exact_match", "hamming", "overlap", "contain", "belong"])
def test_top_k_is_torchevals(criteria):
    for seed in SEEDS:
        scores, target = rows(seed)
        scores = torch.from_numpy(scores + np.random.default_rng(seed).random(scores.shape) / 8)  # without ties
        target = torch.from_numpy(target)
        expected = torcheval.topk_multilabel_accuracy(scores, target, criteria=criteria, k=2)
        found = TopKMultilabelAccuracy(scores.shape[1], criteria, k=2)(scores, target)
        assert float(found) == pytest.approx(float(expected), rel=1e-6)


def test_positions_of_a_row_are_rows():
    scores, target = torch.rand(4, 3, 5), torch.randint(0, 2, (4, 3, 5))
    flat = (x.movedim(1, -1).reshape(-1, 3) for x in (scores, target))
    assert float(MultilabelRankingLoss(3)(scores, target)) == float(MultilabelRankingLoss(3)(*flat))


@pytest.mark.parametrize("kind", [*RANKINGS, TopKMultilabelAccuracy])
def test_bad_input_is_refused(kind):
    with pytest.raises(ConfigError, match="num_labels: got None"):
        kind()
    for preds, target in (([[math.nan, 1.0]], [[1, 0]]), ([[0.5, 1.0]], [[2, 0]])):
        with pytest.raises(InvalidValuesError):
            kind(2)(torch.tensor(preds), torch.tensor(target))


def test_options_that_do_not_fit_are_refused():
    with pytest.raises(ConfigError, match="criteria: got 'any'"):
        TopKMultilabelAccuracy(3, "any")
    with pytest.raises(ConfigError, match="k: got 4"):
        TopKMultilabelAccuracy(3, k=4)
    for limits in ((0, 0.1), (0.2, 0.1), (0.1, 1.5), (0.1,), 0.1):
        with pytest.raises(ConfigError, match="fpr_range: got"):
            LogAUC(fpr_range=limits)


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
def test_likelihood_ratios_are_scikit_learns():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        preds, target = rng.integers(0, 2, (2, 2 + seed % 9))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = sk.class_likelihood_ratios(target, preds, labels=[0, 1], replace_undefined_by=np.nan)
        batch = torch.from_numpy(preds), torch.from_numpy(target)
        found = [float(kind()(*batch)) for kind in (PositiveLikelihoodRatio, NegativeLikelihoodRatio)]
        assert found == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_likelihood_ratios_of_classes_are_those_of_one_against_the_rest():
    preds, target = torch.tensor([0, 1, 2, 2, 1, 0]), torch.tensor([0, 1, 1, 2, 2, 0])
    for kind in (PositiveLikelihoodRatio, NegativeLikelihoodRatio):
        each = kind(num_classes=3, average=None)(preds, target)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            expected = [float(kind()((preds == k).long(), (target == k).long())) for k in range(3)]
        assert each.tolist() == pytest.approx(expected, nan_ok=True)
        assert float(kind(num_classes=3)(preds, target)) == pytest.approx(np.nanmean(expected))


def binary(seed: int, count: int = 60):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 1 + seed % 40, count) / 40, np.append(rng.integers(0, 2, count - 2), [0, 1])


def test_the_tradeoff_is_scikit_learns():
    for seed in SEEDS:
        scores, target = binary(seed)
        expected = sk.det_curve(target, scores, drop_intermediate=False)
        for one, two in zip(DETCurve()(*map(torch.from_numpy, (scores, target))), expected, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-12)


def test_the_tradeoff_without_negatives_has_no_rates():
    with pytest.warns(NoDataWarning, match="negatives"):
        assert DETCurve()(torch.tensor([0.1, 0.9]), torch.tensor([1, 1])).fpr.isnan().all()


def test_log_auc_of_equal_scores_is_torchmetrics():
    for seed in draws(100):
        rng = np.random.default_rng(seed)
        scores = torch.from_numpy(rng.integers(0, 8, 200) / 8)
        target = torch.from_numpy(rng.integers(0, 2, 200))
        limits = (0.0313, 0.4219)
        expected = torchmetrics.binary_logauc(scores, target, fpr_range=limits)
        # Where a curve has steps they are wrong: the height at a limit is then on a line that cuts a step.
        assert float(LogAUC(fpr_range=limits)(scores, target)) == pytest.approx(float(expected), abs=1e-6)


def test_log_auc_is_the_area_under_the_steps():
    for seed in draws(100):
        rng = np.random.default_rng(seed)
        scores, target = rng.permutation(60) / 64, np.append(rng.integers(0, 2, 58), [0, 1])
        rank = target[np.argsort(-scores)]
        found = np.append(np.cumsum(rank)[rank == 0], rank.sum()) / rank.sum()  # the height left of each negative
        rates = np.arange(len(found)) / (len(found) - 1)
        low, high = ((0.001, 0.1), (0.1, 0.5), (0.25, 1.0))[seed % 3]  # also at rates where the curve rises
        widths = np.diff(np.log(np.clip(rates, low, high)))
        expected = np.dot(widths, found[:-1]) / math.log(high / low)
        value = LogAUC(fpr_range=(low, high))(torch.from_numpy(scores), torch.from_numpy(target))
        assert float(value) == pytest.approx(expected, rel=1e-12)


def test_log_auc_is_the_integral():
    target, scores = torch.tensor([0, 1, 0, 1, 0, 0]), torch.tensor([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    # The heights at the rates 1/4, 1/2 (after the second hit) and 1 are 1/2, 1 and 1.
    expected = (0.5 * math.log(2) + math.log(2)) / math.log(4)
    assert float(LogAUC(fpr_range=(0.25, 1.0))(scores, target)) == pytest.approx(expected, rel=1e-12)


def test_bounds_of_log_auc_hold_the_exact_value():
    for seed in draws(50):
        rng = np.random.default_rng(seed)
        target = torch.from_numpy(np.append(rng.integers(0, 2, 78), [0, 1]))
        scores = torch.from_numpy(0.5 + rng.integers(0, 2**16, 80) * 2.0**-24).float()  # many share a bin
        metric = LogAUC(fpr_range=(0.1, 0.8), exact_up_to=0, bounds=True)
        found, exact = metric(scores, target), float(LogAUC(fpr_range=(0.1, 0.8))(scores, target))
        assert found.lower <= exact <= found.upper


def test_normalized_entropy_is_torchevals_and_the_quotient():
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        target, scores = np.append(rng.integers(0, 2, 8), [0, 1]), rng.uniform(0.05, 0.95, 10)
        weights = rng.integers(1, 9, 10) / 4
        share = np.average(target, weights=weights)
        base = -(share * np.log(share) + (1 - share) * np.log(1 - share))
        expected = sk.log_loss(target, scores, sample_weight=weights) / base
        batch, weights = (torch.from_numpy(scores), torch.from_numpy(target)), torch.from_numpy(weights)
        found = float(NormalizedEntropy()(*batch, weights=weights))
        assert found == pytest.approx(expected, rel=1e-12)
        logits = torch.logit(batch[0])
        assert float(NormalizedEntropy(logits=True)(logits, batch[1], weights=weights)) == pytest.approx(found)
        other = torcheval.binary_normalized_entropy(batch[0], batch[1].double(), weight=weights)
        assert found == pytest.approx(float(other), rel=1e-6)


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
def test_normalized_entropy_of_targets_that_are_alike():
    ones = torch.ones(2, dtype=torch.long)
    assert float(NormalizedEntropy()(torch.tensor([0.5, 0.9]), ones)) == math.inf
    assert NormalizedEntropy()(torch.ones(2), ones).isnan()


def test_weighted_calibration_is_torchevals():
    for seed in draws(20):
        scores, target = (torch.from_numpy(x) for x in binary(seed))
        weights = torch.from_numpy(np.random.default_rng(seed).integers(1, 9, 60) / 4)
        expected = torcheval.weighted_calibration(scores, target, weights)
        assert float(WeightedCalibration()(scores, target, weights=weights)) == pytest.approx(float(expected))


def test_log_auc_at_stated_thresholds_is_a_share():
    for seed in draws(200):
        generator = torch.Generator().manual_seed(seed)
        scores, target = torch.rand(20, generator=generator), torch.arange(20) % 2
        thresholds = sorted(torch.rand(3, generator=generator).tolist())
        assert 0 <= LogAUC(fpr_range=(0.01, 0.9), thresholds=thresholds)(scores, target) <= 1


@pytest.mark.parametrize("kind", [MultilabelCoverageError, MultilabelRankingLoss])
def test_weights_of_labels_are_refused_at_once(kind):
    meter = Meter(value=kind(num_labels=2), weighted=True)
    scores, target = torch.tensor([[0.2, 0.7], [0.9, 0.1]]), torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(InputError, match="weights"):
        meter.update(scores, target, weights=torch.ones(2, 2))
    meter.update(scores, target, weights=torch.ones(2))
    assert meter.rows == 2


@pytest.mark.filterwarnings("ignore:.*is undefined:assay.errors.NoDataWarning")
@pytest.mark.parametrize("kind", RANKINGS)
def test_ignored_labels_leave_their_row(kind):
    for seed in SEEDS:
        scores, target = rows(seed)
        rng = np.random.default_rng(seed)
        weights = rng.integers(1, 9, len(scores)) / 4
        target = np.where(rng.integers(0, 3, target.shape) == 0, -1, target)
        scores = np.where((target == -1) & (rng.integers(0, 2, target.shape) == 0), np.nan, scores)
        kept = [row != -1 for row in target]
        some = [k for k, each in enumerate(kept) if each.any()]
        values = [_of_row(kind, target[k][kept[k]], scores[k][kept[k]]) for k in some]
        expected = np.average(values, weights=weights[some]) if some else math.nan
        found = kind(scores.shape[1], ignore_index=-1)(
            *map(
                torch.from_numpy,
                (
                    scores,
                    target,
                ),
            ),
            weights=torch.from_numpy(weights),
        )
        assert float(found) == pytest.approx(expected, rel=1e-12, abs=1e-15, nan_ok=True)


def _of_row(kind, target: np.ndarray, scores: np.ndarray) -> float:
    """scikit-learn takes rows of two labels or more: one more that is wrong, and scores less, changes no rank."""
    if len(target) > 1:
        return RANKINGS[kind](target[None], scores[None])
    return {MultilabelCoverageError: float(target[0]), MultilabelRankingLoss: 0.0}.get(kind, 1.0)
