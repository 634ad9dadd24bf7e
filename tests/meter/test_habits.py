"""What users of other libraries write of a meter: the value where it is one, else one line that says what to write."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from assay import Accuracy, F1Score, Mean, Meter
from assay.errors import ConfigError, ShapeError
from assay.meter import habits
from assay.metrics import RetrievalMRR
from assay.report import Report

PREDS, TARGET = torch.tensor([0, 1, 2, 2]), torch.tensor([0, 1, 1, 2])


def counted() -> Meter:
    meter = Meter(acc=Accuracy(num_classes=3), f1=F1Score(num_classes=3))
    meter.update(PREDS, TARGET)
    return meter


@pytest.mark.parametrize(
    ("name", "do"),
    [
        ("to", "each batch to be counted on its own device. Leave it out"),
        ("cuda", "Leave it out"),
        ("double", "convert what compute"),
        ("eval", "Leave it out"),
        ("clone", r"copy.deepcopy\(meter\)"),
        ("clear", r"meter.reset\(\)"),
        ("result", r"meter.compute\(\)"),
        ("add_batch", r"meter.update\(preds, target\)"),
        ("merge_state", r"meter.merge\(other\)"),
        ("acc", r"meter\['acc'\]"),
        ("updat", "Write update"),
        ("nothing_like_it", "Check the name"),
    ],
)
def test_a_name_that_a_meter_does_not_have_says_what_to_write(name, do):
    meter = counted()
    with pytest.raises(AttributeError, match=f"'{name}'.*{do}"):
        getattr(meter, name)
    assert not hasattr(meter, name)


def test_every_answer_names_what_a_meter_does_not_have():
    assert [name for name in habits.INSTEAD if hasattr(Meter, name)] == []


def test_names_of_python_have_no_advice():
    with pytest.raises(AttributeError, match=r"^'Meter' object has no attribute '__array__'$"):
        counted().__array__()
    assert copy.deepcopy(counted()).compute() == pickle.loads(pickle.dumps(counted())).compute() == counted().compute()


def test_a_call_counts_a_batch_and_gives_its_values():
    meter = counted()
    assert meter(torch.tensor([1]), torch.tensor([2]))["acc"] == 0
    assert (meter.rows, meter["acc"]) == (5, 3 / 5)


def test_a_value_is_found_by_its_name():
    meter = counted()
    assert meter["f1"] == meter.compute()["f1"] == meter.compute("f1")["f1"]
    assert list(meter.compute("f1")) == ["f1"]
    with pytest.raises(ConfigError, match=r"got ac, expected some of acc, f1. Write 'acc'"):
        meter["ac"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Meter({"acc": Accuracy()}), r"got dict.*Write Meter\(\*\*metrics\)"),
        (lambda: Meter([Accuracy()]), r"got list.*Write Meter\(\*metrics\)"),
        (lambda: Meter(acc=Accuracy(), weigthed=True), "got weigthed=True.*Write weighted="),
        (lambda: Meter("accuracy", num_classes=3), r"Give num_classes to the metric: Accuracy\(num_classes=3\)"),
        (lambda: Meter(loss=Mean), r"Pass Mean\(\)"),
    ],
)
def test_what_is_no_metric_says_what_to_write(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize("method", ["update", "forward", "values_of", "__call__"])
def test_a_call_with_too_few_or_too_many_arguments_says_what_to_write(method):
    of_queries = Meter(RetrievalMRR())
    name = "forward" if method == "__call__" else method
    with pytest.raises(TypeError, match=rf"got 3 arguments .*Write meter.{name}\(preds, target, indexes=...\)\.$"):
        getattr(of_queries, method)(PREDS, TARGET, torch.tensor([0, 0, 1, 1]))
    with pytest.raises(TypeError, match=r"got 4 arguments .*Write meter.*\(preds, target, weights=...\)\.$"):
        getattr(counted(), method)(PREDS, TARGET, TARGET, TARGET)
    with pytest.raises(ShapeError, match=r"^preds: got nothing, expected a tensor. Pass preds as"):
        getattr(counted(), method)()
    assert of_queries.rows == 0


def test_a_meter_is_no_sequence():
    with pytest.raises(TypeError, match="not iterable"):
        list(counted())


def test_what_is_only_asked_for_is_not_looked_up(monkeypatch):
    """`getattr` with a default and `hasattr` drop the error; its message takes as long as many batches."""
    for module in ("assay.meter.habits", "assay.metrics.metric_type", "assay.report.report"):
        monkeypatch.setattr(f"{module}.describe", None, raising=False)
    monkeypatch.setattr("difflib.get_close_matches", None)
    monkeypatch.setattr("assay.report.report.get_close_matches", None)
    metric, report = Accuracy(num_classes=3), Report("r")
    for each in (metric, Meter(metric), report):
        assert not hasattr(each, "averag")
        assert getattr(each, "to", None) is None


def test_an_error_of_a_name_can_be_sent_to_another_process():
    with pytest.raises(AttributeError) as caught:
        Accuracy(num_classes=3).averag  # noqa: B018
    sent = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(sent, AttributeError)
    assert str(sent) == str(caught.value)
    assert "did you mean average?" in str(sent)
