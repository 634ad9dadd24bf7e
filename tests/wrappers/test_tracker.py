"""A tracker keeps every value, knows the best one, and goes on from its file."""

from __future__ import annotations

import json
import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import Accuracy, Meter
from assay._records import seal
from assay.errors import ConfigError, InputError, StateError
from assay.metrics import Classwise, ConfusionMatrix, Mean, MeanSquaredError, Recall
from assay.wrappers import Best, Tracker

numbers = st.floats(width=32) | st.just(math.nan)


def of(*values, higher_is_better=True):
    tracker = Tracker(higher_is_better={"x": higher_is_better})
    for value in values:
        tracker.record({"x": value})
    return tracker


@given(values=st.lists(numbers, min_size=1), higher=st.booleans())
def test_the_best_is_the_first_that_no_other_is_better_than(values, higher):
    tracker = of(*values, higher_is_better=higher)
    known = [value for value in values if not math.isnan(value)]
    if not known:
        assert tracker.best("x") is tracker.highest("x") is tracker.lowest("x") is None
        assert not tracker.improved("x")
        return
    wanted = max(known) if higher else min(known)
    assert tracker.best("x") == Best(wanted, values.index(wanted))
    assert tracker.highest("x").value == max(known)
    assert tracker.lowest("x").value == min(known)
    assert tracker.improved("x") == (tracker.best("x").step == len(values) - 1)


@given(values=st.lists(numbers, max_size=5))
def test_what_is_written_is_read(values):
    tracker = of(*values)
    again = Tracker.from_json(tracker.to_json())
    assert again == tracker
    assert again.to_json() == tracker.to_json()
    tracker.record({"x": 0.1})
    assert again != tracker


def test_metrics_say_which_values_are_better():
    classes = Classwise(Recall(num_classes=2, average=None), ("cat", "dog"))
    meter = Meter(acc=Accuracy(), mse=MeanSquaredError(), recall=classes, mean=Mean(), table=ConfusionMatrix())
    tracker = Tracker(Meter(acc=Accuracy(), mse=MeanSquaredError(), recall=classes))
    for target in ([0, 1, 1], [0, 1, 0]):
        counted = Meter(acc=Accuracy(), mse=MeanSquaredError(), recall=classes, table=ConfusionMatrix())
        counted.update(torch.tensor([0, 1, 0]), torch.tensor(target))
        tracker.record(counted if target[2] else counted.compute())
    assert meter.metrics["mean"].higher_is_better is None
    assert tracker.names == ("acc", "mse", "recall cat", "recall dog")
    assert tracker.higher_is_better("recall dog") is True
    assert tracker.best("acc") == Best(1.0, 1)
    assert tracker.best("mse") == Best(0.0, 1)
    assert tracker.values("recall cat") == [1.0, 1.0]
    assert (tracker.improved("acc"), tracker.improved("recall cat")) == (True, False)


@pytest.mark.parametrize(
    ("values", "higher", "improvement"),
    [((0.5, 0.75), True, 0.25), ((0.5, 0.75), False, -0.25), ((0.5, 1.0, 0.75), True, -0.25)],
)
def test_an_improvement_is_over_the_best_before(values, higher, improvement):
    assert of(*values, higher_is_better=higher).improvement("x") == improvement


def test_without_a_value_before_there_is_no_improvement():
    assert math.isnan(of(0.5).improvement("x"))
    assert of(0.5).improved("x")
    assert math.isnan(of(0.5, math.nan).improvement("x"))


def test_steps_have_numbers_and_can_be_forgotten():
    tracker = Tracker(higher_is_better={"x": True})
    for step, value in ((10, 0.9), (20, 0.5), (30, 0.7)):
        tracker.record({"x": value}, step)
    with pytest.raises(ConfigError, match=r"step: got 30, expected an integer of 31 or more\. Call rewind"):
        tracker.record({"x": 1.0}, 30)
    tracker.rewind(20)
    tracker.record({"x": 0.95}, 20)
    assert (tracker.steps, tracker.values("x")) == ([10, 20], [0.9, 0.95])
    tracker.record({"x": 0.1})
    assert tracker.steps == [10, 20, 21]
    assert tracker.best("x") == Best(0.95, 20)


def test_values_may_come_and_go():
    tracker = Tracker(higher_is_better={"x": True})
    tracker.record({"x": 1.0})
    tracker.record({"loss": 2.0, "x": 0.5})
    assert tracker.values("loss")[1] == 2.0
    assert math.isnan(tracker.values("loss")[0])
    assert tracker.table().splitlines() == ["step  x    loss", "   0  1 *  -", "   1  0.5  2"]


def test_a_run_goes_on_from_its_file(tmp_path):
    path = of(0.5, 0.75).to_file(tmp_path / "runs" / "tracker.json")
    tracker = Tracker.from_file(path)
    tracker.record({"x": 0.6})
    assert tracker.best("x") == Best(0.75, 1)
    assert tracker.steps == [0, 1, 2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "got JSON that ends or breaks"),
        ("[]", "got schema None"),
        ("{}", "got schema None"),
        ('{"schema": "assay.tracker/9"}', "got schema 'assay.tracker/9', expected schema 'assay.tracker/2'"),
        ("[" * 100_000, "got JSON that ends or breaks"),
        (
            '{"schema": "assay.tracker/2", "higher_is_better": {}, "steps": [1], "values": [{"x": 1}]}',
            "got no digest",
        ),
    ],
)
def test_other_files_are_refused(text, message):
    with pytest.raises(StateError, match=message):
        Tracker.from_json(text)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"higher_is_better": {}, "steps": [1], "values": []}, "what cannot be read"),
        ({"higher_is_better": {}, "steps": [2, 1], "values": [{"x": 1}, {"x": 1}]}, "step"),
        ({"higher_is_better": {"x": "up"}, "steps": [], "values": []}, "higher_is_better of x"),
    ],
)
def test_content_that_cannot_be_is_refused(content, message):
    with pytest.raises(StateError, match=message):
        Tracker.from_json(json.dumps(seal({"schema": "assay.tracker/2"} | content)))


def test_every_changed_digit_is_refused(tmp_path):
    text = of(0.5, 0.75, 0.25).to_json()
    for k, character in enumerate(text):
        if character.isdigit():
            with pytest.raises(StateError, match="tracker: got "):
                Tracker.from_json(f"{text[:k]}{(int(character) + 1) % 10}{text[k + 1 :]}")
    (tmp_path / "t.json").write_bytes(text.encode("utf-16"))
    with pytest.raises(StateError, match="tracker: got JSON that ends or breaks"):
        Tracker.from_file(tmp_path / "t.json")


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="higher_is_better of x: got 'up', expected True, False or None"):
        Tracker(higher_is_better={"x": "up"})
    with pytest.raises(ConfigError, match="meter: got Accuracy, expected a meter"):
        Tracker(Accuracy())
    tracker = Tracker()
    with pytest.raises(InputError, match="values: got no single number, expected one or more"):
        tracker.record({"table": torch.ones(2, 2)})
    with pytest.raises(ConfigError, match="name: got 'x', expected one of none, as nothing was recorded"):
        tracker.best("x")
    tracker.record({"x": 1})
    with pytest.raises(ConfigError, match="x: got a value of unknown direction"):
        tracker.best("x")
    assert tracker.highest("x") == Best(1.0, 0)


def test_numbers_alone_need_no_torch():
    code = (
        "import sys; from assay.wrappers import Tracker; t = Tracker(None, {'x': False}); t.record({'x': 1}); "
        "print(t.table(), 'torch' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split()[-1] == "False"
