"""Quantized layers in the place of torch's own: any input, any device, and canonical integers that nothing changes."""

from __future__ import annotations

import copy
import io
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from assay.errors import ConfigError, DeviceError, DtypeError, ShapeError
from assay.quantize import QuantizedEmbedding, QuantizedLinear
from assay.quantize.dispatch import DispatchTable
from assay.quantize.kernels import KERNELS, kernel
from assay.quantize.layers import QuantizedWeight
from quantize.drawn import TOLERANCES, apart, integers_of
from thinning import every_third, one_of_each

SCHEMES = ("int4", "int4:g32:sym", "int8", "int3:g64", "int2:channel", "int8:g64:asym")
DTYPES = tuple(TOLERANCES)
PACKING = DispatchTable({("*", "*", "int4"): ((1, "int4pack-cpu"), (8, "dequantize"))}, "a test")


def a_layer(text="int4", shape=(24, 256), dtype=torch.float32, bias=True, table=None):
    bias = nn.Parameter(torch.linspace(-1, 1, shape[0], dtype=dtype)) if bias else None
    return QuantizedLinear(integers_of(text, shape), bias, dtype, table)


def dense(layer, x):
    bias = None if layer.bias is None else layer.bias.detach().double()
    return F.linear(x.double(), layer.integers.dequantize().double(), bias)


@every_third
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(256,), (1, 256), (3, 256), (2, 5, 256), (70, 256), (2, 2, 3, 256)], ids=str)
@pytest.mark.parametrize("text", SCHEMES)
@torch.no_grad()
def test_any_shape_and_dtype_of_activations(text, shape, dtype):
    layer, x = a_layer(text, dtype=dtype), torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    found = layer(x)
    assert (found.dtype, found.shape) == (dtype, (*shape[:-1], 24))
    assert apart(found, dense(layer, x)) < TOLERANCES[dtype]


@pytest.mark.parametrize("shape", [(0, 256), (2, 0, 256)])
@pytest.mark.parametrize("text", ["int4", "int8"])
def test_empty_batches(text, shape):
    layer = a_layer(text)
    found = layer(torch.zeros(shape, requires_grad=True))
    assert found.shape == (*shape[:-1], 24)
    found.sum().backward()


@torch.no_grad()
def test_strides_and_layers_without_a_bias_and_with_one_of_another_dtype():
    layer, x = a_layer(bias=False), torch.randn(256, 6).t()
    assert apart(layer(x), dense(layer, x)) < 1e-5
    assert apart(layer(torch.randn(6, 512)[:, ::2]), torch.zeros(6, 24)) > 0
    mixed = QuantizedLinear(integers_of("int4", (24, 256)), torch.randn(24).half())
    assert mixed(torch.randn(2, 256).bfloat16()).dtype == torch.bfloat16


@pytest.mark.parametrize("rows", [1, 50])
@pytest.mark.parametrize("text", ["int4", "int8", "int3:g32"])
def test_inputs_that_require_grad_get_the_gradient_of_the_dense_layer(text, rows):
    layer, x = a_layer(text), torch.randn(2, rows, 256, requires_grad=True)
    layer(x).square().sum().backward()
    other = x.detach().double().requires_grad_()
    dense(layer, other).square().sum().backward()
    assert apart(x.grad, other.grad) < 1e-5
    assert apart(layer.bias.grad, (2 * dense(layer, x)).sum((0, 1))) < 1e-4


def test_what_is_kept_for_the_gradient_is_not_the_weight():
    layer, kept = a_layer(), []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.numel()), lambda _: None):
        layer(torch.randn(3, 256, requires_grad=True))
    assert sum(kept) < 24 * 256 // 2


@torch.no_grad()
def test_autocast_decides_the_dtype_as_it_does_for_a_linear_layer():
    layer, x = a_layer(), torch.randn(3, 256)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16 == nn.Linear(256, 24)(x).dtype
    assert layer(x).dtype == torch.float32


@pytest.mark.parametrize("text", SCHEMES)
@pytest.mark.parametrize(
    "change",
    [
        lambda layer: layer.to(torch.float16),
        lambda layer: layer.bfloat16().float().half().double(),
        lambda layer: copy.deepcopy(layer),
        lambda layer: pickle.loads(pickle.dumps(layer)),
        lambda layer: layer.to("cpu", torch.bfloat16),
        lambda layer: layer.eval().requires_grad_(False).share_memory(),
    ],
    ids=["half", "every dtype", "deepcopy", "pickle", "to", "shared"],
)
@torch.no_grad()
def test_canonical_integers_keep_every_bit(text, change):
    layer = a_layer(text)
    layer(torch.randn(2, 256))  # something is packed
    before = copy.deepcopy(layer.integers)
    changed = change(layer)
    assert changed.integers.equal(before)
    assert changed.integers.scales.dtype == torch.bfloat16
    x = torch.randn(2, 256).to(changed.weight.dtype)
    expected = dense(changed, x)
    assert apart(changed(x), expected) < (6e-3 if x.dtype == torch.bfloat16 else 1e-3)
    assert changed(x).dtype == x.dtype


