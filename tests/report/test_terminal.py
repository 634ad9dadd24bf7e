"""The report in a terminal and in a file, and as Markdown."""

from __future__ import annotations

import re
from io import BytesIO, StringIO, TextIOWrapper

import numpy as np
import pytest
from rich.console import Console

from assay.render.terminal import show
from assay.render.text import clean, column, number, seconds, shorten, shorten_each
from assay.report import ConfusionPlot, Report, Section, Slice, Table, Value


def printed(report: Report, **options: object) -> str:
    file = StringIO()
    show(report.to_document(), Console(file=file, width=100, **options))
    return file.getvalue()


def test_all_numbers_are_there(report):
    text = report.to_text()
    for word in (
        "name",
        "0.3333",
        "[0.3000, 0.4000]",
        "n = 1,152,921,504,606,846,976",
        "–",
        "∞",
        "1.5 s",
        "AUROC 1.0000.",
    ):
        assert word in text


def test_a_terminal_gets_colours_and_a_file_gets_none(report):
    assert "\x1b[" in printed(report, force_terminal=True, color_system="truecolor", _environ={})
    assert "\x1b[" not in printed(report, force_terminal=False)
    coloured = r"\x1b\[[\d;]*[34]8;"
    assert re.search(coloured, printed(report, force_terminal=True, color_system="truecolor", _environ={}))
    assert not re.search(coloured, printed(report, force_terminal=True, _environ={"NO_COLOR": "1"}))


def test_plain_text_has_no_spaces_at_the_ends_of_lines(report):
    assert not re.search(r" $", report.to_text(), re.MULTILINE)


def test_an_encoding_without_the_signs_gets_others(report):
    raw = BytesIO()
    file = TextIOWrapper(raw, encoding="ascii")
    show(report.to_document(), Console(file=file, width=100))
    file.flush()
    assert b"####" in raw.getvalue()


def test_hostile_text_reaches_no_terminal(hostile):
    text = hostile.to_text(200)
    assert "\x1b" not in text
    assert "\x00" not in text
    assert "[red]" in text
    text.encode("utf-8")
    styled = printed(hostile, force_terminal=True, color_system="truecolor", _environ={})
    assert "\x1b[31m" not in styled


def test_many_classes_become_a_list_of_errors():
    counts = np.diag([5] * 20)
    counts[3, 4] = 2
    plot = ConfusionPlot("m", tuple(f"class {i}" for i in range(20)), counts)
    text = Report("r", (Section("s", plots=(plot,)),)).to_text()
    assert re.search(r"class 3 +class 4 +2", text)
    assert "·     ·" not in text


def test_show_prints_to_the_standard_output(report, capsys):
    report.show()
    assert "0.3333" in capsys.readouterr().out


def test_markdown_has_a_table_of_values_and_of_cells(report):
    text = report.to_markdown()
    assert "| metric | value | interval | n |\n" in text
    assert "| nan | – | | |\n" in text
    assert "Intervals: name: name." in text  # how intervals were found stands below
    assert "| name | int | float | none |\n|:--|--:|--:|--:|" in text


def test_markdown_escapes_what_it_would_read(hostile):
    text = hostile.to_markdown()
    assert "<script" not in text
    assert "<img" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows[:3]}) == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0.0000"), (-0.0, "-0.0000"), (99.99999, "100.0000"), (1e9, "1.000e+09"), (123456.789, "123,456.8")],
)
def test_numbers(value, text):
    assert number(value) == text


def test_words():
    assert clean("a\u202eb\ufffe\r\n\tc") == "a\ufffdb\ufffd   c"
    assert clean("नमस्ते 👩\u200d🔬") == "नमस्ते 👩\u200d🔬"
    assert shorten("abc", 3) == "abc"
    assert seconds(99.96) == "100.0 s"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_no_number_is_broken_in_a_narrow_terminal(width):
    names = [f"metric {k}" for k in range(9)]
    values = [Value(name, 0.12345678, 0.1, 0.2, confidence_level=0.95) for name in names]
    rows = [("a class with a rather long name", *(1234.5678 + k for k in range(9)))] * 3
    section = Section("s", values, [Table("t", ("class", *names), rows)], slices=[Slice("x = 1", 50, values)])
    text = Report("r", [section]).to_text(width)
    assert max(map(len, text.splitlines())) <= width
    assert text.count("[0.1000, 0.2000]") == 18
    for k in range(9):
        assert text.count(f"{1234.5678 + k:,.1f}") == 3


def test_the_numbers_of_a_column_have_one_format():
    assert column([0.5, 0.00025, -1.0, None]) == ["0.500000", "0.000250", "-1.000000", "–"]
    assert column([12.0, 1234.5]) == ["12.0000", "1,234.5000"]
    assert column([float("nan"), 0.25, "text", 3]) == ["–", "0.2500", "text", "3"]


def test_names_that_are_shortened_stay_apart():
    names = [f"a very long label that ends in {k}" for k in range(40)]
    short = shorten_each(names, 12)
    assert len(set(short)) == len(names)
    assert max(map(len, short)) <= 12
    assert shorten_each(["a", "b"], 12) == ["a", "b"]
