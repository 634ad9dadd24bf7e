"""Slices by lists of values, such as tags: each value is a slice of the samples that have it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from assay import AUROC, Accuracy, Meter, score
from assay.cli import app
from assay.errors import ConfigError
from assay.evaluation import evaluate
from assay.report import Report, compare
from assay.scoring import count, merge
from thinning import every_third, one_of_each

RANDOM = np.random.default_rng(3)
N = 400
Y = RANDOM.integers(0, 2, N)
P = np.clip(RANDOM.random(N) * 0.6 + 0.3 * Y, 0, 1)
TAGS = [
    [tag for tag, share in zip("abcd", (0.5, 0.3, 0.2, 0.1), strict=True) if draw < share] for draw in RANDOM.random(N)
]
TAGS = [tags + tags[:1] if k % 7 == 0 else tags for k, tags in enumerate(TAGS)]  # some twice
SEX = ["f" if k % 3 else "m" for k in range(N)]
METRICS = {"acc": Accuracy(threshold=0.5), "auroc": AUROC()}
SLICES = ["tags", "sex", ("tags", "sex")]


def batches(size, tags=TAGS):
    for start in range(0, N, size):
        rows = slice(start, start + size)
        columns = {"p": torch.from_numpy(P[rows]), "y": torch.from_numpy(Y[rows])}
        yield {**columns, "tags": tags[rows], "sex": SEX[rows], "id": list(range(N))[rows]}


def measured(size=50, tags=TAGS, **more):
    options = {"inputs": "p", "target": "y", "ids": "id", "slices": SLICES, "device": "cpu", **more}
    return evaluate(lambda p: p, list(batches(size, tags)), METRICS, **options)


def alone(mask):
    meter = Meter(**METRICS)
    meter.update(torch.from_numpy(P[mask]), torch.from_numpy(Y[mask]))
    return {name: float(value) for name, value in meter.compute().items()}


def masks():
    tags = {f"tags = {tag}": np.array([tag in each for each in TAGS]) for tag in "abcd"}
    tags["tags = missing"] = np.array([not each for each in TAGS])
    sexes = {f"sex = {sex}": np.array(SEX) == sex for sex in "fm"}
    crossed = {f"{a}, {b}": tags[a] & sexes[b] for a in tags for b in sexes}
    return {name: mask for name, mask in {**tags, **sexes, **crossed}.items() if mask.any()}


@pytest.mark.parametrize("size", [7, 400])
def test_each_value_is_a_slice_of_the_samples_that_have_it(size):
    report = measured(size)
    found = {each.name: each for each in report.sections[0].slices}
    assert found.keys() == masks().keys()
    for name, mask in masks().items():
        assert np.array_equal(found[name].members.values, mask), name
        assert found[name].count == mask.sum()
        assert {each.name: each.value for each in found[name].values} == alone(mask), name
    assert any("slices add up to more than all samples" in note for note in report.notes)
    assert sum(each.count for name, each in found.items() if name.startswith("tags =") and "," not in name) > N


def test_the_split_changes_no_bit():
    assert measured(7).sections[0].slices == measured(400).sections[0].slices


@pytest.mark.exhaustive
def test_slices_without_kept_samples_have_the_same_values_and_pairs():
    kept, bare = measured(), measured(keep_samples=False)
    for first, second in zip(kept.sections[0].slices, bare.sections[0].slices, strict=True):
        assert [each.value for each in first.values] == [each.value for each in second.values]
        assert second.members is None
    assert all(delta.paired for delta in compare(bare, bare).deltas)


@pytest.mark.parametrize("kind", ["list", "large_list", "dictionary"])
@one_of_each()
def test_tables_are_sliced_alike(kind):
    pa = pytest.importorskip("pyarrow")
    types = {"list": pa.list_(pa.string()), "large_list": pa.large_list(pa.large_string())}
    tags = pa.array([tags or None for tags in TAGS], types.get(kind, pa.list_(pa.dictionary(pa.int32(), pa.string()))))
    table = pa.table({"p": P, "y": Y, "tags": tags, "sex": SEX, "id": np.arange(N)})
    found = score(table, METRICS, preds="p", target="y", ids="id", slices=SLICES)
    assert found.sections[0].slices == measured().sections[0].slices
    assert any("of all its values of tags" in note for note in found.notes)


@every_third
@pytest.mark.parametrize("slices", [["tags"], ["tags", ("tags", "sex")], SLICES])
def test_all_rows_of_a_table_are_counted_once_whatever_slices_they_are_in(slices):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"p": P, "y": Y, "tags": TAGS, "sex": SEX})
    parts = [count(part, METRICS, name, preds="p", target="y", slices=slices) for name, part in halves(table)]
    meter = Meter(**METRICS)
    meter.update(torch.from_numpy(P), torch.from_numpy(Y))
    expected = {name: value.item() for name, value in meter.compute().items()}
    for report in (score(table, METRICS, preds="p", target="y", slices=slices), merge(parts).report()):
        assert {value.name: value.value for value in report.sections[0].values} == expected
        assert {value.count for value in report.sections[0].values} == {N}


def halves(table):
    return ("first", table[: N // 2]), ("second", table[N // 2 :])


def test_merged_parts_of_a_table_have_the_same_slices():
    pa = pytest.importorskip("pyarrow")
    from assay.scoring import count, merge

    table = pa.table({"p": P, "y": Y, "tags": TAGS, "sex": SEX, "id": np.arange(N)})
    options = {"preds": "p", "target": "y", "ids": "id", "slices": SLICES}
    parts = [count(table.slice(start, 100), METRICS, str(start), **options) for start in range(0, N, 100)]
    whole = merge(parts[::-1], [str(start) for start in range(0, N, 100)]).report()
    assert whole.sections[0].slices == score(table, METRICS, **options).sections[0].slices


@pytest.mark.exhaustive
def test_single_values_among_lists_are_lists_of_one():
    mixed = [(tags[0] if len(tags) == 1 else tags) if tags else None for tags in TAGS]
    assert measured(400, mixed).sections[0].slices == measured(400).sections[0].slices


def test_frames_are_sliced_by_lists():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"p": P, "y": Y, "tags": TAGS, "sex": SEX, "id": np.arange(N)})
    options = {"inputs": "p", "target": "y", "ids": "id", "slices": SLICES, "device": "cpu"}
    found = evaluate(lambda p: p.reshape(-1), frame, METRICS, **options)
    assert found.sections[0].slices == measured().sections[0].slices


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_the_command_line_slices_by_lists(tmp_path, ending):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    table = pa.table({"p": Y.tolist(), "y": Y, "tags": TAGS, "id": np.arange(N)})
    path = tmp_path / f"held.{ending}"
    if ending == "parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=90)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    given = f"evaluate identity --inputs p --target y --ids id -m accuracy:num_classes=2 --slice tags --out {tmp_path}"
    run = CliRunner().invoke(app, [*given.split(), "--device", "cpu", "--data", str(path)])
    assert run.exit_code == 0, run.output
    found = {each.name: each.count for each in Report.load(tmp_path).sections[0].slices}
    assert found == {name: mask.sum() for name, mask in masks().items() if name.startswith("tags") and "," not in name}


def test_lists_that_come_after_single_values_are_an_error():
    late = ["a"] * (N - 10) + [["a", "b"]] * 10
    with pytest.raises(ConfigError, match="slices: tags: got lists after single values"):
        measured(5, late)


def test_lists_of_lists_are_an_error():
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"p": P[:2], "y": Y[:2], "tags": [[["a"]], [["b"]]]})
    with pytest.raises(ConfigError, match="slices: tags"):
        score(table, METRICS, preds="p", target="y", slices=["tags"])