def test_to_changes_the_dtype_that_the_layer_stands_for():
    layer = a_layer()
    assert layer.weight.dtype == torch.float32
    layer.half()
    assert (layer.weight.dtype, layer.bias.dtype, layer.weight.dequantize().dtype) == (torch.float16,) * 3


@pytest.mark.devices("mps", "cuda:1", "xpu")
@pytest.mark.parametrize("text", ["int4", "int8", "int3:g32", "int8:dynamic"])
@torch.no_grad()
def test_a_layer_moves_runs_there_without_a_copy_and_comes_back_to_the_bit(text, device, pretended):
    layer, x = a_layer(text), torch.randn(5, 256)
    before, expected = copy.deepcopy(layer.integers), layer(x)
    layer.to(device)
    assert layer.weight.device == device
    there = x.to(device)
    events = pretended.events if pretended else []
    events.clear()
    found = layer(there)
    assert [str(event) for event in events] == []
    assert found.device == device
    assert apart(found, expected) < 1e-3
    assert layer.cpu().integers.equal(before)
    assert torch.equal(layer(x), expected)


def test_a_state_dict_is_the_canonical_form_and_nothing_else():
    layer = a_layer(table=PACKING)
    layer(torch.randn(1, 256).bfloat16())
    assert layer.weight._packs  # torch's layout is kept, but is no state
    state = layer.state_dict()
    assert sorted(state) == ["bias", "weight.packed", "weight.scales", "weight.zeros"]
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    other = a_layer()
    other.weight.packed.zero_()
    other.load_state_dict(torch.load(file, weights_only=True))
    assert other.integers.equal(layer.integers)


@torch.no_grad()
def test_what_was_packed_is_made_again_when_a_state_is_loaded_or_written_to():
    layer, x = a_layer("int4", table=PACKING), torch.randn(1, 256)
    first = layer(x)
    layer.load_state_dict(QuantizedLinear(integers_of("int4", (24, 256), seed=1), layer.bias).state_dict())
    second = layer(x)
    assert apart(second, dense(layer, x)) < 1e-5 < apart(second, first)
    layer.weight.scales.mul_(2)
    assert apart(layer(x), dense(layer, x)) < 1e-5
    layer.weight.zeros = layer.weight.zeros * 3
    assert apart(layer(x), dense(layer, x)) < 1e-5


@torch.no_grad()
def test_what_was_packed_for_another_processor_is_never_used(monkeypatch):
    layer, x = a_layer(table=PACKING), torch.randn(1, 256)
    layer(x)
    packed = layer.weight._packs["int4pack-cpu", torch.float32]
    assert layer.weight._packed("int4pack-cpu", torch.float32) is packed
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "ANOTHER")
    again = layer.weight._packed("int4pack-cpu", torch.float32)
    assert again is not packed
    assert again.layout == "int4pack-cpu cpu-ANOTHER"
    for copied in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert copied.weight._packs == {}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (a_layer("int4:g64"), "size mismatch for weight.scales"),
        (a_layer("int3:g128"), "size mismatch for weight.packed"),
        (a_layer("int4:sym"), "Missing key"),
        (
            QuantizedLinear(integers_of("int4", (24, 256), dtype=torch.float32), torch.zeros(24)),
            "weight.scales: got torch.float32, expected torch.bfloat16, which is not converted. Load what was",
        ),
    ],
    ids=["groups", "bits", "zeros", "dtype"],
)
def test_a_state_of_another_scheme_is_refused(other, message):
    layer = a_layer()
    with pytest.raises(RuntimeError, match=message):
        layer.load_state_dict(other.state_dict())


def test_layers_that_share_a_weight_go_on_sharing_it():
    embedding = QuantizedEmbedding(integers_of("int8", (24, 64)))
    model = nn.ModuleDict({"head": QuantizedLinear(embedding.weight), "embed": embedding})
    for moved in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.half()):
        assert moved["head"].weight is moved["embed"].weight
    assert len(list(model.named_buffers())) == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.no_grad()
