"""Data frames and queries as tables: pandas, Polars and DuckDB, where they are installed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assay import Accuracy
from assay.errors import ConfigError
from assay.scoring import score

RANDOM = np.random.default_rng(11)
ROWS = {
    "p": RANDOM.integers(0, 3, 300),
    "y": RANDOM.integers(0, 3, 300),
    "g": ["a", "b", None] * 100,
    "s": RANDOM.random((300, 3)).tolist(),
}
TABLE = pa.table(ROWS)
OPTIONS = {"target": "y", "slices": ["g"], "where": "g != 'b'", "confidence_level": None, "diagnostics": False}


def contents(source, preds="p", **options):
    section = score(source, "accuracy:num_classes=3", preds=preds, **OPTIONS, **options).sections[0]
    return section.values, section.slices


def pandas_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    yield frame
    yield frame.assign(g=frame.g.astype("category"))
    yield frame.convert_dtypes()
    yield frame.convert_dtypes(dtype_backend="pyarrow")


def polars_frames():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(ROWS)
    yield frame
    yield frame.with_columns(polars.col("g").cast(polars.Categorical))


def relations():
    duckdb = pytest.importorskip("duckdb")
    yield duckdb.from_arrow(TABLE)
    yield duckdb.from_arrow(TABLE).filter("p >= 0")


@pytest.mark.parametrize("frames", [pandas_frames, polars_frames, relations])
def test_frames_have_the_bits_of_the_arrow_table(frames):
    for frame in frames():
        assert contents(frame) == contents(TABLE)
        assert contents(frame, "s") == contents(TABLE, "s")


def test_a_query_has_the_bits_of_the_arrow_table(tmp_path):
    pytest.importorskip("duckdb")
    preds, labels = tmp_path / "preds.parquet", tmp_path / "labels.parquet"
    pq.write_table(TABLE.select(["p", "s"]).append_column("id", pa.array(range(300))), preds)
    pq.write_table(TABLE.select(["y", "g"]).append_column("id", pa.array(range(300))), labels)
    sql = f"select * from '{preds}' join '{labels}' using (id) order by id"
    assert contents(None, sql=sql) == contents(TABLE)


def test_files_of_polars_are_read(tmp_path):
    polars = pytest.importorskip("polars")
    polars.DataFrame(ROWS).write_parquet(tmp_path / "t.parquet")
    polars.DataFrame(ROWS).write_ipc(tmp_path / "t.arrow")
    assert contents(tmp_path / "t.parquet") == contents(tmp_path / "t.arrow") == contents(TABLE)


def test_columns_by_name_are_a_table():
    import torch

    expected = contents(TABLE, "s")
    assert contents({**ROWS, "s": np.array(ROWS["s"])}, "s") == expected
    assert (
        contents({**ROWS, "y": torch.tensor(ROWS["y"]), "s": torch.tensor(ROWS["s"], requires_grad=True)}, "s")
        == expected
    )
    with pytest.raises(
        ConfigError, match=r"table: got 'p' of 300 rows, 'y' of 299 rows, expected columns of one length"
    ):
        score({"p": ROWS["p"], "y": ROWS["y"][1:]}, "accuracy:num_classes=3", preds="p", target="y")


def test_the_number_of_classes_is_that_of_metrics_written_as_text():
    options = {"preds": "p", "target": "y", "confidence_level": None}
    assert (
        score(TABLE, "f1:average=macro", num_classes=3, **options)["f1"]
        == score(TABLE, "f1:average=macro,num_classes=3", **options)["f1"]
    )
    with pytest.raises(ConfigError, match="num_classes: got 3 with metrics that are objects"):
        score(TABLE, Accuracy(num_classes=3), num_classes=3, **options)
