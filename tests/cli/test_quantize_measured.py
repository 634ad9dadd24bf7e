from __future__ import annotations

import sys
import textwrap

import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.errors import ConfigError
from assay.quantize import Recipe
from assay.report import Report
from language.models import TEXT, folder

MODULE = """
    import torch
    from torch.utils.data import TensorDataset
    from language.models import llama

    def language():
        return llama()

    def classifier():
        torch.manual_seed(0)
        return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 5))

    def function():
        net = classifier()
        return lambda x: net(x)

    def data():
        generator = torch.Generator().manual_seed(1)
        return TensorDataset(torch.randn(60, 64, generator=generator), torch.randint(5, (60,), generator=generator))
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "given.py").write_text(textwrap.dedent(MODULE), "utf-8")
    (tmp_path / "text.txt").write_text(TEXT[:800], "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "120")
    yield tmp_path
    sys.modules.pop("given", None)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=True)


def quantize(model, *more):
    return invoke("quantize", model, "--device", "cpu", *more)


LANGUAGE = ("given:language", "--eval", "text.txt", "--window", 64)


def names(path):
    return [section.name for section in Report.load(path).sections]


def test_before_and_after_are_measured_and_the_model_is_written(here):
    done = quantize(*LANGUAGE, "--scheme", "int4:g32", "--out", "out")
    assert done.exit_code == 0, done.output
    assert names(here / "out" / "report.json") == ["Outputs", "Size", "Speed", "How it was measured"]
    assert "KL divergence" in done.stdout
    assert (here / "out" / "report.html").is_file()
    said = invoke("generate", "given:language", "--prompt", "The", "--variant", "out", "--device", "cpu", "-n", 4)
    assert said.exit_code == 0, said.output
    assert "out: the" in said.stdout


@pytest.mark.exhaustive
def test_a_folder_of_hugging_face_is_measured_with_its_tokenizer(here):
    saved = folder(here / "hf")
    done = quantize(saved, "--eval", "text.txt", "--window", 64, "--scheme", "int8", "--json")
    assert done.exit_code == 0, done.output
    values = {value.name: value for value in Report.from_json(done.stdout).sections[0].values}
    assert 0 < values["KL divergence"].value < 0.01
    assert values["KL divergence"].count < 400
    done = quantize(saved, "--eval", "text.txt", "--window", 64, "--scheme", "int8", "--out", "out")
    assert done.exit_code == 0, done.output
    options = ("--data", "text.txt", "--window", 64, "--device", "cpu", "--json")
    first, again = (invoke("perplexity", model, *options) for model in (saved, "out"))
    assert again.exit_code == 0, again.output
    nats = [Report.from_json(each.stdout).sections[0].values[1].value for each in (first, again)]
    assert nats[1] == pytest.approx(values["loss after"].value, rel=1e-6)
    assert nats[0] == pytest.approx(values["loss before"].value, rel=1e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_plan_of_a_file_is_measured_and_written_as_it_is(here):
    from assay.huggingface import open_model
    from assay.quantize import plan
    from assay.quantize.files.file import load_packed_weights

    saved = folder(here / "hf")
    made = plan(open_model(saved)[0], {"mlp.up_proj": "int3:g32", "mlp.down_proj": "int8"}, "cpu")
    (here / "plan.json").write_text(made.to_json(), "utf-8")
    done = quantize(saved, "--eval", "text.txt", "--window", 64, "--apply", "plan.json", "--out", "out")
    assert done.exit_code == 0, done.output
    assert {str(each.scheme) for each in load_packed_weights(here / "out").values()} == {"int3:g32", "int8"}


def test_a_classifier_is_measured_with_metrics(here):
    done = quantize(
        "given:classifier", "--eval", "given:data", "-m", "accuracy:num_classes=5", "--scheme", "int8", "--json"
    )
    assert done.exit_code == 0, done.output
    report = Report.from_json(done.stdout)
    assert [section.name for section in report.sections][:2] == ["Outputs", "Quality"]
    assert report.sections[0].values[0].count == 60


def test_schemes_are_put_beside_each_other(here):
    done = quantize(*LANGUAGE, "--sweep", "int8, int4:g32,int3:g32", "--out", "out")
    assert done.exit_code == 0, done.output
    rows = Report.load(here / "out" / "report.json").sections[0].tables[0].rows
    assert [row[0] for row in rows] == ["int3:g32", "int4:g32", "int8"]
    assert not list((here / "out").glob("*.safetensors"))


def test_layers_are_put_in_order(here):
    done = quantize(*LANGUAGE, "--layers", "--scheme", "int3:g32", "--exclude", "lm_head", "--json")
    assert done.exit_code == 0, done.output
    rows = Report.from_json(done.stdout).sections[0].tables[0].rows
    assert len(rows) == 14
    assert all(row[1] == "int3:g32" for row in rows)


def test_a_recipe_for_a_size_can_be_used(here):
    options = ("--budget", "5bits", "--sweep", "int3:g32,int4:g32,int6:g32", "--out", "out")
    done = quantize("given:classifier", "--eval", "given:data", *options)
    assert done.exit_code == 0, done.output
    recipe = Recipe.parse(here / "out" / "recipe.toml")
    assert {rule.pattern for rule in recipe.rules} == {"0", "2", "*"}
    used = quantize("given:classifier", "--recipe", "out/recipe.toml", "--plan")
    assert used.exit_code == 0, used.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--sweep", "int8"), "--eval: got nothing to measure on, expected data"),
        (("--metrics", "accuracy"), "--eval: got nothing to measure on"),
        (("--eval", "given:data", "--layers", "--budget", "4bits"), "got --layers and --budget, expected one of them"),
        (("--eval", "given:data", "--sweep", "int8", "-m", "accuracy:num_classes=5"), "metrics with --sweep"),
        (("--eval", "given:data", "--plan"), "--plan: got --plan and --eval"),
        (("--eval", "given:data", "--window", 8), "given:data with --window or --stride, expected a text"),
        (("--eval", "given:data", "--sweep", "int9"), "scheme: got 'int9'"),
        (("--eval", "given:data", "--budget", "1bits"), "budget: got 1 bits a weight"),
        (("--eval", "nowhere.txt"), "--eval: got nowhere.txt, which is no file"),
        (("--eval", "given:nothing"), "given has no nothing"),
    ],
)
def test_what_cannot_be_measured_is_refused(here, arguments, message):
    done = quantize("given:classifier", *arguments)
    assert isinstance(done.exception, ConfigError), done.output
    assert message in str(done.exception)


def test_a_function_has_no_layers(here):
    done = quantize("given:function", "--eval", "given:data", "--sweep", "int8")
    assert "expected a module whose layers can be replaced" in str(done.exception)
