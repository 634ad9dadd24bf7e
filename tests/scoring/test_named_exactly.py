"""Columns of any name, and values of slices that have a meaning of their own."""

from __future__ import annotations

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

from assay import Accuracy, evaluate
from assay.cli import app
from assay.report import Report
from assay.scoring import score
from thinning import every_third

OPTIONS = {"confidence_level": None, "diagnostics": False, "min_slice_size": 1}


def sizes(report):
    return {each.name: each.count for each in report.sections[0].slices}


def table(**columns):
    count = len(next(iter(columns.values())))
    return pa.table({"p": [0] * count, "y": [0, 1] * (count // 2), **columns})


def test_the_string_missing_and_no_value_are_two_slices():
    values = ["missing", "missing", None, "'missing'", "de", "de"]
    expected = {"c = 'missing'": 2, "c = missing": 1, "c = \"'missing'\"": 1, "c = de": 2}
    assert (
        sizes(score(table(c=values), "accuracy:num_classes=2", preds="p", target="y", slices=["c"], **OPTIONS))
        == expected
    )
    lists = pa.array([["missing"], ["missing"], [], ["'missing'"], ["de"], ["de"]])
    assert (
        sizes(score(table(c=lists), "accuracy:num_classes=2", preds="p", target="y", slices=["c"], **OPTIONS))
        == expected
    )
    data = [{"p": torch.zeros(6, dtype=torch.int64), "y": torch.arange(6) % 2, "c": values}]
    options = {"inputs": "p", "target": "y", "slices": {"c": "c"}, "device": "cpu"}
    report = evaluate(lambda p: p, data, Accuracy(num_classes=2), **options, **OPTIONS)
    assert sizes(report) == expected


def test_infinite_numbers_are_not_missing_in_bins():
    numbers = [1.0, 2.0, 3.0, 4.0, math.inf, -math.inf, None, math.inf]
    options = {"preds": "p", "target": "y", **OPTIONS}
    found = sizes(score(table(a=numbers), "accuracy:num_classes=2", slices=["a:bins=2"], **options))
    assert found == {"a = [1, 3)": 2, "a = [3, 4]": 2, "a = inf": 2, "a = -inf": 1, "a = missing": 1}
    found = sizes(score(table(a=numbers), "accuracy:num_classes=2", slices=["a:edges=3"], **options))
    assert found == {"a = [-inf, 3)": 3, "a = [3, inf]": 4, "a = missing": 1}


@every_third
@pytest.mark.parametrize("name", ["a,b", "a\n", " a ", 'say "no", or', "a:b", "a*b"])
def test_columns_of_any_name_are_measured(name, tmp_path):
    columns = table(c=[1.0, 2.0, 3.0, 4.0]).rename_columns(["q", name, f"{name}2"])
    pq.write_table(columns, tmp_path / "t.parquet")
    for target in ([name], name if "," not in name else f'"{name.replace(chr(34), chr(34) * 2)}"'):
        slices = [name, f"{name}2:bins=2", (name, f"{name}2:bins=2")]
        report = score(columns, "accuracy:num_classes=2", preds="q", target=target, slices=slices, **OPTIONS)
        assert report.sections[0].values[0].value == 0.5
    quoted, cut = (f'"{each.replace(chr(34), chr(34) * 2)}"' for each in (name, f"{name}2"))
    written = ["score", str(tmp_path / "t.parquet"), "--preds", "q", "--target", quoted, "-m", "accuracy:num_classes=2"]
    written += [
        "--slice",
        f"{quoted},{cut}:bins=2,{quoted}*{cut}:bins=2",
        "--min-slice-size",
        "1",
        "--out",
        str(tmp_path),
    ]
    done = CliRunner().invoke(app, written)
    assert done.exit_code == 0, done.output
    assert sizes(Report.load(tmp_path)) == sizes(report)
