"""lm-eval's tasks on models of assay: the numbers of lm-eval's own `hf`, before and after quantization."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from assay.cli import app
from assay.errors import ConfigError, InputError, InvalidValuesError, InvalidValuesWarning
from assay.huggingface import open_model
from assay.language import ByteTokenizer
from assay.quantize import plan
from assay.report import Report, compare
from language.models import Recurrent, folder, llama

pytest.importorskip("lm_eval", reason="make test-integrations installs lm-eval")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

TASKS = Path(__file__).parent / "lm_eval_runs" / "tasks"
NAMES = ("tiny_choice", "tiny_number", "tiny_text")
LONG = "The quick brown fox jumps over the lazy dog. " * 12


class Request:
    """What a task asks, as lm-eval gives it to a model."""

    def __init__(self, *args):
        self.args = args


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return folder(tmp_path_factory.mktemp("hf") / "tiny", model=llama(vocab=300))


@pytest.fixture
def here(tmp_path, monkeypatch):
    shutil.copytree(TASKS, tmp_path / "tasks")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def of_assay(path, **options):
    from assay.integrations import LmEvalModel

    return LmEvalModel(*open_model(path), device="cpu", **options)


@pytest.fixture(scope="module")
def of_hf(saved):
    from lm_eval.models.huggingface import HFLM

    return HFLM(pretrained=str(saved), device="cpu", batch_size=2)


PAIRS = [
    ("The 7th", " sentence"),
    ("", "says that"),
    ("The 8th sentence ", "naïvely"),
    ("a", "b c d e f"),
    (LONG, " x"),
]


def test_log_likelihoods_are_those_of_hf(saved, of_hf):
    requests = [Request(*pair) for pair in PAIRS]
    with pytest.warns(InvalidValuesWarning, match="1 of 5 texts longer than 128 tokens"):
        found = of_assay(saved, batch_size=2).loglikelihood(requests)
    expected = of_hf.loglikelihood(requests, disable_tqdm=True)
    assert [each for each, _ in found] == pytest.approx([each for each, _ in expected], rel=1e-5)
    assert [greedy for _, greedy in found] == [greedy for _, greedy in expected]


def test_batches_and_order_move_no_log_likelihood_by_more_than_rounding(saved):
    requests = [Request(*pair) for pair in PAIRS[:4]]
    one, four = (of_assay(saved, batch_size=size) for size in (1, 4))
    backwards = four.loglikelihood(requests[::-1])[::-1]
    for a, b, c in zip(one.loglikelihood(requests), four.loglikelihood(requests), backwards, strict=True):
        assert a[0] == pytest.approx(b[0], rel=1e-6)
        assert b == c


def test_greedy_answers_are_found_to_be_greedy(saved):
    model = of_assay(saved)
    text = model.generate_until([Request("The 7th sentence", {"until": [], "max_gen_toks": 4})])[0]
    ((_, is_greedy), (_, other)) = model.loglikelihood([Request("The 7th sentence", each) for each in (text, " zebra")])
    assert not other
    ids = model.tok_encode("The 7th sentence" + text)
    if ids[: len(ids) - 4] == model.tok_encode("The 7th sentence"):  # else the text has other tokens than were made
        assert is_greedy


def test_whole_texts_longer_than_the_model_holds_are_those_of_hf(saved, of_hf):
    requests = [Request(text) for text in (LONG, "short", "", "naïve")]
    found = of_assay(saved).loglikelihood_rolling(requests)
    assert found == pytest.approx(of_hf.loglikelihood_rolling(requests, disable_tqdm=True), rel=1e-5)


def test_texts_are_continued_as_by_hf(saved, of_hf):
    settings = {"until": ["e", "\n"], "max_gen_toks": 12, "do_sample": False}
    requests = [Request(text, settings) for text in ("The 7th sentence", "naïvely", LONG)]
    assert of_assay(saved).generate_until(requests) == of_hf.generate_until(requests, disable_tqdm=True)


def test_any_module_is_measured_and_bytes_have_a_line_end_before_them():
    from assay.integrations import LmEvalModel

    model = Recurrent()
    ((found, _),) = LmEvalModel(model, device="cpu").loglikelihood([Request("", "ab")])
    with torch.no_grad():
        logs = model(torch.tensor([ByteTokenizer().encode("\na")]))[0].log_softmax(1)
    assert found == pytest.approx(float(logs[0, ord("a")] + logs[1, ord("b")]), rel=1e-6)


def run(model, tasks=NAMES):
    from assay.integrations import run_lm_eval

    return run_lm_eval(model, tasks, include_path="tasks")


class Spoiled(torch.nn.Module):
    """A model whose logits of one token have another value; of all tokens where it is None."""

    def __init__(self, value, token=None):
        super().__init__()
        self.model, self.value, self.token = Recurrent(), value, token

    def forward(self, ids):
        logits = self.model(ids)
        logits[..., slice(None) if self.token is None else self.token] = self.value
        return logits


@pytest.mark.parametrize(("value", "token"), [(float("nan"), None), (float("nan"), 7), (float("inf"), 7)])
def test_logits_that_are_not_finite_are_refused_with_their_number_by_task(here, value, token):
    """Else the first choice would be the best of every sample, which looks like an accuracy."""
    from assay.integrations import LmEvalModel

    with pytest.raises(InvalidValuesError, match=r"NaN or infinity \(tiny_choice: (\d+) of \1 requests\)"):
        run(LmEvalModel(Spoiled(value, token), device="cpu"), ("tiny_choice",))
    with pytest.raises(InvalidValuesError, match=r"NaN or infinity \(tiny_text: (\d+) of \1 requests\)"):
        run(LmEvalModel(Spoiled(value, token), device="cpu"), ("tiny_text",))
    with pytest.raises(InvalidValuesError, match="logits: got"):
        run(LmEvalModel(Spoiled(value, token), device="cpu"), ("tiny_number",))


def test_choices_of_equal_probability_are_noted(here):
    from assay.integrations import LmEvalModel

    report = run(LmEvalModel(Spoiled(0.0), device="cpu"), ("tiny_choice",))
    assert any("best two choices are equally probable" in note for note in report.notes)


@pytest.fixture
def reports(here, saved):
    from assay.integrations import LmEvalModel

    before = run(of_assay(saved))
    model, tokenizer = open_model(saved)
    after = run(LmEvalModel(plan(model, "int2:g32", "cpu").apply(model), tokenizer, device="cpu"))
    return before, after


def test_tasks_are_a_report_with_the_values_of_hf_and_pair_after_quantization(reports, of_hf):
    before, after = reports
    expected = run(of_hf)
    for mine, theirs in zip(before.sections, expected.sections, strict=True):
        assert mine.name == theirs.name
        assert [each.name for each in mine.values] == [each.name for each in theirs.values]
        assert [each.value for each in mine.values] == pytest.approx([each.value for each in theirs.values], rel=1e-5)
        assert len(mine.samples) == len(theirs.samples)
    deltas = {(each.section, each.metric): each for each in compare(before, after).deltas}
    for place in (("tiny_choice", "acc"), ("tiny_text", "bits_per_byte")):
        assert deltas[place].paired, deltas[place].note
    assert deltas["tiny_text", "bits_per_byte"].difference
    assert Report.from_json(before.to_json()) == before


def test_on_the_command_line(here, saved):
    for scheme, out in (("", "a"), ("int4:g32", "b")):
        model = saved
        if scheme:
            model = "small"
            assert CliRunner().invoke(app, ["quantize", str(saved), "--scheme", scheme, "--out", model]).exit_code == 0
        arguments = ["lm-eval", str(model), "--tasks", ",".join(NAMES), "--include-path", "tasks", "--out", out]
        done = CliRunner().invoke(app, [*arguments, "--device", "cpu", "--limit", "2"], catch_exceptions=True)
        assert done.exit_code == 0, done.output
    report = Report.load(here / "a")
    assert {section.name for section in report.sections} == set(NAMES)
    assert "Model: tiny (LlamaForCausalLM of a folder)." in report.notes
    done = CliRunner().invoke(app, ["compare", "a/report.json", "b/report.json"])
    assert done.exit_code == 0, done.output


def test_what_cannot_be_measured_is_refused(here, saved):
    from assay.integrations import LmEvalModel, run_lm_eval

    model = of_assay(saved)
    with pytest.raises(ConfigError, match="tasks: got 'no_such_task', expected tasks that lm-eval has"):
        run(model, ["no_such_task"])
    with pytest.raises(ConfigError, match="include_path: got nowhere, which is no folder"):
        run_lm_eval(model, NAMES, include_path="nowhere")
    with pytest.raises(ConfigError, match="max_length: got 1000, expected what the model can hold, 128 tokens"):
        of_assay(saved, max_length=1000)
    with pytest.raises(InputError, match="request: got a continuation of"):
        model.loglikelihood([Request("a", LONG)])
    with pytest.raises(ConfigError, match="generation_kwargs: got top_p, expected until"):
        model.generate_until([Request("a", {"until": [], "top_p": 0.5, "max_gen_toks": 2})])
    with pytest.raises(ConfigError, match="max_gen_toks: got 500 new tokens, expected fewer than the 128"):
        model.generate_until([Request("a", {"until": [], "max_gen_toks": 500})])
    with pytest.raises(ConfigError, match="chat template: got none, expected one of the tokenizer"):
        model.apply_chat_template([{"role": "user", "content": "a"}])
    with pytest.raises(ConfigError, match="data: got token 110, expected tokens below 30"):
        LmEvalModel(llama(vocab=30), device="cpu").loglikelihood([Request("a", "n")])
