"""Slices by ranges of numbers."""

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402 - pyarrow is optional

from assay import Accuracy  # noqa: E402
from assay.cli.loaders.batch_parts import parse_slices  # noqa: E402
from assay.errors import ConfigError  # noqa: E402
from assay.evaluation.observe.column_bins import ColumnBins  # noqa: E402
from assay.scoring import (  # noqa: E402
    Partial,
    count,
    merge,
    score,
    slice_ranges,
)

RNG = np.random.default_rng(5)
N = 400
AGES = RNG.integers(0, 90, N)
TABLE = pa.table(
    {
        "p": RNG.integers(0, 2, N),
        "y": RNG.integers(0, 2, N),
        "age": pa.array(AGES, mask=np.arange(N) % 50 == 7),
        "weight": RNG.lognormal(size=N),
        "sex": np.array(["f", "m"])[RNG.integers(0, 2, N)],
    }
)
OPTIONS = {"preds": "p", "target": "y", "confidence_level": None, "diagnostics": False}
METRIC = Accuracy(num_classes=2)


def sliced(slices, table=TABLE, **options):
    return {
        each.name: each.values for each in score(table, METRIC, **OPTIONS, slices=slices, **options).sections[0].slices
    }


@pytest.mark.parametrize(("column", "bins"), [("age", 5), ("weight", 7), ("age", 2)])
def test_bins_are_those_of_evaluate(column, bins):
    values = TABLE[column].to_numpy()
    of = ColumnBins.of(column, values, bins)
    labels = np.array(of({column: values}))
    found = sliced([f"{column}:bins={bins}"])
    assert [name.removeprefix(f"{column} = ") for name in found if "missing" not in name] == list(of.labels)
    for label in {*labels}:
        rows = labels == label
        expected = (TABLE["p"].to_numpy() == TABLE["y"].to_numpy())[rows].mean()
        (value,) = found[f"{column} = {label}"]
        assert (value.count, value.value) == (rows.sum(), pytest.approx(expected))


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@pytest.mark.parametrize("compacted", [10, 1 << 22])
def test_edges_are_quantiles_that_are_values(dtype, compacted, monkeypatch):
    monkeypatch.setattr(slice_ranges, "_COMPACTED", compacted)
    values = (RNG.normal(size=1000) * 100).astype(dtype)
    table = pa.Table.from_batches(
        pa.table({"p": values * 0 > 0, "y": values * 0 > 0, "x": values}).to_batches(max_chunksize=90)
    )
    (labels,) = {ColumnBins.of("x", values, 6).labels}
    expected = np.unique(np.quantile(values, np.linspace(0, 1, 7), method="higher"))
    assert ColumnBins.of("x", values, 6).edges == tuple(expected.tolist())
    assert list(sliced(["x:bins=6"], table)) == [f"x = {each}" for each in labels]


def test_edges_are_cut_in_all_slices_and_listed_in_their_order():
    found = sliced(["age:edges=8,20,65", ("sex", "age")])
    names = [name for name in found if not name.startswith("sex")]
    ranges = ["[-inf, 8)", "[8, 20)", "[20, 65)", "[65, inf]"]
    assert names == [*(f"age = {each}" for each in ranges), "age = missing"]
    assert "sex = f, age = [8, 20)" in found
    of_sexes = [found[f"sex = {sex}, age = [8, 20)"][0].count for sex in "fm"]
    assert sum(of_sexes) == found["age = [8, 20)"][0].count


def test_bins_are_of_the_rows_that_match_and_of_all_files(tmp_path):
    for k in range(4):
        pq.write_table(TABLE.slice(100 * k, 100), tmp_path / f"{k}.parquet", row_group_size=30)
    assert sliced(["age:bins=4"], tmp_path) == sliced(["age:bins=4"])
    men = TABLE.filter(pa.array(TABLE["sex"].to_numpy(zero_copy_only=False) == "m"))
    assert sliced(["age:bins=4"], where="sex == 'm'") == sliced(["age:bins=4"], men)
    assert sliced(["age:bins=4"], tmp_path, workers=2) == sliced(["age:bins=4"])


def test_parts_take_edges_and_no_bins(tmp_path):
    options = {**OPTIONS, "slices": ["age:edges=20,65"]}
    parts = [count(TABLE.slice(k, 100), METRIC, f"from {k}", **options) for k in range(0, N, 100)]
    whole = merge([Partial.from_bytes(each.to_bytes()) for each in parts]).report()
    assert {each.name: each.values for each in whole.sections[0].slices} == sliced(["age:edges=20,65"])
    with pytest.raises(ConfigError, match=r"age:bins=5 of rows that are counted apart.*age:edges=18,40,65"):
        count(TABLE, METRIC, **{**options, "slices": ["age:bins=5"]})
    with pytest.raises(ConfigError, match="age:edges=18,40,65"):
        sliced(["age:bins=5"], TABLE.to_reader())


@pytest.mark.parametrize(
    ("slices", "message"),
    [
        (["age:bins=1"], "an integer of 2 or more"),
        (["age:bins=x"], "an integer of 2 or more"),
        (["age:edges=5,3"], "rising numbers"),
        (["age:edges="], "rising numbers"),
        (["sex:bins=3"], "slices: sex: got values of type"),
        (["agee:bins=3"], "'age'"),
        (["age:bins=3", ("sex", "age:bins=4")], "the same ranges"),
    ],
)
def test_ranges_that_cannot_be(slices, message):
    with pytest.raises(ConfigError, match=message):
        sliced(slices)


def test_ranges_as_they_are_written_on_the_command_line():
    written = parse_slices(("sex,age:edges=18,65,weight:bins=3", "sex*age:edges=18,65"))
    assert written == {
        "sex": "sex",
        "age": "age:edges=18,65",
        "weight": "weight:bins=3",
        "sex x age": ("sex", "age:edges=18,65"),
    }
    assert "sex = m, age = [18, 65)" in sliced(written)
