from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, weight_norm

from assay.errors import ConfigError
from assay.quantize.candidates import candidates
from assay.quantize.layers import QuantizedLinear


def why_not(model):
    return {each.name: each.why_not for each in candidates(model)[0]}


class Named(nn.Linear):
    """A class that changes nothing but how it is made."""

    def __init__(self, width):
        super().__init__(width, width)

    def reset_parameters(self):
        nn.init.zeros_(self.weight)


class Loud(nn.Linear):
    def forward(self, x):
        return super().forward(x) * 2


class Reads(nn.Module):
    """Multiplies with one weight itself, and only sets the other one up."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 4)
        nn.init.zeros_(self.b.weight)

    def forward(self, x):
        return nn.functional.linear(x, self.a.weight) + self.b(x)


def test_linear_layers_and_embeddings_are_found_and_the_rest_is_summed_up():
    model = nn.ModuleDict(
        {"emb": nn.Embedding(10, 4), "conv": nn.Conv1d(4, 4, 3), "fc": nn.Linear(4, 2), "n1": nn.LayerNorm(2)}
    )
    model["n2"] = nn.LayerNorm(2)
    found, rest = candidates(model)
    assert [(each.name, each.kind, each.shape, each.why_not) for each in found] == [
        ("emb", "embedding", (10, 4), ""),
        ("fc", "linear", (2, 4), ""),
    ]
    assert {(each.kind, each.count, each.nbytes) for each in rest} == {
        *(("Conv1d", 1, 208), ("LayerNorm", 2, 32), ("bias", 1, 8))
    }


def test_conv1d_of_transformers_is_a_linear_layer_with_its_weight_turned():
    conv1d = pytest.importorskip("transformers.pytorch_utils").Conv1D(6, 4)
    (found,), rest = candidates(nn.Sequential(conv1d))
    assert (found.kind, found.shape, found.transposed, found.why_not) == ("linear", (6, 4), True, "")
    assert [(each.kind, each.nbytes) for each in rest] == [("bias", 24)]
    assert torch.equal(found.weight(), conv1d.weight.detach().t())


def test_attention_multiplies_with_its_weight_past_the_layer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    assert why_not(nn.Sequential(layer)) == {
        "0.self_attn.out_proj": "MultiheadAttention.forward reads out_proj.weight past the layer",
        "0.linear1": "TransformerEncoderLayer.forward reads linear1.weight past the layer",
        "0.linear2": "TransformerEncoderLayer.forward reads linear2.weight past the layer",
    }
    assert {each.kind for each in candidates(nn.Sequential(layer))[1]} == {"MultiheadAttention", "LayerNorm", "bias"}


def test_a_weight_that_the_parent_reads_is_found_in_its_source():
    assert why_not(Reads()) == {"a": "Reads.forward reads a.weight past the layer", "b": ""}


def test_subclasses():
    model = nn.Sequential(Named(4), Loud(4, 4))
    assert why_not(model) == {"0": "", "1": "Loud does more than the layer that it is made from"}


def replaced(model):
    model[0].forward = lambda x: x
    return model


def tensor_subclass(model):
    class Other(torch.Tensor):
        pass

    model[0].weight = nn.Parameter(model[0].weight.detach().as_subclass(Other))
    return model


def one(module):
    return nn.Sequential(module)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: replaced(one(nn.Linear(4, 4))), "its forward was replaced by another library"),
        (lambda: one(parametrizations.orthogonal(nn.Linear(4, 4))), "computed anew for each batch (a parametrization)"),
        (lambda: one(parametrizations.weight_norm(nn.Linear(4, 4))), "computed anew for each batch"),
        (lambda: one(nn.LazyLinear(4)), "its shape is not known before the first batch"),
        (lambda: one(nn.Embedding(4, 4, max_norm=1.0)), "max_norm writes into its weight"),
        (lambda: one(nn.Linear(4, 4, dtype=torch.complex64)), "its weight is complex64"),
        (lambda: one(nn.Linear(4, 4).requires_grad_(False).to(torch.float8_e4m3fn)), "its weight is float8_e4m3fn"),
        (lambda: one(nn.Linear(4, 0)), "its weight is empty"),
        (lambda: tensor_subclass(one(nn.Linear(4, 4))), "its weight is a Other, which another library handles"),
    ],
)
@pytest.mark.filterwarnings("ignore:Initializing zero-element")
def test_what_is_skipped_and_why(make, message):
    ((_, why),) = why_not(make()).items()
    assert message in why


@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
def test_the_older_weight_norm():
    assert "computed anew" in why_not(one(weight_norm(nn.Linear(4, 4))))["0"]


def test_weights_that_are_shared():
    emb, head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
    head.weight = emb.weight
    model = nn.Sequential(emb, nn.Linear(4, 4), head)
    assert {each.name: each.tied for each in candidates(model)[0]} == {"0": ("2",), "1": (), "2": ("0",)}
    head.weight = nn.Parameter(emb.weight.detach())  # another parameter, the same memory
    assert {each.name: each.tied for each in candidates(model)[0]} == {"0": ("2",), "1": (), "2": ("0",)}
    head.weight = nn.Parameter(emb.weight.detach().clone())
    assert not any(each.tied for each in candidates(model)[0])


def test_a_weight_that_is_shared_with_something_else():
    class Extra(nn.Module):
        def __init__(self, weight):
            super().__init__()
            self.table = weight

    model = nn.Sequential(nn.Linear(4, 4))
    model.append(Extra(model[0].weight))
    assert [each.tied for each in candidates(model)[0]] == [("1.table",)]
    assert [each.kind for each in candidates(model)[1]] == ["bias"]  # the weight was counted


def test_parts_of_one_memory_are_not_shared_weights():
    flat = torch.randn(32)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[0].weight, model[1].weight = nn.Parameter(flat[:16].view(4, 4)), nn.Parameter(flat[16:].view(4, 4))
    assert not any(each.tied for each in candidates(model)[0])


def test_a_module_in_two_places_is_one_candidate():
    shared = nn.Linear(4, 4)
    (found,), _ = candidates(nn.ModuleDict({"a": shared, "b": nn.Sequential(shared)}))
    assert [attribute for _, attribute in found.places] == ["a", "0"]
    assert found.tied == ()


def test_weights_on_the_meta_device_are_found():
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    assert [(each.shape, each.tied) for each in candidates(model)[0]] == [((4, 4), ()), ((4, 4), ())]


def test_what_is_quantized_is_left_alone():
    from assay.quantize import Scheme, quantize_weight

    layer = QuantizedLinear(quantize_weight(torch.randn(4, 8), Scheme.parse("int8")))
    assert why_not(nn.Sequential(layer)) == {"0": "is quantized already"}


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (7, "model: got int, expected a torch.nn.Module"),
        (nn.Linear(2, 2), "model: got one layer, Linear, expected a model that holds layers"),
        (torch.compile(nn.Sequential(nn.Linear(2, 2)), backend="eager"), "model: got a compiled module"),
    ],
)
def test_what_is_no_model_is_told(model, message):
    with pytest.raises(ConfigError) as raised:
        candidates(model)
    assert message in str(raised.value)
