"""Batches that are counted by prepared calls: weighted ones, and those whose terms, or rows, torch computes."""

from __future__ import annotations

import pytest
import torch

from assay import BrierScore, Mean, MeanAbsoluteError, Meter
from assay.errors import InvalidValuesError
from assay.metrics import (
    ContinuousRankedProbabilityScore,
    CosineSimilarity,
    HingeLoss,
    JensenShannonDivergence,
    KLDivergence,
    LogCoshError,
    LogLoss,
    MeanAbsolutePercentageError,
    MinkowskiDistance,
    MultilabelCoverageError,
    MultilabelRankingLoss,
    Perplexity,
)

GENERATOR = torch.Generator().manual_seed(7)
ODD = {
    "plain": None,
    "weight 0": lambda values, weights: weights.__setitem__(2, 0),
    "NaN": lambda values, weights: values.__setitem__(1, torch.nan),
    "infinite": lambda values, weights: values.__setitem__(1, torch.inf),
}


def same(first, second):
    """Whether meters have the same states, to the bit."""
    states = zip(first.states(), second.states(), strict=True)
    return all(torch.equal(a[name], b[name]) for a, b in states for name in a)


@pytest.mark.filterwarnings("ignore::assay.errors.InvalidValuesWarning")
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("weight_dtype", [torch.float32, torch.float64, torch.int64], ids=str)
@pytest.mark.parametrize("nan_policy", ["propagate", "warn"])
def test_weighted_batches_are_counted_as_others_are(nan_policy, weight_dtype, odd):
    metric = Mean(nan_policy=nan_policy)
    prepared, plain = Meter(weighted=True, v=metric), Meter(weighted=True, v=metric)
    for k in range(5):
        values = torch.randn(7, generator=GENERATOR)
        weights = (torch.rand(7, generator=GENERATOR) * 5 + 1).to(weight_dtype)
        if k == 3 and ODD[odd] is not None:
            ODD[odd](values, weights)
        value = prepared.forward(values, weights=weights)["v"]
        alone = Meter(weighted=True, v=metric)
        alone.update(values, weights=weights)
        torch.testing.assert_close(value, alone.compute()["v"], rtol=0, atol=0, equal_nan=True)
        plain.update(values, weights=weights)
    assert same(prepared, plain)


def test_bad_weights_of_a_later_batch_raise():
    meter = Meter(weighted=True, v=Mean())
    for _ in range(4):
        meter.forward(torch.ones(3), weights=torch.ones(3))
    with pytest.raises(InvalidValuesError, match="weights"):
        meter.forward(torch.ones(3), weights=torch.tensor([1.0, -1.0, torch.nan]))
    assert meter.rows == 12


@pytest.mark.filterwarnings("ignore::assay.errors.InvalidValuesWarning")
@pytest.mark.parametrize(
    "metric",
    [MeanAbsoluteError(), LogCoshError(), MeanAbsolutePercentageError(), MinkowskiDistance(p=3)],
    ids=str,
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_terms_that_torch_computes_are_counted_as_others_are(metric, dtype):
    prepared, plain = Meter(v=metric), Meter(v=metric)
    for k in range(6):
        preds, target = (torch.rand(5, 3, generator=GENERATOR, dtype=dtype) + 0.5 for _ in range(2))
        if k == 4:
            preds[0, 0] = torch.inf
        preds.requires_grad_(k == 3)
        target.requires_grad_(k == 4)
        alone = Meter(v=metric)
        alone.update(preds, target)
        with torch.autocast("cpu", enabled=k == 5):
            value = prepared.forward(preds, target)["v"]
        torch.testing.assert_close(value, alone.compute()["v"], rtol=0, atol=0, equal_nan=True)
        plain.update(preds, target)
    assert same(prepared, plain)


def rows(dtype, count=6):
    return torch.rand(count, 4, generator=GENERATOR, dtype=dtype).softmax(1)


def labels(high, *shape):
    return torch.randint(high, shape, generator=GENERATOR)


OF_ROWS = {
    CosineSimilarity(): lambda dtype: (rows(dtype), rows(dtype)),
    CosineSimilarity(reduction="mean"): lambda dtype: (rows(dtype), rows(dtype)),
    KLDivergence(): lambda dtype: (rows(dtype), rows(dtype)),
    KLDivergence(reduction="sum"): lambda dtype: (rows(dtype), rows(dtype)),
    JensenShannonDivergence(): lambda dtype: (rows(dtype), rows(dtype)),
    ContinuousRankedProbabilityScore(): lambda dtype: (rows(dtype), rows(dtype)[:, 0].contiguous()),
    HingeLoss(): lambda dtype: (torch.randn(6, generator=GENERATOR, dtype=dtype), labels(2, 6)),
    HingeLoss(num_classes=4): lambda dtype: (rows(dtype), labels(4, 6)),
    HingeLoss(num_classes=4, multiclass_mode="one-vs-all"): lambda dtype: (rows(dtype), labels(4, 6)),
    LogLoss(num_classes=4): lambda dtype: (rows(dtype), labels(4, 6)),
    BrierScore(num_classes=4): lambda dtype: (rows(dtype), labels(4, 6)),
    MultilabelCoverageError(num_labels=4): lambda dtype: (rows(dtype), labels(2, 6, 4)),
    MultilabelCoverageError(num_labels=4, ignore_index=0): lambda dtype: (rows(dtype), labels(2, 6, 4)),
    HingeLoss(ignore_index=1): lambda dtype: (torch.randn(6, generator=GENERATOR, dtype=dtype), labels(2, 6)),
    LogLoss(logits=True): lambda dtype: (torch.randn(6, generator=GENERATOR, dtype=dtype), labels(2, 6)),
    LogLoss(num_classes=4, logits=True): lambda dtype: (rows(dtype), labels(4, 6)),
    MultilabelRankingLoss(num_labels=4): lambda dtype: (rows(dtype), labels(2, 6, 4)),
    Perplexity(ignore_index=3): lambda dtype: (rows(dtype).view(2, 3, 4), labels(4, 2, 3)),
}


@pytest.mark.filterwarnings("ignore::assay.errors.InvalidValuesWarning")
@pytest.mark.parametrize("metric", OF_ROWS, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_rows_that_torch_computes_are_counted_as_others_are(metric, dtype):
    prepared, plain = Meter(v=metric), Meter(v=metric)
    for k in range(8):
        preds, target = OF_ROWS[metric](dtype)
        if k == 3:
            preds[1] = torch.nan
        if k == 6:
            preds[1] = torch.inf
        if k == 4 and not target.is_floating_point():
            target[1] = 9  # no class, or a token that is not ignored
        alone = Meter(v=metric)
        alone.update(preds, target)
        try:
            expected = alone.compute()["v"]
        except InvalidValuesError:
            with pytest.raises(InvalidValuesError):
                prepared.forward(preds, target)
            continue
        value = prepared.forward(preds.requires_grad_(k == 5), target)["v"]
        torch.testing.assert_close(value, expected, rtol=0, atol=0, equal_nan=True)
        plain.update(preds, target)
    assert same(prepared, plain)
