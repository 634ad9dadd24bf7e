"""Ratios of energies against their definitions in NumPy, and TorchMetrics at its precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest
import torch
import torchmetrics.audio as torchmetrics_audio

from assay.errors import DtypeError, InvalidValuesError, ShapeError
from assay.meter import Meter
from assay.metrics import (
    ComplexScaleInvariantSignalNoiseRatio,
    Metric,
    ScaleInvariantSignalDistortionRatio,
    ScaleInvariantSignalNoiseRatio,
    SignalNoiseRatio,
    SourceAggregatedSignalDistortionRatio,
)
from assay.metrics.per_sample import per_sample_values
from metrics.audio import oracles
from thinning import draws

Array = np.ndarray
DATA_SETS = draws(200)
SHAPES = {"signals": (), "sources": (2,), "spectra": (3, 5)}

OF_ONE: Mapping[Metric, Callable[[Array, Array], float]] = {
    SignalNoiseRatio(): oracles.snr,
    SignalNoiseRatio(zero_mean=True): lambda p, t: oracles.snr(p, t, True),
    ScaleInvariantSignalDistortionRatio(): oracles.si_sdr,
    ScaleInvariantSignalDistortionRatio(zero_mean=True): lambda p, t: oracles.si_sdr(p, t, True),
    ScaleInvariantSignalNoiseRatio(): lambda p, t: oracles.si_sdr(p, t, True),
    SourceAggregatedSignalDistortionRatio(): oracles.sa_sdr,
    SourceAggregatedSignalDistortionRatio(zero_mean=True): lambda p, t: oracles.sa_sdr(p, t, True, True),
    SourceAggregatedSignalDistortionRatio(scale_invariant=False): lambda p, t: oracles.sa_sdr(p, t, False),
    ComplexScaleInvariantSignalNoiseRatio(): oracles.c_si_snr,
    ComplexScaleInvariantSignalNoiseRatio(zero_mean=True): lambda p, t: oracles.c_si_snr(p, t, True),
}
SCALE_INVARIANT = [metric for metric in OF_ONE if metric.term.scale_invariant]
every_metric = pytest.mark.parametrize("metric", OF_ONE, ids=repr)
scale_invariant = pytest.mark.parametrize("metric", SCALE_INVARIANT, ids=repr)


def drawn(metric: Metric, seed: int, count: int = 3, offset: float = 0.0) -> tuple[Array, Array]:
    """Signals of any length with noise from -60 to 20 decibels."""
    rng = np.random.default_rng(seed)
    last = 2 if metric.inputs == "spectra" else int(rng.integers(3, 300))
    target = rng.normal(size=(count, *SHAPES[metric.inputs], last)) + offset
    return target + rng.normal(size=target.shape) * 10.0 ** rng.integers(-3, 2), target


def value(metric: Metric, preds: Array, target: Array, dtype: torch.dtype = torch.float64) -> float:
    return float(metric(*(torch.from_numpy(each).to(dtype) for each in (preds, target))))


def mean_of(metric: Metric, preds: Array, target: Array) -> float:
    return float(np.mean([OF_ONE[metric](p, t) for p, t in zip(preds, target, strict=True)]))


@every_metric
def test_it_is_its_definition(metric):
    for seed in DATA_SETS:
        preds, target = drawn(metric, seed)
        expected = mean_of(metric, preds, target)
        assert value(metric, preds, target) == pytest.approx(expected, rel=1e-12, abs=1e-9)


@every_metric
@pytest.mark.parametrize("scale", [1.0, 1e-30, 1e30, 2.0**-140])
def test_float32_is_right_at_any_scale_and_offset(metric, scale):
    for seed, offset in ((0, 0.0), (1, 100.0), (2, -1e4)):
        narrow = [(each * scale).astype(np.float32) for each in drawn(metric, seed, offset=offset)]
        expected = mean_of(metric, *narrow)
        rough = 1e-3 if scale < 1e-38 or offset else 2e-5
        assert value(metric, *narrow, torch.float32) == pytest.approx(expected, rel=1e-5, abs=rough)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int16])
def test_other_dtypes_give_the_value_of_their_numbers(dtype):
    generator = torch.Generator().manual_seed(0)
    target = torch.randint(-200, 200, (3, 50), generator=generator).to(dtype)
    preds = (target + torch.randint(-9, 9, target.shape, generator=generator)).to(dtype)
    if dtype == torch.float16:
        preds, target = preds * 300, target * 300  # whose squares float16 does not hold
    for metric in (SignalNoiseRatio(), ScaleInvariantSignalNoiseRatio()):
        expected = mean_of(metric, preds.double().numpy(), target.double().numpy())
        assert float(metric(preds, target)) == pytest.approx(expected, abs=2e-5)


@pytest.mark.parametrize("name", ["SignalNoiseRatio", "ScaleInvariantSignalDistortionRatio"])
def test_it_is_torchmetrics_at_its_precision(name):
    metric, theirs = globals()[name](), getattr(torchmetrics_audio, name)()
    preds, target = drawn(metric, 5)
    pair = [torch.from_numpy(each).float() for each in (preds, target)]
    assert float(metric(*pair)) == pytest.approx(float(theirs(*pair)), abs=1e-3)


@scale_invariant
def test_the_scale_of_either_changes_no_bit_where_it_is_a_power_of_two(metric):
    preds, target = (torch.from_numpy(each).float() for each in drawn(metric, 1))
    expected = metric(preds, target)
    for scale in (2.0**-80, 2.0**-3, 2.0**90):
        assert torch.equal(metric(preds * scale, target), expected)
        assert torch.equal(metric(preds, target * scale), expected)
        assert torch.equal(metric(-preds, target * scale), expected)


@scale_invariant
def test_the_scale_of_preds_changes_next_to_nothing(metric):
    preds, target = (torch.from_numpy(each) for each in drawn(metric, 2))
    for scale in (1e-5, 0.3, 7e7):
        assert float(metric(preds * scale, target)) == pytest.approx(float(metric(preds, target)), abs=1e-9)


def test_a_nearly_perfect_estimate_is_right_in_float32():
    rng = np.random.default_rng(0)
    target = rng.normal(size=(2, 400)).astype(np.float32)
    preds = (3.7 * target * (1 + 1e-6 * rng.normal(size=target.shape))).astype(np.float32)
    for metric in (ScaleInvariantSignalDistortionRatio(), ScaleInvariantSignalNoiseRatio()):
        expected = mean_of(metric, preds, target)
        assert expected > 110
        assert value(metric, preds, target, torch.float32) == pytest.approx(expected, abs=1e-3)


@every_metric
def test_the_bits_do_not_depend_on_the_size_of_batches(metric):
    preds, target = (torch.from_numpy(each).float() for each in drawn(metric, 4, count=37))
    together, single = Meter(metric), Meter(metric, stage_bytes=0)
    together.update(preds, target)
    for k in range(len(preds)):
        single.update(preds[k : k + 1], target[k : k + 1])
    (all_at_once,), (one_by_one,) = together.compute().values(), single.compute().values()
    assert torch.equal(all_at_once, one_by_one)


def test_signals_of_other_lengths_and_channels_count_once_each():
    metric, meter = SignalNoiseRatio(), Meter(SignalNoiseRatio())
    values = []
    for shape in ((2, 3, 40), (1, 7), (5, 2, 9)):
        rng = np.random.default_rng(len(shape))
        preds, target = rng.normal(size=(2, *shape))
        meter.update(torch.from_numpy(preds), torch.from_numpy(target))
        values += [oracles.snr(p, t) for p, t in zip(*(x.reshape(-1, shape[-1]) for x in (preds, target)), strict=True)]
    assert float(meter.compute()["SignalNoiseRatio"]) == pytest.approx(np.mean(values), abs=1e-9)
    assert per_sample_values(metric, torch.ones(2, 3, 4), torch.ones(2, 3, 4)) is None


def test_complex_spectra_are_their_real_and_imaginary_parts():
    preds, target = (torch.from_numpy(each) for each in drawn(ComplexScaleInvariantSignalNoiseRatio(), 3))
    metric = ComplexScaleInvariantSignalNoiseRatio()
    assert torch.equal(metric(torch.view_as_complex(preds), torch.view_as_complex(target)), metric(preds, target))
    with pytest.raises(ShapeError, match="target"):
        metric(preds[..., 0], target[..., 0])


@every_metric
def test_preds_without_error_are_infinitely_good(metric):
    _, target = drawn(metric, 6)
    assert value(metric, target, target) == math.inf
    assert value(metric, target, target, torch.float32) == math.inf


def test_orthogonal_preds_have_nothing_of_the_target():
    pair = torch.tensor([[1.0, 0.0, -1.0, 0.0]]), torch.tensor([[0.0, 1.0, 0.0, -1.0]])
    assert ScaleInvariantSignalDistortionRatio()(*pair) == -math.inf
    assert float(SignalNoiseRatio()(*pair)) == pytest.approx(10 * math.log10(1 / 2))


@every_metric
def test_silent_targets_raise_when_computed(metric):
    preds, target = (torch.from_numpy(each) for each in drawn(metric, 7))
    target[1] = 4.0 if metric.term.zero_mean else 0.0
    with pytest.raises(InvalidValuesError, match="1 of the targets are silent"):
        metric(preds, target)


@scale_invariant
def test_silent_preds_have_no_scale_invariant_ratio(metric):
    preds, target = (torch.from_numpy(each) for each in drawn(metric, 8))
    preds[0] = 0.1 if metric.term.zero_mean else 0.0
    with pytest.raises(InvalidValuesError, match="1 of the preds are silent"):
        metric(preds, target)
    assert SignalNoiseRatio()(preds[:1] * 0, target[:1]) == 0


def test_one_silent_source_of_several_is_fine():
    preds, target = drawn(SourceAggregatedSignalDistortionRatio(), 9)
    target[:, 0] = 0
    metric = SourceAggregatedSignalDistortionRatio()
    assert value(metric, preds, target) == pytest.approx(mean_of(metric, preds, target), abs=1e-9)


@every_metric
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_raise_when_computed(metric, bad):
    for side in (0, 1):
        pair = [torch.from_numpy(each) for each in drawn(metric, 10)]
        pair[side][2, ..., 0] = bad
        with pytest.raises(InvalidValuesError, match="1 of the signals have values that are NaN or infinite"):
            metric(*pair)


@pytest.mark.parametrize(
    ("preds", "target", "error", "part"),
    [
        (torch.ones(4), torch.ones(4), ShapeError, "signal\\[None\\]"),
        (torch.ones(2, 4), torch.ones(2, 5), ShapeError, "one length"),
        (torch.ones(2, 0), torch.ones(2, 0), ShapeError, "target"),
        (torch.ones(2, 4, dtype=torch.complex64), torch.ones(2, 4), DtypeError, "preds"),
        (torch.ones(2, 4), torch.ones(2, 4, dtype=torch.complex64), DtypeError, "target"),
        (torch.ones(2, 4, dtype=torch.bool), torch.ones(2, 4), DtypeError, "preds"),
        (torch.ones(2, 4), None, ShapeError, "target"),
    ],
)
def test_bad_input_is_one_clear_error(preds, target, error, part):
    with pytest.raises(error, match=part):
        SignalNoiseRatio()(preds, target)


def test_per_sample_values_are_the_ratios():
    metric = ScaleInvariantSignalNoiseRatio()
    preds, target = drawn(metric, 11, count=9)
    found = per_sample_values(metric, torch.from_numpy(preds), torch.from_numpy(target))
    expected = [OF_ONE[metric](p, t) for p, t in zip(preds, target, strict=True)]
    assert found.terms[found.numerator].tolist() == pytest.approx(expected, abs=1e-9)


def test_spectra_that_are_conjugated_when_they_are_read_are_those_that_lie_in_memory():
    metric = ComplexScaleInvariantSignalNoiseRatio()
    preds, target = torch.randn(2, 4, 5, 7, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    later, now = Meter(value=metric), Meter(value=metric)
    for batch in (preds, preds.conj(), preds.conj()):
        later.update(batch, target)
        now.update(batch.resolve_conj(), target)
    assert later.compute() == now.compute()
    values = [metric(batch, target) for batch in (preds, preds.conj(), preds.conj(), preds.conj().resolve_conj())]
    assert values[0] != values[1]
    assert values[1] == values[2] == values[3]
