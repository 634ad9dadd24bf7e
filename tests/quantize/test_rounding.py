"""Rounding a weight: torchao's formulas, and what each method promises of its errors."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError, DtypeError, InvalidValuesError
from assay.quantize import Scheme, quantize_weight
from assay.quantize.rounding import METHODS
from assay.quantize.rounding.grids import Grid, nearest

METHOD = st.sampled_from(sorted(METHODS))


def weights(shape, seed=0, heavy=False):
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randn(shape, generator=generator) * 0.02
    return drawn * (1 + 3 * torch.rand(shape, generator=generator) ** 8) if heavy else drawn


def error(weight, scheme, method="nearest"):
    return float((quantize_weight(weight, scheme, method).dequantize() - weight).norm() / weight.norm())


@given(
    st.integers(2, 8), st.sampled_from([None, 2, 5, 32]), st.booleans(), st.integers(1, 3), METHOD, st.integers(0, 99)
)
def test_every_scheme_takes_the_nearest_integer_and_finds_it_again(bits, group, symmetric, groups, method, seed):
    scheme = Scheme(bits, group, symmetric)
    weight = weights((3, groups * (group or 7)), seed)
    integers = quantize_weight(weight, scheme, method, scales=torch.float32)
    assert integers.scheme == scheme
    assert integers.shape == tuple(weight.shape)
    grouped = weight.unflatten(1, (-1, scheme.group(weight.shape[1])))
    grid = Grid(integers.scales[..., None], None if symmetric else integers.zeros[..., None])
    assert torch.equal(grid.integers(grouped, scheme).flatten(1), integers.values())
    again = grid.integers(grid.weights(integers.values().view_as(grouped)), scheme)
    assert torch.equal(again.flatten(1), integers.values())
    if method == "nearest":
        steps = integers.scales.repeat_interleave(scheme.group(weight.shape[1]), 1)
        assert ((integers.dequantize() - weight).abs() <= steps * 0.501).all()


@pytest.mark.parametrize("text", ["int4:g32", "int4:g64:sym", "int8", "int3:g32", "int2:g32:sym", "int8:g32:asym"])
def test_the_nearest_is_torchaos(text):
    primitives = pytest.importorskip("torchao.quantization.quant_primitives")
    scheme, weight = Scheme.parse(text), weights((16, 128), heavy=True)
    group = scheme.group(128)
    unsigned = not scheme.symmetric
    low, high = (0, scheme.high - scheme.low) if unsigned else (scheme.low, scheme.high)
    if unsigned:  # the zero is a weight, as in tinygemm's kernels
        scales, zeros = primitives._choose_qparams_affine_tinygemm(
            weight, primitives.MappingType.ASYMMETRIC, (1, group), torch.int32, low, high, scale_dtype=torch.float32
        )
        found = primitives._quantize_affine_tinygemm(weight, (1, group), scales, zeros, torch.int32, low, high)
    else:
        scales, zeros = primitives.choose_qparams_affine(
            weight, primitives.MappingType.SYMMETRIC, (1, group), torch.int32, low, high, scale_dtype=torch.float32
        )
        found = primitives.quantize_affine(weight, (1, group), scales, zeros, torch.int32, low, high)
    integers = quantize_weight(weight, scheme, scales=torch.float32)
    torch.testing.assert_close(integers.scales, scales.reshape(16, -1), rtol=1e-6, atol=0)
    if integers.zeros is not None:
        torch.testing.assert_close(integers.zeros, zeros.reshape(16, -1), rtol=1e-5, atol=1e-8)
    theirs = found.reshape(16, 128) + (scheme.low if unsigned else 0)
    differ = integers.values() != theirs
    assert differ.float().mean() < 0.005  # halves that one of two formulas rounds the other way
    assert (integers.values() - theirs).abs().max() <= 1


@given(st.sampled_from(["int4:g32", "int4:g32:sym", "int3:g64", "int2:g32", "int8:g32"]), st.integers(0, 99))
def test_the_search_is_never_worse_than_the_nearest_in_squared_error(text, seed):
    weight = weights((4, 128), seed, heavy=True)
    assert error(weight, text, "search") <= error(weight, text) * (1 + 1e-6)


@given(st.sampled_from(["int4:g32", "int4:g32:sym", "int3:g64", "int2:g32"]), st.integers(0, 99))
def test_hqq_is_never_worse_than_the_nearest_by_its_norm(text, seed):
    weight = weights((4, 128), seed, heavy=True)
    errors = [
        (quantize_weight(weight, text, method).dequantize() - weight).abs().pow(0.7).sum()
        for method in ("hqq", "nearest")
    ]
    assert errors[0] <= errors[1] * (1 + 1e-6)


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("text", ["int4:g32", "int4:g128", "int3:g64", "int4:g32:sym"])
def test_methods_by_their_error_on_many_weights(text, heavy):
    weight = weights((256, 512), heavy=heavy)
    assert error(weight, text, "search") < error(weight, text, "hqq") < error(weight, text)


def test_hqq_is_at_least_as_good_as_torchaos():
    primitives = pytest.importorskip("torchao.quantization.quant_primitives")
    weight = weights((256, 512))
    values, scales, zeros, _ = primitives._choose_qparams_and_quantize_affine_hqq(
        weight, nbits=4, group_size=32, axis=1, compute_dtype=torch.float32, device="cpu", raw_output=True
    )
    theirs = ((values.reshape(-1, 32).float() - zeros.reshape(-1, 1)) * scales.reshape(-1, 1)).reshape(weight.shape)
    assert error(weight, "int4:g32", "hqq") < float((theirs - weight).norm() / weight.norm())


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", ["int4:g32", "int4:g32:sym", "int8"])
@pytest.mark.parametrize("value", [0.0, 0.3, -1e-3, 1e-40, 3e4])
def test_groups_of_equal_weights(text, method, value):
    weight = torch.full((2, 64), value)
    found = quantize_weight(weight, text, method)
    assert found.check() is found
    allowed = {"int4:g32": 0.004, "int4:g32:sym": 0.075, "int8": 0.008}[text]  # half a step, where there is no zero
    assert (found.dequantize() - weight).abs().max() <= abs(value) * allowed + 1e-37


@pytest.mark.parametrize("method", METHODS)
def test_weights_far_apart_and_tiny_ones_keep_their_numbers_finite(method):
    weight = weights((8, 64))
    weight[0], weight[1, 3], weight[2] = weight[0] * 1e-38, 1e30, 0
    for text in ("int4:g32", "int8", "int2:g32:sym"):
        found = quantize_weight(weight, text, method).check()
        assert found.dequantize().isfinite().all()


@pytest.mark.parametrize("method", METHODS)
def test_small_weights_do_not_vanish_where_scales_are_float16(method):
    weight = weights((8, 64)) * 0.05
    found = quantize_weight(weight, "int8", method, scales=torch.float16).dequantize()
    assert (found - weight).norm() < 0.01 * weight.norm()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_any_dtype_strides_and_gradient(dtype):
    weight = weights((64, 8)).to(dtype).t().requires_grad_()
    found = quantize_weight(weight, "int4:g32")
    assert not found.scales.requires_grad
    assert found.equal(quantize_weight(weight.detach().contiguous().to(torch.float32), "int4:g32"))


@pytest.mark.parametrize("rows", [1, 3, 7])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", ["int4:g32", "int3:g32:sym", "int8"])
def test_blocks_of_rows_change_nothing(text, method, rows, monkeypatch):
    weight = weights((20, 64), heavy=True) * torch.logspace(-3, 3, 20)[:, None]
    whole = quantize_weight(weight, text, method)
    monkeypatch.setattr("assay.quantize.rounding.weight.BLOCK", rows * 64)
    assert quantize_weight(weight, text, method).equal(whole)


@pytest.mark.parametrize("method", METHODS)
def test_the_integers_of_a_row_do_not_depend_on_the_other_rows(method):
    weight = weights((20, 64), heavy=True)
    alone, other = (quantize_weight(each, "int4:g32", method) for each in (weight, torch.cat([weight, 50 * weight])))
    assert alone.equal(other.rows(slice(0, 20)))


@pytest.mark.devices("mps", "cuda:1", "xpu")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("text", ["int4:g32", "int8", "int3:g32:sym"])
def test_every_device_rounds_to_the_same_integers(text, method, device, pretended):
    weight = weights((8, 64))
    there = quantize_weight(weight.to(device), text, method)
    assert there.device == device
    assert there.to("cpu").equal(quantize_weight(weight, text, method))


def bad(value):
    weight = weights((4, 32))
    weight[1, 2] = value
    return weight


@pytest.mark.parametrize(
    ("weight", "arguments", "kind", "message"),
    [
        (
            bad(float("nan")),
            {},
            InvalidValuesError,
            "weight: got 1 values that are NaN or infinite, expected finite ones",
        ),
        (bad(float("-inf")), {}, InvalidValuesError, "weight: got 1 values that are NaN or infinite"),
        (bad(2e38), {}, InvalidValuesError, "weight: got values up to 2e+38, expected at most 1.69e+38, for scales in"),
        (torch.full((4, 32), -1e300, dtype=torch.float64), {}, InvalidValuesError, "weight: got values up to 1e+300"),
        (bad(1e5), {"scales": torch.float16}, InvalidValuesError, "expected at most 3.28e+04, for scales in float16"),
        (torch.empty(4, 32, device="meta"), {}, InvalidValuesError, "weight: got a meta tensor, which has no values"),
        (torch.ones(4, 32, dtype=torch.int8), {}, DtypeError, "weight: got torch.int8, expected floats"),
        (torch.ones(4, 33), {}, ConfigError, "weight: got shape (4, 33): its rows of 33 weights cannot be cut into"),
        (torch.ones(4, 32, 1), {}, ConfigError, "its weight has 3 dimensions and not 2"),
        (torch.ones(0, 32), {}, ConfigError, "its weight is empty"),
        (
            torch.ones(4, 32),
            {"method": "best"},
            ConfigError,
            "method: got 'best', expected one of nearest, search",
        ),
        (torch.ones(4, 32), {"scales": torch.int8}, DtypeError, "scales: got torch.int8, expected torch.bfloat16 or"),
        (torch.ones(4, 32), {"scheme": "int9"}, ConfigError, "scheme: got 'int9'"),
    ],
)
def test_what_cannot_be_rounded(weight, arguments, kind, message):
    with pytest.raises(kind) as raised:
        quantize_weight(weight, **{"scheme": "int4:g32", **arguments})
    assert message in str(raised.value)


def test_the_scale_of_a_group_is_one_that_is_kept():
    grid = nearest(weights((4, 1, 32)), Scheme.parse("int4:g32"), torch.bfloat16)
    assert grid.scales.dtype == torch.bfloat16
    assert grid.zeros is not None
    assert grid.zeros.dtype == torch.bfloat16
