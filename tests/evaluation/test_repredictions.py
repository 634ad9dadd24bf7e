"""`evaluate(verify=)`: a sample of predictions is made again on the CPU, and the difference is put into accuracy."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from assay import Accuracy, MeanSquaredError, evaluate
from assay.errors import ConfigError
from assay.evaluation.model.repredictions import PredictionSample, expected_flips, note_of_repredictions
from assay.pretend import pretend

ROWS = 300


@pytest.fixture(scope="module")
def data():
    random = torch.Generator().manual_seed(0)
    return TensorDataset(torch.randn(ROWS, 6, generator=random), torch.randint(0, 5, (ROWS,), generator=random))


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 5))


def note(report) -> str:
    return next(each for each in report.notes if "again" in each)


def measured(model, data, **options):
    return evaluate(model, data, Accuracy(num_classes=5), device="cpu", progress=False, **options)


def test_without_verify_nothing_is_said_or_changed(data):
    plain, verified = measured(network(), data), measured(network(), data, verify=64)
    assert not any("again" in each for each in plain.notes)
    assert plain.sections[0].values == verified.sections[0].values


def test_a_sound_model_moves_nothing(data):
    report = measured(network(), data, verify=64, verify_dtype="float64")
    said = note(report)
    assert "64 random samples were predicted again on the CPU in float64, in batches of 7" in said
    assert "0 of 64 decisions differ" in said
    value = report.sections[0].values[0]
    half = f"{(value.upper - value.lower) / 2:.2g}"
    assert f"about 0 of the decisions, and move Accuracy by no more than that; its interval is ± {half}." in said
    assert float(re.search(r"largest difference (\S+);", said)[1]) < 1e-5


class Coarse(nn.Module):
    """Scores with a step that only the evaluation has: its copies are exact."""

    def __init__(self):
        super().__init__()
        self.inner, self.step = network(), 0.25

    def __deepcopy__(self, memo):
        return self.inner

    def forward(self, x):
        scores = self.inner(x)
        return (scores / self.step).round() * self.step + torch.arange(5) * 1e-6


def test_decisions_that_numerics_change_are_estimated_from_all_margins(data):
    """The share that the note states is near the share of all decisions that do differ."""
    model = Coarse()
    x = data.tensors[0]
    with torch.no_grad():
        true = float((model(x).argmax(1) != model.inner(x).argmax(1)).double().mean())
    said = note(measured(model, data, verify=100))
    stated = float(re.search(r"numerics change about (\S+) of the decisions", said)[1])
    assert true > 0.05
    assert true / 2 < stated < true * 2


def test_the_share_is_that_of_all_pairs():
    random = np.random.default_rng(0)
    margins, changes = random.exponential(size=200), random.normal(size=64)
    pairs = np.mean([[abs(e) >= m for e in changes] for m in margins]) / 2
    assert expected_flips(torch.tensor(margins), torch.tensor(changes)) == pytest.approx(pairs)


def test_every_sample_is_kept_equally_often():
    kept = np.zeros(50)
    for seed in range(400):
        sample = PredictionSample(10, seed)
        for start in range(0, 50, 8):
            rows = torch.arange(start, min(start + 8, 50))
            sample.note(((rows,), {}), rows[:, None].float())
        assert sample.seen == 50
        assert len(sample.kept) == 10
        for (args, _), preds in sample.kept:
            assert args[0].item() == preds.item()
            kept[int(preds.item())] += 1
    assert abs(kept - 80).max() < 5 * np.sqrt(400 * 0.2 * 0.8)


def test_regression_has_a_difference_and_no_decisions():
    x = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    model = nn.Sequential(nn.Linear(3, 1), nn.Flatten(0))
    report = evaluate(model, TensorDataset(x, x.sum(1)), MeanSquaredError(), device="cpu", progress=False, verify=8)
    assert re.fullmatch(r"8 random samples .* in batches of 7: largest difference \S+\.", note(report))


def test_what_cannot_be_copied_is_a_note(data):
    class Held(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.names = network(), (each for each in "ab")

        def forward(self, x):
            return self.inner(x)

    said = note(measured(Held(), data, verify=8))
    assert said.startswith("No predictions were made again on the CPU: TypeError: cannot pickle")
    sample = PredictionSample(2, 0)
    sample.note(((torch.zeros(2, 6),), {}), torch.zeros(2, 5))
    meta = note_of_repredictions(sample, network().to("meta"), lambda each: each, "float32", ())
    assert "weights have no values (device meta)" in meta
    several = note_of_repredictions(sample, network(), lambda each: each, "float32", (), "2 processes evaluate")
    assert several == "No predictions were made again on the CPU: 2 processes evaluate."


def test_a_batch_that_cannot_be_kept_ends_no_evaluation(data, monkeypatch):
    def refuse(*_):
        raise ValueError("a tree of another kind")

    monkeypatch.setattr("assay.evaluation.model.repredictions.take", refuse)
    report = measured(network(), data, verify=8)
    assert note(report) == "No predictions were made again on the CPU: ValueError: a tree of another kind."
    assert report.sections[0].values[0].count == ROWS


def test_predictions_of_other_shapes_are_a_note():
    sample = PredictionSample(4, 0)
    sample.note(((torch.zeros(2, 3),), {}), torch.zeros(2, 3))
    sample.note(((torch.zeros(2, 5),), {}), torch.zeros(2, 5))
    said = note_of_repredictions(sample, nn.Identity(), lambda each: each, "float32", ())
    assert said.startswith("No predictions were made again on the CPU: RuntimeError")


def test_a_copy_that_does_not_fit_into_memory_is_not_made(data, monkeypatch):
    monkeypatch.setattr("assay.evaluation.model.repredictions.free_host_bytes", lambda: 100)
    assert "a copy takes 0.0 GiB, and 0.0 GiB of memory are free" in note(measured(network(), data, verify=8))


def test_the_model_is_unchanged(data):
    model = network().double()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    wide = TensorDataset(data.tensors[0].double(), data.tensors[1])
    said = note(measured(model, wide, verify=8))
    assert "in float32" in said
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verify": -1}, "verify: got -1, expected an integer, 0 or more"),
        ({"verify": 8, "verify_dtype": "bfloat16"}, "verify_dtype: got 'bfloat16', expected float32 or float64"),
    ],
)
def test_invalid_options(data, options, message):
    with pytest.raises(ConfigError, match=message):
        measured(network(), data, **options)


def test_samples_are_kept_without_a_wait():
    with pretend("mps", engine="native") as device:
        batches = [(rows.to("mps"), rows.to("mps") * torch.ones(3, device="mps")) for rows in torch.rand(4, 16, 1)]
        sample = PredictionSample(8, 0)
        device.events.clear()
        for rows, preds in batches:
            sample.note(((rows,), {}), preds)
        assert (sample.seen, sample.failure, list(device.syncs)) == (64, "", [])
        assert len(sample.kept) == 8
        assert device.syncs  # they are read in the end
