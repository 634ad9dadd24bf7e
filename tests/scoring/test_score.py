from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import sklearn.metrics as sk
import torch
from safetensors.torch import load
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LinearRegression, LogisticRegression

from assay import Accuracy, F1Score, R2Score, evaluate
from assay.errors import ConfigError, InvalidValuesError, StateError
from assay.metrics import Mean, MeanAbsoluteError, RetrievalMAP, WordErrorRate
from assay.scoring import BadRowsError, Partial, count, fragments_of, merge, score

LM_EVAL = Path(__file__).parents[1] / "integrations" / "lm_eval_runs" / "first"
RNG = np.random.default_rng(7)
N = 600
CLASSES = 4


@pytest.fixture(scope="module")
def digits() -> pa.Table:
    """Predictions of ten digits, with columns to slice by."""
    x, y = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=300).fit(x[::3] / 16, y[::3])
    p = model.predict_proba(x / 16).astype(np.float32)
    columns = {f"p{k}": p[:, k] for k in range(10)}
    names = {"id": [f"scan-{k}" for k in range(len(y))], "ink": np.where(x.sum(1) > 300, "much", "little")}
    return pa.table({**columns, "y": y, **names, "half": np.where(x[:, :32].sum(1) > 150, "top", "bottom")})


SCORED = {
    "preds": "p0..p9",
    "target": "y",
    "ids": "id",
    "slices": ["ink", "half", ("ink", "half")],
    "n_resamples": 25,
    "diagnostics": False,
}
METRICS = {"acc": Accuracy(num_classes=10), "f1": F1Score(num_classes=10, average="macro")}


class Rows(torch.utils.data.Dataset):
    def __init__(self, table):
        self.scores = np.stack([table[f"p{k}"].to_numpy() for k in range(10)], 1)
        self.rows = table.select(["y", "id", "ink", "half"]).to_pylist()

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, k):
        return {"x": self.scores[k], **self.rows[k]}


def contents(report):
    """What a report says of the samples."""
    section = report.sections[0]
    return section.values, section.slices, section.samples, section.plots, section.resampling


def test_a_table_has_the_report_of_an_evaluation_of_the_same_predictions(digits):
    few = digits.slice(0, 500)
    expected = evaluate(
        torch.nn.Identity(), Rows(few), METRICS, inputs="x", ids="id", slices=SCORED["slices"], device="cpu"
    )
    report = score(few, METRICS, **{**SCORED, "n_resamples": 400, "diagnostics": True})
    assert contents(report) == contents(expected)
    assert report.notes[0] == "Every row once: 500 expected, 500 counted, 0 duplicated, 0 missed."


def test_values_are_those_of_scikit_learn(digits):
    report = score(digits, "accuracy,f1:average=macro,auroc", **SCORED, confidence_level=None, keep_samples=False)
    values = {each.name: each.value for each in report.sections[0].values}
    p = np.stack([digits[f"p{k}"].to_numpy() for k in range(10)], 1)
    y = digits["y"].to_numpy()
    assert values["accuracy"] == sk.accuracy_score(y, p.argmax(1))
    assert values["f1"] == pytest.approx(sk.f1_score(y, p.argmax(1), average="macro"), rel=1e-14)
    assert values["auroc"] == pytest.approx(np.mean([sk.roc_auc_score(y == k, p[:, k]) for k in range(10)]), rel=1e-14)
    some = (digits["ink"].to_numpy(zero_copy_only=False) == "much") & (
        digits["half"].to_numpy(zero_copy_only=False) == "top"
    )
    of_slice = next(each for each in report.sections[0].slices if each.name == "ink = much, half = top")
    assert of_slice.values[0].value == sk.accuracy_score(y[some], p[some].argmax(1))


def test_regression_in_float64_with_weights():
    x, y = load_diabetes(return_X_y=True)
    preds, weights = LinearRegression().fit(x, y).predict(x), RNG.random(len(y))
    table = pa.table({"p": preds, "y": y, "w": weights})
    options = {"confidence_level": None, "keep_samples": False}
    report = score(table, {"r2": R2Score(), "mae": MeanAbsoluteError()}, preds="p", target="y", weights="w", **options)
    found = {each.name: each.value for each in report.sections[0].values}
    assert found["r2"] == pytest.approx(sk.r2_score(y, preds, sample_weight=weights), rel=1e-12)
    assert found["mae"] == pytest.approx(sk.mean_absolute_error(y, preds, sample_weight=weights), rel=1e-12)


