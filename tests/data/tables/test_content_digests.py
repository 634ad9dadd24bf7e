"""Files that are written again between parts: the digests of their contents refuse to mix the old and the new."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from assay.errors import StateError
from assay.scoring import Partial, count, counting, fragments_of, merge, score

OPTIONS = {"preds": "p", "target": "y", "confidence_level": None, "diagnostics": False}
WRITERS = {
    "parquet": lambda table, path: pq.write_table(table, path, row_group_size=100),
    "feather": lambda table, path: ds.write_dataset(
        table, path.parent, format="feather", basename_template=f"{path.stem}-{{i}}.feather",
        existing_data_behavior="overwrite_or_ignore",
    ),
    "csv": lambda table, path: pa.csv.write_csv(table, path),
    "jsonl": lambda table, path: path.write_text("\n".join(map(json.dumps, table.to_pylist()))),
}  # fmt: skip


def rows(labels, n=300):
    random = np.random.default_rng(0)
    preds = random.integers(0, 2, n)
    return pa.table({"p": preds, "y": np.random.default_rng(labels).integers(0, 2, n), "s": random.random(n)})


@pytest.mark.parametrize("kind", WRITERS)
def test_parts_of_a_file_that_was_written_again_are_refused_by_its_name(kind, tmp_path):
    """Also where no fragment of it is in both, sizes are equal, and the part comes from its file."""
    folder = tmp_path / "data"
    folder.mkdir()
    write = WRITERS[kind]
    for name in ("a", "b"):
        write(rows(1), folder / f"{name}.{kind}")
    names = fragments_of(folder)
    first = count(folder, "accuracy", names[:1], **OPTIONS)
    write(rows(2), folder / f"b.{kind}")
    second = count(folder, "accuracy", names[1:], **OPTIONS)
    files = [part.to_file(tmp_path / f"{k}.safetensors") for k, part in enumerate((first, second))]
    for parts in ((first, second), files, (first, files[1]), (files[0], second)):
        with pytest.raises(StateError, match=rf"b(-0)?\.{kind}' with other content"):
            merge(parts)
    again = count(folder, "accuracy", names[:1], **OPTIONS)
    assert (
        merge([again, files[1]]).report().sections[0].values == score(folder, "accuracy", **OPTIONS).sections[0].values
    )


def test_copies_on_other_machines_are_one_table(tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    pq.write_table(rows(1), tmp_path / "one/t.parquet", row_group_size=100)
    shutil.copyfile(tmp_path / "one/t.parquet", tmp_path / "other/t.parquet")
    os.utime(tmp_path / "other/t.parquet", (1, 1))
    names = fragments_of(tmp_path / "one/t.parquet")
    parts = [count(tmp_path / f"{name}/t.parquet", "accuracy", names[k::2], **OPTIONS)
             for k, name in enumerate(("one", "other"))]  # fmt: skip
    assert merge(parts).report().sections[0].values[0].count == 300


def test_labels_of_a_large_file_with_the_same_size_and_footer_are_seen(tmp_path):
    """Bits that do not compress leave the footer of Parquet as it was: bytes of each column count."""
    path, seen = tmp_path / "t.parquet", {}
    for labels in range(40):
        pq.write_table(rows(labels, 200_000), path, row_group_size=200_000, use_dictionary=["y"], compression="none")
        data = path.read_bytes()
        footer = data[-8 - int.from_bytes(data[-8:-4], "little") :]
        if footer in seen:
            break
        seen[footer] = count(path, "accuracy", [], **OPTIONS)
    assert len(data) > 1 << 17
    with pytest.raises(StateError, match="other content"):
        merge([seen[footer], count(path, "accuracy", **OPTIONS)])


def test_a_file_that_is_written_while_it_is_counted_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    pa.csv.write_csv(rows(1), path)
    whole = counting.count_fragment

    def then_changed(*arguments):
        whole(*arguments)
        pa.csv.write_csv(rows(2), path)

    monkeypatch.setattr(counting, "count_fragment", then_changed)
    with pytest.raises(StateError, match=r"t\.csv: got a file that changed while it was read"):
        score(path, "accuracy", **OPTIONS)


def test_worst_queries_are_not_read_from_a_file_that_was_written_again(tmp_path):
    path = tmp_path / "t.parquet"
    table = pa.table({"p": [0.9, 0.1, 0.2, 0.8], "y": [0, 1, 1, 0], "indexes": ["a", "a", "b", "b"], "text": [*"wxyz"]})
    pq.write_table(table, path)
    options = {"preds": "p", "target": "y", "show": ["text"], "confidence_level": None}
    part = count(path, "retrieval_mrr", **options).to_file(tmp_path / "part.safetensors")
    assert merge([part]).report().sections[0].worst_queries.document_columns
    pq.write_table(table.set_column(0, "p", pa.array([0.1, 0.9, 0.2, 0.8])), path)
    report = merge([part]).report()
    assert any("t.parquet has changed since it was counted" in note for note in report.notes)


def test_a_part_of_an_older_version_is_refused_by_its_version(tmp_path, monkeypatch):
    pq.write_table(rows(1), tmp_path / "t.parquet")
    monkeypatch.setattr("assay.scoring.part_files.SCHEMA", 4)
    part = count(tmp_path / "t.parquet", "accuracy", **OPTIONS).to_file(tmp_path / "part.safetensors")
    monkeypatch.undo()
    with pytest.raises(StateError, match=r"schema 4, expected schema 5. Count those fragments again"):
        Partial.from_file(part)