def test_an_embedding_expands_the_rows_that_are_asked_for(dtype):
    integers = integers_of("int4:g32", (11, 64))
    layer = QuantizedEmbedding(integers, padding_idx=0, dtype=dtype)
    for index in (
        torch.tensor(3),
        torch.tensor([3, 0, 3]),
        torch.randint(11, (2, 5)),
        torch.empty(0, dtype=torch.long),
    ):
        expected = F.embedding(index, integers.dequantize(dtype))
        assert torch.equal(layer(index), expected)
        assert torch.equal(layer(index.int()), expected)
    for beyond in (11, -1):
        with pytest.raises(IndexError):
            layer(torch.tensor([beyond]))
    with pytest.raises(DtypeError, match=r"indices: got torch\.float32, expected torch\.int64 or torch\.int32"):
        layer(torch.ones(2))


@pytest.mark.parametrize("text", ["int4", "int8", "int3:g32"])
@torch.no_grad()
def test_vmap_takes_the_layer(text):
    layer, x = a_layer(text), torch.randn(3, 2, 256)
    assert apart(torch.vmap(layer)(x), layer(x)) < 1e-5


@pytest.mark.parametrize("text", ["int4", "int8", "int3:g32"])
@one_of_each()
def test_torch_compile_takes_the_layer_whole(text):
    torch._dynamo.reset()
    layer = a_layer(text)
    layer.weight.prepare()
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    for rows in (1, 3, 200):
        x = torch.randn(rows, 256)
        with torch.no_grad():
            assert apart(compiled(x), dense(layer, x)) < 1e-5
        x.requires_grad_()
        compiled(x).sum().backward()
        assert apart(x.grad, dense_gradient(layer, x)) < 1e-5


def dense_gradient(layer, x):
    return torch.ones(len(x), 24, dtype=torch.float64) @ layer.integers.dequantize().double()


def test_torch_compile_packs_at_first_use_and_sees_what_is_loaded_later():
    layer, x = a_layer(table=PACKING), torch.randn(1, 256)
    compiled = torch.compile(layer, backend="eager")
    with torch.no_grad():
        assert apart(compiled(x), dense(layer, x)) < 1e-5
        layer.load_state_dict(QuantizedLinear(integers_of("int4", (24, 256), seed=1), layer.bias).state_dict())
        assert apart(compiled(x), dense(layer, x)) < 1e-5


@pytest.mark.slow
def test_torch_compile_with_its_own_back_end():
    layer, x = a_layer(), torch.randn(3, 256).bfloat16()
    with torch.no_grad():
        assert apart(torch.compile(layer)(x), dense(layer, x)) < 6e-3


@pytest.mark.parametrize(
    ("x", "kind", "message"),
    [
        (torch.zeros(2, 255), ShapeError, r"input: got shape \(2, 255\), expected shape \(\.\.\., 256\)"),
        (torch.zeros(()), ShapeError, r"input: got shape \(\)"),
        (torch.zeros(2, 256, dtype=torch.long), DtypeError, r"input: got torch\.int64, expected floats"),
        (torch.zeros(2, 256, device="meta"), DeviceError, "input: got a tensor on meta, expected one on cpu"),
    ],
)
def test_inputs_that_do_not_fit(x, kind, message):
    with pytest.raises(kind, match=message):
        a_layer()(x)


def test_layers_that_cannot_be():
    with pytest.raises(ShapeError, match=r"bias: got shape \(23,\), expected shape \(24,\)"):
        QuantizedLinear(integers_of("int4", (24, 256)), torch.zeros(23))
    with pytest.raises(ConfigError, match="weight: got Tensor, expected PackedWeight or a QuantizedWeight"):
        QuantizedLinear(torch.zeros(24, 256))


def test_a_weight_on_the_meta_device_keeps_its_shape():
    layer = a_layer().to("meta")
    assert layer.weight.packed.is_meta
    assert layer.weight.shape == (24, 256)


def test_nothing_is_kept_beside_the_integers_where_the_path_reads_them():
    layer = a_layer("int4", shape=(64, 256))
    layer.weight.prepare(torch.bfloat16)
    held = {layer.weight.packed.data_ptr(), layer.weight.scales.data_ptr(), layer.weight.zeros.data_ptr()}
    for packed in layer.weight._packs.values():
        if KERNELS[packed.kernel].extra_bytes("cpu", layer.scheme, (64, 256)) == 0:
            assert {tensor.data_ptr() for tensor in packed.tensors} <= held
    assert isinstance(layer.weight, QuantizedWeight)
    assert kernel("dequantize").extra_bytes("cpu", layer.scheme, (64, 256)) == 0
