"""The canonical form: every bit where the page says it is, and the weight that it stands for."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay.errors import ConfigError, DeviceError, DtypeError, InvalidValuesError, ShapeError
from assay.quantize.packed_weight import PackedWeight, pack, unpack
from assay.quantize.scheme import Scheme


def drawn(scheme: Scheme, shape: tuple[int, int], seed: int = 0, dtype=torch.bfloat16) -> PackedWeight:
    """Random integers of a scheme, with random scales and zeros."""
    generator = torch.Generator().manual_seed(seed)
    values = torch.randint(scheme.low, scheme.high + 1, shape, generator=generator, dtype=torch.int8)
    groups = (shape[0], shape[1] // scheme.group(shape[1]))
    scales = (torch.rand(groups, generator=generator) + 0.01).to(dtype)
    zeros = None if scheme.symmetric else torch.randn(groups, generator=generator).to(dtype)
    return PackedWeight(pack(values, scheme.bits), scales, zeros, scheme, shape)


def bits_of(values: np.ndarray, bits: int) -> np.ndarray:
    """The layout, written with NumPy's own bit streams."""
    fields = values.astype(np.int64) + (0 if bits == 8 else 1 << (bits - 1))
    each = (fields[:, :, None] >> np.arange(bits)) & 1
    return np.packbits(each.reshape(len(values), -1).astype(np.uint8), axis=1, bitorder="little")


def weight_of(integers: PackedWeight) -> np.ndarray:
    """What it stands for, in float64 from the bytes alone, rounded once to float32."""
    bits, width = integers.scheme.bits, integers.shape[1]
    stream = np.unpackbits(integers.packed.numpy(), axis=1, bitorder="little")[:, : width * bits]
    fields = (stream.reshape(len(stream), width, bits).astype(np.int64) << np.arange(bits)).sum(-1)
    values = np.where(fields > 127, fields - 256, fields) if bits == 8 else fields - (1 << (bits - 1))
    group = integers.scheme.group(width)
    scales = np.repeat(integers.scales.double().numpy(), group, axis=1)
    zeros = 0.0 if integers.zeros is None else np.repeat(integers.zeros.double().numpy(), group, axis=1)
    return (values * scales + zeros).astype(np.float32)


@given(st.integers(2, 8), st.integers(1, 5), st.integers(1, 70), st.integers(0, 99))
def test_integers_lie_where_the_page_says_and_are_read_again(bits, rows, width, seed):
    low = -(1 << (bits - 1))
    values = torch.from_numpy(np.random.default_rng(seed).integers(low, -low, (rows, width)).astype(np.int8))
    packed = pack(values, bits)
    assert np.array_equal(packed.numpy(), bits_of(values.numpy(), bits))
    assert torch.equal(unpack(packed, bits, width), values)
    assert torch.equal(unpack(packed.t().contiguous().t(), bits, width), values)


@given(
    st.integers(2, 8),
    st.sampled_from([None, 2, 3, 8, 32, 33]),
    st.booleans(),
    st.sampled_from([torch.bfloat16, torch.float16, torch.float32]),
    st.integers(1, 4),
)
def test_the_weight_is_that_of_the_formula(bits, group, symmetric, dtype, groups):
    integers = drawn(Scheme(bits, group, symmetric), (3, groups * (group or 5)), dtype=dtype)
    expected = weight_of(integers)
    if dtype == torch.float32:  # the product is rounded, too
        np.testing.assert_allclose(integers.dequantize().numpy(), expected, rtol=1e-6, atol=1e-5)
    else:
        assert np.array_equal(integers.dequantize().numpy(), expected)
        assert torch.equal(integers.dequantize(torch.bfloat16), torch.from_numpy(expected).bfloat16())


