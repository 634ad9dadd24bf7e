from __future__ import annotations

import json
import re
import sys
import textwrap
from functools import wraps

import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.cli.language_shown import readable
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
        (("--variant", "nowhere"), "--variant: got 'nowhere', expected a model, a scheme"),
        (("--temperature", -1), "temperature: got -1"),
        (("-n", 0), "max-new-tokens: got 0"),
        (("--top-k", 0), "--top-k: got 0"),
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


TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '[' + message.role + '] ' + message.content + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)


@pytest.fixture(scope="module")
def with_template(tmp_path_factory):
    path = folder(tmp_path_factory.mktemp("hf") / "talks")
    (path / "chat_template.jinja").write_text(TEMPLATE, "utf-8")
    return path


def chat(model, lines, *more):
    arguments = [str(each) for each in ("chat", model, "--device", "cpu", "-n", 8, *more)]
    return CliRunner().invoke(app, arguments, input="\n".join(lines), catch_exceptions=True)


def greedy(path, text, count):
    """What Transformers itself generates."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, tokenizer = (each.from_pretrained(path) for each in (AutoModelForCausalLM, AutoTokenizer))
    ids = tokenizer(text, add_special_tokens=False, return_tensors="pt")
    made = model.generate(**ids, max_new_tokens=count, do_sample=False, pad_token_id=0, eos_token_id=1)
    return tokenizer.decode(made[0, ids.input_ids.shape[1] :], skip_special_tokens=True)


def test_a_conversation_follows_the_template_and_answers_are_those_of_transformers(here, with_template):
    done = chat(with_template, ["Say a number", "", "Another"], "--system", "Be short")
    assert done.exit_code == 0, done.output
    prompt = "<s>[system] Be short\n[user] Say a number\n[assistant] "
    first = greedy(with_template, prompt, 8)
    second = greedy(with_template, f"{prompt}{first}\n[user] Another\n[assistant] ", 8)
    assert done.stdout == f"{readable(first)}\n{readable(second)}\n"
    assert len(re.findall(r"\[\d tokens, [\d.,]+ a second\]", done.stderr)) == 2
    assert "no chat template" not in done.stderr


def test_bytes_of_a_line_that_are_no_utf8_are_replaced(monkeypatch):
    from assay.cli.chat import _read

    monkeypatch.setattr("builtins.input", lambda prompt: "caf\udcc3\udca9 \udcff")
    assert _read() == "café \ufffd"


@pytest.mark.parametrize("option", ["-n", "--top-k"])
def test_a_chat_refuses_an_invalid_number_before_the_first_line(here, option):
    done = chat("given:model", [], option, 0)
    assert isinstance(done.exception, ConfigError), done.output
    assert "got 0, expected an integer, at least 1" in str(done.exception)


def test_a_prompt_that_is_no_utf8_is_refused(here, saved):
    done = invoke("generate", saved, "--prompt", "Hello \udcff", "--device", "cpu", "-n", 2)
    assert isinstance(done.exception, ConfigError), done.output
    assert "text: got bytes that are no UTF-8" in str(done.exception)


def test_without_a_template_the_text_is_continued_and_may_be_forgotten(here, saved):
    done = chat(saved, ["The 7th", "/clear", "The 7th"])
    assert done.exit_code == 0, done.output
    assert "tiny has no chat template" in done.stderr
    answer = readable(greedy(saved, "<s>The 7th", 8))
    assert done.stdout == f"{answer}\n{answer}\n"


def test_a_conversation_that_fills_the_model_goes_on_after_it_is_forgotten(here, saved):
    done = chat(saved, ["The 7th sentence " * 60, "/clear", "The 7th"])
    assert done.exit_code == 0, done.output
    assert "are more than the model can continue, which holds 128" in done.stderr
    assert done.stdout == readable(greedy(saved, "<s>The 7th", 8)) + "\n"


def test_ctrl_c_stops_an_answer_and_not_the_chat(here, monkeypatch):
    from assay.cli.chat import Answer

    show = Answer.show

    def stop(self, text):
        show(self, text)
        if len(self.times) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(Answer, "show", stop)
    done = chat("given:model", ["ab", "cd"])
    assert done.exit_code == 0, done.output
    assert len(re.findall(r"\[3 tokens, .* a second, stopped\]", done.stderr)) == 2


def test_what_steers_a_terminal_is_shown_as_a_mark(capsys):
    from assay.cli.chat import Answer

    answer = Answer()
    for text in ("né", "né\ufffd", "né\x1b[31m\nx"):
        answer.show(text)
    assert capsys.readouterr().out == "né\ufffd[31m\nx"
    assert answer.text == "né\x1b[31m\nx"
