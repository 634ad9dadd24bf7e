"""Folders as other programs write them: files without rows, of other types, half written, compressed."""

from __future__ import annotations

import bz2
import json

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from assay import Accuracy, score

LABELS = {"preds": "p", "target": "y", "confidence_level": None}
TWO = Accuracy(num_classes=2)


def write(folder, tables, suffix):
    folder.mkdir(exist_ok=True)
    for number, table in enumerate(tables):
        path = folder / f"{number}.{suffix}"
        if suffix == "parquet":
            pq.write_table(table, path)
        elif suffix == "csv":
            pa.csv.write_csv(table, path)
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return folder


def value(report):
    return report.sections[0].values[0].value


def slices(report):
    return [(each.name, each.count) for each in report.sections[0].slices]


@pytest.mark.parametrize("hidden", ["_temporary/0", ".ipynb_checkpoints", "a/_temporary/attempt"])
def test_files_in_hidden_folders_are_no_data(tmp_path, hidden):
    table = pa.table({"p": [0, 1], "y": [0, 0]})
    write(tmp_path / "a", [table], "parquet")
    (tmp_path / hidden).mkdir(parents=True)
    write(tmp_path / hidden, [table], "parquet")
    for source in (tmp_path, tmp_path / "**" / "*.parquet"):
        assert score(source, TWO, **LABELS).notes[0].startswith("Every row once: 2 expected")
    assert score(tmp_path / hidden, TWO, **LABELS).notes[0].startswith("Every row once: 2 expected")
    partition = tmp_path / "_fold=1"
    assert "4 counted" in score(write(partition, [table], "parquet").parent, TWO, **LABELS).notes[0]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_text_in_place_of_numbers_is_another_schema_also_where_types_are_guessed(tmp_path, suffix):
    tables = [pa.table({"p": [0, 1], "y": y}) for y in ([0, 1], ["cat", "dog"], [0, 0])]
    report = score(write(tmp_path / "t", tables, suffix), TWO, on_bad="skip", **LABELS)
    assert value(report) == 0.75
    assert "2 of 6 rows were left out: 2 with another schema: y is string instead of int64" in report.notes[1]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_numbers_in_place_of_text_are_text_in_csv_alone(tmp_path, suffix):
    tables = [pa.table({"p": [0, 1], "y": [0, 0], "s": s}) for s in (["a", "b"], [1, 2])]
    report = score(write(tmp_path / "t", tables, suffix), TWO, on_bad="skip", slices=["s"], **LABELS)
    expected = [("s = 1", 1), ("s = 2", 1)] if suffix == "csv" else []
    assert slices(report) == [*expected, ("s = a", 1), ("s = b", 1)]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_scores_of_the_first_file_may_be_integers(tmp_path, suffix):
    tables = [pa.table({"a": a, "b": b, "y": [0, 1]}) for a, b in (([1, 0], [0, 1]), ([0.75, 0.5], [0.25, 0.5]))]
    report = score(write(tmp_path / "t", tables, suffix), "brier", **{**LABELS, "preds": "a,b"})
    whole = score(pa.concat_tables(tables, promote_options="permissive"), "brier", **{**LABELS, "preds": "a,b"})
    assert value(report) == value(whole)


@pytest.mark.parametrize("empty", [0, 1])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_an_empty_file_has_no_rows(tmp_path, suffix, empty):
    folder = write(tmp_path / "t", [pa.table({"p": [0, 1], "y": [0, 0]})] * 3, suffix)
    (folder / f"{empty}.{suffix}").write_text("")
    assert "4 counted" in score(folder, TWO, **LABELS).notes[0]


def test_blank_cells_of_csv_are_missing_as_in_other_formats(tmp_path):
    table = pa.table({"p": [0, 1, 1, 0], "y": [0, 0, 1, 0], "s": ["NA", None, None, "de"]})
    for suffix in ("csv", "parquet", "jsonl"):
        folder = write(tmp_path / suffix, [table], suffix)
        assert slices(score(folder, TWO, slices=["s"], **LABELS)) == [("s = NA", 1), ("s = de", 1), ("s = missing", 2)]
        assert "2 counted" in score(folder, TWO, where="s is None", **LABELS).notes[0]


def test_types_of_parquet_are_as_wide_as_those_of_any_file(tmp_path):
    kinds = [pa.null(), pa.int32(), pa.int64(), pa.null()]
    numbers = [[None, None], [1, 2], [2**40, 1], [None, None]]
    tables = [
        pa.table({"p": pa.array([0.5, 0.25], score), "y": [0, 0], "s": pa.array(s, kind)})
        for s, kind, score in zip(numbers, kinds, [pa.float32(), pa.float64()] * 2, strict=True)
    ]
    report = score(write(tmp_path / "t", tables, "parquet"), "mse", slices=["s"], **LABELS)
    assert value(report) == (0.25 + 0.0625) / 2
    assert slices(report) == [("s = 1", 2), ("s = 2", 1), (f"s = {2**40}", 1), ("s = missing", 4)]


def test_compressed_text_is_read(tmp_path):
    (tmp_path / "a.csv.bz2").write_bytes(bz2.compress(b"p,y\n0,0\n1,0\n"))
    with pa.output_stream(tmp_path / "a.jsonl.lz4", compression="lz4") as file:
        file.write(b'{"p": 0, "y": 0}\n{"p": 1, "y": 0}\n')
    for name in ("a.csv.bz2", "a.jsonl.lz4"):
        assert value(score(tmp_path / name, TWO, **LABELS)) == 0.5
