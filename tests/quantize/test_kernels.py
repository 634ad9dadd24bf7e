"""Every kernel multiplies by the weight that the integers stand for, and says where it cannot be had."""

from __future__ import annotations

import pytest
import torch

from assay.devices.operators import support as operators
from assay.devices.operators.support import lacks, layout_of
from assay.errors import ConfigError
from assay.quantize import Scheme
from assay.quantize.kernels import KERNELS, kernel
from assay.quantize.kernels.int4 import for_cuda, for_mps, for_xpu
from assay.quantize.kernels.portable import quantize_rows, rounded_rows
from quantize.drawn import TOLERANCES, apart, integers_of
from thinning import every_third

SCHEMES = ("int4", "int4:g32", "int4:g64:sym", "int4:g256", "int8", "int8:g64:asym", "int3:g32", "int2:channel", "int6")
DTYPES = (torch.float32, torch.bfloat16, torch.float16)


def inputs(rows, width, dtype, seed=0):
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed)).to(dtype)


@every_third
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(64, 256), (40, 256), (7, 512)], ids=str)
@pytest.mark.parametrize("text", [*SCHEMES, "int8:dynamic", "int4:dynamic"])
def test_every_path_of_the_cpu_is_the_formula(text, shape, dtype):
    integers = integers_of(text, shape)
    ran = 0
    for each in KERNELS.values():
        if each.why_not("cpu", dtype, integers.scheme, shape):
            continue
        packed = each.pack(integers, dtype)
        for rows in (1, 2, 5, 33):
            x = inputs(rows, shape[1], dtype)
            rounded = rounded_rows(x.float()) if integers.scheme.activations else x
            found = each.matmul(x, packed)
            assert (found.dtype, tuple(found.shape)) == (dtype, (rows, shape[0]))
            allowed = TOLERANCES[dtype] + (2e-3 if integers.scheme.activations else 0)
            assert apart(found, rounded.double() @ integers.dequantize().double().T) < allowed, each.name
        ran += 1
    assert ran >= 1


