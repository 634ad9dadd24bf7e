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
from assay.evaluation.model.prediction_sample import PredictionSample
from assay.evaluation.model.repredictions import expected_flips, note_of_repredictions, repredictions
from assay.pretend import pretend
from ranks import processes

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
        copied = Coarse()
        copied.step = 0
        return copied

    def forward(self, x):
        scores = self.inner(x)
        if not self.step:
            return scores
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


def listed(said: str) -> dict[int, tuple[int, int, str]]:
    """By id, the decisions of the evaluation and of the copy that a note lists, and what it says of operators."""
    text = said.partition("Ids of samples whose decisions differ: ")[2].rstrip(".")
    found = {}
    for part in text.split("; ") if text else ():
        _, _, where = part.partition("): ")
        for each in re.finditer(r"(\d+) \((\d+), on the CPU (\d+)\)", part):
            found[int(each[1])] = int(each[2]), int(each[3]), where
    return found


@pytest.mark.parametrize("ids", [False, True])
def test_the_decisions_that_differ_are_listed_with_their_ids(data, ids):
    model, (x, y) = Coarse(), data.tensors
    options = {"verify": ROWS, "batch_size": 32}
    numbers = torch.arange(ROWS)
    if ids:
        numbers, options["ids"] = 1000 + 3 * torch.arange(ROWS), 2
        data = TensorDataset(x, y, numbers)
    with torch.no_grad():
        first, second = model(x).argmax(1), model.inner(x).argmax(1)
    wrong = (first != second).nonzero()[:, 0]
    found = listed(note(measured(model, data, **options)))
    expected = {int(numbers[k]): (int(first[k]), int(second[k])) for k in wrong}
    assert len(wrong) > 10
    assert {each: both[:2] for each, both in found.items()} == expected
    places = {where for _, _, where in found.values()} - {""}
    assert places == {"from div in the model's own forward on"}


class WrongLayer(nn.Module):
    """The last layer adds what its copies do not have."""

    def __init__(self, dtype=torch.float32):
        super().__init__()
        self.inner, self.extra = network().to(dtype), 0.5

    def __deepcopy__(self, memo):
        copied = WrongLayer()
        copied.load_state_dict(self.state_dict())
        copied.extra = 0.0
        return copied

    def forward(self, x):
        scores = self.inner[1](self.inner[0](x.to(self.inner[0].weight.dtype)))
        return self.inner[2](scores) + self.extra * torch.arange(5, dtype=scores.dtype)


@pytest.mark.parametrize("precision", [None, "bfloat16"])
def test_the_first_operator_that_differs_is_named_in_any_dtype(data, precision):
    found = listed(note(measured(WrongLayer(), data, verify=32, precision=precision)))
    assert found
    assert {where for _, _, where in found.values()} - {""} == {"from add in the model's own forward on"}


class OverTheBatch(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, x):
        return self.inner(x) - 2 * self.inner(x).mean(0)


def test_a_decision_that_depends_on_the_batch_is_called_that(data):
    found = listed(note(measured(OverTheBatch(), data, verify=200, batch_size=3)))
    assert len(found) > 8
    assert sum(bool(where) for _, _, where in found.values()) == 8  # what is looked for takes calls of the model
    expected = "depends on the batch, from mean in the model's own forward on"
    assert {where for _, _, where in found.values()} - {""} == {expected}


def test_a_decision_that_rounding_changes_is_called_that():
    """Scores of bfloat16 tie where those of float32 do not."""
    x = torch.tensor([[1.0, 1.001], [1.0, 3.0]]).repeat(8, 1)
    data = TensorDataset(x, torch.ones(16, dtype=torch.int64))
    report = evaluate(nn.Identity(), data, Accuracy(num_classes=2), device="cpu", progress=False)
    assert report.sections[0].values[0].value == 1.0
    half = nn.Linear(2, 2, bias=False)
    half.weight.data = torch.eye(2)
    report = evaluate(
        half, data, Accuracy(num_classes=2), device="cpu", progress=False, verify=16, precision="bfloat16"
    )
    found = listed(note(report))
    assert found == {
        k: (0, 1, "by rounding, as no operator differs by more than 64 ulps" if place < 8 else "")
        for place, k in enumerate(range(0, 16, 2))
    }