def test_row_groups_files_and_formats_have_the_same_bits(digits, tmp_path):
    table, options = digits.slice(0, 400), SCORED | {"slices": ["ink"]}
    expected = contents(score(table, METRICS, **options))
    pq.write_table(table, tmp_path / "one.parquet", row_group_size=37)
    folder = tmp_path / "folder"
    folder.mkdir()
    for number, start in enumerate(range(0, 400, 130)):  # the last comes first in order
        pq.write_table(table.slice(start, 130), folder / f"{9 - number}.parquet", row_group_size=50)
    pa.feather.write_feather(table, tmp_path / "one.arrow")
    lists = table.append_column("p", pa.array(np.stack([table[f"p{k}"].to_numpy() for k in range(10)], 1).tolist()))
    pq.write_table(lists, tmp_path / "lists.parquet")
    sources = [tmp_path / "one.parquet", folder, f"{folder}/*.parquet", tmp_path / "one.arrow", table.to_reader(50)]
    for source in sources:
        assert contents(score(source, METRICS, **options)) == expected
    wide = score(tmp_path / "lists.parquet", METRICS, **{**options, "preds": "p", "confidence_level": None})
    assert wide.sections[0].values[0].value == expected[0][0].value


def test_csv_and_json_lines_are_read(tmp_path):
    table = pa.table({"p": [0, 1, 1, 0], "y": [0, 1, 0, 0], "id": ["007", "7", "x", "y"]})
    pa.csv.write_csv(table, tmp_path / "a.csv")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    for name in ("a.csv", "a.jsonl"):
        report = score(tmp_path / name, "accuracy:num_classes=2", preds="p", target="y")
        assert report.sections[0].values[0].value == 0.75


@pytest.mark.parametrize("empty", ["a", "c"])
def test_a_file_with_a_header_only_has_the_types_of_the_others(tmp_path, empty):
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("p,y,s\n" + ("" if name == empty else "0.5,1,x\n0.25,0,y\n"))
    report = score(tmp_path, "mse", preds="p", target="y", slices=["s"])
    assert report.sections[0].values[0].value == (0.25 + 0.0625) / 2
    assert "4 counted" in report.notes[0]
    assert [each.count for each in report.sections[0].slices] == [2, 2]


