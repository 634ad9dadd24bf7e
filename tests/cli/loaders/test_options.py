from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path

import pytest

from assay import cli
from assay.cli.loaders.options import Options, settled
from assay.errors import AssayError

GIVEN = {"model": "m:net", "data": "d:held", "metrics": ["accuracy"]}
FILE = """
model = "net.pt2"
data = "held.csv"
versus = ["other.pt2", "precision=bfloat16", {model = "m:net", compile = true}]
features = ["a", "b"]
classes = "cat, dog"
slice = ["region", "sex,age"]
batch-size = 32
mean = [0, 0.5]
level = 0.9
samples = false
out = "run"

[metrics]
acc = "accuracy:num_classes=3"
"""


def write(folder, text):
    (folder / "run.toml").write_text(text, "utf-8")
    return folder / "run.toml"


def test_a_file_alone_suffices(tmp_path):
    (tmp_path / "net.pt2").touch()
    (tmp_path / "other.pt2").touch()
    found = settled({}, write(tmp_path, FILE))
    assert found.metrics == ("acc=accuracy:num_classes=3",)
    assert found.model == str(tmp_path / "net.pt2")  # there, beside the file
    assert found.data == "held.csv"  # not there: as it was written
    assert found.versus == (str(tmp_path / "other.pt2"), "precision=bfloat16", "m:net,compile=true")
    assert (found.features, found.classes, found.mean) == (("a", "b"), ("cat", "dog"), (0.0, 0.5))
    assert (found.batch_size, found.level, found.samples) == (32, 0.9, False)
    assert found.out == tmp_path / "run"


def test_the_command_line_wins(tmp_path):
    given = {"batch_size": 8, "metrics": ["f1"], "samples": True, "out": Path("here"), "slice": [], "target": None}
    found = settled(given, write(tmp_path, FILE))
    assert (found.batch_size, found.metrics, found.samples, found.out) == (8, ("f1",), True, Path("here"))
    assert found.slice == ("region", "sex,age")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("batchsize = 3", "run.toml: got the key 'batchsize', expected 'batch-size'"),
        ("batch_size = 3", "run.toml: got the key 'batch_size', expected 'batch-size'"),
        ("zzzzzz = 3", "run.toml: got the key 'zzzzzz', expected one of model, data, metrics"),
        ("batch-size = '3'", "run.toml: batch-size: got '3', expected a whole number"),
        ("batch-size = true", "run.toml: batch-size: got True, expected a whole number"),
        ("compile = 1", "run.toml: compile: got 1, expected true or false"),
        ("level = '95 %'", "run.toml: level: got '95 %', expected a number"),
        ("metrics = 'accuracy'", "run.toml: metrics: got 'accuracy', expected a list of texts"),
        ("metrics = [1]", r"run.toml: metrics: got \[1\], expected a list of texts"),
        ("mean = ['a']", "run.toml: mean: got 'a', expected numbers"),
        ("out = 3", "run.toml: out: got 3, expected a path"),
        ("model = [", "got a file that is not TOML"),
    ],
)
def test_files_that_cannot_be_are_told(tmp_path, text, message):
    with pytest.raises(AssayError, match=message):
        settled(GIVEN, write(tmp_path, text))


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("model", "MODEL: got none, expected package.module:factory, a file or a folder"),
        ("data", "--data: got none"),
        ("metrics", "--metrics: got none, expected one or more"),
    ],
)
def test_what_is_named_nowhere_is_told(missing, message):
    with pytest.raises(AssayError, match=message):
        settled({**GIVEN, missing: None})


def test_numbers_on_the_command_line():
    assert settled({**GIVEN, "mean": "0.5, 1"}).mean == (0.5, 1.0)
    with pytest.raises(AssayError, match="--mean: got 'x', expected numbers"):
        settled({**GIVEN, "mean": "x"})


def test_every_option_of_the_command_is_one_of_the_file():
    on_command_line = set(inspect.signature(cli._evaluate).parameters) - {"config"}
    assert on_command_line == {field.name for field in dataclasses.fields(Options)}


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(OSError, match=r"gone.toml"):
        settled(GIVEN, tmp_path / "gone.toml")
