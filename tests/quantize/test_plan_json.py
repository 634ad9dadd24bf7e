"""A plan that was written, reviewed and read again: the same plan, applied in memory and to files."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from assay.errors import StateError
from assay.quantize import Plan, plan
from assay.quantize.files.file import load_packed_weights
from assay.quantize.files.stream import quantize_shards
from quantize.models import language_model


@pytest.mark.parametrize("device", ["cpu", "mps", "cuda"])
@pytest.mark.parametrize("scheme", ["int4, int8", {"embedding:*": "int8", "head": "skip", "*": "int3:g64"}])
def test_a_plan_comes_back_equal(scheme, device):
    made = plan(language_model(tied=True), scheme, device)
    assert Plan.from_json(made.to_json()) == made


def test_a_plan_that_was_read_is_applied_like_the_one_that_was_written():
    made = plan(language_model(), "int8", "cpu")
    first, second = language_model(), language_model()
    made.apply(first)
    Plan.from_json(made.to_json()).apply(second)
    assert first.state_dict().keys() == second.state_dict().keys()
    assert all(torch.equal(first.state_dict()[name], second.state_dict()[name]) for name in first.state_dict())


def test_the_recipe_of_a_plan_plans_the_same():
    model = language_model()
    made = plan(model, {"up": "int8", "*": "int4"}, "cpu", exclude="gate")
    again = plan(model, recipe=made.recipe)
    assert [layer.scheme for layer in again.layers] == [layer.scheme for layer in made.layers]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-30], "no JSON"),
        (lambda text: "[]", "plan: 'list'"),
        (lambda text: text.replace('"plan": 1', '"plan": 9'), "plan: 9"),
        (lambda text: text.replace('"int8"', '"int99"'), "int99"),
        (lambda text: text.replace('"layers"', '"lairs"'), "layers"),
        (lambda text: _with(text, bytes_after=1), "bytes_after"),
        (lambda text: _with(text, extra=1), "further fields"),
        (lambda text: _with(text, layers=[{"name": 3}]), "cannot be read"),
    ],
)
def test_a_plan_that_was_damaged_is_refused(change, message):
    text = plan(language_model(), "int8", "cpu").to_json()
    with pytest.raises(StateError, match=message):
        Plan.from_json(change(text), "plan.json")


def _with(text, **fields):
    return json.dumps(json.loads(text) | fields)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(128, 256), nn.Linear(256, 128)


def test_files_are_quantized_by_a_plan(tmp_path):
    torch.manual_seed(0)
    net = Net()
    save_file(net.state_dict(), tmp_path / "net.safetensors")
    made = plan(net, {"up": "int4:g32", "down": "skip"}, "cpu", method="search")
    done = quantize_shards(tmp_path / "net.safetensors", tmp_path / "out", Plan.from_json(made.to_json()), model=Net)
    assert list(done.skipped) == ["down"]
    made.apply(net)
    assert load_packed_weights(tmp_path / "out")["up.weight"].equal(net.up.weight.integers)


def test_a_plan_of_another_model_writes_nothing(tmp_path):
    save_file(Net().state_dict(), tmp_path / "net.safetensors")
    other = plan(nn.Sequential(nn.Linear(128, 256)), "int8", "cpu")
    with pytest.raises(StateError, match="the model that was planned"):
        quantize_shards(tmp_path / "net.safetensors", tmp_path / "out", other, model=Net)
    assert not list(tmp_path.glob("out/*"))