def test_rows_of_text_may_be_longer_than_a_block_of_pyarrow(tmp_path):
    rows = [{"p": k % 2, "y": 0, "doc": "x" * (3_000_000 if k == 2 else 10)} for k in range(4)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    pa.csv.write_csv(pa.Table.from_pylist(rows), tmp_path / "a.csv")
    for name in ("a.csv", "a.jsonl"):
        report = score(tmp_path / name, Accuracy(num_classes=2), preds="p", target="y", slices=["doc"])
        assert report.sections[0].values[0].value == 0.5


def test_strings_of_polars_are_views():
    strings = pa.array(["a", "b", "a"], pa.string_view())
    table = pa.table({"p": strings, "y": strings, "g": strings})
    for source in (table, table.to_reader(2)):
        report = score(source, "accuracy", preds="p", target="y", labels="a,b", slices=["g"], where="g != 'b'")
        assert report.sections[0].values[0].count == 2


def test_samples_that_lm_eval_logged_are_a_table():
    file = LM_EVAL / "samples_tiny_choice_2026-11-21T08-38-16.004100.jsonl"
    samples = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    report = score(file, Mean(), preds="acc", ids="doc_id")
    assert report.sections[0].values[0].value == sum(each["acc"] for each in samples) / len(samples)


def test_urls_are_read_through_fsspec(tmp_path):
    import fsspec

    table = pa.table({"p": [0, 1, 1, 0], "y": [0, 1, 0, 0]})
    with fsspec.open("memory://scored/part-0.parquet", "wb") as file:
        pq.write_table(table, file)
    for url in ("memory://scored/part-0.parquet", "memory://scored", "memory://scored/*.parquet"):
        assert score(url, Accuracy(num_classes=2), preds="p", target="y").sections[0].values[0].value == 0.75


def test_folders_named_after_values_are_columns(tmp_path):
    for country in ("de", "fr"):
        (tmp_path / f"country={country}").mkdir()
        pq.write_table(
            pa.table({"p": [0, 1], "y": [0, int(country == "de")]}), tmp_path / f"country={country}/0.parquet"
        )
    report = score(tmp_path, Accuracy(num_classes=2), preds="p", target="y", slices=["country"])
    assert [(each.name, each.values[0].value) for each in report.sections[0].slices] == [
        ("country = de", 1.0),
        ("country = fr", 0.5),
    ]


def test_only_rows_for_which_a_condition_holds(digits):
    report = score(digits, METRICS, **SCORED, where="ink == 'much' and not half in ('top',)", confidence_level=None)
    chosen = (digits["ink"].to_numpy(zero_copy_only=False) == "much") & (
        digits["half"].to_numpy(zero_copy_only=False) != "top"
    )
    assert report.sections[0].values[0].count == chosen.sum()
    assert "do not match where=" in report.notes[1]
    with pytest.raises(ConfigError, match="where: got no row"):
        score(digits, METRICS, **SCORED, where="y == 17")


@pytest.mark.parametrize(
    "text", ["ink ==", "import os", "f(ink) == 1", "ink == half", "__import__('os') == 1", "1 < 2"]
)
def test_conditions_that_cannot_be(text, digits):
    with pytest.raises(ConfigError, match="where"):
        score(digits, METRICS, **SCORED, where=text)


def test_names_of_classes_are_numbered_by_labels():
    table = pa.table({"p": ["cat", "dog", "dog"], "y": pa.array(["cat", "dog", "cat"]).dictionary_encode()})
    report = score(table, "accuracy", preds="p", target="y", labels="cat,dog")
    assert report.sections[0].values[0].value == pytest.approx(2 / 3)
    with pytest.raises(ConfigError, match=r"p: got strings \('cat', 'dog'\).*labels=cat,dog"):
        score(table, Accuracy(num_classes=2), preds="p", target="y")
    with pytest.raises(BadRowsError, match=r"1 with a name that labels lack in y \(table row 1\)"):
        score(
            table.set_column(1, "y", pa.array(["cat", "cow", "cat"])),
            "accuracy",
            preds="p",
            target="y",
            labels="cat,dog",
        )


def test_strings_and_named_columns():
    table = pa.table({"hyp": ["a b", "c d"] * 20, "ref": ["a b", "c e"] * 20})
    report = score(table, WordErrorRate(), preds="hyp", target="ref")
    assert report.sections[0].values[0].value == 0.25
    ranked = pa.table({"s": RNG.random(40), "y": RNG.integers(0, 2, 40), "q": [f"query {k // 10}" for k in range(40)]})
    numbered = ranked.set_column(2, "q", pa.array([k // 10 for k in range(40)]))
    first, second = (
        score(each, RetrievalMAP(), preds="s", target="y", columns={"indexes": "q"}) for each in (ranked, numbered)
    )
    assert first.sections[0].values[0].value == second.sections[0].values[0].value


def bad_table() -> pa.Table:
    scores = RNG.random((N, CLASSES)).astype(np.float32)
    scores[17, 2] = np.nan
    y = RNG.integers(0, CLASSES, N)
    y[500] = CLASSES
    ids = list(range(N))
    ids[77] = 76
    target = pa.array([None if k == 301 else int(each) for k, each in enumerate(y)])
    return pa.table(
        {**{f"p{k}": scores[:, k] for k in range(CLASSES)}, "y": target, "id": ids, "g": ["a", None] * (N // 2)}
    )


def test_bad_rows_are_counted_and_named_by_file_and_row_group(tmp_path):
    path, options = tmp_path / "t.parquet", {"preds": "p0..p3", "target": "y", "ids": "id", "slices": ["g"]}
    table = bad_table()
    pq.write_table(table, path, row_group_size=250)
    with pytest.raises(BadRowsError) as caught:
        score(path, "accuracy", **options)
    message = str(caught.value)
    for part in (
        "1 with NaN in p0 to p3 (t.parquet row group 0 row 17)",
        "1 with no value in y (t.parquet row group 1 row 301)",
        "1 with a label outside 0 ... 3 in y (t.parquet row group 2 row 500)",
        "1 with the id of an earlier row in id (t.parquet row group 0 row 77)",
    ):
        assert part in message
    skipped = score(path, "accuracy", **options, on_bad="skip")
    assert contents(skipped) == contents(caught.value.report)
    good = table.take([k for k in range(N) if k not in (17, 301, 500, 77)])
    assert contents(skipped) == contents(score(good, "accuracy", **options))
    assert "4 of 600 rows were left out" in skipped.notes[1]
    assert {each.name for each in skipped.sections[0].slices} == {"g = a", "g = missing"}
    assert isinstance(caught.value, InvalidValuesError)


def test_a_file_of_another_schema_is_named(tmp_path):
    for number in range(3):
        y = pa.array([0, 1]).cast((pa.int64(), pa.string(), pa.int32())[number])
        pq.write_table(pa.table({"p": [0, 1], "y": y}), tmp_path / f"{number}.parquet")
    with pytest.raises(
        BadRowsError, match=r"2 with another schema: y is string instead of int64 \(1.parquet row 0, 1\)"
    ):
        score(tmp_path, Accuracy(num_classes=2), preds="p", target="y")


def test_lists_of_other_lengths_are_bad_rows():
    table = pa.table({"p": [[0.1, 0.9], [0.5], [0.2, None], [1.0, 0.0]], "y": [1, 0, 0, 0]})
    with pytest.raises(BadRowsError) as caught:
        score(table, "accuracy", preds="p", target="y")
    assert "1 with a list that has not 2 entries in p (table row 1)" in str(caught.value)
    assert "1 with no value in p (table row 2)" in str(caught.value)
    assert caught.value.report.sections[0].values[0].value == 1.0


def test_a_first_list_of_another_length_is_the_bad_row():
    table = pa.table({"p": [[0.1], *[[0.1, 0.9], [0.7, 0.3]] * 50], "y": [0, *[1, 0] * 50]})
    with pytest.raises(BadRowsError) as caught:
        score(table, "accuracy", preds="p", target="y")
    assert "1 with a list that has not 2 entries in p (table row 0)" in str(caught.value)
    assert caught.value.report.sections[0].values[0].value == 1.0


def test_what_cannot_be_read_or_measured_is_one_line(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"p": [0.5] * 999, "y": [0] * 999}), path)
    path.write_bytes(path.read_bytes()[:-20])
    options = {"preds": "p", "target": "y"}
    with pytest.raises(StateError, match=r"t\.parquet: got what cannot be read"):
        score(path, "accuracy", **options)
    for source, message in (
        (tmp_path / "none.parquet", "no file"),
        (pa.table({"p": [0.5], "x": [0]}), "target: got no column 'y'"),
        (pa.table({"p": pa.array([], pa.float32()), "y": pa.array([], pa.int64())}), "no rows"),
        (pa.table({"p": [b"a"], "y": [0]}), "p: got values of type binary, expected numbers"),
        (7, "table: got int"),
    ):
        with pytest.raises(ConfigError, match=message):
            score(source, "accuracy", **options)
    with pytest.raises(BadRowsError, match="3 with no value in y"):
        score(pa.table({"p": [0.5] * 3, "y": pa.array([None] * 3, pa.int64())}), "accuracy", **options)
    assert score(pa.table({"p": [0.7], "y": [1]}), "accuracy", **options).sections[0].values[0].value == 1.0


@pytest.mark.parametrize(
    "options", [{"on_bad": "drop"}, {"labels": "a,a"}, {"slices": {"g": len}}, {"columns": {"z": "y"}}]
)
def test_options_that_cannot_be(options, digits):
    with pytest.raises(ConfigError, match=next(iter(options))):
        score(digits, METRICS, **{**SCORED, **options})


def test_fragments_counted_apart_have_the_bits_of_all_at_once(digits, tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(digits.slice(0, 500), path, row_group_size=130)
    options = SCORED | {"slices": ["ink"]}
    keys = fragments_of(path)
    assert keys == tuple(f"t.parquet#{k}" for k in range(4))
    partials = [count(path, METRICS, [key], **options) for key in keys]
    files = [each.to_file(tmp_path / f"{k}.safetensors") for k, each in enumerate(partials)]
    whole = merge([Partial.from_file(each) for each in reversed(files)])
    assert contents(whole.report()) == contents(score(path, METRICS, **options))
    with pytest.raises(StateError, match=r"1 of 4 fragments not counted \(t.parquet#2\)"):
        merge([partials[0], partials[1], partials[3]]).report()
    with pytest.raises(StateError, match=r"fragment 't.parquet#0' twice"):
        merge([partials[0], partials[1], partials[0]])
    with pytest.raises(StateError, match="other metrics or options"):
        merge([partials[0], count(path, {"acc": METRICS["acc"]}, [keys[1]], **options)])
    damaged = tmp_path / "0.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"x")
    with pytest.raises(StateError, match="changed"):
        Partial.from_file(damaged)


def test_record_batches_of_tasks_add_up():
    table = pa.table({"p": RNG.random(200), "id": range(200)})
    parts = [count(iter(table.slice(k, 50).to_batches()), Mean(), str(k), preds="p") for k in range(0, 200, 50)]
    expected = score(table, Mean(), preds="p").sections[0].values[0].value
    assert merge(parts).report().sections[0].values[0].value == expected
    twice = [count(table, Mean(), name, preds="p", ids="id") for name in ("first", "second")]
    with pytest.raises(BadRowsError, match="200 rows whose id in id other rows have"):
        merge(twice).report()


def test_a_partial_has_one_table_for_all_slices():
    sizes = []
    for values in (2, 50):
        y = np.arange(400) % 2
        table = pa.table({"p": y, "y": y, "part": np.arange(400) % values})
        partial = count(table, Accuracy(num_classes=2), "rows", preds="p", target="y", slices=["part"])
        sizes.append(len(load(partial.to_bytes())))
    assert sizes[0] == sizes[1]


def test_parts_may_have_no_row_that_matches_and_no_row_at_all():
    table = pa.table({"p": [0, 1, 1, 0], "y": [0, 1, 0, 0], "g": ["a", "a", "b", "b"]})
    options = {"preds": "p", "target": "y", "where": "g == 'a'"}
    parts = [
        count(part, Accuracy(num_classes=2), name, **options)
        for name, part in {"a": table[:2], "b": table[2:], "none": table[:0]}.items()
    ]
    report = merge(parts).report()
    assert report.sections[0].values[0].value == 1
    assert "2 of 4 rows do not match" in report.notes[1]
    with pytest.raises(ConfigError, match="no row that matches"):
        merge(parts[1:]).report()
    with pytest.raises(ConfigError, match="no rows"):
        merge(parts[2:]).report()


@pytest.mark.parametrize("weights", [None, "w"])
def test_fragments_without_a_matching_row_are_counted(tmp_path, weights):
    table = pa.table({"p": [0, 1, 1, 0], "y": [0, 1, 0, 0], "g": ["a", "a", "b", "b"], "w": [1.0, 2.0, 1.0, 1.0]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    options = {"preds": "p", "target": "y", "where": "g == 'a'", "weights": weights}
    parts = [count(tmp_path / "a.parquet", Accuracy(num_classes=2), [f"a.parquet#{k}"], **options) for k in (1, 0)]
    assert merge(parts).report().sections[0].values[0].value == 1


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
def test_json_that_is_nested_too_deep_is_refused_and_ends_no_process(ending, tmp_path):
    """The reader of pyarrow overflows the stack; strings with brackets and many short lists are no depth."""
    path = tmp_path / f"t.{ending}"
    write = gzip.open if ending.endswith("gz") else open
    shallow = {"p": 1, "y": 1, "boxes": [[1, 2]] * 500, "text": '\\"' + "[{" * 500}
    with write(path, "wt") as file:
        file.write(json.dumps(shallow) + "\n")
    assert score(path, "accuracy:num_classes=2", preds="p", target="y").sections[0].values[0].value == 1.0
    with write(path, "at") as file:
        file.write('{"p": 1, "y": 1, "x": ' + "[" * 100_000 + "]" * 100_000 + "}\n")
    with pytest.raises(StateError, match=r"t\.jsonl.*: got a value that is nested 100,001 deep, expected at most 100"):
        score(path, "accuracy:num_classes=2", preds="p", target="y")
