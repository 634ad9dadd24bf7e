"""Strings and named columns on the command line: predictions that are in a file, ids of queries, bad input."""

from __future__ import annotations

import json
import sys
import textwrap

import pytest
import torch
from typer.testing import CliRunner

from assay.cli import app, main
from assay.metrics import BLEUScore, RetrievalMAP, WordErrorRate
from assay.report import Report

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = [
    {"id": f"clip {k}", "prediction": p, "reference": r, "references": [r, "the cat"][: 1 + k % 2], "who": "ab"[k % 2]}
    for k, (p, r) in enumerate(
        [("the cat sat", "the cat sat down"), ("a dog", "a dog"), ("", "yes"), ("007", "7"), ("one two", "one two")] * 8
    )
]
QUERIES = [
    {"query": f"q{q}", "score": 0.1 + 2.0**-30 * d, "relevance": int((q + d) % 3 == 0)}
    for d in range(4)
    for q in range(12)
]


def write(folder, rows, ending=".jsonl"):
    path = folder / f"data{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
    elif ending == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    else:
        names = [name for name in rows[0] if name != "references"]
        path.write_text("\n".join([",".join(names), *(",".join(row[n] or '""' for n in names) for row in rows)]) + "\n")
    return path


def invoke(path, *more, model="identity"):
    done = CliRunner().invoke(app, ["evaluate", model, "--data", str(path), "--device", "cpu", "--json", *more])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Report.from_json(done.stdout)


def values(report):
    return {each.name: each.value for each in report.sections[0].values}


PREDICTIONS = [row["prediction"] for row in ROWS]
TARGETS = [row["reference"] for row in ROWS]
TEXT = ("--inputs", "prediction", "--target", "reference")
SEVERAL = ("--inputs", "prediction", "--target", "references", "-m", "bleu")
RANKED = ("--inputs", "score", "--target", "relevance", "-m", "map")


@pytest.mark.parametrize("ending", [".jsonl", ".csv", ".parquet"])
def test_predictions_in_a_file_need_no_model(tmp_path, ending):
    path = write(tmp_path, ROWS, ending)
    report = invoke(path, *TEXT, "--ids", "id", "--metrics", "wer,bleu:n_gram=2", "--slice", "who", "--batch-size", "7")
    assert values(report) == {
        "wer": WordErrorRate()(PREDICTIONS, TARGETS).item(),
        "bleu": BLEUScore(n_gram=2)(PREDICTIONS, TARGETS).item(),
    }
    assert [each.name for each in report.sections[0].slices] == ["who = a", "who = b"]
    assert all(each.lower is not None for each in report.sections[0].values)
    assert report.sections[0].samples.ids.values[0] == "clip 0"


def test_several_references_of_a_prediction(tmp_path):
    path = write(tmp_path, ROWS)
    report = invoke(path, "--inputs", "prediction", "--target", "references", "-m", "bleu:n_gram=1")
    assert values(report)["bleu"] == BLEUScore(n_gram=1)(PREDICTIONS, [row["references"] for row in ROWS]).item()