@pytest.mark.parametrize("dtype", [torch.int16, torch.uint8, torch.int32])
def test_targets_of_few_bits(data, dtype):
    x, y = data.tensors
    report = measured(network(), TensorDataset(x, y.to(dtype)), verify=16)
    assert report.sections[0].values == measured(network(), data).sections[0].values
    assert "0 of 16 decisions differ" in note(report)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_models_inputs_and_targets_of_16_bits(data, dtype):
    x, y = data.tensors
    said = note(measured(network().to(dtype), TensorDataset(x.to(dtype), y), verify=64, verify_dtype="float64"))
    largest = float(re.search(r"largest difference (\S+);", said)[1])
    assert 0 < largest < 2.0**-6
    pairs = TensorDataset(x.to(dtype), x.sum(1).to(dtype))
    model = nn.Sequential(nn.Linear(6, 1), nn.Flatten(0)).to(dtype)
    said = note(evaluate(model, pairs, MeanSquaredError(), device="cpu", progress=False, verify=8))
    assert said.startswith("8 random samples were predicted again on the CPU in float32")


def test_margins_are_not_rounded_to_16_bits():
    preds = torch.tensor([[256.0, 255.0, 1.0], [3.0, 2.984375, 0.0]], dtype=torch.bfloat16)
    sample = PredictionSample(2, 0)
    sample.note(((preds,), {}), preds * 1)
    sample.note(((preds,), {}), torch.tensor([[1.0, -1e-3]], dtype=torch.bfloat16))
    small = float(torch.tensor(1e-3, dtype=torch.bfloat16))
    assert torch.cat(sample.margins).tolist() == [1.0, 0.015625, 1.0 + small]


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
        for each in sample.kept:
            assert each.arguments[0][0].item() == each.preds.item() == each.id
            kept[int(each.id)] += 1
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
    meta = note_of_repredictions([repredictions(sample, network().to("meta"), lambda each: each, "float32")], "", ())
    assert "weights have no values (device meta)" in meta


def test_a_batch_that_cannot_be_kept_ends_no_evaluation(data, monkeypatch):
    def refuse(*_):
        raise ValueError("a tree of another kind")

    monkeypatch.setattr("assay.evaluation.model.prediction_sample.take", refuse)
    report = measured(network(), data, verify=8)
    assert note(report) == "No predictions were made again on the CPU: ValueError: a tree of another kind."
    assert report.sections[0].values[0].count == ROWS


def test_predictions_of_other_shapes_are_a_note():
    sample = PredictionSample(4, 0)
    sample.note(((torch.zeros(2, 3),), {}), torch.zeros(2, 3))
    sample.note(((torch.zeros(2, 5),), {}), torch.zeros(2, 5))
    said = note_of_repredictions([repredictions(sample, nn.Identity(), lambda each: each, "float32")], "float32", ())
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


def on_each(rank, size):
    random = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randn(ROWS, 6, generator=random), torch.randint(0, 5, (ROWS,), generator=random))
    model = Coarse()
    with torch.no_grad():
        wrong = (model(data.tensors[0]).argmax(1) != model.inner(data.tensors[0]).argmax(1)).nonzero()[:, 0].tolist()
    few = TensorDataset(*(each[:1] for each in data.tensors))
    told = [note(measured(model, data, verify=100, batch_size=16)), note(measured(network(), few, verify=8))]
    return [*told, wrong]


def test_processes_predict_their_own_samples_again_and_say_it_together(tmp_path):
    outcomes = processes(on_each, 3, tmp_path)
    assert outcomes[0] == outcomes[1] == outcomes[2]
    said, few, wrong = outcomes[0]
    assert said.startswith("100 random samples were predicted again")
    assert f"the margins of all {ROWS} samples" in said
    found = listed(said)
    assert found
    assert len(found) == int(re.search(r"(\d+) of 100 decisions differ", said)[1])
    assert found.keys() <= set(wrong)
    assert {k % 3 for k in found} == {0, 1, 2}
    assert few.startswith("1 random samples")


def sharded(rank, size):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
    model = parallelize_module(network(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    random = torch.Generator().manual_seed(0)
    data = TensorDataset(torch.randn(20, 6, generator=random), torch.randint(0, 5, (20,), generator=random))
    return note(measured(model, data, verify=8))


def test_a_model_that_processes_share_is_not_copied(tmp_path):
    assert set(processes(sharded, 2, tmp_path)) == {
        "No predictions were made again on the CPU: processes share the model."
    }
