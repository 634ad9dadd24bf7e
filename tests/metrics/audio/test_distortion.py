"""The signal-to-distortion ratio against a least-squares fit of all delays, and TorchMetrics."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torchmetrics.functional.audio import signal_distortion_ratio

from assay.errors import ConfigError, DtypeError, InvalidValuesError, ShapeError
from assay.meter import Meter
from assay.metrics import SignalDistortionRatio
from metrics.audio import oracles
from thinning import draws


def drawn(seed, length=None):
    rng = np.random.default_rng(seed)
    target = rng.normal(size=length or int(rng.integers(2, 120)))
    preds = np.convolve(target, rng.normal(size=4))[: len(target)]
    return preds + rng.normal(size=preds.shape) * 10.0 ** rng.integers(-3, 2), target


def by_delays(preds, target, filter_length):
    """The projection onto the target and its delays, with NumPy's least squares."""
    delayed = np.zeros((len(target) + filter_length - 1, filter_length))
    for k in range(filter_length):
        delayed[k : k + len(target), k] = target
    whole = np.concatenate([preds, np.zeros(filter_length - 1)])
    projection = delayed @ np.linalg.lstsq(delayed, whole, rcond=None)[0]
    return oracles.decibels(projection, whole - projection)


def test_it_is_the_projection_onto_all_delays():
    for seed in draws(200):
        preds, target = drawn(seed)
        length = int(np.random.default_rng(seed).integers(1, 20))
        found = SignalDistortionRatio(filter_length=length)([preds], [target])
        assert float(found) == pytest.approx(by_delays(preds, target, length), rel=1e-12, abs=1e-8)


def test_with_512_coefficients_and_offsets_it_is_torchmetrics():
    for seed in range(5):
        preds, target = (each + 50 for each in drawn(seed, 700))
        for options in ({}, {"zero_mean": True}, {"zero_mean": True, "load_diag": 1e-2}):
            theirs = signal_distortion_ratio(torch.from_numpy(preds), torch.from_numpy(target), **options)
            assert float(SignalDistortionRatio(**options)([preds], [target])) == pytest.approx(float(theirs), abs=1e-6)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_it_is_right_at_any_scale(scale):
    preds, target = drawn(3, 60)
    metric = SignalDistortionRatio(filter_length=6)
    expected = float(metric([preds], [target]))
    assert float(metric([preds * scale], [target])) == pytest.approx(expected, abs=1e-9)
    assert float(metric([preds], [target * scale])) == pytest.approx(expected, abs=1e-9)


def test_targets_whose_delays_depend_on_each_other_are_fitted():
    target = np.zeros(40)
    target[5] = 1.0
    assert float(SignalDistortionRatio(filter_length=3)([target], [target])) > 250
    tone = np.sin(np.arange(2000) / 10)
    noisy = tone + 0.01 * np.random.default_rng(0).normal(size=2000)
    assert float(SignalDistortionRatio()([noisy], [tone])) == pytest.approx(by_delays(noisy, tone, 512), abs=1e-6)


def test_signals_of_other_lengths_and_dtypes_count_once_each():
    metric, meter, values = SignalDistortionRatio(filter_length=4), Meter(SignalDistortionRatio(filter_length=4)), []
    for seed, dtype in ((0, torch.float16), (1, torch.bfloat16), (2, torch.int16), (3, torch.float64)):
        pair = [torch.from_numpy(each * 100).to(dtype) for each in drawn(seed, 20 + seed)]
        meter.update(*([each] for each in pair))
        values.append(by_delays(*(each.double().numpy() for each in pair), 4))
    assert float(meter.compute()["SignalDistortionRatio"]) == pytest.approx(np.mean(values), abs=1e-9)
    assert metric.per_sample is not None


@pytest.mark.parametrize(
    ("preds", "target", "error", "part"),
    [
        ([torch.ones(4)], [torch.ones(5)], ShapeError, r"target\[0\]"),
        ([torch.ones(2, 4)], [torch.ones(2, 4)], ShapeError, r"preds\[0\]"),
        (torch.ones(2, 4), torch.ones(2, 4), ShapeError, "list"),
        ([torch.ones(0)], [torch.ones(0)], ShapeError, r"preds\[0\]"),
        ([torch.ones(4)], None, ShapeError, "target"),
        ([[1.0, 2.0]], [[1.0, 2.0]], ShapeError, "list of tensors"),
        ([torch.ones(4, dtype=torch.complex64)], [torch.ones(4)], DtypeError, r"preds\[0\]"),
        ([torch.ones(4, dtype=torch.bool)], [torch.ones(4)], DtypeError, r"preds\[0\]"),
        ([torch.full((4,), torch.nan)], [torch.ones(4)], InvalidValuesError, r"preds\[0\].*NaN"),
        ([torch.ones(4)], [torch.zeros(4)], InvalidValuesError, "sample 0.*the target is silent"),
        ([torch.zeros(4)], [torch.ones(4)], InvalidValuesError, "sample 0.*preds are silent"),
    ],
)
def test_bad_input_is_one_clear_error(preds, target, error, part):
    with pytest.raises(error, match=part):
        SignalDistortionRatio()(preds, target)


@pytest.mark.parametrize("arguments", [{"filter_length": 0}, {"load_diag": -1.0}, {"load_diag": float("nan")}])
def test_bad_arguments_are_one_clear_error(arguments):
    with pytest.raises(ConfigError, match=next(iter(arguments))):
        SignalDistortionRatio(**arguments)
