"""The worst queries of a table, with the names and texts that are read from it once more."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import assay.cli
from assay.errors import ConfigError
from assay.metrics import RetrievalMRR, RetrievalNormalizedDCG
from assay.report import Report
from assay.scoring import BadRowsError, Partial, count, fragments_of, merge, score
from searches import TOPICS, as_shown, documents_of, searches

NDCG = {"nDCG": RetrievalNormalizedDCG(top_k=10)}
SCORED = {"preds": "score", "target": "relevance", "columns": {"indexes": "topic"}, "show": "question,document,text"}


@pytest.fixture(scope="module")
def table():
    names = ("topic", "question", "document", "text", "score", "relevance")
    return pa.table({name: [getattr(each, name) for each in searches()] for name in names})


def worst_of(report):
    return report.sections[0].worst_queries


def check(worst):
    """The documents are those of the topic that the query is called."""
    assert (worst.query_columns, worst.document_columns) == (("question",), ("document", "text"))
    assert len(worst.queries) == 5
    for query in worst.queries:
        assert query.shown == (documents_of(query.id)[0].question,)
        found = [(each.rank, each.last_rank, each.score, each.relevance, *each.shown) for each in query.documents]
        expected = as_shown(query.id)
        assert [row[:4] for row in found] == [row[:4] for row in expected]
        texts = {each.document: each for each in documents_of(query.id)}
        for each in query.documents:
            assert (texts[each.shown[0]].score, texts[each.shown[0]].relevance) == (each.score, each.relevance)
            assert each.shown[1] == texts[each.shown[0]].text[:199] + "…" or each.shown[1] == texts[each.shown[0]].text


def test_queries_that_are_strings_keep_their_names(table):
    report = score(table, NDCG, **SCORED)
    check(worst_of(report))
    assert Report.from_json(report.to_json()) == report
    numbered = table.set_column(0, "topic", pa.array([TOPICS.index(each) for each in table["topic"].to_pylist()]))
    worst = worst_of(score(numbered, NDCG, **SCORED))
    assert {TOPICS[int(each.id)]: each.value for each in worst.queries} == {
        each.id: each.value for each in worst_of(report).queries
    }


def test_row_groups_files_and_formats_have_the_same_queries(table, tmp_path):
    expected = worst_of(score(table, NDCG, **SCORED))
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    pyarrow.csv.write_csv(table, tmp_path / "t.csv")
    (tmp_path / "files").mkdir()
    for k in range(3):
        pq.write_table(table.slice(150 * k, 150), tmp_path / "files" / f"{k}.parquet", row_group_size=40)
    coded = table.set_column(0, "topic", table["topic"].dictionary_encode())
    pq.write_table(coded, tmp_path / "coded.parquet")
    for path in ("t.parquet", "files", "coded.parquet"):
        assert worst_of(score(tmp_path / path, NDCG, **SCORED)) == expected
    check(worst_of(score(tmp_path / "t.csv", NDCG, **SCORED)))


def test_parts_that_are_merged_have_the_same_queries(table, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=50)
    expected = worst_of(score(tmp_path / "t.parquet", NDCG, **SCORED))
    names = fragments_of(tmp_path / "t.parquet")
    parts = [count(tmp_path / "t.parquet", NDCG, names[k::3], **SCORED) for k in range(3)]
    parts = [Partial.from_bytes(each.to_bytes()) for each in reversed(parts)]
    assert worst_of(merge(parts).report()) == expected
    (tmp_path / "t.parquet").rename(tmp_path / "moved.parquet")
    report = merge(parts).report()
    assert [each.value for each in worst_of(report).queries] == [each.value for each in expected.queries]
    assert all(each.id.startswith("#") for each in worst_of(report).queries)
    assert any("could not be read again" in note for note in report.notes)


def test_workers_have_the_same_queries(table, tmp_path):
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    expected = worst_of(score(tmp_path / "t.parquet", NDCG, **SCORED))
    assert worst_of(score(tmp_path / "t.parquet", NDCG, **SCORED, workers=2)) == expected


def test_what_tasks_and_streams_had_is_shown_without_names(table):
    expected = [each.value for each in worst_of(score(table, NDCG, **SCORED)).queries]
    tasks = [count(table.slice(200 * k, 200), NDCG, f"task {k}", **SCORED) for k in range(3)]
    for report in (merge(tasks).report(), score(table.to_reader(max_chunksize=64), NDCG, **SCORED)):
        worst = worst_of(report)
        assert [each.value for each in worst.queries] == expected
        assert all(each.id.startswith("#") and len(each.id) == 17 for each in worst.queries)
        assert any("stream, which cannot be read again" in note for note in report.notes)


def test_ids_of_rows_name_the_documents(table):
    table = table.append_column("row", pa.array([f"row {k}" for k in range(len(table))]))
    worst = worst_of(score(table, NDCG, **{**SCORED, "show": None}, ids="row"))
    assert (worst.query_columns, worst.document_columns) == ((), ())
    for query in worst.queries:
        for each in query.documents:
            found = searches()[int(each.id[4:])]
            assert (found.topic, found.score, found.relevance) == (query.id, each.score, each.relevance)


def test_rows_that_are_not_counted_are_not_shown(table):
    """A document that was left out would be the first of its query."""
    expected = worst_of(score(table, NDCG, **SCORED))
    topic = expected.queries[0].id
    columns = {**table.to_pydict(), "row": list(range(len(table))), "kind": ["good"] * len(table)}
    more = {"topic": topic, "question": "?", "document": "none", "text": "none", "score": 9.0, "relevance": 1}
    bad = [{"row": 0, "kind": "good"}, {"row": -1, "kind": "other"}, {"row": -2, "kind": "good", "score": float("nan")}]
    for each in bad:
        for name, column in columns.items():
            column.append({**more, **each}[name])
    options = {**SCORED, "ids": "row", "where": "kind == 'good'"}
    with pytest.raises(BadRowsError) as caught:
        score(pa.table(columns), NDCG, **options)
    for report in (caught.value.report, score(pa.table(columns), NDCG, **options, on_bad="skip")):
        check(worst_of(report))
        assert [each.value for each in worst_of(report).queries] == [each.value for each in expected.queries]


@pytest.fixture(scope="module")
def rows():
    """A topic a row, with lists of its documents."""
    columns = {"topic": TOPICS, "question": [], "score": [], "relevance": [], "documents": []}
    width = max(len(documents_of(topic)) for topic in TOPICS)
    for topic in TOPICS:
        every = documents_of(topic)[::-1]
        rest = width - len(every)
        columns["question"].append(every[0].question)
        columns["score"].append([each.score for each in every] + [9.0] * rest)
        columns["relevance"].append([each.relevance for each in every] + [-100] * rest)
        columns["documents"].append([each.document for each in every] + [""] * rest)
    return pa.table(columns)


@pytest.mark.parametrize("ids", [None, "topic", "number"])
def test_rows_that_are_queries_show_the_entries_of_their_lists(rows, ids, tmp_path):
    metric = {"nDCG": RetrievalNormalizedDCG(top_k=10, by_row=True, ignore_index=-100)}
    rows = rows.append_column("number", pa.array(range(len(rows))))
    options = {"preds": "score", "target": "relevance", "show": ["question", "documents"], "ids": ids}
    (tmp_path / "several").mkdir()
    pq.write_table(rows, tmp_path / "one.parquet", row_group_size=6)
    pq.write_table(rows.slice(0, 10), tmp_path / "several" / "a.parquet", row_group_size=6)
    pq.write_table(rows.slice(10), tmp_path / "several" / "b.parquet")
    for source in (rows, tmp_path / "one.parquet", tmp_path / "several"):
        worst = worst_of(score(source, metric, **options))
        assert (worst.query_columns, worst.document_columns) == (("question",), ("documents",))
        assert len(worst.queries) == 5
        for query in worst.queries:
            topic = query.shown[0].replace(" ", "-")
            name = topic if ids == "topic" else str(TOPICS.index(topic))
            if ids is None and source == tmp_path / "several":
                name = f"a.parquet:{name}" if int(name) < 10 else f"b.parquet:{int(name) - 10}"
            assert query.id == name
            every = documents_of(topic)
            assert query.document_count == len(every)
            named = {each.document: each for each in every}
            assert [row[:4] for row in as_shown(topic)] == [
                (each.rank, each.last_rank, each.score, each.relevance) for each in query.documents
            ]
            for each in query.documents:
                found = named[each.shown[0]]
                assert (found.score, found.relevance) == (each.score, each.relevance)
    parts = [count(tmp_path / "several", metric, [name], **options) for name in fragments_of(tmp_path / "several")]
    parts = [Partial.from_bytes(each.to_bytes()) for each in parts]
    assert worst_of(merge(parts).report()) == worst


def test_nothing_is_read_twice_where_all_is_known(table, monkeypatch):
    numbered = table.set_column(0, "topic", pa.array([TOPICS.index(each) for each in table["topic"].to_pylist()]))
    scans = []
    original = pa.Table.select
    monkeypatch.setattr("assay.scoring.query_rows._found", lambda *args, **options: scans.append(args))
    worst = worst_of(score(numbered, NDCG, **{**SCORED, "show": None}))
    assert pa.Table.select is original
    assert not scans
    assert [row[:4] for row in as_shown(TOPICS[int(worst.queries[0].id)])] == [
        (each.rank, each.last_rank, each.score, each.relevance) for each in worst.queries[0].documents
    ]


def test_columns_that_cannot_be_shown(table):
    with pytest.raises(ConfigError, match="show: got no column 'txt', expected 'text'"):
        score(table, NDCG, **{**SCORED, "show": "txt"})
    with pytest.raises(ConfigError, match="show: got 'a' as no name"):
        score(table, NDCG, **{**SCORED, "show": {"a": np.sum}})
    with pytest.raises(ConfigError, match="show: got"):
        score(table, "mean_absolute_error", preds="score", target="relevance", show="text")
    missing = table.append_column("note", pa.array([None] * len(table), pa.string()))
    renamed = worst_of(score(missing, NDCG, **{**SCORED, "show": {"body": "text", "remark": "note"}}))
    assert (renamed.query_columns, renamed.document_columns) == (("remark",), ("body",))
    assert {query.shown for query in renamed.queries} == {("",)}


def call(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["assay", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        assay.cli.main()
    assert not ended.value.code


def test_the_command_line_shows_columns(table, tmp_path, monkeypatch):
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=100)
    common = [tmp_path / "t.parquet", "--preds", "score", "--target", "relevance", "--column", "indexes=topic"]
    common += ["--show", "question,text", "-m", "retrieval_normalized_dcg:top_k=10"]
    call(monkeypatch, "score", *common, "--out", tmp_path / "whole")
    for k in (1, 2):
        call(monkeypatch, "score", *common, "--part", f"{k}/2", "--out", tmp_path)
    call(monkeypatch, "merge", *tmp_path.glob("part-*"), "--out", tmp_path / "merged")
    reports = [Report.load(tmp_path / name) for name in ("whole", "merged")]
    assert worst_of(reports[0]) == worst_of(reports[1])
    page = (tmp_path / "whole" / "report.html").read_text("utf-8")
    for query in worst_of(reports[0]).queries:
        assert query.id in page
    assert json.loads((tmp_path / "whole" / "report.json").read_text("utf-8"))["schema"] == "assay.report/7"


def test_a_lower_value_is_the_worse_one_of_two_metrics(table):
    report = score(table, {"MRR": RetrievalMRR(), **NDCG}, **SCORED)
    assert worst_of(report).metric == "MRR"
    values = [each.value for each in worst_of(report).queries]
    assert values == sorted(values)
