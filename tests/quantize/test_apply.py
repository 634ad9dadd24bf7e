from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from assay.errors import ConfigError, InputError, InvalidValuesError, StateError
from assay.quantize import PackedWeight, QuantizedEmbedding, QuantizedLinear, plan, quantize_weight
from assay.quantize.kernels import KERNELS
from assay.quantize.planning import apply as plan_apply
from assay.quantize.rounding import Calibration, gptq
from quantize.models import LanguageModel, language_model, some_ids
from thinning import TURNS, one_of_each

FULL = {"squeeze": "skip", "embedding:*": "int8", "head": "int8", "*": "int4, int8"}


def bits(model: nn.Module) -> dict[str, bytes]:
    """Every tensor of a model, and of which class each module is."""
    held = {name: each.detach().cpu().view(torch.uint8).numpy().tobytes() for name, each in model.state_dict().items()}
    return held | {f"{name} is": type(module).__name__.encode() for name, module in model.named_modules()}


def taken(model: nn.Module) -> dict[str, str]:
    kinds = (QuantizedLinear, QuantizedEmbedding)
    return {name: str(module.scheme) for name, module in model.named_modules() if isinstance(module, kinds)}


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("recipe", ["int8", "int4", "int4:g64:sym", FULL])
@pytest.mark.parametrize("method", ["nearest", "hqq"])
@one_of_each(lambda recipe, method, **_: (str(recipe), method), TURNS)
def test_it_does_what_was_printed_and_no_more(tied, recipe, method):
    model = language_model(tied=tied)
    before = copy.deepcopy(model)
    made = plan(model, recipe, device="cpu", method=method)
    assert made.apply(model) is model
    assert taken(model) == {layer.name: str(layer.scheme) for layer in made.quantized}
    for layer in made.quantized:
        integers = model.get_submodule(layer.name).integers
        assert integers.equal(quantize_weight(before.get_submodule(layer.name).weight, layer.scheme, method))
        assert integers.nbytes == layer.bytes_after or layer.bytes_after == 0
    kept = {layer.name for layer in made.quantized}
    for name, held in before.named_parameters():
        if name.removesuffix(".weight") not in kept:
            assert torch.equal(model.get_parameter(name), held)
    distinct = {id(each): each.nbytes for each in [*model.parameters(), *model.buffers()]}
    assert sum(distinct.values()) == made.bytes_after


def test_the_paths_are_those_that_were_printed(monkeypatch):
    called: list[tuple[str, int]] = []
    for kernel in KERNELS.values():
        original = kernel.matmul
        monkeypatch.setattr(
            kernel, "matmul", lambda x, packed, p=kernel, o=original: called.append((p.name, len(x))) or o(x, packed)
        )
    model = language_model(dtype=torch.bfloat16)
    made = plan(model, device="cpu")
    made.apply(model)
    for rows in (1, 2, 7, 8, 23, 24, 40, 64):
        called.clear()
        model.blocks[0].mix(torch.randn(rows, 256, dtype=torch.bfloat16))
        steps = next(layer.kernels for layer in made.layers if layer.name == "blocks.0.mix")
        assert called == [([name for first, name in steps if first <= rows][-1], rows)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_model_runs_and_is_near_what_it_was(dtype):
    model = language_model(dtype=dtype)
    expected = model(some_ids())
    plan(model, "int8", device="cpu").apply(model)
    found = model(some_ids())
    assert found.dtype == dtype
    assert (found - expected).abs().max() < 0.02 * expected.abs().max() + 0.02


def test_modes_biases_hooks_and_dtypes_are_kept():
    model = language_model(dtype=torch.bfloat16)
    model.blocks[1].up.train()
    bias, seen = model.blocks[0].up.bias, []
    first = model.blocks[0].up.register_forward_hook(lambda module, *_: seen.append(("after", type(module).__name__)))
    model.blocks[0].up.register_forward_pre_hook(lambda module, args, kwargs: seen.append("before"), with_kwargs=True)
    plan(model, device="cpu").apply(model)
    assert model.blocks[0].up.bias is bias
    assert (model.blocks[1].up.training, model.blocks[0].up.training) == (True, False)
    assert {each.dtype for each in model.parameters()} == {torch.bfloat16}
    assert model.blocks[0].up.weight.dtype == torch.bfloat16
    model(some_ids())
    assert seen == ["before", ("after", "QuantizedLinear")]
    first.remove()  # the handle was made before
    model(some_ids())
    assert seen[2:] == ["before"]


def test_shared_weights_and_shared_modules_stay_shared():
    model = language_model(tied=True)
    model.again = model.blocks[0].mix
    plan(model, FULL, device="cpu").apply(model)
    assert model.head.weight is model.embedding.weight
    assert model.again is model.blocks[0].mix
    assert isinstance(model.again, QuantizedLinear)
    model.to(torch.bfloat16)
    assert model.head.integers.packed.data_ptr() == model.embedding.integers.packed.data_ptr()


def test_conv1d_of_transformers_gives_the_same():
    conv1d = pytest.importorskip("transformers.pytorch_utils").Conv1D(6, 32)
    nn.init.normal_(conv1d.weight)
    nn.init.normal_(conv1d.bias)
    model, x = nn.Sequential(conv1d), torch.randn(5, 32)
    plan(model, "int8", device="cpu").apply(model)
    assert torch.equal(model[0].integers.packed, quantize_weight(conv1d.weight.t(), "int8").packed)
    expected = torch.addmm(conv1d.bias, x, model[0].integers.dequantize().t())
    assert torch.allclose(model(x), expected, atol=1e-4)


def test_layers_that_the_model_reads_past_go_on_working():
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 2, 64, batch_first=True), 2).eval()
    model.head = nn.Linear(32, 4)
    made = plan(model, "int8", device="cpu")
    assert [layer.name for layer in made.quantized] == ["head"]
    with torch.inference_mode():  # torch's fast path hands the weights to a kernel
        assert made.apply(model)(torch.randn(2, 3, 32)).shape == (2, 3, 32)


