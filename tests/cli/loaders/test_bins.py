"""Columns of numbers as slices, patterns of features, and the columns that an option needs."""

from __future__ import annotations

import math

import pytest

from assay.cli.loaders.batch_parts import parse_slices, slice_columns
from assay.cli.options.measurement import EvaluateCommand
from assay.data.column_roles import features
from assay.errors import ConfigError
from assay.evaluation.observe.column_bins import ColumnBins


def test_every_sample_is_in_one_bin_and_bins_are_about_as_large():
    values = [float(k % 80) for k in range(1000)]
    bins = ColumnBins.of("age", values, 5)
    labels = bins({"age": values})
    counts = [labels.count(label) for label in bins.labels]
    assert sum(counts) == 1000
    assert len(counts) == 5
    assert max(counts) < 1.2 * min(counts)


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([1, 1, 1], ("1",)),
        ([1.00001, 1.00002, 1.00003, 1.00004], ("[1.00001, 1.00003)", "[1.00003, 1.00004]")),
        ([1.0, 2.0, math.nan], ("[1, 2]",)),
    ],
)
def test_labels_tell_the_edges_apart(values, labels):
    assert ColumnBins.of("x", values, 2).labels == labels


def test_a_value_that_is_missing_has_a_slice_of_its_own():
    assert ColumnBins.of("x", [1.0, 2.0], 2)({"x": [1.0, math.nan, 2.0]})[1] == "missing"


@pytest.mark.parametrize(
    ("values", "count", "message"),
    [
        (["a", "b"], 2, "--slice x:bins=2: got a column of text"),
        ([1.0, 2.0], 1, "--slice x:bins=1: got 1 bins, expected 2 or more"),
        ([math.nan], 2, "got no finite number"),
        ([[1.0], [2.0]], 2, "shape"),
    ],
)
def test_columns_that_have_no_bins(values, count, message):
    with pytest.raises(ConfigError, match=message):
        ColumnBins.of("x", values, count)


def test_edges_that_are_named_need_no_data():
    bins = parse_slices(("years=age:edges=18,65",), data=[1, 2])["years"]
    assert bins({"age": [17.0, 18.0, 65.0, math.nan]}) == ["[-inf, 18)", "[18, 65)", "[65, inf]", "missing"]


def test_bins_need_a_column_of_the_data():
    with pytest.raises(ConfigError, match="--slice: got bins of 'age'"):
        parse_slices(("age:bins=5",), data=[1, 2])


@pytest.mark.parametrize(
    ("written", "columns"),
    [
        ("sex", ("sex",)),
        ("sex,age", ("sex", "age")),
        ("both=sex*age", ("sex", "age")),
        ("years=age:bins=5", ("age",)),
        ("age:edges=-1,2.5,1e3,sex", ("age", "sex")),
        ("sex*age:bins=5", ("sex", "age")),
        ("decade=module:function", ()),
    ],
)
def test_the_columns_of_a_slice(written, columns):
    assert slice_columns(written) == columns


def test_a_pattern_leaves_out_target_and_ids():
    names = ["p_id", "p1", "p0", "p_label", "age"]
    assert features(names, EvaluateCommand(features=("p*",), target="p_label", ids="p_id")) == ("p1", "p0")
    assert features(names, EvaluateCommand(features=("age", "p[01]"), target="p_label")) == ("age", "p1", "p0")
    with pytest.raises(ConfigError, match="features: got the pattern 'q"):
        features(names, EvaluateCommand(features=("q*",)))


@pytest.mark.parametrize("count", ["x", "", "-1", "2.5"])
def test_a_number_of_bins_that_is_none_is_named(count):
    written = f"age:bins={count}"
    for read in (slice_columns, lambda text: parse_slices((text,), data=[1, 2])):
        with pytest.raises(ConfigError, match=f"--slice {written}: got .*{count!r}"):
            read(written)
