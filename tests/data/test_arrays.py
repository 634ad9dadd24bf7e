from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from assay.cli.loaders.datasets import open_data
from assay.errors import AssayError
from assay.metrics import Accuracy

X = np.arange(14.0).reshape(7, 2)
Y = np.array([0, 1, 2, 0, 1, 2, 0])


def batches(data):
    return list(data.data)


def joined(data, name):
    parts = [batch[name] for batch in batches(data)]
    return torch.cat(parts) if isinstance(parts[0], torch.Tensor) else [each for part in parts for each in part]


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_arrays_by_name(tmp_path, options, model, ending):
    path = tmp_path / f"held{ending}"
    if ending == ".npz":
        np.savez(path, x=X, y=Y)
    else:
        save_file({"x": torch.tensor(X), "y": torch.tensor(Y)}, path)
    data = open_data(options(path, batch_size=3), model, {})
    assert (data.inputs, data.target) == ("x", "y")
    assert [len(batch["x"]) for batch in batches(data)] == [3, 3, 1]
    assert joined(data, "x").dtype == torch.float32
    assert torch.equal(joined(data, "x"), torch.tensor(X, dtype=torch.float32))
    assert joined(data, "y").tolist() == Y.tolist()
    assert data.notes == ("x is float64 in the file and goes to the model as float32.",)


def test_names_are_said(tmp_path, options, model):
    names = np.array([f"s{k}" for k in range(7)])
    labels = np.array(["b", "a", "c", "b", "a", "c", "b"])
    np.savez(tmp_path / "a.npz", x_train=np.ones((9, 2)), x_test=X, label_test=labels, who=names, where=Y)
    said = options(tmp_path / "a.npz", target="label_test", inputs=("x_test",), ids="who", slice=("where,who",))
    data = open_data(said, model, {})
    assert data.classes == ("a", "b", "c")
    assert joined(data, "label_test").tolist() == [1, 0, 2, 1, 0, 2, 1]
    assert joined(data, "who") == names.tolist()
    assert set(batches(data)[0]) == {"x_test", "label_test", "who", "where"}
    assert "3 classes in alphabetical order: 0 = a, 1 = b, 2 = c." in data.notes
    least = open_data(options(tmp_path / "a.npz", target="where"), model, {"a": Accuracy(num_classes=3)})
    assert "Left out, as they are texts or have other numbers of rows: x_train, label_test, who." in least.notes
    in_order = open_data(
        options(tmp_path / "a.npz", target="label_test", inputs=("x_test",), classes=("c", "b", "a")), model, {}
    )
    assert joined(in_order, "label_test").tolist() == [1, 2, 0, 1, 2, 0, 1]


def test_several_inputs_go_by_name(tmp_path, options, model):
    np.savez(tmp_path / "a.npz", left=X, right=X, y=Y)
    assert open_data(options(tmp_path / "a.npz"), model, {}).inputs == ["left", "right"]


@pytest.mark.parametrize(
    ("arrays", "given", "message"),
    [
        ({"x": X, "z": Y}, {}, "got columns x, z, expected one named labels, label, target, targets, y"),
        ({"x": X, "y": Y}, {"target": "Y"}, "target: got no column 'Y', expected 'y'"),
        ({"x": X, "y": Y}, {"inputs": ("images",)}, "got no column 'images', expected one of x, y"),
        ({"x": X, "y": Y}, {"ids": "key"}, "ids, weights, cluster, slice or show: got no column 'key'"),
        ({"x": X[:5], "y": Y}, {}, "got arrays x, none with 7 rows, expected inputs for each target"),
        ({"x": X[:5], "y": Y}, {"inputs": ("x",)}, "rows: x with 5, y with 7"),
        ({"y": Y}, {}, "got no other array"),
        ({"x": X[:0], "y": Y[:0]}, {}, "no samples"),
        ({"x": X, "y": np.where(Y > 1, np.nan, Y)}, {}, r"y: got NaN or infinity in rows 2, 5, expected a finite"),
        ({"x": X.astype(str), "y": Y}, {}, "x: got texts, expected numbers as inputs"),
        ({"x": X, "y": Y, "k": Y}, {"ids": "k", "inputs": ("x",)}, "k: got 0 in rows 0, 3, expected an id of its own"),
        ({"x": X, "y": Y}, {"classes": ("a", "b")}, "y: got 2 in rows 2, 5, expected numbers below 2"),
        ({"x": X, "y": np.array(list("abca") + [""] * 3)}, {}, "y: got no label in rows 4, 5, 6"),
        (
            {"x": X, "y": np.array(list("abcabca"))},
            {"classes": ("a", "b")},
            "y: got 'c', expected one of the classes a, b",
        ),
        ({"x": X, "y": Y}, {"batch_size": 0}, "batch_size: got 0"),
        ({"x": X, "y": Y}, {"num_workers": -1}, "num_workers: got -1"),
    ],
)
def test_arrays_that_cannot_be_are_told(tmp_path, options, model, arrays, given, message):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(AssayError, match=message):
        open_data(options(tmp_path / "a.npz", **given), model, {})


def test_objects_are_not_unpickled(tmp_path, options, model):
    np.savez(tmp_path / "a.npz", x=np.array([[1], [1, 2]], dtype=object), y=Y[:2])
    with pytest.raises(AssayError, match=r"x: got a file that cannot be read .*Object arrays cannot be loaded"):
        open_data(options(tmp_path / "a.npz"), model, {})


@pytest.mark.parametrize("ending", [".npz", ".safetensors"])
def test_damaged_files_are_told(tmp_path, options, model, ending):
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(AssayError, match="got a file that cannot be read"):
        open_data(options(path), model, {})


@pytest.mark.parametrize(
    ("labels", "given", "message"),
    [
        (np.array(list("abcdabc")), {}, r"classes: got 4 \(a, b, c, d\), expected 3, as accuracy has"),
        (np.array(list("ababaab")), {}, r"classes: got 2 \(a, b\), expected 3, as accuracy has"),
        (Y + 1, {}, "target: got 3 in rows 2, 5, expected labels below 3, as accuracy has 3 classes"),
    ],
)
def test_classes_that_the_metrics_lack_are_told_before_anything_runs(tmp_path, options, model, labels, given, message):
    np.savez(tmp_path / "a.npz", x=X, y=labels)
    with pytest.raises(AssayError, match=message):
        open_data(options(tmp_path / "a.npz", **given), model, {"accuracy": Accuracy(num_classes=3)})


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("gone.csv", "data: got gone.csv, which does not exist"),
        ("a/b", "data: got a/b, which does not exist"),
        ("here.xlsx", r"data: got a file here\.xlsx, expected one of \.npz, .*\.parquet, .*\.csv"),
        ("hello", "--data: got 'hello', expected an existing file or folder"),
    ],
)
def test_data_that_are_not_there_are_told(tmp_path, monkeypatch, options, model, named, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here.xlsx").touch()
    with pytest.raises(AssayError, match=message):
        open_data(options(named), model, {})
