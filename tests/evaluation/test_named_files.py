"""`evaluate` with a path has the values of `evaluate` with the same numbers in memory, and of the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

from assay import Accuracy, evaluate
from assay.cli import app
from assay.data import DataOptions, open_path
from assay.data.files import ARRAYS
from assay.errors import AssayError, ConfigError

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
pq = pytest.importorskip("pyarrow.parquet")

RNG = np.random.default_rng(5)
X = RNG.normal(size=(60, 3)).astype(np.float32)
Y = (X[:, 0] + RNG.normal(size=60) > 0).astype(np.int64) + (X[:, 1] > 1)
PLACE = np.array(["de", "fr", "it"])[RNG.integers(0, 3, 60)]
torch.manual_seed(5)
NET = torch.nn.Linear(3, 3)
ACC = Accuracy(num_classes=3)
TABLES = (".csv", ".tsv", ".csv.gz", ".parquet", ".feather", ".jsonl")
FIELDS = np.dtype([("x", np.float32, 3), ("target", np.int64)])


def values(*arguments, **options):
    report = evaluate(*arguments, progress=False, device="cpu", **options)
    return [(each.name, each.value, each.lower, each.upper) for each in report.sections[0].values]


def table(folder, ending):
    path = folder / f"data{ending}"
    columns = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "kind": Y, "place": PLACE}
    frame = pa.table({name: each.tolist() if name == "place" else each for name, each in columns.items()})
    if ending == ".parquet":
        pq.write_table(frame, path, row_group_size=13)
    elif ending == ".feather":
        pytest.importorskip("pyarrow.feather").write_feather(frame, path)
    elif ending == ".jsonl":
        path.write_text("\n".join(map(json.dumps, frame.to_pylist())), "utf-8")
    else:
        options = csv.WriteOptions(delimiter="\t" if ending == ".tsv" else ",")
        with pa.output_stream(path) as stream:
            csv.write_csv(frame, stream, options)
    return path


def arrays(folder, ending):
    path = folder / f"data{ending}"
    if ending == ".npz":
        np.savez(path, x=X, target=Y)
    elif ending == ".npy":
        rows = np.empty(60, FIELDS)
        rows["x"], rows["target"] = X, Y
        np.save(path, rows)
    else:
        tensors = {"x": torch.from_numpy(X), "target": torch.from_numpy(Y)}
        save_file(tensors, path) if ending == ".safetensors" else torch.save(tensors, path)
    return path


@pytest.mark.parametrize("ending", TABLES)
def test_a_table_has_the_values_of_its_arrays(tmp_path, ending):
    path = table(tmp_path, ending)
    found = values(NET, str(path), ACC, target="kind", features=["a", "b", "c"], slices=["place"])
    data = {"x": X, "kind": Y, "place": PLACE}
    assert found == values(NET, data, ACC, inputs="x", target="kind", slices=["place"])


@pytest.mark.parametrize("ending", list(ARRAYS))
def test_a_file_of_arrays_has_the_values_of_its_arrays(tmp_path, ending):
    assert values(NET, arrays(tmp_path, ending), ACC) == values(NET, (X, Y), ACC)


def test_python_and_the_command_line_give_one_report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "netpy.py").write_text(
        "import torch\ndef net():\n    torch.manual_seed(5)\n    return torch.nn.Linear(3, 3)\n", "utf-8"
    )
    path = table(tmp_path, ".csv")
    written = ["-m", "accuracy:num_classes=3", "--target", "kind", "--features", "a,b,c", "--slice", "place"]
    result = CliRunner().invoke(app, ["evaluate", "netpy:net", "--data", str(path), *written, "--json"])
    assert result.exit_code == 0, result.output
    report = evaluate(
        NET, path, "accuracy:num_classes=3", target="kind", features=["a", "b", "c"], slices=["place"], progress=False
    )
    mine, theirs = json.loads(report.to_json()), json.loads(result.stdout)
    assert mine["sections"][0]["values"] == theirs["sections"][0]["values"]
    assert "3 feature columns: a, b, c." in report.notes


def test_columns_go_to_the_model_by_name_and_a_function_sees_the_batch(tmp_path):
    class Two(torch.nn.Module):
        def forward(self, a, b):
            return torch.stack([a, b, b - a], 1)

    path = table(tmp_path, ".parquet")
    expected = values(lambda x: torch.stack([x[:, 0], x[:, 1], x[:, 1] - x[:, 0]], 1), (X, Y), ACC)
    assert values(Two(), path, ACC, inputs=["a", "b"], target="kind") == expected
    assert values(Two(), path, ACC, inputs=["a", "b"], target=lambda b: b["kind"], slices=["kind"])[0] == expected[0]


def test_labels_of_an_estimator_are_numbered_as_it_numbers_them(tmp_path):
    names = np.array(["a", "b", "c"])[Y]
    some = Y > 0  # the file lacks the first class
    for labels in (names, Y * 2 + 1):
        model = LogisticRegression().fit(X, labels)
        path = tmp_path / "some.csv"
        rows = [f"{x[0]!r},{x[1]!r},{x[2]!r},{y}" for x, y in zip(X[some].tolist(), labels[some], strict=True)]
        path.write_text("\n".join(["p,q,r,y", *rows]), "utf-8")
        assert values(model, path, ACC) == values(model, (X[some].astype(float), labels[some]), ACC)


def test_the_command_line_numbers_labels_as_the_estimator_does(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fitted.py").write_text(
        "from sklearn.dummy import DummyClassifier\n"
        "def model():\n    return DummyClassifier(strategy='constant', constant='b').fit([[0]] * 3, ['a', 'b', 'c'])\n",
        "utf-8",
    )
    (tmp_path / "some.csv").write_text("x,y\n1,b\n2,b\n3,c\n4,b\n", "utf-8")
    written = ["evaluate", "fitted:model", "--data", "some.csv", "-m", "accuracy:num_classes=3", "--json"]
    result = CliRunner().invoke(app, written)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["sections"][0]["values"][0]["value"] == 0.75


def test_a_folder_of_images(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for k in range(4):
        folder = tmp_path / "photos" / "ab"[k % 2]
        folder.mkdir(parents=True, exist_ok=True)
        image.fromarray(np.full((4, 6, 3), 60 * k, np.uint8)).save(folder / f"{k}.png")
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 2))
    data = open_path(tmp_path / "photos", DataOptions(image_size=2))
    x = torch.stack([torch.full((3, 2, 2), np.float32(60 * k) / np.float32(255)) for k in (0, 2, 1, 3)])
    expected = values(net, (x, torch.tensor([0, 0, 1, 1])), Accuracy(num_classes=2))
    assert values(net, data, Accuracy(num_classes=2)) == expected
    whole = torch.nn.Sequential(torch.nn.AvgPool2d((4, 6)), torch.nn.Flatten(), torch.nn.Linear(3, 2))
    assert len(values(whole, tmp_path / "photos", Accuracy(num_classes=2))) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, r"data.csv: got columns a, b, c, kind, place, expected one named labels.*target"),
        ({"target": "kinds"}, r"data.csv: target: got no column 'kinds', expected 'kind'"),
        ({"target": "kind"}, r"data.csv: place: got values of type string, expected numbers"),
        ({"target": "kind", "slices": ["plac"]}, r"data.csv: .*slice or show: got no column 'plac', expected 'place'"),
        ({"target": 3}, r"target: got 3, expected a column of the file by its name"),
        ({"target": "kind", "features": "abc"}, r"features: got 'abc', expected a list"),
    ],
)
def test_errors_name_the_file_the_column_and_what_there_is(tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        evaluate(NET, table(tmp_path, ".csv"), ACC, progress=False, **options)


def test_files_of_another_kind_are_refused_by_name(tmp_path):
    np.save(tmp_path / "one.npy", X)
    torch.save((torch.ones(2), torch.ones(2)), tmp_path / "pair.pt")
    torch.save({"x": torch.nn.Linear(1, 1)}, tmp_path / "code.pt")
    (tmp_path / "book.txt").write_text("words", "utf-8")
    (tmp_path / "deep.jsonl").write_text('{"x": ' + "[" * 9000 + "]" * 9000 + ', "y": 1}', "utf-8")
    for name, message in (
        ("one.npy", "one array of float32, expected an array with named fields. .*numpy.savez"),
        ("pair.pt", "got tuple, expected tensors by name"),
        ("code.pt", "expected tensors by name that torch.save wrote"),
        ("book.txt", "assay.language.perplexity"),
        ("deep.jsonl", "nested 9,001 deep"),
        ("gone.csv", "does not exist"),
    ):
        with pytest.raises(AssayError, match=message):
            evaluate(NET, tmp_path / name, ACC, progress=False)
    with pytest.raises(ConfigError, match="features: got columns of DataLoader"):
        evaluate(NET, torch.utils.data.DataLoader([(X[0], 0)]), ACC, features=["a"], progress=False)


def test_a_run_resumes_from_a_file_only_if_the_file_is_the_same(tmp_path):
    path, folder = table(tmp_path, ".csv"), tmp_path / "run"
    options = {"target": "kind", "features": ["a", "b", "c"], "resume": folder}
    first = values(NET, path, ACC, **options)
    assert values(NET, path, ACC, **options) == first
    text = path.read_text("utf-8")
    path.write_text(text.replace("de", "fr", 1), "utf-8")
    with pytest.raises(AssayError, match="data"):
        values(NET, path, ACC, **options)


def test_an_estimator_that_was_fitted_on_a_frame_has_its_columns_in_their_order(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"b": X[:, 1], "a": X[:, 0]})
    model = LogisticRegression().fit(frame, Y)
    path = table(tmp_path, ".parquet")
    assert values(model, path, ACC, target="kind") == values(model, (frame, Y), ACC)
    net = torch.nn.Linear(2, 3)
    both = frame.assign(kind=Y, place=PLACE)
    assert values(net, both, ACC, target="kind", features=["b", "a"]) == values(
        net, path, ACC, target="kind", features=["b", "a"]
    )
