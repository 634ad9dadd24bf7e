"""Tables of the metrics by a column of many values."""

import json
import math
import sys
from contextlib import suppress

import numpy as np
import pytest
import torch

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402 - pyarrow is optional

from assay import Report, evaluate  # noqa: E402
from assay.cli import main  # noqa: E402
from assay.errors import ConfigError, InvalidValuesWarning  # noqa: E402
from assay.evaluation.observe import grouped_terms  # noqa: E402
from assay.scoring import Partial, count, merge, score  # noqa: E402
from assay.stats.heterogeneity import heterogeneity  # noqa: E402

RANDOM = np.random.default_rng(2)
N, USERS = 3000, 400
USER = RANDOM.integers(0, USERS, N)
USER[RANDOM.integers(0, N, 60)] = 7  # one with many rows
Y = RANDOM.integers(0, 2, N)
P = np.clip(0.5 * Y * (USER > 40) + RANDOM.random(N) * 0.6, 0, 1).astype(np.float32)
TABLE = pa.table(
    {
        "p": P,
        "y": Y,
        "user": USER,
        "name": pa.array([f"user {k}" for k in USER], mask=USER == 11),
        "dictionary": pa.array([f"user {k}" for k in USER]).dictionary_encode(),
        "size": USER.astype(np.float64) / 2,
        "w": RANDOM.integers(1, 4, N),
    }
)
PLAIN = {"preds": "p", "target": "y", "progress": False}
METRICS = "accuracy,precision,mae,mse,rmse=mse:squared=false"


def by(metrics=METRICS, column="user", table=TABLE, **options):
    return score(table, metrics, **{**PLAIN, "by": [column], **options}).sections[0].by[0]


@pytest.fixture(scope="module")
def table():
    return by()


def test_every_group_has_the_value_of_its_rows_alone(table):
    assert table.groups.values.tolist() == sorted({*map(str, USER)}, key=int)
    for k in range(0, len(table), 29):
        rows = int(table.groups.values[k]) == USER
        assert table.counts.values[k] == rows.sum()
        own = score(TABLE.filter(pa.array(rows)), METRICS, **PLAIN, confidence_level=None).sections[0].values
        for value in own:
            found = table.metric(value.name).values[k]
            if value.name == "precision" and not (P[rows] >= 0.5).any():
                assert math.isnan(found)
            elif value.name in ("accuracy", "precision"):
                assert found == value.value
            else:
                assert found == pytest.approx(value.value, rel=1e-6)


@pytest.mark.parametrize("column", ["name", "dictionary", "size"])
def test_columns_of_any_type_give_the_same_groups(table, column):
    found = by(column=column)
    values = {str(each) for each in TABLE[column].to_pylist() if each is not None} | (
        {"missing"} if column == "name" else set()
    )
    assert {*found.groups.values} == values
    assert sorted(found.counts.values) == sorted(table.counts.values)
    for name in ("accuracy", "mae"):
        assert sorted(found.metric(name).values.tolist()) == sorted(table.metric(name).values.tolist())


def test_parts_in_any_order_give_the_same_bits(table):
    options = {**PLAIN, "by": ["user"]}
    starts = [0, 700, 1200, 2900]
    parts = [
        count(TABLE.slice(start, stop - start), METRICS, f"rows {start}", **options)
        for start, stop in zip(starts, [*starts[1:], N], strict=True)
    ]
    written = [Partial.from_bytes(each.to_bytes()) for each in reversed(parts)]
    merged = merge(written, manifest=[f"rows {start}" for start in starts]).report().sections[0].by[0]
    assert merged == table
    assert by(table=TABLE.take(RANDOM.permutation(N))) == table


def test_a_report_keeps_it(table, tmp_path):
    report = score(TABLE, METRICS, **PLAIN, by="user")
    report.save(tmp_path / "report.json")
    assert Report.load(tmp_path / "report.json") == report
    assert report.sections[0].by == (table,)
    report.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "worse beyond chance" in page
    assert "by" not in json.loads(score(TABLE, "accuracy", **PLAIN).to_json())["sections"][0]


def test_the_worst_are_those_that_chance_explains_least(table):
    accuracy = table.metric("accuracy")
    worst = table.worst("accuracy", 10)
    assert "7" in worst  # of many rows
    assert np.mean([int(each) <= 40 for each in worst]) > 0.8
    assert accuracy.is_worse[table.groups.values.tolist().index("7")]
    assert not accuracy.is_worse[accuracy.values > accuracy.value].any()
    assert accuracy.spread.p < 1e-6
    sizes, means = accuracy.sizes.values, accuracy.means.values
    share = float(sizes @ means) / N
    moved = np.repeat([1 - share, -share], np.rint([share * N, N - share * N]).astype(int))
    expected = heterogeneity(sizes, means, (moved**2).sum(), (moved**4).sum())
    assert accuracy.spread.groups == len(table)
    assert accuracy.spread.p == pytest.approx(expected.p, rel=1e-6, abs=0)
    lower, upper = accuracy.ends
    assert ((lower <= accuracy.values) & (accuracy.values <= upper)).all()
    error = table.metric("mae")
    assert math.isnan(error.ends[0][error.sizes.values < 12].max(initial=math.nan))
    assert (error.values[error.is_worse] > error.value).all()


