from __future__ import annotations

import json
import pickle

import pytest
import torch

from assay.cli.loaders.datasets import open_data
from assay.errors import AssayError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")

ROWS = [
    {"id": f"p{k}", "a": k / 4, "b": k % 3, "kind": "xyz"[k % 3], "place": "de" if k % 2 else "fr"} for k in range(10)
]
SAID = {"target": "kind", "features": ("b", "a"), "ids": "id", "slice": ("place",)}


def write(folder, ending, rows=ROWS, **options):
    path = folder / f"table{ending}"
    if ending == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, **options)
    elif ending in (".arrow", ".feather"):
        feather.write_feather(pa.Table.from_pylist(rows), path)
    elif ending in (".jsonl", ".ndjson"):
        path.write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
    else:
        mark = "\t" if ending == ".tsv" else ","
        lines = [list(rows[0]), *(row.values() for row in rows)]
        path.write_text("\n".join(mark.join(map(str, line)) for line in lines), "utf-8")
    return path


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".jsonl", ".ndjson", ".arrow", ".feather"])
def test_the_same_table_in_each_form(tmp_path, options, model, ending):
    data = open_data(options(write(tmp_path, ending), batch_size=4, **SAID), model, {})
    assert (data.inputs, data.target, data.classes) == ("features", "kind", ("x", "y", "z"))
    batches = list(data.data)
    assert [len(batch["features"]) for batch in batches] == [4, 4, 2]
    features = torch.cat([batch["features"] for batch in batches])
    assert torch.equal(features, torch.tensor([[row["b"], row["a"]] for row in ROWS], dtype=torch.float32))
    assert [each for batch in batches for each in batch["id"]] == [row["id"] for row in ROWS]
    assert [each for batch in batches for each in batch["place"]] == [row["place"] for row in ROWS]
    assert torch.cat([batch["kind"] for batch in batches]).tolist() == [k % 3 for k in range(10)]
    assert data.notes == ("2 feature columns: b, a.", "3 classes in alphabetical order: 0 = x, 1 = y, 2 = z.")
    assert data.data.dataset[3]["id"] == "p3"


def test_parquet_is_read_group_by_group_in_any_order(tmp_path, options, model):
    path = write(tmp_path, ".parquet", row_group_size=3)
    columns = open_data(options(path, **SAID), model, {}).data.dataset
    order = [9, 0, 5, 4, 9, 2]
    rows = columns.__getitems__(order)
    assert rows["features"][:, 1].tolist() == [k / 4 for k in order]
    sent = pickle.loads(pickle.dumps(columns))  # as workers are sent it
    assert torch.equal(sent.__getitems__(order)["features"], rows["features"])


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_column_may_turn_out_to_hold_floats_late(tmp_path, options, model, ending):
    rows = [{"a": k, "b": 1, "y": k % 3, "filler": "x" * 1000} for k in range(20_000)] + [
        {"a": 0.5, "b": 1, "y": 0, "filler": ""}
    ]
    data = open_data(options(write(tmp_path, ending, rows), target="y", features=("a", "b")), model, {})
    assert data.data.dataset[20_000]["features"].tolist() == [0.5, 1.0]


def test_folders_give_no_features(tmp_path, options, model):
    (tmp_path / "run=3").mkdir()
    data = open_data(options(write(tmp_path / "run=3", ".parquet"), **{**SAID, "features": ()}), model, {})
    assert data.notes[0] == "2 feature columns: a, b."


def test_workers_read_a_table(tmp_path, options, model):
    path = write(tmp_path, ".parquet", row_group_size=3)
    data = open_data(options(path, batch_size=4, num_workers=1, **SAID), model, {})
    assert torch.cat([batch["features"] for batch in data.data])[:, 1].tolist() == [k / 4 for k in range(10)]


def test_columns_go_to_the_model_by_name(tmp_path, options, model):
    data = open_data(options(write(tmp_path, ".csv"), target="kind", inputs=("a", "b")), model, {})
    assert data.inputs == ["a", "b"]
    batch = next(iter(data.data))
    assert (batch["a"].dtype, batch["b"].dtype) == (torch.float32, torch.int64)


def test_lists_are_features(tmp_path, options, model):
    rows = [{"f": [[k, 1], [2, 3]], "g": k / 2, "label": k % 2 == 0} for k in range(4)]
    for ending in (".jsonl", ".parquet"):
        data = open_data(options(write(tmp_path, ending, rows)), model, {})
        batch = next(iter(data.data))
        assert batch["features"].tolist() == [[k, 1, 2, 3, k / 2] for k in range(4)]
        assert batch["label"].tolist() == [1, 0, 1, 0]


def test_a_target_of_numbers_stays_as_it_is(tmp_path, options, model):
    rows = [{"f": 1.0, "y": 0.1 * k} for k in range(3)]
    data = open_data(options(write(tmp_path, ".parquet", rows)), model, {})
    assert next(iter(data.data))["y"].tolist() == [0.0, 0.1, 0.2]
    assert data.classes == ()


def bad(k=5, **changes):
    return [{**row, **changes} if i == k else row for i, row in enumerate(ROWS)]


