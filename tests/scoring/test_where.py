"""Conditions on rows: row groups that the statistics of a file exclude are not read, and the same rows count."""

from __future__ import annotations

import numpy as np
import pytest

from assay import MeanSquaredError, score
from assay.data.tables.table_source import open_table
from assay.errors import StateError
from assay.scoring.where import parse_where

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

N = 1000
DAY = np.repeat(np.arange(10), 100)
TABLE = pa.table(
    {
        "p": np.arange(N) / 7,
        "y": np.arange(N) / 8,
        "day": DAY,
        "country": [["de", "fr"][day % 2] if day else None for day in DAY.tolist()],
        "share": np.where(np.arange(N) % 50 == 0, np.nan, 2.0),
    }
)


@pytest.fixture
def files(tmp_path):
    pq.write_table(TABLE, tmp_path / "known.parquet", row_group_size=100)
    pq.write_table(TABLE, tmp_path / "unknown.parquet", row_group_size=100, write_statistics=False)
    return tmp_path


CONDITIONS = {
    "day >= 8": 8,
    "day in (1, 20)": 9,
    "not day < 8": 8,
    "country == 'de' and day > 5": 8,
    "country is None": 9,
    "country is not None": 1,
    "country != 'de'": 5,
    "share != 2": 0,
    "not share == 2": 0,
    "day == 3 and share == 2": 0,
}


@pytest.mark.parametrize(("condition", "excluded"), CONDITIONS.items())
def test_row_groups_without_a_row_are_not_read(files, condition, excluded):
    where = parse_where(condition)
    fragments = open_table(files / "known.parquet").fragments
    assert sum(map(where.excludes, fragments)) == excluded
    assert not any(map(where.excludes, open_table(files / "unknown.parquet").fragments))
    assert not any(map(where.excludes, open_table(TABLE).fragments))
    for fragment in filter(where.excludes, fragments):
        assert not any(where.keep(batch).true_count for batch in fragment.scan(where.names))


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_same_rows_are_counted(files, condition):
    found = [
        score(files / name, MeanSquaredError(), preds="p", target="y", where=condition)
        for name in ("known.parquet", "unknown.parquet")
    ]
    in_memory = score(TABLE, MeanSquaredError(), preds="p", target="y", where=condition)
    values = [report.sections[0].values for report in (*found, in_memory)]
    assert values[0] == values[1] == values[2]
    assert found[0].notes == found[1].notes == in_memory.notes


def test_a_comparison_with_another_type_is_one_line(files):
    for name in ("known.parquet", "unknown.parquet"):
        with pytest.raises(StateError, match="where"):
            score(files / name, MeanSquaredError(), preds="p", target="y", where="country == 3")
