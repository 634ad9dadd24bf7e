"""What a reader of a comparison meets first: the verdicts, then what has none."""

from __future__ import annotations

import re

from assay.render.html import to_html
from assay.report.comparing import comparison_view as words
from assay.report.comparing.comparison import Comparison, Delta, Run

METHOD = {"method": "sign flips", "p": 0.001, "corrected": 0.001}


def comparison() -> Comparison:
    deltas = [
        Delta("new", "test", "f1", 0.5, 0.6, 0.1, note="no samples"),
        Delta("new", "test", "accuracy", 0.5, 0.4, -0.1, -0.2, -0.0007, verdict="worse", **METHOD),
    ]
    for k in range(20):
        deltas.append(Delta("new", "test", "f1", 0.5, 0.6, 0.1, note="no samples", slice=f"x = {k}"))
    deltas.append(Delta("new", "test", "accuracy", 0.5, 0.9, 0.4, 0.3, 0.5, verdict="better", slice="x = 3", **METHOD))
    return Comparison((Run("main"), Run("new")), deltas)


def test_what_has_no_verdict_comes_last():
    ((_, _, deltas),) = words.groups(comparison())
    assert [delta.metric for delta in deltas] == ["accuracy", "f1"]
    by_slice = words.by_slice(comparison(), "new", "test")
    assert [delta.verdict for delta in by_slice[:2]] == ["better", "cannot say"]


def test_a_note_names_the_first_of_many_slices():
    text = " ".join(comparison().to_text(80).split())
    assert "f1 in x = 0, f1 in x = 1, f1 in x = 2 and 17 more: " in text


def test_both_ends_of_an_interval_have_one_format():
    assert "[-0.200000, -0.000700]" in comparison().to_text(120)


def test_the_page_tells_the_verdict_before_the_numbers():
    page = to_html(comparison().to_document())
    assert re.search(r"1 worse, 1 cannot say\..*<main>", page, re.DOTALL)
    row = page[page.index("<tbody>") : page.index("</tr>", page.index("<tbody>"))]
    assert row.index("worse") < row.index("0.5000")