@pytest.mark.parametrize("text", ["int4:g32", "int4:g64:sym"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_torchs_kernel_for_the_cpu_has_its_rows_filled_up(text, dtype):
    integers, x = integers_of(text, (19, 64)), inputs(3, 64, dtype)
    packed = kernel("int4pack-cpu").pack(integers, dtype)
    assert packed.tensors[0].shape == (32, 32)
    assert kernel("int4pack-cpu").matmul(x, packed).shape == (3, 19)
    with pytest.raises(RuntimeError, match="expect N to be dividable by 16"):
        torch._convert_weight_to_int4pack_for_cpu(integers.values().int() + 8, 1)


@pytest.mark.devices("mps", "cuda:1", "xpu")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", ["int4", "int4:g32:sym", "int8", "int3:g32", "int8:dynamic"])
def test_every_path_of_a_device_gives_the_cpus_values(text, dtype, device, pretended):
    integers, x = integers_of(text, (24, 128)), inputs(3, 128, dtype)
    expected = kernel("dequantize").matmul(x, kernel("dequantize").pack(integers, dtype))
    for each in KERNELS.values():
        if not each.why_not(device, dtype, integers.scheme, integers.shape):
            there = each.matmul(x.to(device), each.pack(integers.to(device), dtype))
            assert there.device == device
            assert apart(there, expected) < TOLERANCES[dtype], each.name


def halves(packed):
    """The unsigned integers of canonical bytes."""
    return torch.stack([packed & 15, packed >> 4], -1).flatten(1).long()


@pytest.mark.parametrize("width", [32, 64, 128, 384])
def test_the_layout_of_cuda_is_the_one_that_its_packing_kernel_writes(width):
    """Word by word: lane t of a tile has row t // 4, and four pairs of columns from its quarter on."""
    packed = torch.randint(0, 256, (16, width // 2), dtype=torch.uint8)
    values, found = halves(packed), for_cuda(packed)
    tiles = next(tiles for tiles in (8, 4, 2) if width % (16 * tiles) == 0)
    assert tuple(found.shape) == (2, width // (16 * tiles), 32, tiles // 2)
    for n, k, lane, pair in torch.cartesian_prod(*(torch.arange(size) for size in found.shape)).tolist():
        first = (k * tiles + 2 * pair) * 16 + lane % 4 * 2
        columns = [first, first + 1, first + 8, first + 9, first + 16, first + 17, first + 24, first + 25]
        v = values[n * 8 + lane // 4, columns].tolist()
        word = sum(v[at] << 4 * place for place, at in enumerate((0, 2, 4, 6, 1, 3, 5, 7)))
        assert found[n, k, lane, pair].item() & 0xFFFFFFFF == word


def test_the_layout_of_mps_is_the_swap_of_its_packing_kernel_under_cudas_shape():
    packed = torch.randint(0, 256, (16, 64), dtype=torch.uint8)
    values = halves(packed)
    given = (values[:, ::2] << 4 | values[:, 1::2]).to(torch.uint8)  # what torch's packing operator is given
    swapped = (given & 15) << 4 | given >> 4
    found = for_mps(packed)
    assert tuple(found.shape) == tuple(for_cuda(packed).shape)
    assert torch.equal(found.view(torch.uint8).flatten(), swapped.flatten())
    assert found.data_ptr() == packed.data_ptr()  # no copy


def test_the_layout_of_xpu_has_eight_columns_in_a_word():
    packed = torch.randint(0, 256, (16, 64), dtype=torch.uint8)
    words = (halves(packed).unflatten(1, (-1, 8)) << 4 * torch.arange(8)).sum(-1)
    assert torch.equal(for_xpu(packed).long() & 0xFFFFFFFF, words)


@pytest.mark.devices("mps", "cuda:1", "xpu")
def test_the_call_of_torchs_kernel_there_is_right_in_every_argument(device, pretended, monkeypatch):
    """The kernel is stood in for by one that reads the documented layout; the CPU has none that could be borrowed."""
    integers, x = integers_of("int4:g32", (20, 128)), inputs(3, 128, torch.bfloat16)
    layout = {"cuda": for_cuda, "mps": for_mps, "xpu": for_xpu}[device.type]
    seen = []

    def stand_in(x, weight, group, scales):
        seen.append(group)
        assert weight.is_contiguous()
        assert scales.is_contiguous()
        assert tuple(scales.shape) == (4, weight.shape[0] if weight.dim() == 2 else weight.shape[0] * 8, 2)
        rows = scales.shape[1]
        canonical = torch.cat([integers.packed, integers.packed.new_zeros(rows - 20, 64)])
        assert torch.equal(weight, layout(canonical))
        values = halves(canonical).float() - 8
        spread = scales.float().repeat_interleave(group, 0)
        return (x.float() @ (values * spread[..., 0].T + spread[..., 1].T).T).to(x.dtype)

    monkeypatch.setattr(
        torch.ops.aten, "_weight_int4pack_mm", lambda *given: stand_in(*(_here(each) for each in given))
    )
    packed = kernel("int4pack").pack(integers.to(device), torch.bfloat16)
    assert apart(kernel("int4pack").matmul(x.to(device), packed), x.double() @ integers.dequantize().double().T) < 6e-3
    assert seen == [32]


def _here(given):
    return given.cpu() if isinstance(given, torch.Tensor) else given


@pytest.mark.parametrize(
    ("name", "device", "dtype", "text", "shape", "why"),
    [
        ("int4pack", "mps", "bfloat16", "int4", (64, 256), ""),
        ("int4pack", "mps", "float16", "int4", (64, 256), ""),
        ("int4pack", "cuda:1", "bfloat16", "int4", (63, 256), ""),
        ("int4pack", "cuda", "float16", "int4", (64, 256), "it takes bfloat16, not float16"),
        ("int4pack", "cpu", "bfloat16", "int4", (64, 256), "torch has no kernel of _weight_int4pack_mm for cpu"),
        ("int4pack", "mps", "bfloat16", "int4:g16", (64, 256), "it takes groups of 32, 64, 128, 256, not 16"),
        ("int4pack", "mps", "bfloat16", "int8", (64, 256), "it takes 4 bits, not 8"),
        ("int4pack", "mps", "bfloat16", "int4:dynamic", (64, 256), "it does not round activations"),
        ("int4pack", "npu", "bfloat16", "int4", (64, 256), "torch has no kernel of _weight_int4pack_mm for npu"),
        ("int4pack-cpu", "mps", "bfloat16", "int4", (64, 256), "torch has no kernel of _weight_int4pack_mm_for_cpu"),
        ("int8pack", "mps", "bfloat16", "int8", (31, 256), ""),
        ("int8pack", "mps", "bfloat16", "int8", (32, 100), "it takes rows of a multiple of 32 weights, not 100"),
        ("int8pack", "cpu", "bfloat16", "int8:g64", (64, 256), "it takes one scale for each row and no zeros"),
        ("int8pack", "cpu", "bfloat16", "int8:asym", (64, 256), "it takes one scale for each row and no zeros"),
        ("int8dynamic", "cpu", "bfloat16", "int8", (64, 256), "it rounds activations"),
        ("int8dynamic", "mps", "bfloat16", "int8:dynamic", (64, 256), "torch has no kernel of _int_mm for mps"),
        ("native", "mps", "bfloat16", "int4", (64, 256), "it reads host memory, not that of mps"),
        ("native", "cpu", "float64", "int4", (64, 256), "it takes float32, bfloat16 and float16, not float64"),
        ("native", "cpu", "bfloat16", "int4:g16", (64, 256), "it takes groups of a multiple of 32 weights, not 16"),
        ("dequantize", "npu", "float64", "int4", (3, 256), ""),
        ("dequantize", "mps", "float16", "int4", (3, 100), "its rows of 100 weights cannot be cut into groups of 128"),
    ],
)
def test_why_a_path_cannot_be_taken(name, device, dtype, text, shape, why):
    if name == "native" and "compiler" in (
        said := kernel(name).why_not("cpu", "float32", Scheme.parse("int4"), (64, 256))
    ):
        pytest.skip(said)
    found = kernel(name).why_not(device, dtype, Scheme.parse(text), shape)
    assert found.startswith(why) if why else found == ""


def test_an_older_release_lacks_what_is_known_of_it_and_no_path_needs_that():
    assert "torch 2.4 has no kernel" in lacks("mps", "_convert_weight_to_int4pack", release="2.4")
    assert kernel("int4pack").why_not("mps", "bfloat16", Scheme.parse("int4"), (64, 256), release="2.4") == ""


def test_every_kernel_in_the_facts_is_one_of_torchs_and_has_its_source():
    for (operator, device), facts in operators._kernels().items():
        assert lacks(device, operator) == ""
        assert facts.source
        assert facts.rows >= 1 <= facts.width


def test_the_tag_of_a_layout_tells_processors_of_the_cpu_apart(monkeypatch):
    tag = kernel("int4pack-cpu").layout("cpu")
    assert tag == f"int4pack-cpu {layout_of('cpu')}"
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "ANOTHER")
    assert kernel("int4pack-cpu").layout("cpu") == "int4pack-cpu cpu-ANOTHER" != tag
    assert kernel("dequantize").layout("cpu") == kernel("native").layout("cpu") == "canonical"


def test_what_a_path_keeps_beside_the_canonical_form_is_what_it_says():
    for text, shape in [("int4", (64, 256)), ("int4:g32:sym", (40, 256)), ("int8", (64, 256)), ("int3:g32", (8, 64))]:
        integers = integers_of(text, shape)
        mine = {tensor.untyped_storage().data_ptr() for tensor in (integers.packed, integers.scales)}
        if integers.zeros is not None:
            mine.add(integers.zeros.untyped_storage().data_ptr())
        for each in KERNELS.values():
            if each.why_not("cpu", torch.bfloat16, integers.scheme, shape):
                continue
            packed = each.pack(integers, torch.bfloat16)
            extra = sum(t.nbytes for t in packed.tensors if t.untyped_storage().data_ptr() not in mine)
            assert extra == each.extra_bytes("cpu", integers.scheme, shape), each.name
    assert kernel("int4pack").extra_bytes("mps", Scheme.parse("int4"), (64, 256)) == 64 * 2 * 4
    assert kernel("int4pack").extra_bytes("cuda", Scheme.parse("int4"), (64, 256)) == 64 * 2 * 4 + 64 * 128


def test_rows_of_activations_have_scales_of_their_own():
    x = torch.tensor([[1.0, -127.0, 0.4], [0.0, 0.0, 0.0], [1e-3, 0.0, 5e-4]])
    values, scales = quantize_rows(x)
    assert values.tolist() == [[1, -127, 0], [0, 0, 0], [127, 0, 64]]
    torch.testing.assert_close(scales, torch.tensor([[1.0], [0.0], [1e-3 / 127]]))
    assert torch.equal(rounded_rows(x)[1], torch.zeros(3))


def test_no_path_of_that_name():
    with pytest.raises(ConfigError, match="kernel: got 'fast', expected one of native, int8pack"):
        kernel("fast")
