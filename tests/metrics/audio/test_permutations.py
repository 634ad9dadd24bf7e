"""The best order of separated sources against all permutations in NumPy, and TorchMetrics."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
import torch
from torchmetrics.functional.audio import (
    permutation_invariant_training,
    scale_invariant_signal_distortion_ratio,
    source_aggregated_signal_distortion_ratio,
)

from assay.errors import ConfigError, InvalidValuesError, ShapeError
from assay.metrics import (
    ComplexScaleInvariantSignalNoiseRatio,
    PermutationInvariantTraining,
    ScaleInvariantSignalDistortionRatio,
    ScaleInvariantSignalNoiseRatio,
    SignalDistortionRatio,
    SignalNoiseRatio,
    SourceAggregatedSignalDistortionRatio,
)
from metrics.audio import oracles
from thinning import every_third

TOGETHER = {"metric": SourceAggregatedSignalDistortionRatio(), "mode": "permutation-wise"}


def drawn(seed, sources, count=3, length=30):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=(count, sources, length))
    preds = target[:, rng.permutation(sources)] + rng.normal(size=target.shape) * rng.choice([0.1, 1, 5])
    return preds, target


def tensors(*arrays):
    return [torch.from_numpy(each) for each in arrays]


def best(preds, target, of_one, choose):
    orders = permutations(range(len(preds)))
    return choose(np.mean([of_one(preds[k], t) for k, t in zip(order, target, strict=True)]) for order in orders)


@every_third
@pytest.mark.parametrize("sources", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(
    ("metric", "of_one"),
    [
        (SignalNoiseRatio(), oracles.snr),
        (ScaleInvariantSignalNoiseRatio(), lambda p, t: oracles.si_sdr(p, t, True)),
    ],
    ids=["SNR", "SI-SNR"],
)
def test_it_is_the_best_of_all_permutations(metric, of_one, sources):
    for seed in range(8):
        preds, target = drawn(seed, sources)
        for name, choose in (("max", max), ("min", min)):
            expected = np.mean([best(p, t, of_one, choose) for p, t in zip(preds, target, strict=True)])
            found = PermutationInvariantTraining(metric=metric, eval_func=name)(*tensors(preds, target))
            assert float(found) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("sources", [1, 2, 3, 4])
def test_of_all_sources_together_it_is_the_best_of_all_permutations(sources):
    preds, target = drawn(1, sources)
    orders = list(permutations(range(sources)))
    values = [max(oracles.sa_sdr(p[list(order)], t) for order in orders) for p, t in zip(preds, target, strict=True)]
    found = PermutationInvariantTraining(**TOGETHER)(*tensors(preds, target))
    assert float(found) == pytest.approx(np.mean(values), abs=1e-9)


def test_it_is_torchmetrics_at_its_precision():
    pair = tensors(*drawn(2, 3))
    theirs, _ = permutation_invariant_training(*pair, scale_invariant_signal_distortion_ratio)
    assert float(PermutationInvariantTraining()(*pair)) == pytest.approx(float(theirs.mean()), abs=1e-6)
    theirs, _ = permutation_invariant_training(*pair, source_aggregated_signal_distortion_ratio, "permutation-wise")
    assert float(PermutationInvariantTraining(**TOGETHER)(*pair)) == pytest.approx(float(theirs.mean()), abs=1e-6)


def test_many_sources_find_their_targets():
    preds, target = drawn(3, 10)
    rows = np.random.default_rng(0).permutation(10)
    metric = PermutationInvariantTraining(metric=SignalNoiseRatio())
    near = target[:, rows] + 1e-3 * preds
    expected = np.mean(
        [oracles.snr(n, t) for n, t in zip(near.reshape(-1, 30), target[:, rows].reshape(-1, 30), strict=True)]
    )
    assert float(metric(*tensors(near, target))) == pytest.approx(expected, abs=1e-9)


def test_the_order_of_the_sources_changes_nothing():
    pair = tensors(*drawn(4, 4))
    for metric in (PermutationInvariantTraining(), PermutationInvariantTraining(**TOGETHER)):
        expected = float(metric(*pair))
        assert float(metric(pair[0].flip(1), pair[1].roll(1, 1))) == pytest.approx(expected, abs=1e-9)


def test_perfect_sources_in_another_order_are_infinitely_good():
    target = tensors(*drawn(5, 3))[1]
    target[..., :10][:, 1:] = 0
    assert PermutationInvariantTraining()(target.flip(1), target) == math.inf
    one_is = torch.cat([target[:, :1], target[:, 1:] + 1], 1)
    assert PermutationInvariantTraining(metric=SignalNoiseRatio())(one_is, target) == math.inf
    disjoint = torch.eye(4)[None] - torch.eye(4).roll(1, 1)[None]
    assert PermutationInvariantTraining()(disjoint.flip(1), disjoint) == math.inf


def test_spectra_of_several_sources():
    preds, target = tensors(*drawn(6, 2, length=24))
    metric = PermutationInvariantTraining(metric=ComplexScaleInvariantSignalNoiseRatio())
    as_spectra = [each.reshape(3, 2, 3, 4, 2) for each in (preds, target)]
    expected = PermutationInvariantTraining()(preds, target)
    assert float(metric(*as_spectra)) == pytest.approx(float(expected), abs=1e-9)
    assert float(metric(*map(torch.view_as_complex, as_spectra))) == pytest.approx(float(expected), abs=1e-9)


def test_the_distortion_ratio_of_lists_of_sources():
    single = SignalDistortionRatio(filter_length=5)
    metric = PermutationInvariantTraining(metric=single)
    samples = [drawn(seed, sources, count=1) for seed, sources in ((7, 2), (8, 3))]
    pairs = [tensors(preds[0], target[0]) for preds, target in samples]
    expected = np.mean([best(p, t, lambda p, t: float(single([p], [t])), max) for p, t in pairs])
    found = metric([preds for preds, _ in pairs], [target for _, target in pairs])
    assert float(found) == pytest.approx(expected, abs=1e-9)
    with pytest.raises(ShapeError, match="preds"):
        metric([torch.ones(4)], [torch.ones(4)])


def test_a_metric_may_be_named():
    assert PermutationInvariantTraining(metric="SignalNoiseRatio").metric == SignalNoiseRatio()
    assert PermutationInvariantTraining().metric == ScaleInvariantSignalDistortionRatio()


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"metric": "Accuracy"}, "'Accuracy'"),
        ({"metric": SignalNoiseRatio}, "SignalNoiseRatio"),
        ({"metric": max}, "metric"),
        ({"metric": SourceAggregatedSignalDistortionRatio()}, "permutation-wise"),
        ({"mode": "speakers"}, "speaker-wise"),
        ({"eval_func": "mean"}, "max"),
    ],
)
def test_bad_arguments_are_one_clear_error(arguments, part):
    with pytest.raises(ConfigError, match=part):
        PermutationInvariantTraining(**arguments)


@pytest.mark.parametrize("arguments", [{}, TOGETHER])
@pytest.mark.parametrize(("shape", "part"), [((2, 11, 8), "at most"), ((2, 8), r"\(N, S"), ((2, 3, 2, 8), r"\(N, S")])
def test_too_many_sources_and_other_shapes_are_one_clear_error(arguments, shape, part):
    with pytest.raises(ShapeError, match=part):
        PermutationInvariantTraining(**arguments)(torch.ones(shape), torch.ones(shape))


def test_a_silent_source_raises_when_computed():
    preds, target = tensors(*drawn(9, 2))
    target[1, 0] = 0
    with pytest.raises(InvalidValuesError, match="1 of the targets are silent"):
        PermutationInvariantTraining()(preds, target)
    assert PermutationInvariantTraining(**TOGETHER)(preds, target).isfinite()
