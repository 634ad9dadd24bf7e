"""How outcomes of kornia's tests are compared with its list of failures on a Mac."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from benchmarks.calibration import kornia

LIST = (
    "# a comment\nNotImplementedError\ttests/a.py::test_svd[mps-float32]\nAssertionError\ttests/a.py::test_sum[mps]\n"
)
LISTED = {"tests/a.py::test_svd[mps-float32]": "NotImplementedError", "tests/a.py::test_sum[mps]": "AssertionError"}
SVD, SUM, ADD = "tests/a.py::test_svd[mps-float32]", "tests/a.py::test_sum[mps]", "tests/a.py::test_add[mps]"


def outcome(test: str, outcome: str, error: str | None = None) -> dict[str, str | None]:
    return {"test": test, "outcome": outcome, "error": error, "text": ""}


def test_the_list_is_read():
    assert kornia.manifest(LIST) == LISTED


@pytest.mark.parametrize(
    ("found", "on_cpu", "expected"),
    [
        (outcome(SVD, "failed", "NotImplementedError"), "passed", "same type"),
        (outcome(SVD, "failed", "RuntimeError"), "passed", "other type"),
        (outcome(SVD, "passed"), "passed", "passes here"),
        (outcome(SVD, "failed", "ImportError"), "failed", "left out"),
        (outcome(SVD, "skipped"), "passed", "left out"),
        (outcome(ADD, "passed"), "passed", "passes"),
        (outcome(ADD, "failed", "RuntimeError"), "passed", "fails here"),
        (outcome(ADD, "failed", "RuntimeError"), "failed", "left out"),
    ],
)
def test_an_outcome_is_compared_with_the_mac_and_the_cpu(found, on_cpu, expected):
    name = str(found["test"]).replace("[mps", "[cpu")
    result = kornia.compare([found], {name: on_cpu}, LISTED)
    assert {name for name, count in result.counts.items() if count} == {expected}
    assert bool(result.differ) is (expected in ("other type", "passes here", "fails here"))


def test_shares_are_of_what_was_compared():
    found = [
        *(outcome(f"tests/a.py::test_{i}[mps]", "passed") for i in range(3)),
        outcome(ADD, "failed", "RuntimeError"),
        outcome(SVD, "failed", "NotImplementedError"),
        outcome(SUM, "passed"),  # an AssertionError on the Mac: values are out of scope
    ]
    result = kornia.compare(found, {}, LISTED)
    assert result.passing == 0.75
    assert result.refusals == 1.0


def test_the_plugin_notes_the_exact_type(tmp_path, monkeypatch):
    (tmp_path / "test_a.py").write_text(
        "import pytest\n\ndef test_passes(): pass\n\ndef test_refused(): raise NotImplementedError('no kernel')\n\n"
        "@pytest.mark.skip\ndef test_skipped(): pass\n\n@pytest.mark.xfail\ndef test_xfails(): raise TypeError\n",
        "utf-8",
    )
    monkeypatch.setenv("OUTCOMES", str(tmp_path / "out.jsonl"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "benchmarks.calibration.outcomes", "-p", "no:cacheprovider"]
    subprocess.run([*command, f"--rootdir={tmp_path}", str(tmp_path)], capture_output=True, check=False)
    lines = (tmp_path / "out.jsonl").read_text("utf-8").splitlines()
    assert [(one["test"], one["outcome"], one["error"]) for one in map(json.loads, lines)] == [
        ("test_a.py::test_passes", "passed", None),
        ("test_a.py::test_refused", "failed", "NotImplementedError"),
        ("test_a.py::test_skipped", "skipped", "Skipped"),
        ("test_a.py::test_xfails", "xfailed", "TypeError"),
    ]