@pytest.mark.devices("mps", "cuda:1", "xpu")
@pytest.mark.parametrize("text", ["int3:g32", "int4", "int5:channel", "int8"])
def test_every_device_has_the_same_bytes_and_the_same_weight(text, device, pretended):
    scheme = Scheme.parse(text)
    integers = drawn(scheme, (5, 256))
    there = integers.to(device)
    assert there.device == device
    assert torch.equal(pack(there.values(), scheme.bits).cpu(), integers.packed)
    for dtype in (torch.float32, torch.bfloat16):
        assert torch.equal(there.dequantize(dtype).cpu(), integers.dequantize(dtype))
    assert there.equal(integers)
    index = torch.tensor([4, 0, 4], device=device)
    assert torch.equal(there.rows(index).dequantize().cpu(), integers.dequantize()[index.cpu()])


def test_large_weights_are_expanded_block_by_block_to_the_same_bits(monkeypatch):
    integers = drawn(Scheme.parse("int3:g32"), (37, 96))
    whole = integers.dequantize(torch.float16)
    monkeypatch.setattr("assay.quantize.packed_weight.BLOCK", 5 * 96)
    assert torch.equal(integers.dequantize(torch.float16), whole)
    assert torch.equal(integers.rows(slice(30, 37)).dequantize(torch.float16), whole[30:])


def test_rows_share_memory_and_copies_are_equal_to_the_bit():
    integers = drawn(Scheme.parse("int4:g32"), (6, 64))
    assert integers.rows(slice(1, 3)).packed.data_ptr() == integers.packed[1].data_ptr()
    for other in (pickle.loads(pickle.dumps(integers)), copy.deepcopy(integers), integers.to("cpu")):
        assert other.equal(integers)
    changed = copy.deepcopy(integers)
    changed.packed[5, 3] ^= 16
    assert not changed.equal(integers)
    assert not integers.equal(drawn(Scheme.parse("int4:g64"), (6, 64)))


def test_its_bytes_are_those_that_the_scheme_promises():
    for text in ("int2", "int3:g32:sym", "int4", "int6:channel", "int8"):
        integers = drawn(Scheme.parse(text), (6, 256))
        assert integers.nbytes == Scheme.parse(text).nbytes((6, 256))
    assert repr(integers) == "PackedWeight(int8, shape=(6, 256), scales=bfloat16, device=cpu, 1548 bytes)"


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"shape": (6, 65)}, ConfigError, "its rows of 65 weights cannot be cut into groups of 32"),
        (
            {"scales": torch.ones(6, 1, dtype=torch.bfloat16)},
            ShapeError,
            "scales: got shape (6, 1), expected shape (6, 2) for int4:g32 of shape (6, 64). Pass the tensors",
        ),
        ({"packed": torch.zeros(6, 31, dtype=torch.uint8)}, ShapeError, "packed: got shape (6, 31), expected shape (6"),
        ({"packed": torch.zeros(6, 32, dtype=torch.int8)}, DtypeError, "packed: got torch.int8, expected torch.uint8"),
        ({"scales": torch.ones(6, 2, dtype=torch.float64)}, DtypeError, "scales: got torch.float64, expected"),
        ({"zeros": torch.ones(6, 2)}, DtypeError, "zeros: got torch.float32, expected torch.bfloat16"),
        ({"zeros": None}, ConfigError, "zeros: got none, expected a tensor like the scales for int4:g32."),
        (
            {"scales": torch.ones(6, 2, dtype=torch.bfloat16, device="meta")},
            DeviceError,
            "scales: got a tensor on meta, expected one on cpu. Move them together.",
        ),
        ({"scheme": Scheme(4, 32, symmetric=True)}, ConfigError, "zeros: got a tensor, expected none for int4:g32:sym"),
    ],
)
def test_tensors_that_do_not_belong_together(change, error, message):
    integers = drawn(Scheme.parse("int4:g32"), (6, 64))
    arguments = {name: getattr(integers, name) for name in ("packed", "scales", "zeros", "scheme", "shape")}
    with pytest.raises(error) as raised:
        PackedWeight(**arguments | change)
    assert message in str(raised.value)


def test_scales_that_are_no_numbers_are_found():
    integers = drawn(Scheme.parse("int4:g32"), (6, 64))
    assert integers.check() is integers
    integers.zeros[2, 1] = float("nan")
    with pytest.raises(InvalidValuesError, match=r"zeros of layer\.1: got 1 that are NaN or infinite, expected finite"):
        integers.check("layer.1")
