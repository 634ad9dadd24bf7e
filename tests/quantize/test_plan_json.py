"""A plan that was written, reviewed and read again: the same plan, applied in memory and to files."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from assay._records import seal
from assay.errors import StateError
from assay.quantize import Plan, plan
from assay.quantize.files.file import load_packed_weights
from assay.quantize.streaming.job import quantize_shards
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


def test_a_plan_is_saved_and_loaded(tmp_path):
    made = plan(language_model(), "int4, int8", "mps")
    assert Plan.load(made.save(tmp_path / "plan.json")) == Plan.load(tmp_path) == made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text[:-30], "breaks at character"),
        (lambda text: "[]", "schema None"),
        (lambda text: text.replace("assay.plan/1", "assay.plan/9"), "schema 'assay.plan/9'.*Update assay"),
        (lambda text: text.replace("assay.plan/1", "assay.report/1"), "schema 'assay.report/1'.*Pass a plan"),
        (lambda text: text.replace('"int8"', '"int4"', 1), "digest"),
        (lambda text: _sealed(text, "scheme", "int99"), "int99"),
        (lambda text: _sealed(text, "scheme", 8), "scheme"),
        (lambda text: _sealed(text, "kind", "conv"), "'linear', 'embedding'"),
        (lambda text: _sealed(text, "shape", [256, 256, 1]), "2 entries"),
        (lambda text: _sealed(text, "shape", [256, "wide"]), "an integer"),
        (lambda text: _sealed(text, "kernels", [[1]]), "2 entries"),
        (lambda text: _sealed(text, "extra", 1), "extra"),
    ],
)
def test_a_plan_that_was_damaged_is_refused(change, message):
    text = plan(language_model(), "int8", "cpu").to_json()
    with pytest.raises(StateError, match=rf"plan\.json.*{message}"):
        Plan.from_json(change(text), "plan.json")


def _sealed(text, field, value):
    """The plan with another value in its second layer, and with the digest of that."""
    data = json.loads(text)
    data["layers"][1][field] = value
    return json.dumps(seal(data))


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
