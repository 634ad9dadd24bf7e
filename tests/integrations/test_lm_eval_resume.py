"""Tasks of lm-eval resume after a kill -9, with the same bits; answers of other runs are refused."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.errors import ConfigError, StateError
from assay.integrations.lm_eval import answers as lm_eval_answers
from assay.integrations.lm_eval.answers import AnswerStore
from assay.report import Report
from language.models import folder, llama

TASKS = Path(__file__).parent / "lm_eval_runs" / "tasks"
NAMES = "tiny_choice,tiny_number,tiny_text"
FILE = "lm-eval-answers.json"

RUN = """
import os, signal, sys, warnings
warnings.simplefilter("ignore")
from assay.cli import main
from assay.integrations import LmEvalModel
from assay.integrations.lm_eval import answers as lm_eval_answers

lm_eval_answers.EVERY_S, lm_eval_answers.MOST_OF_THE_TIME = 0.0, 1e9
left = [int(sys.argv.pop(1))]


def counted(call):
    def run(self, *args):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        print("computed", file=sys.stderr)
        return call(self, *args)

    return run


LmEvalModel._scores, LmEvalModel._generate = counted(LmEvalModel._scores), counted(LmEvalModel._generate)
sys.argv[0] = "assay"
main()
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    pytest.importorskip("lm_eval", reason="make test-integrations installs lm-eval")
    shutil.copytree(TASKS, tmp_path / "tasks")
    folder(tmp_path / "tiny", model=llama(vocab=300))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arguments(*more, tasks=NAMES):
    common = ["tiny", "--tasks", tasks, "--include-path", "tasks", "--device", "cpu", "--batch-size", "2"]
    return ["lm-eval", *common, *more]


def computed(kill_at, *more):
    """How many batches and texts a process computed, and how it ended: it is killed before this many."""
    command = [sys.executable, "-c", RUN, str(kill_at), *arguments(*more)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.stderr.count("computed\n"), done.returncode


def refused(*more, **options):
    done = CliRunner().invoke(app, arguments("--resume", "kept", *more, **options))
    assert isinstance(done.exception, StateError), done.output
    return str(done.exception)


def measured(path):
    """The sections of a report: values, intervals and samples."""
    return [json.dumps(each, sort_keys=True) for each in json.loads(Report.load(path).to_json())["sections"]]


@pytest.mark.slow
def test_a_killed_run_resumes_with_the_same_bits_and_computes_nothing_twice(here):
    total, ended = computed(-1, "--out", "whole")
    assert ended == 0
    assert total > 12
    counts = [computed(kill_at, "--resume", "kept", "--out", "resumed") for kill_at in (3, 5, -1)]
    assert [ended for _, ended in counts] == [-signal.SIGKILL, -signal.SIGKILL, 0]
    assert sum(count for count, _ in counts) == total
    assert measured("resumed") == measured("whole")
    assert computed(-1, "--resume", "kept", "--out", "again") == (0, 0)
    assert measured("again") == measured("whole")


def test_answers_of_other_runs_are_refused(here):
    assert CliRunner().invoke(app, arguments("--resume", "kept", "--limit", "2")).exit_code == 0
    assert "answers of a run with other limit, expected those of this run" in refused()
    assert "answers of a run with other tasks" in refused("--limit", "2", tasks="tiny_choice")
    choices = here / "tasks" / "choice.jsonl"
    choices.write_text(choices.read_text().replace("mat", "cat"))
    assert "answers to other requests (loglikelihood)" in refused("--limit", "2")
    folder(here / "tiny", model=llama(vocab=300, seed=1))
    assert "answers of a run with other model" in refused("--limit", "2")


def test_a_damaged_file_is_refused(tmp_path):
    with AnswerStore(tmp_path, {}) as store:
        store.add_text("4f", "Paris")
    text = (tmp_path / FILE).read_text()
    (tmp_path / FILE).write_text(text.replace("Paris", "Praga"))
    with pytest.raises(StateError, match=FILE):
        AnswerStore(tmp_path, {})
    (tmp_path / FILE).write_text(text[: len(text) // 2])
    with pytest.raises(StateError, match=FILE):
        AnswerStore(tmp_path, {})
    with pytest.raises(ConfigError, match=r"resume: got .* which is no folder, expected a folder"):
        AnswerStore(tmp_path / FILE, {})


def test_every_number_comes_back_and_an_error_keeps_what_was_answered(tmp_path):
    answers = {"a": (-0.1, True), "b": (float("-inf"), False), "c": (float("nan"), False)}
    with suppress(KeyboardInterrupt), AnswerStore(tmp_path, {"model": "m"}) as store:
        store.begin("loglikelihood", ["a", "b", "c"])
        store.add_likelihoods(answers, answers.values())
        store.add_text("d", "\ud83d naïve\n")
        raise KeyboardInterrupt
    again = AnswerStore(tmp_path, {"model": "m"})
    assert repr(again.likelihoods) == repr(answers)
    assert again.texts == {"d": "\ud83d naïve\n"}
    with pytest.raises(StateError, match="answers to other requests"):
        again.begin("loglikelihood", ["a", "b"])


def test_answers_are_written_when_it_is_time(tmp_path, monkeypatch):
    store = AnswerStore(tmp_path, {})
    store.add_text("a", "")
    assert not (tmp_path / FILE).exists()
    monkeypatch.setattr(lm_eval_answers, "EVERY_S", 0.0)
    AnswerStore(tmp_path, {}).add_text("a", "")
    assert (tmp_path / FILE).exists()
