"""The report as a value: what it takes, what it refuses, and that it survives JSON."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import os
import pickle
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay._records import seal
from assay.errors import ConfigError, InputError, ShapeError, StateError
from assay.report import SCHEMA, Bars, Report, Section, Table, Value, compare

CELLS = st.none() | st.text() | st.integers() | st.floats()


@given(st.lists(st.tuples(CELLS, st.floats())), st.text(), st.floats(), st.none() | st.integers(0))
def test_json_gives_back_an_equal_report(rows, text, number, count):
    table = Table(text, ("a", "b"), rows)
    report = Report(text, (Section(text, (Value(text, number, count=count),), (table,)),), environment={text: text})
    again = Report.from_json(report.to_json())
    assert again == report
    assert hash(again) == hash(report)
    kinds = [[type(cell) for cell in row] for row in table.rows]
    assert [[type(cell) for cell in row] for row in again.sections[0].tables[0].rows] == kinds


def test_every_kind_of_part_survives_json_pickle_and_copy(report, hostile):
    for each in (report, hostile):
        assert Report.from_json(each.to_json()) == each
        assert pickle.loads(pickle.dumps(each)) == each
        assert copy.deepcopy(each) == each


def test_reports_differ_where_one_number_differs(report):
    section = report.sections[0]
    value = dataclasses.replace(section.values[0], value=math.nextafter(1 / 3, 1))
    other = dataclasses.replace(report, sections=(dataclasses.replace(section, values=(value,)),))
    assert other != report
    assert report != "report"


def test_json_is_legal_and_numbers_keep_every_digit(report):
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    data = json.loads(report.to_json(), parse_constant=refuse)
    assert data["schema"] == SCHEMA
    values = data["sections"][0]["values"]
    assert values[0]["value"] == 1 / 3
    assert values[0]["count"] == 2**60
    assert (values[1]["value"], values[2]["value"], values[2]["lower"]) == ("NaN", "Infinity", "-Infinity")
    assert data["sections"][0]["tables"][0]["rows"][1] == ["NaN", 2**70, {"number": "NaN"}, {"number": "Infinity"}]


def test_series_stand_on_one_line(report):
    assert '"edges": [ 0.0, 0.5, 1.0 ]' in report.to_json()


def test_series_with_nan_and_infinity_stand_on_one_line():
    bars = Bars("by class", ("a", "b", "c"), (0.5, math.nan, math.inf))
    report = Report("one", (Section("", plots=(bars,)),))
    assert '"values": [ 0.5, "NaN", "Infinity" ]' in report.to_json()
    assert Report.from_json(report.to_json()) == report


@pytest.mark.parametrize(
    "number", [0.5, np.float64(0.5), np.float32(0.5), torch.tensor(0.5), torch.tensor(0.5, dtype=torch.bfloat16)]
)
def test_numbers_of_any_library_become_plain(number):
    value = Value("x", number)
    assert (type(value.value), value.value) == (float, 0.5)
    assert Table("t", ("c",), [(number,)]).rows == ((0.5,),)


@pytest.mark.parametrize("count", [3, np.int64(3), torch.tensor(3)])
def test_counts_of_any_library_become_plain(count):
    assert type(Value("x", 0.5, count=count).count) is int
    assert [type(cell) for cell in Table("t", ("c",), [(count,)]).rows[0]] == [int]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Value("x", "0.5"), "Value.value: got str '0.5', expected a number"),
        (lambda: Value("x", True), "Value.value: got bool True, expected a number"),
        (lambda: Value("x", [1.0, 2.0]), "Value.value: got list .*, expected a number"),
        (lambda: Value(3, 0.5), "Value.name: got int 3, expected a string"),
        (lambda: Value("x", 0.5, count=1.5), "Value.count: got float 1.5, expected an integer"),
        (lambda: Section("s", values="ab"), "Section.values: got str 'ab', expected a sequence"),
        (lambda: Section("s", values=[0.5]), r"Section.values\[0\]: got float 0.5, expected a Value"),
        (
            lambda: Section("s", plots=[Value("x", 1)]),
            r"Section.plots\[0\]: .* expected one of ConfusionPlot, Curves",
        ),
        (lambda: Report("r", environment={"torch": 2}), r"Report.environment.torch: got int 2, expected a string"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_rows_must_fit_the_columns():
    with pytest.raises(ShapeError, match=r"Table.rows\[1\]: got 1 cells, expected 2 cells, one a column. Use None"):
        Table("t", ("a", "b"), [(1, 2), (1,)])


def test_sections_have_names_of_their_own():
    with pytest.raises(ConfigError, match=r"Report.sections: got 'test' 2 times, expected unique names. Give each"):
        Report("r", (Section("test"), Section("test")))


def test_a_report_is_frozen(report):
    with pytest.raises(dataclasses.FrozenInstanceError):
        report.title = "other"


def test_save_and_load(report, tmp_path):
    path = report.save(tmp_path / "new" / "run.json")
    assert Report.load(path) == report
    assert os.listdir(path.parent) == ["run.json"]


def test_a_folder_holds_a_report_under_the_name_of_its_kind(report, tmp_path):
    assert report.save(tmp_path) == tmp_path / "report.json"
    assert report.save(f"{tmp_path}/new/deep/") == tmp_path / "new" / "deep" / "report.json"
    assert Report.load(f"{tmp_path}/new/deep/") == report
    assert Report.load(tmp_path) == report
    comparison = compare(report, report)
    assert comparison.save(tmp_path) == tmp_path / "comparison.json"
    assert type(comparison).load(tmp_path) == comparison


def test_a_folder_in_place_of_a_page_is_refused_and_errors_name_the_file_that_was_asked_for(report, tmp_path):
    with pytest.raises(ConfigError, match=rf"path: got {tmp_path}, which is a folder, expected a file"):
        report.to_html(tmp_path)
    locked = tmp_path / ("a" * 250 + ".json")  # the name beside it is too long
    with pytest.raises(OSError, match=r"too long: '.*/a+\.json'$"):
        report.save(locked)


def test_saving_respects_the_umask(report, tmp_path):
    before = os.umask(0o027)
    try:
        path = report.save(tmp_path / "run.json")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_failure_while_writing_leaves_the_old_file(report, tmp_path, monkeypatch):
    path = report.save(tmp_path / "run.json")

    def fail(number: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        Report("other").save(path)
    assert Report.load(path) == report
    assert os.listdir(tmp_path) == ["run.json"]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_file_cut_short_is_refused(report, tmp_path, share):
    path = tmp_path / "run.json"
    text = report.to_json()
    path.write_text(text[: int(share * len(text))])
    with pytest.raises(
        StateError, match=r"run.json: got JSON that ends or breaks at character .* cut short or changed"
    ):
        Report.load(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"schema": "assay.report/8"}',
            "got schema 'assay.report/8', expected schema 'assay.report/7'. Update assay",
        ),
        (
            '{"schema": "assay.report/4"}',
            "got schema 'assay.report/4', expected schema 'assay.report/7'. Write the report again with this",
        ),
        (
            '{"schema": "assay.gate/4"}',
            "got schema 'assay.gate/4', expected schema 'assay.report/7'. Pass a report that assay wrote",
        ),
        ("{}", "got schema None, expected schema"),
        ("[1]", "got schema None, expected schema"),
        ("[" * 100_000, "got JSON that ends or breaks"),
        ('{"schema": "assay.report/7", "title": "x"}', "got no digest, expected digest '.*write the report again"),
        ('{"schema": "assay.report/7", "digest": 1, "title": "x"}', "got digest 1, expected digest '"),
    ],
)
def test_other_content_is_refused(text, message):
    with pytest.raises(StateError, match=message):
        Report.from_json(text)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, r"report: got the fields \[\], expected the fields .*'title'"),
        ({"title": "x", "later": 1}, "got the fields .*later"),
        ({"title": 3}, "report cannot be read. Report.title: got int 3"),
        ({"title": "x", "sections": 3}, "report.sections: got 3, expected a list"),
        ({"title": "x", "sections": [3]}, r"report.sections\[0\]: got 3, expected an object"),
    ],
)
def test_other_content_with_a_digest_is_refused(data, message):
    with pytest.raises(StateError, match=message):
        Report.from_json(json.dumps(seal({"schema": SCHEMA} | data)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"Infinity"', '"infinite"', r"report.sections\[0\].values\[2\].* got infinite, expected a number"),
        ('"curves"', '"pie"', r'plots\[1\]: got pie, expected an object whose "is" is one of confusion_matrix, curves'),
        ('{\n        "number": "NaN"\n       }', "[1]", r"tables\[0\] cannot be read. Table.rows\[1\]\[2\]: got list"),
        (
            '"kind": "roc"',
            '"kind": "cor"',
            r"plots\[1\] cannot be read. Curves.kind: got 'cor', expected 'roc', 'pr', 'det' or 'reliability'",
        ),
    ],
)
def test_a_changed_part_is_named(report, old, new, message):
    text = report.to_json()
    assert old in text
    with pytest.raises(StateError, match="got digest '"):
        Report.from_json(text.replace(old, new))
    with pytest.raises(StateError, match=message):
        Report.from_json(json.dumps(seal(json.loads(text.replace(old, new)))))


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "model.pt"
    path.write_bytes(b"PK\x03\x04\xff\xfe")
    with pytest.raises(StateError, match=r"got bytes that are not UTF-8, expected a file that assay wrote"):
        Report.load(path)


def test_importing_needs_neither_torch_nor_what_draws():
    program = (
        "import sys, assay.report as r; r.Report('x').to_json(); "
        "print([m for m in ('torch', 'matplotlib', 'jinja2', 'rich') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_folder_stands_for_the_report_in_it(tmp_path, report):
    report.save(tmp_path / "report.json")
    assert Report.load(tmp_path) == report


def test_printing_a_report_shows_a_summary():
    tables = [Table(f"table {k}", ("a", "b"), [(i, i / 7) for i in range(500)]) for k in range(3)]
    values = [Value("accuracy", 0.94172, 0.92, 0.96, confidence_level=0.95), Value("loss", 0.25)]
    report = Report("digits", [Section("test", values, tables)], notes=["Every sample once."])
    for word in ("digits", "accuracy", "0.9417", "[0.9200, 0.9600]", "loss", "Every sample once."):
        assert word in str(report)
    assert "table 1" not in str(report)
    assert len(str(report)) < 1000
    assert "\n" not in repr(report)
    assert "accuracy 0.9417" in repr(report)


@pytest.mark.parametrize("value", [0.1 + 0.2, 0.85])
def test_every_changed_digit_is_refused(value):
    """In 388 of 414 places a digit could be changed, and a gate passed a value that nobody had measured."""
    report = Report(
        "a 1", [Section("test", [Value("accuracy", value, count=450, lower=0.25, upper=0.95, confidence_level=0.95)])]
    )
    text, same = report.to_json(), 0
    for k, character in enumerate(text):
        if not character.isdigit():
            continue
        changed = f"{text[:k]}{(int(character) + 1) % 10}{text[k + 1 :]}"
        try:
            assert Report.from_json(changed) == report, changed[k - 20 : k + 20]
            same += 1  # the last digit of 17 may change and the number stay the same float
        except StateError as error:
            assert str(error).startswith("report: got ")  # noqa: PT017 - which of the two happens goes by the digit
    assert same <= (value != 0.85)


def test_a_file_that_was_indented_anew_is_read(report):
    assert Report.from_json(json.dumps(json.loads(report.to_json()), indent=4, sort_keys=True)) == report


def test_a_report_is_not_written_to_a_url_that_lost_a_slash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    report = Report("r", [Section("s", [Value("x", 1.0)])])
    for write in (report.save, report.to_html):
        with pytest.raises(ConfigError, match=r"path: got 's3:/bucket/r', expected a path, or a URL with two slashes"):
            write(Path("s3://bucket/r"))
    assert list(tmp_path.iterdir()) == []
