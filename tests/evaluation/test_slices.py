"""Slices are what the metrics give on the samples of the slice alone; what cannot be sliced by is told."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay import AUROC, Accuracy, F1Score, Meter, score
from assay.errors import ConfigError, ShapeError
from assay.evaluation import BatchError, evaluate
from assay.report import gate

CLASSES = 3
METRICS = {"acc": Accuracy(num_classes=CLASSES), "auroc": AUROC(num_classes=CLASSES)}
GENERATOR = torch.Generator().manual_seed(5)
X = torch.randn(400, 4, generator=GENERATOR)
Y = torch.randint(CLASSES, (400,), generator=GENERATOR)
AGE = torch.randint(4, (400,), generator=GENERATOR) * 10
SEX = ["f" if k % 3 else "m" for k in range(400)]
NET = nn.Sequential(nn.Linear(4, CLASSES), nn.Softmax(1))


class People(torch.utils.data.Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, k):
        return {"x": X[k], "label": Y[k], "age": AGE[k], "sex": SEX[k]}


def people(**more):
    return evaluate(NET, DataLoader(People(), batch_size=32), METRICS, device="cpu", **{"inputs": "x", **more})


def slices(report):
    return {each.name: each for each in report.sections[0].slices}


def alone(mask):
    meter = Meter(**METRICS)
    with torch.no_grad():
        meter.update(NET(X[mask]), Y[mask])
    return {name: float(value) for name, value in meter.compute().items()}


def test_parts_that_samples_are_told_apart_by_are_no_inputs():
    assert (
        people(inputs=None, slices=["sex", "age"], keep_samples=False).sections[0].values[0].value
        == alone(Y >= 0)["acc"]
    )


def test_crossed_parts_may_be_written_as_on_the_command_line():
    assert slices(people(slices="sex, sex*age")) == slices(people(slices=["sex", ("sex", "age")]))
    with pytest.raises(ConfigError, match="got no 'sex\\*age'"):
        people(slices=["sex*age"])


def test_every_slice_has_the_bits_of_its_samples_alone():
    found = slices(people(slices=["sex", "age", ("sex", "age")]))
    masks = {f"sex = {s}": np.array(SEX) == s for s in "fm"}
    masks |= {f"age = {a}": AGE.numpy() == a for a in (0, 10, 20, 30)}
    masks |= {f"{s}, {a}": masks[s] & masks[a] for s in ("sex = f", "sex = m") for a in list(masks)[2:]}
    assert list(found) == list(masks)
    for name, mask in masks.items():
        each = found[name]
        assert each.count == mask.sum()
        assert {value.name: value.value for value in each.values} == alone(torch.from_numpy(mask))
        assert np.array_equal(each.members.values, mask)


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
def test_the_parts_may_be_positions_and_functions_and_are_no_inputs():
    data = TensorDataset(X, Y, AGE)
    by = {"age": 2, "class": 1, "old": lambda batch: batch[2] > 15, "both": ("age", "class")}
    found = slices(evaluate(NET, DataLoader(data, batch_size=64), METRICS, device="cpu", slices=by))
    assert found["age = 20"].count == int((AGE == 20).sum())
    assert found["class = 2"].number("acc") == alone(Y == 2)["acc"]
    assert found["old = True"].count == int((AGE > 15).sum())
    assert found["age = 0, class = 1"].count == int(((AGE == 0) & (Y == 1)).sum())


def test_the_worst_slice_is_named_where_it_is_worse_beyond_chance():
    data = DataLoader(TensorDataset(X, Y), batch_size=64)
    report = evaluate(
        NET, data, METRICS, device="cpu", slices={"right": lambda batch: NET(batch[0]).argmax(1) == batch[1]}
    )
    wrong = slices(report)["right = False"]
    expected = f"Worst slice: right = False ({wrong.count} samples): acc 0.0000"
    assert any(note.startswith(expected) for note in report.notes)


def test_slices_that_are_too_small_are_not_compared():
    report = people(slices=["sex", ("sex", "age")], min_slice_size=40)
    found = slices(report)
    large = {name: each for name, each in found.items() if each.count >= 40}
    assert 2 < len(large) < len(found)
    small = len(found) - len(large)
    assert f"{small} of {len(found)} slices have fewer than 40 samples and are not compared." in report.notes
    assert report.sections[0].min_slice_size == 40


def test_a_gate_on_the_worst_slice_judges_such_a_report():
    report = people(slices=["sex"])
    worst = min(each.number("acc") for each in report.sections[0].slices)
    for bound, outcome in ((0.0, "pass"), (worst, "not enough evidence"), (1.0, "fail")):
        (check,) = gate(report, {"worst-slice": {"acc": bound}}).checks
        assert check.outcome == outcome
    assert check.value == worst
    assert gate(report, {"worst-slice": {"acc": worst}}, point=True).outcome == "pass"


@pytest.mark.parametrize(
    ("by", "error", "message"),
    [
        (
            3,
            ConfigError,
            r"slices: got 3, expected names of columns, or selectors by name\. Write slices=\"sex,sex\*age",
        ),
        (["size"], ConfigError, r"slices: size: got no 'size' in \{'x': float32 \(32, 4\), "),
        ({"x": 1.5}, ConfigError, r"slices: x: got 1\.5, expected a name, a position, a function, or a tuple"),
        ({"one": lambda b: 7}, ConfigError, r"slices: one: got int, expected a tensor, an array or a list"),
        ({"few": lambda b: b["age"][:3]}, ShapeError, r"slices: few: got 3 values for 32 samples"),
        (["x"], ConfigError, r"slices: x: got values of shape \(\d+, 4\), expected one value a sample"),
        (
            {"score": lambda b: b["x"][:, 0]},
            ConfigError,
            r"slices: score: got more than 100 different .*Bin it by a func",
        ),
        (
            {"a": lambda b: b["age"] + torch.arange(len(b["age"])), "b": "a", "a x b": ("a", "b")},
            ConfigError,
            r"slices: b: got no 'a' in",
        ),
    ],
)
def test_what_cannot_be_sliced_by_is_told(by, error, message):
    with pytest.raises(error, match=message):
        people(slices=by)


def test_what_cannot_be_sliced_by_is_told_early():
    """After some hundred samples, and not at the end."""
    seen = []

    def predict(x):
        seen.append(len(x))
        return NET(x)

    data = TensorDataset(torch.randn(5000, 4), torch.zeros(5000, dtype=torch.int64))
    with pytest.raises(ConfigError, match="more than 100 different values"):
        evaluate(predict, data, METRICS, device="cpu", slices={"first": lambda b: b[0][:, 0]})
    assert sum(seen) < 500


def test_values_are_numbers_and_texts_alike_in_every_form():
    forms = {
        "list": lambda b: [int(a) for a in b["age"]],
        "array": lambda b: b["age"].numpy(),
        "float": lambda b: b["age"] / 4,
        "text": lambda b: [None if a == 0 else f"{a:03}" for a in b["age"].tolist()],
        "half": lambda b: (b["age"] / 4).bfloat16(),
        "frame": lambda b: [float("nan") if a == 0 else f"{a:03}" for a in b["age"].tolist()],
        "root": lambda b: (b["age"] - 10.0).sqrt(),
    }
    names = list(slices(people(slices=forms)))
    expected = {
        "list": ["0", "10", "20", "30"],
        "array": ["0", "10", "20", "30"],
        "float": ["0.0", "2.5", "5.0", "7.5"],
        "text": ["010", "020", "030", "missing"],
        "half": ["0.0", "2.5", "5.0", "7.5"],
        "frame": ["010", "020", "030", "missing"],
        "root": ["0.0", "3.1622777", "4.472136", "missing"],
    }
    assert names == [f"{form} = {value}" for form, values in expected.items() for value in values]


def test_slices_go_without_samples_and_have_no_members_then():
    report = people(slices=["sex"], keep_samples=False, confidence_level=None, diagnostics=False)
    assert report.sections[0].samples is None
    for each in report.sections[0].slices:
        assert each.members is None
        assert each.number("acc") == alone(torch.from_numpy(np.array(SEX) == each.name[-1]))["acc"]


def fails(batch):
    if (batch["age"] == 30).all():
        raise ZeroDivisionError("by design")
    return batch["sex"]


def test_a_batch_whose_slice_cannot_be_told_is_named_and_can_be_left_out():
    order = torch.argsort(AGE, stable=True).tolist()
    loader = DataLoader(People(), batch_size=20, sampler=order)
    more = {"device": "cpu", "inputs": "x", "slices": {"s": fails}}
    with pytest.raises(
        BatchError, match=r"batch with the ids .*ZeroDivisionError while reading ids and slices: by des"
    ):
        evaluate(NET, loader, METRICS, **more)
    report = evaluate(NET, loader, METRICS, on_error="skip", **more)
    left_out = sum((AGE[order[k : k + 20]] == 30).all() * 20 for k in range(0, 400, 20))
    assert sum(each.count for each in report.sections[0].slices) == 400 - left_out


@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
def test_no_samples_have_no_slices():
    (section,) = evaluate(NET, TensorDataset(X[:0], Y[:0]), METRICS, device="cpu", slices={"class": 1}).sections
    assert section.slices == ()
    assert len(section.samples) == 0
    assert all(np.isnan(value.value) and value.lower is None for value in section.values)


def test_a_slice_without_some_classes_is_not_the_worst_by_a_mean_over_classes():
    half = torch.arange(400) % 2  # as good as all samples
    y = torch.arange(400) // 2 % 4
    preds = torch.where(torch.arange(400) % 29 == 0, (y + 1) % 5, y)  # nobody has class 4
    table = {"p": preds.numpy(), "y": y.numpy(), "even": (y % 2).numpy(), "half": half.numpy()}
    metrics = {
        "f1": F1Score(num_classes=5),
        "few": F1Score(num_classes=5, only_classes=(3, 1)),
        "by_size": F1Score(num_classes=5, average="weighted"),
        "acc": Accuracy(num_classes=5),
    }
    names = ["a", "b", "c", "d", "e"]
    report = score(table, metrics, preds="p", target="y", slices=["even", "half"], classes=names)
    found = {(part.name, each.name): each for part in report.sections[0].slices for each in part.values}
    assert found["even = 0", "f1"].value < 0.7 < found["even = 0", "acc"].value  # why it was named as the worst
    assert {key: each.not_compared for key, each in found.items() if each.not_compared} == {
        ("even = 0", "f1"): "no sample of classes b, d",
        ("even = 1", "f1"): "no sample of classes a, c",
        ("even = 0", "few"): "no sample of classes b, d",
    }
    assert not any("Worst slice" in note for note in report.notes)
    assert any("f1 of slices that lack classes is not compared: even = 0 (no sample" in note for note in report.notes)
    assert all(each.not_compared == "" for each in report.sections[0].values)
