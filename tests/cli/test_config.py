"""Options of the command line and of TOML files, which are the fields of one dataclass a command."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.cli.config import resolve
from assay.cli.declaration import options_of
from assay.cli.gate import rules_of
from assay.cli.options import COMMANDS
from assay.cli.options.language_models import GenerateCommand, PerplexityCommand
from assay.cli.options.measurement import EvaluateCommand
from assay.cli.options.reports import GateCommand
from assay.errors import AssayError, ConfigError, StateError
from assay.report.gating.gate_result import GateRule

GIVEN = {"model": "m:net", "data": "d:held", "metrics": ["accuracy"]}
FILE = """
model = "net.pt2"
data = "held.csv"
variant = ["other.pt2", "precision=bfloat16", {compile = true, model = "net.pt2"}]
features = ["a", "b"]
classes = "cat, dog"
inputs = ["ids", "mask"]
slice = ["region", "sex*age"]
batch-size = 32
mean = [0, 0.5]
confidence-level = 0.9
keep-samples = false
out = "run"

[metrics]
acc = "accuracy:num_classes=3"
"""


def write(folder, text):
    path = folder / "run.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def evaluate(given, config=None):
    return resolve(EvaluateCommand, {**given, "config": config})


def gate(config, **given):
    return resolve(GateCommand, {"report": Path("run.json"), "config": config, **given})


def test_a_file_alone_suffices(tmp_path):
    (tmp_path / "net.pt2").touch()
    (tmp_path / "other.pt2").touch()
    options = evaluate({}, write(tmp_path, FILE))
    assert options.metrics == ("acc=accuracy:num_classes=3",)
    assert options.model == str(tmp_path / "net.pt2")  # there, beside the file
    assert options.data == "held.csv"  # not there: as it was written
    assert options.variant == (
        str(tmp_path / "other.pt2"),
        "precision=bfloat16",
        f"compile=true,model={tmp_path / 'net.pt2'}",
    )
    assert (options.features, options.classes, options.mean) == (("a", "b"), ("cat", "dog"), (0.0, 0.5))
    assert (options.batch_size, options.confidence_level, options.keep_samples) == (32, 0.9, False)
    assert options.inputs == ("ids", "mask")
    assert options.out == tmp_path / "run"


def test_the_command_line_wins(tmp_path):
    given = {"batch_size": 8, "metrics": ["f1"], "keep_samples": True, "out": Path("here"), "slice": [], "target": None}
    options = evaluate(given, write(tmp_path, FILE))
    assert (options.batch_size, options.metrics, options.keep_samples) == (8, ("f1",), True)
    assert options.out == Path("here")
    assert options.slice == ("region", "sex*age")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("batchsize = 3", ("the key 'batchsize'", "expected 'batch-size'")),
        ("batch_size = 3", ("the key 'batch_size'", "expected 'batch-size'")),
        ("min-slice = 3", ("the key 'min-slice'", "expected 'min-slice-size'")),
        ("config = 'other.toml'", ("the key 'config'",)),
        ("zzzzzz = 3", ("the key 'zzzzzz'", "expected one of model")),
        ("batch-size = '3'", ("run.toml: batch-size", "got '3'", "an integer")),
        ("batch-size = true", ("run.toml: batch-size", "got True", "an integer")),
        ("num-classes = 1", ("run.toml: num-classes", "got 1", "at least 2")),
        ("seed = -1", ("run.toml: seed", "got -1", "0 to 9223372036854775807")),
        ("compile = 1", ("run.toml: compile", "got 1", "true or false")),
        ("confidence-level = '95 %'", ("run.toml: confidence-level", "got '95 %'", "a number")),
        ("metrics = 'accuracy'", ("run.toml: metrics", "got 'accuracy'", "a list")),
        ("metrics = [1]", ("run.toml: metrics", "got 1", "a string")),
        ("mean = ['a']", ("run.toml: mean", "got 'a'", "a number")),
        ("out = 3", ("run.toml: out", "got 3", "a path")),
        ("out = 's3:/bucket/run'", ("run.toml: out", "s3:/bucket/run", "two slashes")),
        ("model = [", ("run.toml", "not TOML")),
        (b"\xff", ("run.toml", "not TOML")),
    ],
)
def test_an_invalid_file_is_an_error_that_names_file_and_key(tmp_path, text, parts):
    with pytest.raises(AssayError) as raised:
        evaluate(GIVEN, write(tmp_path, text))
    assert all(part in str(raised.value) for part in parts), raised.value


URL = "s3://bucket/run"


@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        (("evaluate", "m:f", "--data", "m:d", "-m", "accuracy", "--variant", f"model={URL}"), "--variant"),
        (("evaluate", URL, "--data", "m:d", "-m", "accuracy"), "MODEL"),
        (("perplexity", "m:f", "--data", "https://host/text.txt"), "--data"),
        (("quantize", "m:f", "--out", URL), "--out"),
        (("quantize", "m:f", "--eval", URL), "--eval"),
        (("demo", "--out", URL), "--out"),
        (("audit", "m", "--sarif", "gs://bucket/x"), "--sarif"),
    ],
)
def test_a_url_in_place_of_a_path_is_one_clear_error(tmp_path, monkeypatch, arguments, label):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, ConfigError)
    assert all(part in str(result.exception) for part in (f"{label}: got", "://", "on this machine", "local"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("missing", "label"), [("model", "MODEL"), ("data", "--data"), ("metrics", "--metrics")])
def test_what_is_required_and_named_nowhere_is_an_error(missing, label):
    with pytest.raises(ConfigError, match=f"{label}: got none"):
        evaluate({**GIVEN, missing: None})


def test_several_values_in_one_option():
    assert evaluate({**GIVEN, "mean": "0.5, 1"}).mean == (0.5, 1.0)
    with pytest.raises(ConfigError, match="--mean: got 'x', expected numbers"):
        evaluate({**GIVEN, "mean": "x"})


def test_a_file_that_is_not_there_is_an_error_of_the_system(tmp_path):
    with pytest.raises(OSError, match=r"gone.toml"):
        evaluate(GIVEN, tmp_path / "gone.toml")


@pytest.mark.parametrize("seed", [-1, 2**63])
@pytest.mark.parametrize(("command", "more"), [(EvaluateCommand, {}), (GenerateCommand, {"prompt": "a"})])
def test_a_seed_that_torch_refuses_is_an_error_everywhere(seed, command, more):
    given = GIVEN if command is EvaluateCommand else {"model": "m:net"}
    with pytest.raises(ConfigError, match=f"--seed: got {seed}"):
        resolve(command, {**given, **more, "seed": seed})


def test_perplexity_has_a_file_too_and_knows_no_metrics(tmp_path):
    given = {"config": write(tmp_path, 'model = "m:net"\ndata = "text.txt"\nwindow = 64\n')}
    assert resolve(PerplexityCommand, given).window == 64
    with pytest.raises(ConfigError, match="the key 'metrics'"):
        resolve(PerplexityCommand, {"config": write(tmp_path, "metrics = ['accuracy']")})


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_text_is_a_sentence(name):
    command = COMMANDS[name].options
    texts = [command.__doc__.split("\n")[0], *(each.declared.help for each in options_of(command).values())]
    for text in texts:
        assert text[0].isupper(), text
        assert text.endswith((".", "...")), text
        assert "same" not in text or "have the same" in text, text


def test_the_rules_of_a_gate_in_a_file(tmp_path):
    text = (
        'baseline = "runs/main.json"\nconfidence-level = 0.9\npoint = true\nmin-slice-size = 30\n'
        '[min]\naccuracy = 0.9\n"test/top.5" = 1\n"accuracy[language = de]" = 0.8\n'
        "[max-drop]\nf1 = 0.01\n[worst-slice]\naccuracy = 0.8\n"
    )
    options = gate(write(tmp_path, text))
    assert rules_of(options) == (
        GateRule("min", "accuracy", 0.9),
        GateRule("min", "test/top.5", 1.0),
        GateRule("min", "accuracy[language = de]", 0.8),
        GateRule("max-drop", "f1", 0.01),
        GateRule("worst-slice", "accuracy", 0.8),
    )
    assert options.baseline == tmp_path / "runs" / "main.json"
    assert (options.confidence_level, options.point, options.min_slice_size) == (0.9, True, 30)
    options = gate(write(tmp_path, text), min=["accuracy=0.7", "f1=0.5"])
    assert [rule.bound for rule in rules_of(options) if rule.kind == "min"] == [0.7, 1.0, 0.8, 0.5]


@pytest.mark.parametrize(
    ("text", "error", "parts"),
    [
        ("[min", StateError, ("run.toml", "not TOML")),
        ("[minimum]\nx = 1", ConfigError, ("the key 'minimum'", "expected 'min'")),
        ("max_drop = 1", ConfigError, ("the key 'max_drop'", "expected 'max-drop'")),
        ("min = 0.9", ConfigError, ("run.toml: min", "got 0.9", "a list")),
        ("[min]\nx = true", ConfigError, ("run.toml: min.x", "got True", "number")),
        ("[min]\ntop.5 = 1", ConfigError, ("run.toml: min.top", "{'5': 1}", "Quote a key")),
        ("[min]\nx = nan", ConfigError, ("run.toml: min.x", "got nan", "a finite number")),
        ("confidence-level = true", ConfigError, ("confidence-level", "got True", "a number")),
        ("point = 1", ConfigError, ("point", "got 1", "true or false")),
        ("min-slice-size = true", ConfigError, ("min-slice-size", "got True", "an integer")),
        ("baseline = 3", ConfigError, ("baseline", "got 3", "a path")),
        (b"\xff", StateError, ("run.toml", "not TOML")),
        ("x = " + "[" * 5000 + "]" * 5000, StateError, ()),
        ("[min]\nx = " + "{a=" * 3000 + "1" + "}" * 3000, StateError, ()),
        ("[min]\nx = 1" + "0" * 400, ConfigError, ()),
        ("[min]\nx = " + "9" * 5000, StateError, ()),
        ('baseline = "a\\u0000b"\n[min]\nx = 1', ConfigError, ("baseline",)),
        ('baseline = ""\n[min]\nx = 1', ConfigError, ("baseline",)),
        ('[min]\n"" = 1', ConfigError, ()),
        ('[min]\n"a\\ud800" = 1', StateError, ()),
    ],
)
def test_an_invalid_file_of_a_gate_is_an_error(tmp_path, text, error, parts):
    with pytest.raises(error) as raised:
        rules_of(gate(write(tmp_path, text)))
    assert all(part in str(raised.value) for part in parts), raised.value
    assert len(str(raised.value)) < 1000


@pytest.mark.parametrize(
    "written", ["accuracy", "accuracy=", "=0.9", "accuracy=high", "accuracy=nan", "accuracy=inf", ""]
)
def test_rules_that_say_nothing_are_refused(written):
    with pytest.raises(ConfigError) as raised:
        rules_of(gate(None, min=[written]))
    assert "--min" in str(raised.value)
    assert repr(written) in str(raised.value)


def test_the_metric_of_a_rule_may_hold_an_equals_sign():
    assert rules_of(gate(None, max=["loss (T=1) = 0.5"])) == (GateRule("max", "loss (T=1)", 0.5),)


def test_options_become_arguments_that_exist():
    from assay.cli.evaluate import arguments
    from assay.data.columns import Data
    from assay.evaluation import evaluate as function

    given = {"min_slice_size": 3, "n_resamples": 5, "keep_samples": False, "diagnostics": False, "sharded": True}
    given |= {"checkpoint_every": 1.0, "rank_timeout_s": 2.0, "batch_size": 3, "run_id": "r", "num_workers": 1}
    passed = arguments(
        Data(None), EvaluateCommand(**given, confidence_level=0, resume=Path("kept"), precision="float16")
    )
    assert set(passed) <= set(inspect.signature(function).parameters)
    assert {name: passed[name] for name in given} == given
    assert passed["confidence_level"] is None
