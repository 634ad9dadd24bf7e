"""What is read from a report in Python: values, samples, frames, and lines that name what there is."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from assay.errors import ConfigError
from assay.report import Report, Samples, Section, Slice, Value, compare, gate, history


def section(name: str, right: list[int], **more: object) -> Section:
    samples = Samples.pack(range(len(right)), {"correct": np.array(right, bool)}, target=right, classes=("no", "yes"))
    accuracy = Value("accuracy", sum(right) / len(right), 0.1, 0.9, numerator="correct", higher_is_better=True)
    night = Slice.of("time = night", [Value("accuracy", 1.0)], np.array(right, bool))
    return Section(name, (accuracy, Value("loss", 0.25)), samples=samples, slices=(night,), **more)


@pytest.fixture
def one():
    return Report("one", (section("test", [1, 0, 1, 1]),))


@pytest.fixture
def two():
    return Report("two", (section("valid", [1, 0]), section("test", [1, 0, 1, 1])))


def test_a_value_is_found_by_its_name(one, two):
    assert float(one["accuracy"]) == 0.75
    assert one.value("accuracy", slice="time = night").value == 1.0
    assert one.value("accuracy", slice={"time": "night"}) == one.of_slice({"time": "night"})["accuracy"]
    assert two.value("accuracy", section="valid").value == 0.5
    assert ("loss" in one, "f1" in one) == (True, False)
    assert repr(one["accuracy"]) == "<Value accuracy 0.7500 [0.1000, 0.9000]>"
    assert repr(one["loss"]) == "<Value loss 0.2500>"


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda one, two: one["acc"], "value 'acc': got 0 that fit, expected one of test/accuracy, test/loss"),
        (lambda one, two: one["acuracy"], "value 'acuracy'.*Write 'accuracy'"),
        (lambda one, two: two["loss"], "got 2 that fit, expected one of valid/accuracy"),
        (lambda one, two: one.value("loss", slice="time = night"), "value 'loss' in 'time = night': got 0 that fit"),
        (
            lambda one, two: one.value("loss", slice="time = day"),
            "slice: got 'time = day', expected one of 'time = night'",
        ),
        (lambda one, two: two.samples, r"got 2 sections with samples \('valid', 'test'\)"),
        (lambda one, two: Report("none").samples, "Report.samples: got 0 sections with samples"),
        (lambda one, two: compare(one, 3), "report: got int, expected a Report, or its path"),
    ],
)
def test_what_is_not_there_is_named(one, two, read, message):
    with pytest.raises(ConfigError, match=message):
        read(one, two)


@pytest.mark.parametrize(
    ("name", "do"),
    [
        ("accuracy", r"; write report\['accuracy'\]$"),
        ("to_frame", "; did you mean to_dataframe"),
        ("file_at", "attribute 'file_at'"),  # and no name that is not public
        ("xyz", "attribute 'xyz'$"),
        ("_repr_svg_", "attribute '_repr_svg_'$"),
    ],
)
def test_a_name_that_a_report_does_not_have_says_what_to_write(one, name, do):
    with pytest.raises(AttributeError, match=do) as error:
        getattr(one, name)
    assert "mean _" not in str(error.value)


def test_a_report_is_no_sequence(one):
    with pytest.raises(TypeError, match="not iterable"):
        list(one)


def test_samples_become_a_data_frame_with_names_of_classes(one, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=lambda rows, columns: (rows, columns)))
    series, columns = one.samples.to_dataframe()
    assert columns == ["id", "target", "correct"]
    assert series["target"].tolist() == ["yes", "no", "yes", "yes"]
    assert series["correct"].tolist() == [True, False, True, True]
    assert repr(one.samples) == "<Samples 4: correct>"


def test_paths_are_compared_and_judged_as_reports_are(one, tmp_path):
    other = Report("other", (section("test", [1, 1, 1, 1]),))
    first, second = one.save(tmp_path / "main.json"), other.save(tmp_path / "new.json")
    by_path, by_value = compare(first, str(second)), compare(one, other, names=("main", "new"))
    assert by_path.runs == by_value.runs
    assert by_path.deltas == by_value.deltas
    assert repr(by_path) == "<Comparison of 'new' with 'main': 3 difference(s)>"
    assert [run.name for run in compare(first, first).runs] == ["main (0)", "main (1)"]
    rules = {"max-drop": {"accuracy": 0.9}}
    assert gate(second, rules, str(first)) == gate(other, rules, one)
    assert repr(gate(first, {"min": {"accuracy": 0.05}})) == "<Gate 'one': pass; 1 of 1 rule(s) pass>"


def test_what_is_printed_is_what_is_shown(one):
    comparison = compare(one, one)
    assert str(comparison) == comparison.to_text(80).strip("\n")
    shown = []
    comparison._repr_pretty_(SimpleNamespace(text=shown.append), False)
    assert shown == [str(comparison)]
    assert repr(comparison.delta("accuracy")).startswith("<Delta accuracy 0.0000 [")


def test_slices_are_named_with_or_without_spaces():
    parts = [Slice("sex = f, age = old", 3, [Value("accuracy", 0.5)]), Slice("a=b = c", 2, [Value("accuracy", 0.25)])]
    report = Report("r", [Section("test", [Value("accuracy", 0.75)], slices=parts)])
    for name in ("sex = f, age = old", "sex=f,age=old", " sex=f, age=old "):
        assert report.value("accuracy", slice=name).value == 0.5
    assert report.value("accuracy", slice="a=b=c").value == 0.25
    comparison = compare(report, report)
    assert comparison.delta("accuracy", slice="sex=f,age=old").slice == "sex = f, age = old"
    assert comparison["accuracy"] is comparison.delta("accuracy")
    assert repr(report.sections[0]) == "<Section 'test': accuracy 0.7500; 2 slices>"
    assert repr(history([report, report])) == "<History of 2 runs: accuracy>"
    with pytest.raises(ConfigError, match=r"rules: got 'accuracy>=0.5', .*\{\"min\": "):
        gate(report, ["accuracy>=0.5"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: compare(one), r"compare: got no 'b'.*Write compare\(first, second\)"),
        (lambda one: compare(one, one, clusters="x"), "compare: got an argument 'clusters'.*Write cluster="),
        (lambda one: gate(one, min={"accuracy": 0.9}), r'gate: got an argument .min.*Write gate\(report, \{"min"'),
        (lambda one: history(one, one), r"history: got too many positional arguments.*Write history\(\["),
        (lambda one: compare(one, one)["acuracy"], "got 0 that fit.*Write 'accuracy'"),
    ],
)
def test_a_call_with_other_arguments_says_how_it_is_called(one, call, message):
    with pytest.raises(ConfigError, match=message):
        call(one)
