from __future__ import annotations

import json
import re
import sys
import textwrap
from functools import wraps

import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.errors import ConfigError, StateError
from assay.huggingface import open_model
from assay.language import perplexity
from assay.report import Report
from language.models import TEXT, folder

MODULE = """
    from language.models import Recurrent

    def model():
        return Recurrent()

    def function():
        net = Recurrent()
        return lambda ids: net(ids)
"""


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return folder(tmp_path_factory.mktemp("hf") / "tiny")


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "given.py").write_text(textwrap.dedent(MODULE), "utf-8")
    (tmp_path / "text.txt").write_text(TEXT, "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("COLUMNS", "120")
    yield tmp_path
    sys.modules.pop("given", None)


def invoke(*arguments):
    return CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=True)


def evaluate(model, *more):
    return invoke("perplexity", model, "--data", "text.txt", "--device", "cpu", *more)


def generate(model, *more):
    return invoke("generate", model, "--prompt", "The 7th", "--device", "cpu", "-n", 5, *more)


def test_the_perplexity_of_a_folder_is_that_of_the_function(here, saved):
    done = evaluate(saved, "--window", 64, "--stride", 16, "--out", "out")
    assert done.exit_code == 0, done.output
    report = Report.load(here / "out" / "report.json")
    model, tokenizer = open_model(saved)
    expected = perplexity(model, TEXT, tokenizer=tokenizer, window=64, stride=16, device="cpu")
    assert [each.value for each in report.sections[0].values] == [each.value for each in expected.sections[0].values]
    assert report.notes[-3:] == (
        "Model: tiny (LlamaForCausalLM of a folder).",
        "Data: text.txt.",
        "Tokens are those of the tokenizer in the model's folder.",
    )
    assert (here / "out" / "report.html").is_file()
    assert "bits per byte" in done.stdout


def test_a_plain_model_reads_bytes(here):
    done = evaluate("given:model", "--window", 32, "--json", "--title", "bytes")
    assert done.exit_code == 0, done.output
    report = Report.from_json(done.stdout)
    assert (report.title, report.notes[-1]) == ("bytes", "Tokens are bytes.")
    assert report.sections[0].values[0].count == len(TEXT.encode()) - 1


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        (("--confidence-level", 0.9), {"confidence_level": 0.9}),
        (("--batch-size", 64, "--confidence-level", 0.9), {"batch_size": 64, "confidence_level": 0.9}),
        (("--confidence-level", 0), {"confidence_level": None}),
    ],
)
def test_batch_size_and_level_are_taken_as_written(here, monkeypatch, arguments, passed):
    given = {}

    @wraps(perplexity)
    def spy(*positional, **named):
        given.update(named)
        return perplexity(*positional, **named)

    monkeypatch.setattr("assay.cli.perplexity.perplexity", spy)
    assert evaluate("given:model", "--window", 32, *arguments).exit_code == 0
    assert {name: given[name] for name in passed} == passed


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("--window", 8, "--stride", 9), ConfigError, "stride: got 9, with a window of 8"),
        (("--data", "nowhere.txt"), ConfigError, "--data: got nowhere.txt, which is no file"),
        (("--data", "bytes.bin"), StateError, r"bytes\.bin: got bytes that are no UTF-8"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(here, arguments, error, message):
    (here / "bytes.bin").write_bytes(b"\xff\xfe\x00")
    done = evaluate("given:model", *arguments)
    assert isinstance(done.exception, error), done.output
    assert re.search(message, str(done.exception))


def test_options_of_one_command_are_none_of_the_other(here):
    done = invoke("evaluate", "given:model", "--data", "text.txt")
    assert "metrics: got none" in str(done.exception)
    for done in (
        invoke("evaluate", "given:model", "--data", "text.txt", "--window", 8, "-m", "accuracy:num_classes=3"),
        evaluate("given:model", "--metrics", "accuracy"),
    ):
        assert done.exit_code == 2
        assert "No such option" in done.output


def test_a_text_is_gone_on_with_before_and_after(here, saved):
    done = generate(saved, "--variant", "int8", "--variant", "int2:g32")
    assert done.exit_code == 0, done.output
    assert "int2:g32: the first" in done.stdout
    assert re.search(r"int8: the (same 5 tokens|first \d tokens)", done.stdout)
    assert done.stdout.count("a second") == 3


def test_what_was_said_is_json_for_programs(here):
    done = generate("given:model", "--variant", "given:function", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["given:model"]["ids"] == found["given:function"]["ids"]
    assert found["given:model"]["prompt_tokens"] == 7
    assert found["given:model"]["tokens_per_second"] > 0


def test_the_seed_of_a_perplexity_reaches_its_report(here, saved):
    done = evaluate(saved, "--seed", 7, "--json")
    (run,) = (table for table in Report.from_json(done.stdout).sections[0].tables if table.name == "Run")
    assert ("seed", "7") in run.rows


def test_draws_have_a_seed(here):
    options = ("given:model", "--temperature", 1, "--top-k", 50, "--json")
    first, again, other = (generate(*options, "--seed", seed) for seed in (1, 1, 2))
    ids = [json.loads(done.stdout)["given:model"]["ids"] for done in (first, again, other)]
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--variant", "int4:g5"), "plan: got nothing to quantize"),
        (("--variant", "nowhere"), "MODEL: got 'nowhere'"),
        (("--temperature", -1), "temperature: got -1"),
        (("-n", 0), "max_new_tokens: got 0"),
        (("--device", "nowhere"), "device: got 'nowhere'"),
    ],
)
def test_what_cannot_be_generated_is_refused(here, arguments, message):
    done = generate("given:model", *arguments)
    assert isinstance(done.exception, ConfigError), done.output
    assert message in str(done.exception)


def test_a_function_cannot_be_quantized(here):
    done = generate("given:function", "--variant", "int4:g32")
    assert "expected a module to quantize" in str(done.exception)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_quantized_folders_are_named_like_others(here, saved):
    from assay.quantize import plan

    made = plan(open_model(saved)[0], "int4:g32", "cpu")
    (here / "plan.json").write_text(made.to_json(), "utf-8")
    done = invoke("quantize", saved, "--apply", "plan.json", "--out", "by_assay")
    assert done.exit_code == 0, done.output
    model, tokenizer = open_model(saved)
    made.apply(model).save_pretrained("by_transformers")
    tokenizer._tokenizer.save_pretrained("by_transformers")
    nats = {}
    for name in ("by_assay", "by_transformers"):
        done = evaluate(name, "--window", 64, "--json")
        assert done.exit_code == 0, done.output
        nats[name] = Report.from_json(done.stdout).sections[0].values[1].value
        done = generate(name)
        assert done.exit_code == 0, done.output
        again = invoke("quantize", name, "--scheme", "int8", "--out", "again")
        assert isinstance(again.exception, ConfigError)
        assert "quantized already" in str(again.exception)
        measured = invoke("quantize", name, "--scheme", "int8", "--eval", "text.txt")
        assert isinstance(measured.exception, ConfigError)
        assert "quantized already" in str(measured.exception)
    assert not (here / "again").exists()
    assert nats["by_assay"] == pytest.approx(nats["by_transformers"], rel=1e-3)
