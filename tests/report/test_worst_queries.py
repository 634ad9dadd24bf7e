"""The worst queries in a report: as records, and in every rendering."""

from __future__ import annotations

import json

import pytest

from assay._records import seal
from assay.errors import ShapeError
from assay.render.html import to_html
from assay.render.terminal import to_text
from assay.report import QueryDocument, QueryRanking, Report, Section, Value, WorstQueries

DOCUMENTS = (
    QueryDocument(1, 3, 0.5, 1.0, "d<7>", ("cats\n& <b>dogs</b>",)),
    QueryDocument(1, 3, 0.5, 0.0, "d8", ("fish",)),
    QueryDocument(1, 3, 0.5, 0.0, "d9", ("",)),
)
LATE = (QueryDocument(1, 1, 2.0, 0.0, "d1", ("birds",)), QueryDocument(1234, 1236, -1.5, 2.0, "d2", ("bees",)))
WORST = WorstQueries(
    "nDCG",
    1200,
    40,
    [
        QueryRanking("q1", 0.0, 2000, 5, LATE, ("what | now",)),
        QueryRanking("q2", 0.25, 3, 1, DOCUMENTS, ("pets",)),
        QueryRanking("q3", 0.5, 1, 0, (QueryDocument(1, 1, 0.1, 0.0, "", ("",)),), ("nothing",)),
    ],
    ("question",),
    ("text",),
)
REPORT = Report("searches", [Section("test", [Value("nDCG", 0.9)], worst_queries=WORST)])


def test_json_gives_back_the_queries_and_older_reports_have_none():
    assert Report.from_json(REPORT.to_json()) == REPORT
    data = json.loads(REPORT.to_json())
    del data["sections"][0]["worst_queries"]
    older = Report.from_json(json.dumps(seal(data)))
    assert older.sections[0].worst_queries is None
    assert older.sections[0].values == REPORT.sections[0].values


def test_the_first_relevant_document_is_found():
    assert [query.first_relevant for query in WORST.queries] == [LATE[1], DOCUMENTS[0], None]


def test_every_rendering_has_the_queries_with_their_documents():
    for width in (80, 140):
        shown = to_text(REPORT.to_document(), width)
        assert max(map(len, shown.splitlines())) <= width
        for part in ("Worst queries", "3 of 40 queries", "all queries: 1,200", "1,234–1,236", "1–3", "cats & <b>dogs"):
            assert part in " ".join(shown.split())
        assert "2 of 2,000 documents." in shown
        assert shown.count("No document is relevant.") == 1
    markdown = REPORT.to_markdown()
    assert "| q1 | what \\| now | 0.0000 | 2,000 | 5 | 1,234–1,236 |" in markdown
    assert "| 1–3 | 0.5000 | **1** | d&lt;7&gt; | cats &amp; &lt;b&gt;dogs&lt;/b&gt; |" in markdown
    page = to_html(REPORT.to_document())
    assert "<b>dogs" not in page
    assert page.count("&lt;b&gt;dogs") >= 1
    assert "q3 · nothing: nDCG 0.5000" in page


def test_the_summary_and_sections_without_queries_do_not_have_them():
    assert "Worst queries" not in to_text(REPORT.to_document(verbose=False))
    none = Section("test", [Value("nDCG", 1.0)], worst_queries=WorstQueries("nDCG", 10, 0, ()))
    assert "Worst queries" not in to_text(Report("r", [none]).to_document())


@pytest.mark.parametrize(("queries", "documents"), [(("question", "more"), ("text",)), (("question",), ())])
def test_as_many_strings_as_columns(queries, documents):
    with pytest.raises(ShapeError, match="one a column"):
        WorstQueries("nDCG", 1200, 40, WORST.queries, queries, documents)
