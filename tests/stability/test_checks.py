"""How `check_stability` treats models and data of all kinds, and what it refuses."""

from __future__ import annotations

import random
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay.errors import ConfigError
from assay.evaluation.model.every_module import every_module
from assay.stability import check_stability
from assay.stability.model_state import out_of_reach


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.Linear(8, 3))


def numbers() -> torch.Tensor:
    return torch.randn(40, 4, generator=torch.Generator().manual_seed(1))


def verdicts(result):
    return [(each.what, each.verdict) for each in result.checks]


def test_the_model_and_the_generators_are_unchanged():
    model, x = network(), numbers()
    before, state = {name: each.clone() for name, each in model.state_dict().items()}, torch.get_rng_state()
    assert check_stability(model, x, mode="as is").outcome == "depends"
    assert model.training
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), state)
    assert not any(each._forward_hooks for each in model.modules())


def test_a_loader_of_small_batches_and_a_data_set_give_the_same_result():
    x = numbers()
    data = TensorDataset(x, torch.zeros(40, dtype=torch.int64))
    small = check_stability(network(), DataLoader(data, batch_size=7), samples=30)
    assert small == check_stability(network(), data, samples=30) == check_stability(network(), x, samples=30)
    assert small.checks[0].samples == 30


def test_a_file_needs_no_target(tmp_path):
    x = numbers()
    np.savez(tmp_path / "data.npz", x=x.numpy())
    assert check_stability(network(), tmp_path / "data.npz") == check_stability(network(), x)
    np.savez(tmp_path / "data.npz", x=x.numpy(), y=np.zeros(40, np.int64))
    assert check_stability(network(), tmp_path / "data.npz") == check_stability(network(), x)


def test_exported_programs_and_torchscript_are_compared():
    model, x = network().eval(), numbers()
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    with warnings.catch_warnings(action="ignore"):  # that torch.jit is deprecated, a FutureWarning since 2.14
        script = torch.jit.trace(model, x)
    other = network()
    with torch.no_grad():
        other[3].bias += 1
    result = check_stability(model, x, against={"net.pt2": program, "net.ts": script, "another": other})
    found = {each.what: each.verdict for each in result.checks}
    assert found["net.pt2"] in ("same bits", "rounding")
    assert found["net.ts"] in ("same bits", "rounding")
    assert found["another"] == "depends"
    assert check_stability(program, x).outcome == "stable"
    assert check_stability(script, x).outcome == "stable"


def test_a_form_that_does_not_run_is_not_checked():
    def broken(x):
        raise RuntimeError("no runtime here")

    row = check_stability(network(), numbers(), against={"net.onnx": broken}).checks[-1]
    assert (row.what, row.verdict) == ("net.onnx", "not checked")
    assert "RuntimeError: no runtime here" in row.cause


def test_torch_compile_that_does_not_run_is_not_checked(monkeypatch):
    def refuse(model):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(torch, "compile", refuse)
    assert verdicts(check_stability(network(), numbers(), compile=True))[-1] == ("torch.compile", "not checked")


def test_a_model_that_cannot_be_copied_is_run_itself():
    class Open(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer, self.names = nn.Linear(4, 3), (each for each in "ab")

        def forward(self, x):
            return self.layer(x)

    result = check_stability(Open(), numbers())
    assert result.outcome == "stable"
    assert any("cannot be copied" in each for each in result.notes)


def test_a_function_is_a_model():
    assert check_stability(lambda x: x * 2, numbers()).outcome == "stable"
    assert check_stability(lambda x: x - x.sum(0), numbers()).outcome == "depends"


@pytest.mark.parametrize("draw", [torch.rand_like, lambda _: random.random()], ids=["torch", "Python"])
def test_what_does_not_compare_with_differing_repeats_is_not_checked(draw):
    found = dict(verdicts(check_stability(lambda x: x + draw(x), numbers())))
    assert found.pop("repeat") == "depends"
    assert found.pop("inputs") == "same bits"
    assert set(found.values()) == {"not checked"}


def test_a_generator_of_the_model_itself_stops_further_comparisons():
    class Drawing(nn.Module):
        def __init__(self):
            super().__init__()
            self.generator = torch.Generator().manual_seed(0)

        def forward(self, x):
            return x + torch.randn(x.shape, generator=self.generator)

    found = dict(verdicts(check_stability(Drawing(), numbers())))
    assert [found[name] for name in ("repeat", "batch size", "dtype")] == ["depends", "not checked", "not checked"]


def test_modules_in_lists_are_found():
    model = nn.Sequential(nn.Linear(2, 2))
    model.branches = [{"a": nn.Dropout()}, nn.Sequential(nn.ReLU())]
    assert set(out_of_reach(model)) == {"branches.0.a", "branches.1", "branches.1.0"}
    assert set(every_module(model)) == {"", "0", *out_of_reach(model)}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"samples": 1}, "samples: got 1, expected an integer, 2 or more"),
        ({"mode": "train"}, "mode: got 'train', expected 'eval' or 'as is'"),
        ({"data": torch.zeros(1, 4)}, "data: got 1 samples, expected two samples or more"),
        ({"data": torch.zeros(9, 5)}, "model: got RuntimeError: .*expected outputs for 9 samples"),
    ],
)
def test_what_cannot_be_checked_is_one_line(given, message):
    data = given.pop("data", numbers())
    with pytest.raises(ConfigError, match=message):
        check_stability(network(), data, **given)


def test_random_numbers_are_named_also_where_a_trace_does_not_meet_them():
    """Dropout that changes few numbers seldom changes the sample in the calls that are traced."""

    class Rare(nn.Module):
        def forward(self, x):
            return nn.functional.dropout(x, 0.01)

    torch.manual_seed(0)
    result = check_stability(Rare(), torch.randn(64, 6))
    assert result.outcome == "depends"
    assert result.causes[0] == "random numbers without a seed: torch"