@pytest.mark.parametrize(
    ("ending", "rows", "given", "message"),
    [
        (".csv", ROWS, {}, "got columns id, a, b, kind, place, expected one named labels"),
        (".csv", ROWS, {"target": "kinds"}, "target: got no column 'kinds', expected 'kind'"),
        (".csv", ROWS, {"target": "kind"}, "id: got values of type string, expected numbers. Leave it out"),
        (".csv", ROWS, {"target": "kind", "features": ("a", "c")}, "got no column 'c', expected one of id, a, b"),
        (".csv", bad(a=""), SAID, "a: got no value in row 5, expected a number each"),
        (".csv", bad(a="NaN"), SAID, "a: got no value in row 5"),
        (".csv", bad(kind=""), SAID, "kind: got no label in row 5"),
        (".csv", bad(id="p3"), SAID, "id: got 'p3' in rows 3, 5, expected an id of its own"),
        (".csv", bad(a="much"), SAID, "a: got values of type string, expected numbers"),
        (".csv", bad(place="de,fr"), SAID, "got a file that cannot be read .*Expected 5 columns, got 6"),
        (".csv", ROWS, {**SAID, "classes": ("x", "y")}, "kind: got 'z', expected one of the classes x, y"),
        (".csv", ROWS, {**SAID, "classes": ("x", "y", "y")}, "classes: got x, y, y, expected each name once"),
        (
            ".csv",
            ROWS,
            {"target": "kind", "text": ("place",)},
            "text: got a model without a tokenizer, expected a model with a tokenizer",
        ),
        (".parquet", bad(a=None), SAID, "a: got no value in row 5"),
        (".parquet", bad(kind=None), SAID, "kind: got no label in row 5"),
        (".parquet", bad(id=None), SAID, "id: got None in row 5"),
        (".jsonl", [{"f": [1, 2], "y": 1}, {"f": [1], "y": 0}], {}, "f: got 2 values in row 0, 1 in row 1"),
        (".jsonl", [{"f": 1, "y": 1}, {"f": None, "y": 0}], {}, "f: got no value in row 1"),
        (".parquet", [{"f": 1.0, "y": float("nan")}], {}, "y: got NaN or infinity in row 0"),
    ],
)
def test_tables_that_cannot_be_are_told(tmp_path, options, model, ending, rows, given, message):
    with pytest.raises(AssayError, match=message):
        list(open_data(options(write(tmp_path, ending, rows), **given), model, {}).data)


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".jsonl"])
def test_empty_and_damaged_files_are_told(tmp_path, options, model, ending):
    path = tmp_path / f"table{ending}"
    for content in (b"", b"\x00\xff{"):
        path.write_bytes(content)
        with pytest.raises(AssayError, match="table"):
            open_data(options(path, target="kind"), model, {})


def test_names_of_columns_that_are_not_utf_8_are_told(tmp_path, options, model):
    path = tmp_path / "table.csv"
    path.write_bytes("größe,kind\n1,x\n".encode("latin-1"))
    with pytest.raises(AssayError, match=r"table.csv: got .* cannot be read .*'utf-8' codec can't decode"):
        open_data(options(path, target="kind"), model, {})


def test_a_table_without_rows_is_told(tmp_path, options, model):
    (tmp_path / "table.csv").write_text("a,kind\n", "utf-8")
    with pytest.raises(AssayError, match="got no rows, expected one or more"):
        open_data(options(tmp_path / "table.csv", target="kind"), model, {})


def test_lists_of_several_lengths_are_told_across_groups(tmp_path, options, model):
    rows = [{"f": [1, 2], "y": 0}] * 2 + [{"f": [1, 2, 3], "y": 0}] * 2
    path = write(tmp_path, ".parquet", rows, row_group_size=2)
    with pytest.raises(AssayError, match="got 3 features from row 2 on, expected 2, as in the rows before"):
        list(open_data(options(path), model, {}).data)


def test_texts_go_through_the_tokenizer_of_the_folder(tmp_path, options):
    transformers = pytest.importorskip("transformers")
    from assay.cli.loaders.models import open_model

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "film", "was", "good", "bad"]
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    names = {0: "down", 1: "up"}
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=6, id2label=names, **sizes)
    transformers.BertForSequenceClassification(config).save_pretrained(tmp_path / "bert")
    (tmp_path / "vocab.txt").write_text("\n".join(words), "utf-8")
    transformers.BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path / "bert")
    rows = [
        {"text": "good", "label": "up"},
        {"text": "the film was bad", "label": "down"},
        {"text": "the " * 9, "label": "up"},
    ]
    model = open_model(str(tmp_path / "bert"))
    data = open_data(options(write(tmp_path, ".jsonl", rows), batch_size=2), model, {})
    first, second = data.data
    assert first["input_ids"].tolist() == [[2, 8, 3, 0, 0, 0], [2, 5, 6, 7, 9, 3]]
    assert first["label"].tolist() == [1, 0]  # the folder's order, not the alphabet's
    assert second["input_ids"].shape == (1, 6)
    assert data.notes[0].endswith("cut to 6 tokens where they are longer.")
    assert "input_ids" in data.inputs
    with pytest.raises(AssayError, match="label: got 'sideways', expected one of the classes down, up"):
        open_data(options(write(tmp_path, ".jsonl", [{"text": "good", "label": "sideways"}])), model, {})