def test_equal_groups_do_not_differ():
    found = by("accuracy,mae", table=TABLE.set_column(2, "user", pa.array(np.arange(N) % 300)))
    for metric in found.metrics:
        assert metric.spread.p > 0.001
        assert not metric.is_worse.any()


def test_the_root_is_that_of_the_mean(table):
    assert table.metric("rmse").values == pytest.approx(np.sqrt(table.metric("mse").values))
    known = table.metric("mse").sizes.values >= 12
    assert table.metric("rmse").ends[1][known] == pytest.approx(np.sqrt(table.metric("mse").ends[1][known]))
    assert table.metric("rmse").tails[known] == pytest.approx(table.metric("mse").tails[known])


def test_metrics_without_sums_are_named():
    report = score(TABLE, "accuracy,auroc", **PLAIN, by=["user"])
    assert report.sections[0].by[0].left_out == ("auroc",)
    assert any("auroc" in note and "user" in note for note in report.notes)
    with pytest.raises(ConfigError, match=r"by: user.*auroc.*mean over samples"):
        score(TABLE, "auroc", **PLAIN, by=["user"])


def test_weighted_values_and_clusters_have_no_intervals():
    weighted = by("accuracy", weights="w").metric("accuracy")
    assert weighted.ends is None
    rows, weights = USER == 7, TABLE["w"].to_numpy()
    right = (P >= 0.5) == Y
    place = by("accuracy", weights="w").groups.values.tolist().index("7")
    assert weighted.values[place] == pytest.approx((right * weights)[rows].sum() / weights[rows].sum())
    clustered = by("accuracy", cluster="user").metric("accuracy")
    assert clustered.ends is None
    assert clustered.spread is None


def test_evaluate_gives_the_same_table(table):
    batches = [
        {"p": torch.from_numpy(P[k : k + 500]), "y": torch.from_numpy(Y[k : k + 500]), "user": USER[k : k + 500]}
        for k in range(0, N, 500)
    ]
    report = evaluate(lambda p: p, batches, METRICS, inputs="p", target="y", by=["user"], progress=False)
    assert report.sections[0].by == (table,)


def test_the_command_line_has_it(tmp_path, capsys, monkeypatch):
    pq.write_table(TABLE, tmp_path / "t.parquet")
    arguments = ["--preds", "p", "--target", "y", "-m", "accuracy", "--by", "user"]
    monkeypatch.setattr(sys, "argv", ["assay", "score", str(tmp_path / "t.parquet"), *arguments])
    with suppress(SystemExit):
        main()
    assert "worse than all samples beyond chance" in " ".join(capsys.readouterr().out.split())


def test_rows_that_are_left_out_make_no_group():
    table = TABLE.set_column(1, "y", pa.array([None, *Y[1:].tolist()])).set_column(
        2, "user", pa.array([10**6, *USER[1:].tolist()])
    )
    found = by("accuracy", table=table, on_bad="skip")
    assert "1000000" not in found.groups.values.tolist()
    assert found.counts.values.sum() == N - 1


def test_what_cannot_be_a_table(monkeypatch):
    with pytest.raises(ConfigError, match=r'slices: user.*by="user"'):
        score(TABLE, "accuracy", **PLAIN, slices=["user"])
    with pytest.raises(ConfigError, match="crosses"):
        score(TABLE, "accuracy", **PLAIN, by=[("user", "name")])
    lists = TABLE.append_column("tags", pa.array([[1, 2]] * N))
    with pytest.raises(ConfigError, match=r"by: tags.*lists"):
        score(lists, "accuracy", **PLAIN, by=["tags"])
    monkeypatch.setattr(grouped_terms, "MOST_GROUPS", 150)
    with pytest.raises(ConfigError, match="more than 150 different values"):
        by("accuracy")


def test_infinite_terms_stay_with_their_group():
    preds = P.astype(np.float64)
    preds[USER == 3] = np.inf
    table = TABLE.set_column(0, "p", pa.array(preds))
    with pytest.warns(InvalidValuesWarning):
        found = by("mae", table=table).metric("mae")
    assert (~np.isfinite(found.values)).sum() == 1
    assert found.spread is None
