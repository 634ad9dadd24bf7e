from __future__ import annotations

import io
import sys

import pytest

from assay import progress
from assay.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def open_terminal(monkeypatch):
    """A terminal as the error stream; not a fixture, as pytest puts its own stream there before each test."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(progress, "DRAW_S", 0.0)
    return terminal


@pytest.mark.parametrize(("unit", "expected"), [("steps", "3/12"), ("bytes", "3/12 bytes"), ("seconds", "of 12 s")])
def test_a_terminal_shows_title_amount_and_text(monkeypatch, unit, expected):
    terminal = open_terminal(monkeypatch)
    with ProgressBar("Checking", 12, unit=unit) as bar:
        bar.update(advance=3, text="layers[0].weight")
    shown = terminal.getvalue()
    assert [part for part in ("Checking", expected, "layers[0].weight") if part not in shown] == []


@pytest.mark.parametrize("options", [{"shown": False}, {"rank": 1}, {"rank": 1, "shown": True}])
def test_nothing_is_written_when_quiet_or_in_another_process(monkeypatch, options):
    terminal = open_terminal(monkeypatch)
    with ProgressBar("Checking", 12, **options) as bar:
        bar.update(advance=3)
        assert not bar.due
    assert terminal.getvalue() == ""


def test_nothing_is_written_without_a_terminal(capsys):
    with ProgressBar("Checking", None) as bar:
        bar.update(advance=3)
    assert capsys.readouterr().err == ""
