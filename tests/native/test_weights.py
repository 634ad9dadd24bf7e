"""The compiled products with quantized weights have float64's values, and their expansion torch's bits."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.native import weights
from assay.native.library import MISSING, library
from assay.quantize.kernels import KERNELS
from assay.quantize.packed_weight import PackedWeight, pack
from assay.quantize.scheme import Scheme

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)
KINDS = (torch.bfloat16, torch.float32)
PRODUCTS = {"tiles": weights.multiplies_tiles, "pairs": weights.multiplies_pairs}


def drawn(scheme, shape, dtype=torch.bfloat16, seed=0):
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(scheme.low, scheme.high + 1, shape, generator=generator, dtype=torch.int8)
    groups = (shape[0], shape[1] // scheme.group(shape[1]))
    scales = (torch.randn(groups, generator=generator) + 0.01).to(dtype)
    zeros = None if scheme.symmetric else torch.randn(groups, generator=generator).to(dtype)
    return PackedWeight(pack(values, scheme.bits), scales, zeros, scheme, shape)


def product(x, integers):
    return weights.multiply(x, integers.packed, integers.scales, integers.zeros, integers.scheme.bits)


@contextmanager
def multiplying_by(name):
    """One of the products with bfloat16, or `plain` ones in float32; skips what this processor does not have."""
    if name in PRODUCTS and not PRODUCTS[name]():
        pytest.skip(f"this processor has no products by {name}")
    with ExitStack() as stack:
        for each in PRODUCTS:
            stack.enter_context(patch.object(weights, f"multiplies_{each}", lambda each=each: each == name))
        stack.enter_context(patch.object(weights, "TILED_FROM", 1))
        yield


@given(
    st.integers(2, 8),
    st.sampled_from([None, 1, 5, 32, 33]),
    st.booleans(),
    st.sampled_from(KINDS),
    st.sampled_from(KINDS),
    st.tuples(st.integers(1, 9), st.integers(1, 5)),
    st.integers(0, 99),
)
def test_expansion_has_torchs_bits(bits, group, symmetric, kept, dtype, shape, seed):
    group = 2 if group == 1 else group
    integers = drawn(Scheme(bits, group, symmetric), (shape[0], shape[1] * (group or 13)), kept, seed)
    out = torch.empty(integers.shape, dtype=dtype)
    weights.expand(integers.packed, integers.scales, integers.zeros, bits, out)
    assert torch.equal(out, integers.dequantize(dtype))


@pytest.mark.parametrize("name", [*PRODUCTS, "plain"])
@given(
    st.integers(2, 8),
    st.sampled_from([32, 64, 96, 128, 160]),
    st.booleans(),
    st.sampled_from(KINDS),
    st.sampled_from(weights.DTYPES),
    st.tuples(st.integers(1, 19), st.integers(1, 20), st.integers(1, 19)),
    st.integers(0, 99),
)
def test_products_are_those_of_float64(name, bits, group, symmetric, kept, dtype, sizes, seed):
    rows, groups, columns = sizes
    integers = drawn(Scheme(bits, group, symmetric), (rows, groups * group), kept, seed)
    x = torch.randn(columns, groups * group, generator=torch.Generator().manual_seed(seed)).to(dtype)
    with multiplying_by(name):
        found = product(x, integers)
    weight = integers.dequantize(torch.float64) if kept == torch.float32 else integers.dequantize().double()
    size = x.double().abs() @ weight.abs().T
    parts = integers.values().double().abs() * integers.scales.double().abs().repeat_interleave(group, 1)
    size = size + x.double().abs() @ parts.T
    assert found.dtype == torch.float32
    assert ((found - x.double() @ weight.T).abs() <= 1e-6 * size).all()


def test_whole_rows_as_groups_and_rows_that_are_not_contiguous():
    integers = drawn(Scheme.parse("int8"), (7, 4096))
    x = torch.randn(4096, 3).t()
    torch.testing.assert_close(product(x, integers), x @ integers.dequantize().T, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("columns", [0, 1, 6])
def test_activations_of_any_layout(dtype, columns):
    integers = drawn(Scheme.parse("int4:g32"), (20, 64))
    x = torch.randn(columns, 64).to(dtype)
    expected = product(x, integers)
    assert torch.equal(product(x.t().contiguous().t(), integers), expected)
    assert torch.equal(product(torch._neg_view(-x), integers), expected)


def test_scales_that_are_a_negated_view():
    integers = drawn(Scheme.parse("int4:g32"), (20, 64), torch.float32)
    negated = replace(integers, scales=torch._neg_view(-integers.scales), zeros=torch._neg_view(-integers.zeros))
    x = torch.randn(3, 64)
    for name in ("native", "dequantize"):
        kernel = KERNELS[name]
        expected = kernel.matmul(x, kernel.pack(integers, torch.float32))
        assert torch.equal(kernel.matmul(x, kernel.pack(negated, torch.float32)), expected)


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_share_the_rows_and_change_nothing(threads, dtype, monkeypatch):
    integers = drawn(Scheme.parse("int4:g32"), (61, 64))
    x = torch.randn(5, 64).to(dtype)
    alone, expanded = product(x, integers), integers.dequantize()
    monkeypatch.setattr(weights, "FEW", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert torch.equal(product(x, integers), alone)
    out = torch.empty_like(expanded)
    weights.expand(integers.packed, integers.scales, integers.zeros, 4, out)
    assert torch.equal(out, expanded)


def test_fewer_rows_than_threads_take_together(monkeypatch):
    integers, x = drawn(Scheme.parse("int4:g32"), (15, 64)), torch.randn(5, 64)
    alone = product(x, integers)
    monkeypatch.setattr(weights, "FEW", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 7)
    assert torch.equal(product(x, integers), alone)


def test_threads_come_again_after_a_fork(monkeypatch):
    integers = drawn(Scheme.parse("int4:g32"), (64, 64))
    monkeypatch.setattr(weights, "FEW", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    x = torch.randn(1, 64)
    expected = product(x, integers)
    child = os.fork()
    if not child:
        os._exit(0 if torch.equal(product(x, integers), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((128,), ""),
        ((96, torch.float32), ""),
        ((33,), "it takes groups of a multiple of 32 weights, not 33"),
        ((32, torch.float16), "it takes scales in bfloat16 or float32"),
    ],
)
def test_what_it_takes(arguments, why):
    assert weights.why_not(*arguments) == why


@pytest.mark.exhaustive
def test_without_the_library_it_says_so():
    code = "from assay.native import weights; print(weights.why_not(32))"
    done = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"ASSAY_NATIVE": "0"}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == MISSING
