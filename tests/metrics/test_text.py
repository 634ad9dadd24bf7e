"""Perplexity against float64, TorchMetrics' convention for shapes, and its bad inputs."""

from __future__ import annotations

import math

import pytest
import torch

from assay.errors import DtypeError, InvalidValuesError, InvalidValuesWarning, NoDataWarning, ShapeError
from assay.meter import Meter
from assay.metrics.text.perplexity import Perplexity


def tokens(rows: int = 6, length: int = 9, vocabulary: int = 50) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(rows, length, vocabulary, generator=generator) * 4
    return logits, torch.randint(0, vocabulary, (rows, length), generator=generator)


def losses(logits: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    wide = logits.double()
    return wide.logsumexp(-1) - wide.gather(-1, target[..., None])[..., 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_perplexity_is_that_of_float64(dtype):
    logits, target = tokens()
    logits = logits.to(dtype)
    expected = losses(logits, target).mean().exp().item()
    assert Perplexity()(logits, target).item() == pytest.approx(expected, rel=1e-13 if dtype == torch.float64 else 1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_an_improbable_token_is_not_infinite(dtype):
    logits = torch.zeros(1, 1, 5, dtype=dtype)
    logits[..., 0] = 200
    assert Perplexity()(logits, torch.tensor([[1]])).item() == pytest.approx(math.exp(200), rel=1e-12)


def test_ignored_tokens_are_left_out_and_weights_count():
    logits, target = tokens()
    loss = losses(logits, target)
    kept = (target != 3).double()
    metric = Perplexity(ignore_index=3)
    assert 0 < kept.sum() < kept.numel()
    assert metric(logits, target).item() == pytest.approx(((loss * kept).sum() / kept.sum()).exp().item(), rel=1e-6)
    for weights in (torch.rand(6), torch.rand(6, 9)):
        w = kept * (weights if weights.ndim == 2 else weights[:, None])
        expected = ((loss * w).sum() / w.sum()).exp().item()
        assert metric(logits, target, weights=weights).item() == pytest.approx(expected, rel=1e-6)
    masked = target.masked_fill(target == 3, -100)
    assert Perplexity(ignore_index=-100)(logits, masked) == metric(logits, target)
    noisy = logits.masked_fill((target == 3)[..., None], math.nan)
    assert metric(noisy, target) == metric(logits, target)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_any_split_gives_the_same_bits(size):
    logits, target = tokens(10, 7, 131)
    meter = Meter(p=Perplexity(), stage_bytes=0)
    for a, b in zip(logits.split(size), target.split(size), strict=True):
        meter.update(a, b)
    assert meter.compute()["p"] == Perplexity()(logits, target)


def test_targets_out_of_range_are_counted_and_raise_when_read():
    logits, target = tokens()
    target[0, :3] = torch.tensor([50, -1, 10**12])
    meter = Meter(p=Perplexity())
    meter.update(logits, target)
    with pytest.raises(InvalidValuesError, match="p: got 3 of the targets are out of the range of the vocabulary"):
        meter.compute()


def test_nan_and_infinite_logits_are_said():
    logits, target = torch.zeros(1, 2, 3), torch.tensor([[0, 1]])
    logits[0, 0, 0] = math.nan
    with pytest.warns(InvalidValuesWarning, match="1 of the tokens have a log probability that is NaN or infinite"):
        assert math.isnan(Perplexity()(logits, target).item())
    logits[0, 0, 0] = -math.inf
    with pytest.warns(InvalidValuesWarning, match="1 of the tokens"):
        assert Perplexity()(logits, target).item() == math.inf


def test_no_token_and_nothing_but_ignored_tokens():
    with pytest.warns(NoDataWarning, match=": got no data"):
        assert math.isnan(Perplexity()(torch.zeros(0, 4, 5), torch.zeros(0, 4, dtype=torch.long)).item())
    with pytest.warns(NoDataWarning, match="for which it is undefined"):
        assert math.isnan(Perplexity(ignore_index=1)(torch.zeros(1, 2, 5), torch.ones(1, 2, dtype=torch.long)).item())


def test_an_update_waits_for_nothing_and_has_few_operators(count_ops):
    logits, target = tokens()
    meter = Meter(p=Perplexity(ignore_index=0), stage_bytes=0)
    meter.update(logits, target)
    with count_ops() as counts:
        meter.update(logits, target)
    assert counts.syncs == []
    assert 0 < counts.calls <= 90


def test_shapes_and_dtypes_that_cannot_be():
    logits, target = tokens()
    with pytest.raises(
        ShapeError, match=r"preds: got shape \(N, 50, 9\) with target \(N, 9\), expected .* Put the vocab"
    ):
        Perplexity()(logits.movedim(-1, 1), target)
    with pytest.raises(ShapeError, match=r"with target nothing, expected shape \(N, ..., V\)"):
        Perplexity()(logits)
    with pytest.raises(DtypeError, match=r"preds: got torch\.int64, expected floats: logits"):
        Perplexity()(logits.long(), target)
    with pytest.raises(DtypeError, match=r"target: got torch\.float32, expected an integer dtype"):
        Perplexity()(logits, target.float())
    with pytest.raises(ShapeError, match=r"weights: got shape \(N, 2\), expected shape \(N,\) or \(N, 9\)"):
        Perplexity()(logits, target, weights=torch.ones(6, 2))
