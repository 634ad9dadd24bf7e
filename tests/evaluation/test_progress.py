from __future__ import annotations

import io
import sys

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from assay import AUROC, Accuracy, Meter, progress
from assay.evaluation import evaluate
from assay.evaluation.loop.progress import EvaluationProgress

DATA = TensorDataset(torch.eye(3).repeat(20, 1), torch.arange(3).repeat(20))
METRIC = Accuracy(num_classes=3)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(**more):
    return evaluate(nn.Identity(), DATA, METRIC, device="cpu", batch_size=4, **more)


def test_it_is_quiet_without_a_terminal(capsys):
    run()
    found = capsys.readouterr()
    assert (found.out, found.err) == ("", "")


def test_a_terminal_shows_rate_and_running_values(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "DRAW_S", 0.0)
    run()
    text = terminal.getvalue()
    assert "Evaluating" in text
    assert "15/15" in text
    assert "samples/s" in text
    assert "Accuracy 1.0000" in text


def test_it_can_be_turned_off_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    run(progress=False)
    assert terminal.getvalue() == ""


@pytest.mark.parametrize(("rank", "shown"), [(0, True), (1, False)])
def test_only_the_first_rank_draws(rank, shown):
    bar = EvaluationProgress(Meter(METRIC), 10, True, rank, 2)
    assert bar.shown is shown
    assert (bar.watcher is bar) is shown


def test_values_are_read_at_most_twice_a_second_and_less_where_that_takes_long(monkeypatch):
    now, reads = [0.0], []
    cost = [0.0]

    def read(self):
        reads.append(now[0])
        now[0] += cost[0]
        return ""

    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(EvaluationProgress, "_read", read)
    monkeypatch.setattr(sys, "stderr", Terminal())

    def second(bar):
        for _ in range(100):
            now[0] += 0.01
            bar.step(4)

    with EvaluationProgress(Meter(METRIC), None, True, 0, 1) as bar:
        for _ in range(10):
            second(bar)
        assert 18 <= len(reads) <= 20
        reads.clear()
        cost[0] = 0.1
        for _ in range(20):
            second(bar)
        assert len(reads) <= 5


def test_values_that_cannot_be_read_yet_are_left_out():
    meter = Meter(AUROC())
    meter.update(torch.tensor([0.5, 7.0]), torch.tensor([0, 1]))
    assert EvaluationProgress(meter, 1, True, 0, 1)._read() == ""
