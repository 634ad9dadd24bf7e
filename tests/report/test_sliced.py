"""Slices as they are shown: the worst of each metric, those too small to say, the plots, in every form."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from io import StringIO
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from assay.errors import ConfigError
from assay.render.html import to_html
from assay.render.svg import to_svg
from assay.render.terminal import show
from assay.report import Report, Samples, Section, Slice, Value
from assay.report.value import methods
from assay.report.worst_slices import MOST, dots_of, slices_of
from pages import Page


def part(name: str, count: int, accuracy: float, loss: float | None = None) -> Slice:
    ends = {"confidence_level": 0.95, "note": "Wilson's interval"}
    values = [Value("accuracy", accuracy, accuracy - 0.1, accuracy + 0.1, higher_is_better=True, **ends)]
    return Slice(name, count, values if loss is None else [*values, Value("loss", loss, higher_is_better=False)])


@pytest.fixture
def section() -> Section:
    slices = [part("en", 200, 0.9, 0.3), part("de", 90, 0.7, 0.2), part("fr", 100, 0.8), part("is", 4, 0.25, 9.0)]
    values = [Value("loss", 0.27, higher_is_better=False), Value("accuracy", 0.85, higher_is_better=True)]
    return Section("test", values, slices=slices, min_slice_size=20)


def test_the_worst_slice_is_marked_where_its_interval_leaves_out_the_value_of_all_samples(section):
    slices = slices_of(section)
    assert slices.metrics == ("loss", "accuracy")  # as in the section
    worst = {name: [row.name for row in slices.rows if row.is_worst[i]] for i, name in enumerate(slices.metrics)}
    assert worst == {"loss": [], "accuracy": ["de"]}  # no slice has an interval of the loss
    assert [row.is_small for row in slices.rows] == [False, False, False, True]
    assert slices.rows[2].values[0] is None
    assert "“worst” marks" in slices.note()
    assert "loss: slices have no interval" in slices.note()
    assert "fewer than 20 samples are not compared" in slices.note()


def test_a_slice_that_chance_explains_is_not_marked():
    values = [Value("accuracy", 0.75, higher_is_better=True)]
    found = slices_of(Section("s", values, slices=[part(f"s{i}", 30, 0.7) for i in range(1)] + [part("b", 30, 0.9)]))
    assert not any(any(row.is_worst) for row in found.rows)
    assert "No slice is worse than all samples beyond chance" in found.note()


def test_the_more_slices_the_more_it_takes_to_be_marked():
    def marked(count):
        slices = [part("low", 30, 0.63), *(part(f"s{i}", 30, 0.8) for i in range(count))]
        return any(row.is_worst[0] for row in slices_of(Section("s", values, slices=slices)).rows)

    values = [Value("accuracy", 0.75, higher_is_better=True)]
    assert marked(1)
    assert not marked(100)


@pytest.mark.parametrize("higher_is_better", [True, False])
def test_the_worst_of_a_metric_where_lower_is_better(higher_is_better):
    def value(number):
        return Value(
            "m", number, number - 0.01, number + 0.01, higher_is_better=higher_is_better, confidence_level=0.95
        )

    slices = [Slice(name, 50, [value(number)]) for name, number in (("low", 0.2), ("high", 0.8))]
    found = slices_of(Section("s", [value(0.5)], slices=slices))
    assert [row.name for row in found.rows if row.is_worst[0]] == ["low" if higher_is_better else "high"]


def test_a_mean_over_fewer_classes_is_not_named_as_the_worst_slice():
    def f1(number, reason=""):
        ends = {"confidence_level": 0.95, "higher_is_better": True, "not_compared": reason}
        return Value("f1", number, number - 0.05, number + 0.05, **ends)

    low, lacking = Slice("low", 90, [f1(0.7)]), Slice("lacking", 90, [f1(0.3, "no sample of class 2")])
    few = Slice("few", 4, [f1(0.1, "no sample of class 7")])
    found = slices_of(section := Section("s", [f1(0.9)], slices=[low, lacking, few], min_slice_size=20))
    assert [row.name for row in found.rows if row.is_worst[0]] == ["low"]
    assert "f1 of slices that lack classes is not compared: lacking (no sample of class 2);" in found.note()
    assert "class 7" not in found.note()  # it has few samples, which is said
    (plot,) = dots_of(section)
    assert [dot.ink for dot in plot.dots] == ["warm", "faint", "faint"]
    only = slices_of(Section("s", [f1(0.9)], slices=[lacking, replace(lacking, name="other")]))
    assert not any(any(row.is_worst) for row in only.rows)
    again = Report.from_json(Report("r", [section]).to_json()).sections[0].slices
    assert [each.values[0].not_compared for each in again] == ["", "no sample of class 2", "no sample of class 7"]


@pytest.mark.parametrize(
    "slices",
    [
        [part("a", 30, 0.5)],  # alone
        [part("a", 30, 0.5), part("b", 30, 0.5)],  # as good
        [part("a", 30, 0.5), part("b", 3, 0.1)],  # too small
        [part("a", 30, 0.5), part("b", 30, math.nan)],
        [Slice("a", 30, [Value("accuracy", 0.5)]), Slice("b", 30, [Value("accuracy", 0.6)])],  # which way?
    ],
)
def test_where_nothing_is_worse_nothing_is_marked(slices):
    found = slices_of(Section("s", slices=slices, min_slice_size=20))
    assert not any(any(row.is_worst) for row in found.rows)
    assert "“worst”" not in found.note()


def test_a_section_without_slices_shows_none():
    assert slices_of(Section("s")) is None
    assert dots_of(Section("s")) == ()


def test_each_headline_metric_has_a_plot(section):
    loss, accuracy = dots_of(section)
    assert [dot.name for dot in loss.dots] == ["en", "de", "is"]
    assert accuracy.summary() == "4 slices, from 0.2500 (is) to 0.9000 (en); the line is all samples, 0.8500."
    root = ElementTree.fromstring(to_svg(accuracy))
    words = [element.text for element in root.iter("text")]
    assert "de  n=90" in words


def test_of_many_slices_the_worst_are_drawn():
    many = [part(f"s{i}", 30, i / 100) for i in range(50)]
    (dots,) = dots_of(Section("s", [Value("accuracy", 0.25, higher_is_better=True)], slices=many))
    assert [dot.name for dot in dots.dots] == [f"s{i}" for i in range(MOST)]
    assert dots.summary().startswith("The 30 worst slices of 50, from 0.0000 (s0) to 0.2900 (s29)")
    assert dots_of(Section("s", [Value("f1", 0.25)], slices=many)) == ()  # no headline


def test_methods_of_intervals_stand_once():
    values = [
        Value("a", 1, 0, 2, confidence_level=0.95, note="x"),
        Value("b", 1, 0, 2, confidence_level=0.95),
        Value("c", 1, 0, 2, note="y"),
    ]
    assert methods(values) == ("Intervals of 95 %: a: x.", "Intervals: c: y.")
    assert methods([Value("a", 1, note="why"), Value("b", 1, 0, 2)]) == ("Intervals.",)


def test_slices_in_a_terminal(section):
    text = Report("r", [section]).to_text()
    assert "worst 0.7000" in text
    assert "[0.6000, 0.8000]" in text
    assert "Intervals of 95 %: accuracy: Wilson's interval." in text
    assert max(map(len, Report("r", [section]).to_text(60).splitlines())) <= 60
    file = StringIO()
    show(
        Report("r", [section]).to_document(),
        Console(file=file, width=100, force_terminal=True, color_system="truecolor"),
    )
    assert re.search("\x1b\\[[0-9;]*33m *worst", file.getvalue())


def test_slices_in_markdown(section):
    text = Report("r", [section]).to_markdown()
    assert "| slice | n | loss | accuracy |\n|:--|--:|--:|--:|\n" in text
    assert "| de | 90 | 0.2000 | **0.7000** worst \\[0.6000, 0.8000\\] |" in text
    assert "| fr | 100 | – | 0.8000" in text


def test_slices_on_the_page(section):
    page = Page(to_html(Report("r", [section]).to_document()))
    assert [a for a in page.all("tr") if a.get("class") == "faint"] == [
        {"class": "faint", "title": "fewer than 20 samples"}
    ]
    assert len([a for a in page.all("td") if a.get("class") == "number marked"]) == 1
    assert len(page.all("svg")) == 2
    assert "nan" in [a["data-key"] for a in page.all("td")]  # sorted last
    rows = [a for a in page.all("th") if a.get("scope") == "row"]
    assert len(rows) == 4


def test_a_terminal_shows_the_worst_of_many_slices():
    many = [part(f"slice {i:03}", 30, 0.9 - 0.5 * (i == 90)) for i in range(100)]
    report = Report("r", [Section("s", [Value("accuracy", 0.9, higher_is_better=True)], slices=many)])
    text = report.to_text()
    assert [int(row) for row in re.findall(r"slice (\d{3})", text)] == [*range(39), 90]
    assert "and 60 more slices, which the page and the Markdown show" in text
    markdown = report.to_markdown()
    assert markdown.count("| slice 0") == 100
    assert (
        markdown.index("| slice 090 |") < markdown.index("<summary>60 more</summary>") < markdown.index("| slice 039 |")
    )


@pytest.mark.parametrize("kind", [bool, float])
@pytest.mark.parametrize("members", [None, [True, True, False, True]])
def test_a_value_is_the_mean_of_its_column_over_the_members(kind, members):
    """Of columns of yes and no it is counted, of others added up."""
    column = np.array([True, False, True, True]).astype(kind)
    samples = Samples.pack(range(4), {"correct": column})
    mask = None if members is None else np.array(members)
    mean = column.mean() if mask is None else column[mask].mean()
    Value("accuracy", float(mean), numerator="correct").check_terms(samples, mask)
    with pytest.raises(ConfigError, match="the mean of 'correct'"):
        Value("accuracy", float(mean) + 0.01, numerator="correct").check_terms(samples, mask)


def test_a_value_of_no_members_is_undefined():
    samples, nobody = Samples.pack(range(2), {"correct": [True, False]}), np.zeros(2, bool)
    Value("accuracy", math.nan, numerator="correct").check_terms(samples, nobody)
    with pytest.raises(ConfigError, match="the mean of 'correct'"):
        Value("accuracy", 0.0, numerator="correct").check_terms(samples, nobody)
