"""Reports in a notebook: texts are returned and display nothing, and a cell shows a report once, as its page."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from assay.report import Report, Section, Value

REPORT = Report("digits", [Section("test", (Value("accuracy", 0.75),))])
CELL = """
from assay.report import Report, Section, Value
report = Report("digits", [Section("test", (Value("accuracy", 0.75),))])
text = report.to_text(), str(report), repr(report)
assert all("0.7500" in each for each in text), text
report
"""


@pytest.fixture
def displayed(monkeypatch):
    """What rich displays; it believes that this is Jupyter."""
    found: list[object] = []
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda *arguments: found.append(arguments))
    return found


def test_texts_are_returned_and_display_nothing(displayed):
    for text in (REPORT.to_text(), str(REPORT), repr(REPORT)):
        assert "0.7500" in text
    assert displayed == []
    REPORT.show()
    assert len(displayed) == 1


def test_a_kernel_shows_a_report_once_as_its_page():
    pytest.importorskip("ipykernel")
    client = pytest.importorskip("nbclient", reason="nbclient runs a notebook")
    from nbformat.v4 import new_code_cell, new_notebook

    notebook = new_notebook(cells=[new_code_cell(CELL)])
    paths = filter(None, [str(Path(sys.modules["assay"].__file__).parents[1]), *sys.path])
    kernel = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    client.NotebookClient(notebook, timeout=120).execute(env=kernel)
    (output,) = notebook.cells[0].outputs
    assert output.data["text/html"].startswith("<iframe srcdoc=")
    assert "0.7500" in output.data["text/plain"]