def test_a_plan_of_a_model_without_values_holds_for_the_loaded_one():
    with torch.device("meta"):
        made = plan(LanguageModel(), device="mps")
    model = language_model()
    assert set(taken(made.apply(model))) == {layer.name for layer in made.quantized}


@pytest.mark.parametrize("failing", range(6))
def test_a_layer_that_fails_leaves_the_model_bit_for_bit(monkeypatch, failing):
    model = language_model()
    before, made, calls = bits(model), plan(model, "int8", device="cpu"), []

    def breaks(*args: object) -> PackedWeight:
        calls.append(args)
        if len(calls) > failing:
            raise MemoryError("no room")
        return quantize_weight(*args)

    monkeypatch.setattr(plan_apply, "quantize_weight", breaks)
    with pytest.raises(MemoryError):
        made.apply(model)
    assert bits(model) == before


@pytest.mark.parametrize("failing", [0, 3, 7])
def test_a_stop_while_layers_take_their_places_leaves_the_model_bit_for_bit(monkeypatch, failing):
    model = language_model()
    before, made, left = bits(model), plan(model, "int8", device="cpu"), [failing]

    class Stops(dict):
        def __setitem__(self, name: str, module: nn.Module) -> None:
            if isinstance(module, QuantizedLinear):
                if left[0] == 0:
                    left[0] -= 1
                    raise KeyboardInterrupt
                left[0] -= 1
            super().__setitem__(name, module)

    for module in model.modules():
        module._modules = Stops(module._modules)
    with pytest.raises(KeyboardInterrupt):
        made.apply(model)
    assert bits(model) == before


def broken(value: float) -> nn.Module:
    model = language_model()
    with torch.no_grad():
        model.blocks[1].down.weight[3, 7] = value
    return model


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_no_numbers_are_told_by_name(value):
    model = broken(value)
    before = bits(model)
    with pytest.raises(InvalidValuesError, match=r"blocks\.1\.down: weight: got 1 values that are NaN or infinite"):
        plan(model, "int8", device="cpu").apply(model)
    assert bits(model) == before


def test_a_model_without_values_is_told():
    with torch.device("meta"):
        model = LanguageModel()
    with pytest.raises(StateError, match=r"blocks\.0\.mix: got a weight on the meta device, expected one that has val"):
        plan(model, device="cpu").apply(model)


def other_width(model):
    model.head = nn.Linear(256, 97, bias=False)


def renamed(model):
    model.tail = model.head
    del model.head


def one_more(model):
    model.more = nn.Linear(256, 256)


def halved(model):
    model.half()


def untied(model):
    model.head.weight = nn.Parameter(model.head.weight.detach().clone())


def wrapped(model):
    model.head.forward = lambda x: x


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (other_width, r"got head, linear, float32 of shape \(97, 256\) where the plan has head, .* shape \(96, 256\)"),
        (renamed, "got tail, linear, .* where the plan has head, linear"),
        (one_more, "got 11 layers where the plan has 10, expected the model that was planned"),
        (halved, "float16 .*where the plan has .*float32"),
        (untied, "where the plan has embedding, .*, tied to head, expected"),
        (wrapped, "head: got its forward was replaced by another library"),
    ],
)
def test_another_model_than_the_planned_one_is_told(change, message):
    model = language_model(tied=change is untied)
    made = plan(model, {"embedding:*": "int8", "*": "int8"}, device="cpu")
    change(model)
    before = bits(model)
    with pytest.raises(StateError, match=message):
        made.apply(model)
    assert bits(model) == before


def test_a_model_that_is_quantized_cannot_be_quantized_again():
    model = language_model()
    made = plan(model, "int8", device="cpu")
    made.apply(model)
    with pytest.raises(StateError, match=r"blocks\.0\.mix: got is quantized already|where the plan has"):
        made.apply(model)
    assert plan(model, {"embedding:*": "int8"}, device="cpu").skipped[0].why == "is quantized already"


@torch.no_grad()
def calibrated(model: nn.Module, names: list[str] | None = None) -> Calibration:
    with Calibration(model, names) as data:
        model(torch.arange(96).reshape(4, 24))
    return data


def test_gptq_takes_what_went_into_the_layers():
    model, before = language_model(), language_model()
    made = plan(model, {"embedding:*": "int8", "*": "int4, int8"}, device="cpu", method="gptq")
    assert any(note.startswith("gptq: apply(model, calibration=...)") for note in made.notes)
    data = calibrated(model)
    made.apply(model, calibration=data)
    expected = gptq(before.head.weight, data.hessian("head"), "int4")
    assert model.head.integers.equal(expected)
    assert model.embedding.integers.equal(quantize_weight(before.embedding.weight, "int8", "search"))


def test_calibration_data_that_are_missing_or_too_much_are_told():
    model = language_model()
    before, data = bits(model), calibrated(model, ["head"])
    with pytest.raises(ConfigError, match="calibration: got none, expected data for the method gptq"):
        plan(model, "int8", device="cpu", method="gptq").apply(model)
    with pytest.raises(ConfigError, match="calibration: got data, expected none for the method nearest"):
        plan(model, "int8", device="cpu").apply(model, calibration=data)
    with pytest.raises(InputError, match=r"blocks\.0\.mix: calibration: got no input of 'blocks\.0\.mix'"):
        plan(model, "int8", device="cpu", method="gptq").apply(model, calibration=data)
    assert bits(model) == before
