from __future__ import annotations

import io
import sys

import pytest

from assay import progress
from assay.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "DRAW_S", 0.0)
    return terminal


@pytest.mark.parametrize(("unit", "expected"), [("steps", "3/12"), ("bytes", "3/12 bytes"), ("seconds", "of 12 s")])
def test_a_terminal_shows_title_amount_and_text(terminal, unit, expected):
    with ProgressBar("Checking", 12, unit=unit) as bar:
        bar.update(advance=3, text="layers[0].weight")
    shown = terminal.getvalue()
    assert all(part in shown for part in ("Checking", expected, "layers[0].weight"))


@pytest.mark.parametrize("options", [{"shown": False}, {"rank": 1}, {"rank": 1, "shown": True}])
def test_nothing_is_written_when_quiet_or_in_another_process(terminal, options):
    with ProgressBar("Checking", 12, **options) as bar:
        bar.update(advance=3)
        assert not bar.due
    assert terminal.getvalue() == ""


def test_nothing_is_written_without_a_terminal(capsys):
    with ProgressBar("Checking", None) as bar:
        bar.update(advance=3)
    assert capsys.readouterr().err == ""
