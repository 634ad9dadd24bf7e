"""GPTQ on the command line: a text for calibration, better than rounding, and a folder like the one before."""

from __future__ import annotations

import pytest
import torch
from typer.testing import CliRunner

from assay.cli import app
from assay.errors import ConfigError
from assay.huggingface import open_model
from assay.language import perplexity, tokens_of
from assay.quantize import calibrate, plan
from assay.quantize.rounding import Calibration
from assay.report import Report
from language.models import TEXT, llama

UNSEEN = TEXT.replace("sentence", "line").replace("says", "shows")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a model of bytes that has learnt the text."""
    model = llama(layers=2).train()
    ids = tokens_of(TEXT * 2).ids
    steps = torch.optim.AdamW(model.parameters(), 3e-3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for _ in range(60):
            starts = torch.randint(len(ids) - 64, (16,))
            batch = torch.stack([ids[start : start + 64] for start in starts.tolist()])
            steps.zero_grad()
            model(batch, labels=batch).loss.backward()
            steps.step()
    path = tmp_path_factory.mktemp("trained") / "model"
    model.eval().save_pretrained(path)
    return path


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "text.txt").write_text(TEXT, "utf-8")
    (tmp_path / "unseen.txt").write_text(UNSEEN, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def quantize(model, *more):
    arguments = ["quantize", model, "--device", "cpu", *more]
    return CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=True)


GPTQ = ("--method", "gptq", "--calibration", "text.txt", "--window", 64)


def nats(folder):
    model, tokenizer = open_model(folder)
    report = perplexity(model, UNSEEN, tokenizer=tokenizer, window=64, device="cpu")
    return {value.name: value.value for value in report.sections[0].values}["nats per token"]


@pytest.mark.exhaustive
def test_a_folder_rounded_by_gptq_predicts_better_than_one_rounded_to_the_nearest(here, trained):
    for name, how in (("nearest", ()), ("gptq", GPTQ)):
        done = quantize(trained, "--scheme", "int3:g32", *how, "--out", name)
        assert done.exit_code == 0, done.output
    before, nearest, gptq = map(nats, (trained, "nearest", "gptq"))
    assert before < gptq < nearest
    model = open_model(trained)[0]
    planned = plan(model, "int3:g32", "cpu", method="gptq")
    expected = planned.apply(model, calibration=calibrate(model, TEXT, window=64, device="cpu"))
    ids = tokens_of(UNSEEN).ids[None, :100]
    assert torch.equal(open_model("gptq")[0](ids).logits, expected(ids).logits)
    assert {path.name for path in (here / "gptq").iterdir()} == {path.name for path in (here / "nearest").iterdir()}


@pytest.mark.exhaustive
def test_what_it_cost_is_measured_on_another_text(here, trained):
    measured = (*GPTQ, "--eval", "unseen.txt", "--json")
    done = quantize(trained, "--scheme", "int3:g32", *measured, "--out", "gptq")
    assert done.exit_code == 0, done.output
    assert Report.load(here / "gptq" / "report.json").notes[-1] == "Data: unseen.txt."
    nearest = plan(model := open_model(trained)[0], "int3:g32", "cpu").apply(model)
    (value,) = (each for each in perplexity(nearest, UNSEEN, window=64).sections[0].values if each.numerator)
    assert nats("gptq") < value.value
    swept = quantize(trained, "--sweep", "int3:g32", *measured)
    assert swept.exit_code == 0, swept.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "gptq", "--out", "x"), "--calibration: got none, expected a file with text"),
        (("--method", "gptq", "--eval", "text.txt"), "--calibration: got none, expected a file with text"),
        (("--calibration", "text.txt", "--out", "x"), "--calibration: got a text for the method nearest"),
        (("--calibration", "no.txt", "--method", "gptq", "--out", "x"), "--calibration: got no.txt, which is no file"),
    ],
)
def test_what_lacks_its_text_or_does_not_take_one_is_refused(here, trained, arguments, message):
    done = quantize(trained, "--scheme", "int4:g32", *arguments)
    assert isinstance(done.exception, ConfigError), done.output
    assert message in str(done.exception)
    assert not (here / "x").exists()


@pytest.mark.parametrize("arguments", [(), ("--calibration", "no.txt")])
def test_a_text_that_is_missing_is_reported_before_a_plan_is_made(here, trained, arguments):
    done = quantize(trained, "--scheme", "int4:g32", "--method", "gptq", "--out", "x", *arguments)
    assert isinstance(done.exception, ConfigError), done.output
    assert done.stdout == ""


def test_every_token_goes_through_once_and_no_hook_is_left(trained):
    model = open_model(trained)[0]
    ids = tokens_of(TEXT).ids[: 64 * 4 + 1]
    text = bytes(ids.tolist()).decode()
    collected = calibrate(model, text, ["lm_head"], window=64, device="cpu", batch_size=3, progress=False)
    assert collected.rows == {"lm_head": 64 * 4}
    with Calibration(model, ["lm_head"]) as by_hand, torch.no_grad():
        model(ids[:-1].view(4, 64))
    torch.testing.assert_close(collected.hessian("lm_head"), by_hand.hessian("lm_head"))
    assert not model.lm_head._forward_pre_hooks