def test_strings_go_to_a_model_that_is_a_function(tmp_path, monkeypatch):
    (tmp_path / "spoken.py").write_text("def shout():\n    return lambda prediction: [p.lower() for p in prediction]\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    rows = [{**row, "prediction": row["prediction"].upper()} for row in ROWS]
    report = invoke(write(tmp_path, rows), *TEXT, "-m", "wer", model="spoken:shout")
    assert values(report)["wer"] == WordErrorRate()(PREDICTIONS, TARGETS).item()
    sys.modules.pop("spoken", None)


def test_strings_of_variants_are_compared_by_their_metrics(tmp_path, monkeypatch):
    (tmp_path / "spoken.py").write_text(
        "def same():\n    return lambda prediction: prediction\n"
        "def cut():\n    return lambda prediction: [p[:-3] for p in prediction]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    path = str(write(tmp_path, ROWS))
    command = [
        "evaluate",
        "spoken:same",
        "--variant",
        "spoken:cut",
        "--data",
        path,
        *TEXT,
        "-m",
        "wer",
        "--device",
        "cpu",
    ]
    done = CliRunner().invoke(app, command)
    sys.modules.pop("spoken", None)
    assert done.exit_code == 0, done.output
    assert "same outputs" not in done.output
    assert "by their metrics alone" in " ".join(done.output.split())


def test_queries_are_told_by_a_named_column_and_scores_are_not_rounded(tmp_path):
    path = write(tmp_path, QUERIES)
    report = invoke(
        path, "--inputs", "score", "--target", "relevance", "--column", "indexes=query", "-m", "map", "--slice", "query"
    )
    scores, relevant = (
        torch.tensor([row[name] for row in QUERIES], dtype=torch.float64) for name in QUERIES[0] if name != "query"
    )
    queries = torch.tensor([int(row["query"][1:]) for row in QUERIES])
    assert values(report)["map"] == RetrievalMAP()(scores, relevant.long(), indexes=queries).item()
    assert report.sections[0].slices[0].name == "query = q0"
    assert any("12 values of query" in note for note in report.notes)


def test_named_columns_in_a_file_of_options(tmp_path):
    data = write(tmp_path, QUERIES)
    (tmp_path / "run.toml").write_text(
        textwrap.dedent(f"""
        model = "identity"
        data = "{data.name}"
        inputs = "score"
        target = "relevance"
        json = true
        metrics = ["map", "ndcg"]
        [column]
        indexes = "query"
        """)
    )
    done = CliRunner().invoke(app, ["evaluate", "--config", str(tmp_path / "run.toml"), "--device", "cpu"])
    assert done.exit_code == 0, done.output
    assert set(values(Report.from_json(done.stdout))) == {"map", "ndcg"}


def changed(k, **more):
    return [{**row, **more} if i == k else row for i, row in enumerate(ROWS)]


@pytest.mark.parametrize(
    ("rows", "arguments", "parts"),
    [
        (changed(33, prediction=None), (*TEXT, "-m", "wer"), ("data.jsonl: prediction", "row 33")),
        (changed(33, references=["a", None]), SEVERAL, ("row 33",)),
        (changed(33, references=[]), SEVERAL, ("target[1]", "ids 32, 33")),
        (changed(33, prediction=5), (*TEXT, "-m", "wer"), ("data.jsonl", "row 33")),
        ([{**row, "prediction": 5} for row in ROWS], (*TEXT, "-m", "wer"), ("prediction", "int64", "strings")),
        ([{**row, "prediction": {"text": "a"}} for row in ROWS], (*TEXT, "-m", "wer"), ("prediction", "struct")),
        ([], (*TEXT, "-m", "wer"), ("data.jsonl",)),
        (ROWS, ("--inputs", "predicton", "--target", "reference", "-m", "wer"), ("'predicton'", "'prediction'")),
        (ROWS, ("--inputs", "prediction", "--target", "refrence", "-m", "wer"), ("'refrence'", "'reference'")),
        (ROWS, ("--target", "reference", "-m", "wer"), ("as inputs",)),
        (ROWS, ("--inputs", "prediction,who", "--target", "reference", "-m", "wer"), ("--inputs", "one column")),
        (ROWS, (*TEXT, "-m", "wer", "-m", "mse"), ("strings for wer", "tensors for mse")),
        (ROWS, (*TEXT, "-m", "wer", "--column", "indexes=id"), ("--column", "'indexes'")),
        (QUERIES, RANKED, ("column indexes", "query")),
        (QUERIES, (*RANKED, "--column", "index=query"), ("'index'", "indexes")),
        (QUERIES, (*RANKED, "--column", "indexes=q"), ("column indexes", "'q'")),
        (QUERIES, (*RANKED, "--column", "indexes"), ("--column", "without =")),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, capsys, rows, arguments, parts):
    path = write(tmp_path, rows)
    out = tmp_path / "out"
    command = ["assay", "evaluate", "identity", "--data", str(path), "--device", "cpu", "--batch-size", "32"]
    monkeypatch.setattr(sys, "argv", [*command, "--out", str(out), *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    shown = capsys.readouterr().err
    assert stopped.value.code == 2
    assert shown.startswith("assay: ")
    assert len(shown.splitlines()) == 1
    for part in parts:
        assert part in shown
    assert not out.exists() or not list(out.iterdir())


def test_a_blank_cell_of_a_table_is_missing_and_a_quoted_one_is_empty(tmp_path, monkeypatch, capsys):
    path = tmp_path / "rows.csv"
    path.write_text('prediction,reference\nNA,NA\n"",a dog\n')
    assert values(invoke(path, *TEXT, "-m", "wer")) == {"wer": 2 / 3}
    path.write_text("prediction,reference\nthe cat,the cat sat\n,a dog\n")
    monkeypatch.setattr(sys, "argv", ["assay", "evaluate", "identity", "--data", str(path), *TEXT, "-m", "wer"])
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert "prediction: got no string in row 1" in capsys.readouterr().err
