"""The worst errors: which samples they are, in which order, under which names."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assay.report import ConfusionPlot, RawSample, Report, Samples, Section, Value
from assay.report.worst import ABSOLUTE_ERROR, LIMIT, worst_errors


def section(columns: dict[str, object], values: tuple[Value, ...] = (), **parts: object) -> Section:
    ids = parts.pop("ids", None) or range(len(next(iter(columns.values()))))
    plots = parts.pop("plots", ())
    return Section("s", values, plots=plots, samples=Samples.pack(ids, columns, **parts))


def loss(*terms: float) -> tuple[Value, ...]:
    return (Value("log loss", float(np.mean(terms)), numerator="nll", higher_is_better=False),)


def test_wrong_decisions_come_by_their_loss():
    terms = (0.1, 3.0, 0.2, 2.0, 9.0)
    found = worst_errors(section({"nll": terms}, loss(*terms), decision=[0, 1, 2, 0, 1], target=[0, 0, 0, 1, 1]))
    assert found.columns == ("id", "target", "decision", "nll")
    assert found.rows == (("1", "0", "1", 3.0), ("3", "1", "0", 2.0), ("2", "0", "2", 0.2))
    assert found.note == "3 of 3 wrong decisions, by nll, the largest first."


def test_equal_losses_come_by_id_and_nan_first():
    terms = (1.0, 1.0, math.nan, 1.0)
    found = worst_errors(
        section({"nll": terms}, loss(*terms), ids=["d", "c", "b", "a"], decision=[1] * 4, target=[0] * 4)
    )
    assert [row[0] for row in found.rows] == ["b", "a", "c", "d"]


def test_only_the_first_are_listed():
    rng = np.random.default_rng(0)
    terms = rng.exponential(1, 5000).round(2)  # with ties
    wrong = rng.random(5000) < 0.4
    found = worst_errors(section({"nll": terms}, loss(*terms), decision=wrong, target=[False] * 5000))
    order = sorted(np.flatnonzero(wrong), key=lambda i: (-terms[i], i))
    assert [int(row[0]) for row in found.rows] == order[:LIMIT]
    assert found.note.startswith(f"20 of {wrong.sum():,} wrong decisions")


def test_a_regression_is_ordered_by_how_far_off_it_is():
    found = worst_errors(section({"x": [0, 0, 0]}, decision=[1.5, 1.0, -1000.0], target=[1, 1, 2], ids=[7, 8, 1234]))
    assert found.columns == ("id", "target", "decision", ABSOLUTE_ERROR)
    assert found.rows == (("1234", "2", -1000.0, 1002.0), ("7", "1", 1.5, 0.5))
    assert found.note == f"2 of 2 samples that are off, by {ABSOLUTE_ERROR}, the largest first."


def test_without_a_loss_by_confidence_else_by_id():
    given = {"decision": [1, 1, 0], "target": [0, 0, 0]}
    sure = worst_errors(section({"confidence": [0.6, 0.9, 0.8]}, **given))
    assert [row[0] for row in sure.rows] == ["1", "0"]
    bare = worst_errors(section({"correct": [False, False, True]}, **given))
    assert bare.columns == ("id", "target", "decision")
    assert bare.note == "2 of 2 wrong decisions, by id: no loss of single samples was kept."


def test_without_decisions_by_the_loss():
    found = worst_errors(section({"nll": [1.0, 2.0]}, loss(1.0, 2.0)))
    assert (found.columns, found.rows[0]) == (("id", "nll"), ("1", 2.0))


def test_queries_with_the_lowest_scores_and_none_that_is_left_out():
    columns = {"nDCG": [0.5, 0.0, 1.0, 0.25, 1.0], "queries": [True, False, True, True, True]}
    value = Value("ndcg", 2.75 / 4, numerator="nDCG", denominator="queries", higher_is_better=True)
    found = worst_errors(section(columns, (value,), ids=["a", "b", "c", "d", "e"]))
    assert found.rows == (("d", 0.25), ("a", 0.5))
    assert "by nDCG, the smallest first" in found.note


def test_sentences_with_the_most_errors_have_their_strings_in_every_form(tmp_path):
    evil = "\x1b[31mred|<script>alert(1)</script>\nnew line \u202e"
    raw = [RawSample("a", evil, "black | white"), RawSample("b", "yes", "no")]
    columns = {"word errors": [3, 1, 0], "words": [4, 1, 9]}
    value = Value("wer", 4 / 14, numerator="word errors", denominator="words", higher_is_better=False)
    shown = section(columns, (value,), ids=["a", "b", "c"], raw=raw)
    found = worst_errors(shown)
    assert found.columns == ("id", "target", "prediction", "word errors")
    assert found.rows == (("a", "black | white", evil, 3.0), ("b", "no", "yes", 1.0))
    report = Report("r", [shown])
    assert Report.from_json(report.to_json()) == report
    (row,) = [line for line in report.to_markdown().splitlines() if "alert" in line]
    assert row.count("|") - row.count("\\|") == 5
    page = report.to_html(tmp_path / "r.html").read_text("utf-8")
    for text in (report.to_markdown(), page, report.to_text(width=200)):
        assert "alert(1)" in text
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "<script>alert" not in report.to_markdown() + page


def test_classes_have_their_names_where_these_are_known():
    given = {"decision": [1, 0], "target": [0, 0]}
    named = worst_errors(section({"x": [0, 0]}, classes=("cat", "dog"), **given))
    assert named.rows == (("0", "cat", "dog"),)
    matrix = ConfusionPlot("m", ("cow", "pig"), [[1, 1], [0, 0]])
    assert worst_errors(section({"x": [0, 0]}, plots=[matrix], **given)).rows == (("0", "cow", "pig"),)
    other = ConfusionPlot("m", ("cow",), [[1]])  # has no name for class 1
    assert worst_errors(section({"x": [0, 0]}, plots=[other], **given)).rows == (("0", "cow", "1"),)


@pytest.mark.parametrize(
    "nothing",
    [
        Section("s"),
        Section("s", samples=Samples.pack([], {})),
        section({"x": [1.0, 2.0]}),
        section({"x": [1.0, 2.0]}, decision=[1, 2]),
        section({"x": [1.0, 2.0]}, decision=[1, 2], target=[1, 2]),
        section({"x": [2.0, 2.0]}, (Value("x", 2.0, numerator="x", higher_is_better=True),)),
        section({"x": [1.0, 2.0]}, (Value("x", 1.5, numerator="x"),)),
    ],
)
def test_where_nothing_tells_there_is_no_table(nothing):
    assert worst_errors(nothing) is None
    assert "Worst errors" not in Report("r", [nothing]).to_markdown()


def test_texts_and_numbers_are_never_the_same():
    found = worst_errors(section({"x": [0.0, 0.0]}, decision=["1", "2"], target=[1, 2]))
    assert found.rows == (("0", "1", "1"), ("1", "2", "2"))
