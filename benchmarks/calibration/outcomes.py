"""A pytest plugin: one line of JSON a test, with its outcome and the exact type of its exception.

pytest -p benchmarks.calibration.outcomes, with the file's name in the environment variable OUTCOMES. Where ONLY names
a file, the tests that are in it are run, and no others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if file := os.environ.get("ONLY"):
        chosen = set(Path(file).read_text("utf-8").splitlines())
        items[:] = [item for item in items if item.nodeid in chosen]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report = yield
    if call.when == "call" or report.outcome != "passed":
        error = call.excinfo and call.excinfo.type.__name__
        text = str(call.excinfo.value)[:300] if call.excinfo else ""
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        line = {"test": item.nodeid, "outcome": outcome, "error": error, "text": text}
        with open(os.environ["OUTCOMES"], "a", encoding="utf-8") as file:
            print(json.dumps(line), file=file)
    return report
