"""What each sample contributed is in the report, under its id, and two reports are compared sample by sample."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from assay import AUROC, Accuracy, F1Score, MeanSquaredError
from assay.evaluation import evaluate
from assay.evaluation.observe.observers import Observers
from assay.meter.inputs import arguments
from assay.metrics import LogLoss, MeanAbsoluteError, Recall
from assay.report import compare
from thinning import every_third

GENERATOR = torch.Generator().manual_seed(9)
SCORES = torch.rand(90, 3, generator=GENERATOR).softmax(1)
Y = torch.randint(3, (90,), generator=GENERATOR)
METRICS = {"acc": Accuracy(num_classes=3), "loss": LogLoss(num_classes=3), "auroc": AUROC(num_classes=3)}
MODELS = {"one": SCORES, "two": SCORES.flip(0)}
NUMBERS = [1000 - k for k in range(90)]


def same(x):
    return x


def section(data, metrics=METRICS, **more):
    report = evaluate(same, data, metrics, device="cpu", **more)
    return report.sections[0], report.notes


def value(found, name):
    return next(each for each in found.values if each.name == name)


@pytest.mark.parametrize("batch_size", [1, 7, 90])
def test_every_sample_is_kept_once_whatever_the_order(batch_size):
    loader = DataLoader(TensorDataset(SCORES, Y), batch_size=batch_size, shuffle=True)
    found, _ = section(loader)
    samples = found.samples
    assert samples.ids.values.tolist() == list(range(90))
    assert samples.target.values.tolist() == Y.tolist()
    assert samples.decision.values.tolist() == SCORES.argmax(1).tolist()
    assert samples.column("correct").tolist() == (SCORES.argmax(1) == Y).tolist()
    own = SCORES[torch.arange(90), Y]
    assert samples.column("log loss") == pytest.approx(-own.log().double().numpy(), rel=1e-6)
    assert {each.name: each.numerator for each in found.values} == {"acc": "correct", "loss": "log loss", "auroc": ""}


@pytest.mark.parametrize("ids", [NUMBERS, [f"s{k:02}" for k in NUMBERS]], ids=["numbers", "texts"])
def test_samples_have_their_own_ids_where_they_bring_some(ids):
    data = [{"input": SCORES[k : k + 20], "y": Y[k : k + 20], "id": ids[k : k + 20]} for k in range(0, 90, 20)]
    found, _ = section(data, inputs="input", ids="id")
    order = np.argsort(ids)
    assert found.samples.ids.values.tolist() == sorted(ids)
    assert found.samples.target.values.tolist() == Y.numpy()[order].tolist()


class Named(torch.utils.data.Dataset):
    def __init__(self, names):
        self.names = names

    def __len__(self):
        return len(self.names)

    def __getitem__(self, k):
        return {"input": SCORES[k], "y": Y[k], "name": self.names[k]}


def test_ids_that_come_twice_name_no_samples_of_a_data_set():
    found, notes = section(Named(["a"] * 90), inputs="input", ids="name")
    assert found.samples.ids.values.tolist() == list(range(90))
    assert "Samples are called by their indices in the data set, as some have the same id." in notes
    found, _ = section(Named([f"{k}" for k in NUMBERS]), inputs="input", ids="name")
    assert found.samples.ids.values.tolist() == sorted(map(str, NUMBERS))


def test_streams_without_ids_keep_none():
    found, _ = section([(SCORES, Y)])
    assert found.samples is None
    assert [each.numerator for each in found.values] == ["", "", ""]


def test_none_are_kept_when_they_are_too_many_or_not_wanted():
    assert section(TensorDataset(SCORES, Y), keep_samples=False)[0].samples is None
    found, notes = section(TensorDataset(SCORES, Y), slices={"class": 1}, max_kept_samples=80)
    assert found.samples is None
    assert any("90 samples are more than 80" in note for note in notes)
    assert [each.members for each in found.slices] == [None] * 3
    assert value(found, "loss").note.startswith("bootstrap")  # as it cannot come from what samples contribute
    batches = [{"input": SCORES, "y": Y, "id": list(range(start, start + 90))} for start in (0, 90, 180)]
    found, notes = section(batches, inputs="input", ids="id", max_kept_samples=80)
    assert found.samples is None
    assert any("270 samples are more than 80" in note for note in notes)


def test_a_comparison_without_samples_says_how_to_pair():
    stream, other = (evaluate(same, [(each, Y)], METRICS, device="cpu", title=name) for name, each in MODELS.items())
    with_samples = evaluate(same, TensorDataset(SCORES, Y), METRICS, device="cpu")
    (note, *_) = (delta.note for delta in compare(stream, other).deltas)
    assert "the baseline and the run have no replicates" in note
    assert "a data set, or with ids=" in note
    (note, *_) = (delta.note for delta in compare(with_samples, other).deltas)
    assert "the run has no per-sample values" in note


def test_targets_that_are_not_kept_tell_data_sets_apart():
    targets = [torch.randint(2, (90, 3), generator=GENERATOR) for _ in range(2)]
    metric = Accuracy(num_labels=3)
    first, second = (section(TensorDataset(SCORES, each), metric)[0].samples for each in targets)
    again = section(DataLoader(TensorDataset(SCORES, targets[0]), batch_size=7, shuffle=True), metric)[0].samples
    assert first.target is None
    assert first.data == again.data != second.data


def test_batches_that_were_left_out_are_not_among_the_samples():
    def predict(x):
        if (x == SCORES[33]).all(1).any():
            raise ZeroDivisionError
        return x

    loader = DataLoader(TensorDataset(SCORES, Y), batch_size=10)
    (found,) = evaluate(predict, loader, METRICS, device="cpu", on_error="skip").sections
    assert found.samples.ids.values.tolist() == [*range(30), *range(40, 90)]


def test_weights_are_in_what_samples_contribute():
    weights = torch.rand(90, generator=GENERATOR)
    data = TensorDataset(SCORES, Y, weights)
    found, _ = section(data, {"acc": Accuracy(num_classes=3)}, weights=2)
    (accuracy,) = found.values
    right = (SCORES.argmax(1) == Y).float()
    assert accuracy.value == pytest.approx(float((right * weights).sum() / weights.sum()))
    assert accuracy.denominator
    assert accuracy.lower < accuracy.value < accuracy.upper


def test_two_classes_and_regressions():
    bit = (Y > 0).long()
    found, _ = section(TensorDataset(SCORES[:, 0], bit), {"recall": Recall(), "acc": Accuracy()})
    assert (value(found, "recall").numerator, value(found, "recall").denominator) == ("true positives", "positives")
    metrics = {"mae": MeanAbsoluteError(), "mse": MeanSquaredError()}
    found, _ = section(TensorDataset(SCORES[:, 0], SCORES[:, 1]), metrics)
    assert found.samples.decision.values == pytest.approx(SCORES[:, 0].double().numpy())
    assert [each.numerator for each in found.values] == ["absolute error", "squared error"]
    (plot,) = found.plots
    assert plot.residuals == pytest.approx((SCORES[:, 0] - SCORES[:, 1]).tolist())


def test_two_evaluations_are_compared_sample_by_sample():
    data = TensorDataset(SCORES, Y)
    first = evaluate(same, data, METRICS, device="cpu")
    second = evaluate(lambda x: x.roll(1, 1), DataLoader(data, batch_size=8, shuffle=True), METRICS, device="cpu")
    found = compare(first, second)
    assert {each.metric: each.paired for each in found.deltas} == {"acc": True, "loss": True, "auroc": True}


class Overwritten(IterableDataset):
    """A stream that gives the same tensors again and again, with other values."""

    def __iter__(self):
        x, y, name = torch.empty(9, 3), torch.empty(9, dtype=torch.int64), torch.empty(9, dtype=torch.int64)
        for start in range(0, 90, 9):
            x.copy_(SCORES[start : start + 9])
            y.copy_(Y[start : start + 9])
            name.copy_(torch.arange(start, start + 9))
            yield {"input": x, "y": y, "id": name}


def test_what_is_staged_does_not_change_with_the_batch():
    loader = DataLoader(Overwritten(), batch_size=None)
    found, _ = section(loader, inputs="input", ids="id", slices=["y"])
    expected, _ = section(TensorDataset(SCORES, Y), slices={"y": 1})
    assert found.samples == expected.samples
    assert found.slices == expected.slices
    assert found.values == expected.values


@every_third
@pytest.mark.parametrize("stage_bytes", [0, 100, 1000])
def test_how_much_is_staged_changes_nothing(monkeypatch, stage_bytes):
    expected, _ = section(TensorDataset(SCORES, Y), slices={"y": 1})
    monkeypatch.setattr(Observers.__init__, "__defaults__", (stage_bytes, None, None))
    found, _ = section(DataLoader(TensorDataset(SCORES, Y), batch_size=8), slices={"y": 1})
    assert (found.values, found.slices, found.samples) == (expected.values, expected.slices, expected.samples)


def test_parts_of_a_batch_that_did_not_fit_are_kept_too():
    class Tight(nn.Module):
        def forward(self, x):
            if len(x) > 7:
                raise torch.OutOfMemoryError("no room")
            return x

    loader = DataLoader(TensorDataset(SCORES, Y), batch_size=30)
    (found,) = evaluate(Tight(), loader, METRICS, device="cpu", slices={"y": 1}).sections
    expected, _ = section(TensorDataset(SCORES, Y), slices={"y": 1})
    assert (found.values, found.slices, found.samples) == (expected.values, expected.slices, expected.samples)


def test_rows_that_are_too_large_to_be_copied_are_counted_one_by_one(monkeypatch):
    metrics = {"F1": F1Score(num_classes=3, average="macro")}
    expected, _ = section(TensorDataset(SCORES, Y), metrics, slices={"y": 1})
    monkeypatch.setattr(arguments, "COPIED_BYTES", 0)
    found, _ = section(TensorDataset(SCORES, Y), metrics, slices={"y": 1})
    assert (found.values, found.slices) == (expected.values, expected.slices)
    assert found.values[0].lower < found.values[0].value
