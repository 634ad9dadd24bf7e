"""GPTQ: lower errors of the outputs than rounding alone, and what it is given."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch
from torch import nn

from assay.errors import ConfigError, InputError, InvalidValuesError, ShapeError
from assay.quantize import quantize_weight
from assay.quantize.rounding import Calibration, gptq


def correlated(rows=600, width=128, seed=0):
    generator = torch.Generator().manual_seed(seed)
    mixed = torch.randn(width, width, generator=generator) * torch.logspace(0, -1.5, width)
    return torch.randn(rows, width, generator=generator) @ mixed.T


def a_weight(rows=32, width=128):
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(1)) * 0.02


def loss(weight, integers, x):
    return float(((integers.dequantize() - weight) @ x.T).norm() / (weight @ x.T).norm())


@pytest.mark.parametrize("text", ["int4:g32", "int4", "int3:g32", "int2:g32", "int4:g32:sym", "int8"])
def test_outputs_change_less_than_with_rounding_on_data_that_it_has_not_seen(text):
    weight, x = a_weight(), correlated()
    seen, unseen = x[:400], x[400:]
    rounded = min(
        loss(weight, quantize_weight(weight, text, method), unseen) for method in ("nearest", "search", "hqq")
    )
    assert loss(weight, gptq(weight, seen.T @ seen, text), unseen) < 0.6 * rounded


def test_inputs_without_correlation_leave_nothing_to_gain():
    weight = a_weight()
    assert gptq(weight, torch.eye(128), "int4:g32", method="nearest").equal(quantize_weight(weight, "int4:g32"))


def by_the_book(weight, hessian, text):
    """Optimal brain surgery as the paper states it, in float64: one column after the other leaves the inverse."""
    first = quantize_weight(weight, text)
    scales, zeros = (t.double().repeat_interleave(32, 1) for t in (first.scales, first.zeros))
    rest, values = weight.double().clone(), torch.zeros_like(weight, dtype=torch.int8)
    inverse = torch.linalg.inv(hessian.double() + 0.01 * hessian.double().diagonal().mean() * torch.eye(len(hessian)))
    for column in hessian.diagonal().argsort(descending=True, stable=True).tolist():
        values[:, column] = ((rest[:, column] - zeros[:, column]) / scales[:, column]).round().clamp(-8, 7)
        error = rest[:, column] - (values[:, column] * scales[:, column] + zeros[:, column])
        rest -= torch.outer(error / inverse[column, column], inverse[column])
        rest[:, column] = 0
        inverse -= torch.outer(inverse[:, column], inverse[column]) / inverse[column, column]
    return values


@pytest.mark.parametrize("block", [7, 128])
def test_it_is_the_papers_method_in_blocks_of_any_size(block, monkeypatch):
    monkeypatch.setattr(import_module("assay.quantize.rounding.gptq"), "BLOCK", block)
    weight, x = a_weight(16, 64), correlated(width=64)
    found = gptq(weight, x.T @ x, "int4:g32", method="nearest")
    differ = found.values() != by_the_book(weight, x.T @ x, "int4:g32")
    assert differ.float().mean() < 0.02  # float32 rounds the other way here and there


def test_few_rows_and_columns_without_data_need_more_damping():
    weight, x = a_weight(), correlated(rows=9)
    x[:, 5] = 0
    found = gptq(weight, x.T @ x, "int4:g32", damping=1e-12).check()
    assert loss(weight, found, x) < loss(weight, quantize_weight(weight, "int4:g32"), x)
    assert gptq(weight, torch.zeros(128, 128), "int4:g32").equal(quantize_weight(weight, "int4:g32", "search"))


@pytest.mark.devices("mps", "cuda:1", "xpu")
def test_it_runs_on_the_host_and_comes_back(device, pretended):
    weight, x = a_weight(), correlated()
    model = nn.Sequential(nn.Linear(128, 32, bias=False)).to(device)
    model[0].weight.data = weight.to(device)
    with Calibration(model) as data:
        model(x.to(device))
    assert data.hessian("0").device == device
    found = gptq(model[0].weight, data.hessian("0"), "int4:g32")
    assert found.device == device
    here = gptq(weight, x.T @ x, "int4:g32")
    assert (found.to("cpu").values() != here.values()).float().mean() < 0.01


def test_calibration_sums_over_batches_of_any_shape_and_leaves_no_hook():
    model = nn.Sequential(nn.Linear(8, 4), nn.Linear(4, 2))
    x = torch.randn(6, 5, 8)
    with Calibration(model, ["0"]) as data:
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            model(x[:2])
        model(x[2:])
    model(x)
    flat = x.reshape(-1, 8)
    torch.testing.assert_close(data.hessian("0"), flat.T @ flat)
    assert data.rows == {"0": 30}
    assert not model[0]._forward_pre_hooks
    with pytest.raises(ValueError, match="boom"), Calibration(model):
        raise ValueError("boom")
    assert not model[1]._forward_pre_hooks


def test_what_it_refuses():
    weight, hessian = a_weight(4, 32), torch.eye(32)
    bad = hessian.clone()
    bad[0, 0] = float("nan")
    for arguments, kind, message in [
        ((weight, torch.eye(31), "int4:g32"), ShapeError, "hessian: got shape (31, 31), expected shape (32, 32)"),
        (
            (weight, bad, "int4:g32"),
            InvalidValuesError,
            "hessian: got values that are NaN or infinite, expected finite ones",
        ),
        ((weight, -10 * hessian, "int4:g32"), InvalidValuesError, "hessian: got one that is not positive definite"),
        ((weight / 0, hessian, "int4:g32"), InvalidValuesError, "weight: got 128 values that are NaN or inf"),
    ]:
        with pytest.raises(kind) as raised:
            gptq(*arguments)
        assert message in str(raised.value)
    with pytest.raises(ConfigError, match="damping: got 0, expected more than 0"):
        gptq(a_weight(4, 32), hessian, "int4:g32", damping=0)
    with pytest.raises(ConfigError, match="method: got 'best'"):
        gptq(a_weight(4, 32), hessian, "int4:g32", method="best")


def test_what_calibration_refuses():
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU())
    with pytest.raises(ConfigError, match="names: got '1', expected the name of a linear layer"):
        Calibration(model, ["1"])
    with pytest.raises(ConfigError, match="model: got no linear layer, expected one at least"):
        Calibration(nn.ReLU())
    with pytest.raises(InputError, match="calibration: got no input of '0', expected some"):
        Calibration(model).hessian("0")
