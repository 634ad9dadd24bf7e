"""How checks are run, here and in a process that a device may end; the file and the page; the command and pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay._records import encode, seal
from assay.cli import app
from assay.cli import devices as command
from assay.conformance import CheckOutcome, DeviceCheck, check_device, running
from assay.conformance.checks import ConformanceCheck, checks_for, outcome_of
from assay.conformance.outcomes import KINDS
from assay.errors import ConfigError, StateError
from assay.pretend import pretend
from assay.pretend.torch_patches import real_devices


def _differs(device):
    return "differs", "1.5", "2.5"


def _unseen(device):
    return "not seen", "no reason", ""


def _holds(device):
    return "holds", "", ""


def one_of_each_kind(device="cpu", **changed):
    """A check of each kind, which holds; or does what is named for its kind."""
    return [ConformanceCheck(kind, "it", changed.get(kind, _holds)) for kind in KINDS]


@pytest.fixture
def few(monkeypatch):
    """Lets `check_device` run these checks."""

    def use(**changed):
        monkeypatch.setattr(running, "checks_for", lambda device: one_of_each_kind(**changed))

    use()
    return use


def test_the_verdict_and_the_exit_code(few):
    assert (check_device("cpu").outcome, check_device("cpu").exit_code) == ("holds", 0)
    few(values=_differs, laws=_unseen)
    assert (check_device("cpu").outcome, check_device("cpu").exit_code) == ("differs", 1)
    few(laws=_unseen)
    assert (check_device("cpu").outcome, check_device("cpu").exit_code) == ("not enough evidence", 2)
    few(waits=_unseen)  # which most devices do not tell
    assert check_device("cpu").outcome == "holds"


def test_the_file_holds_what_was_found_and_comes_back_equal(few, tmp_path):
    few(values=_differs)
    found = check_device("cpu")
    path = found.save(tmp_path / "cpu.json")
    assert DeviceCheck.load(path) == found
    data = json.loads(Path(path).read_text())
    assert (data["schema"], data["device"], data["how"]) == ("assay.device-check/1", "cpu", "real")
    assert data["machine"].keys() == {"system", "processor", "python", "torch", "assay"}
    assert {"kind": "values", "name": "it", "result": "differs", "got": "1.5", "expected": "2.5"} in data["outcomes"]
    assert {"kind": "laws", "name": "it", "result": "holds"} in data["outcomes"]


def test_a_file_that_was_edited_or_cut_is_refused(few, tmp_path):
    path = Path(check_device("cpu").save(tmp_path / "cpu.json"))
    text = path.read_text()
    for broken in (text.replace('"real"', '"pretended"'), text[:-20], text.replace("device-check/1", "device-check/2")):
        with pytest.raises(StateError):
            DeviceCheck.from_json(broken)
    with pytest.raises(StateError, match="how"):
        DeviceCheck.from_json(json.dumps(seal(json.loads(text) | {"how": "certainly"})))


@pytest.mark.skipif(bool(real_devices()), reason="this build of torch has a device itself")
def test_a_pretended_device_is_never_taken_for_a_real_one(few):
    with pretend("mps"):
        found = check_device("mps")
    assert (found.how, found.name, found.exit_code) == ("pretended", "pretended mps", 0)
    assert "PRETENDED" in str(found)
    assert "holds (pretended)" in str(found)
    assert "pretended" in repr(found)
    assert "PRETENDED" not in str(check_device("cpu"))


def test_the_page_fits_a_terminal_and_names_what_differs(few):
    few(metrics=_differs)
    page = str(check_device("cpu"))
    assert max(map(len, page.splitlines())) <= 80
    assert len(page.splitlines()) < 40
    assert "metrics: it" in page
    assert "1.5" in page
    assert "2.5" in page
    assert "exit code 1" in page


def test_the_page_says_that_another_release_judges_operators(few):
    found = check_device("cpu")
    other = DeviceCheck(**vars(found) | {"machine": found.machine | {"torch": "2.1.0"}})
    assert "other releases" in str(other)
    same = DeviceCheck(**vars(found) | {"machine": found.machine | {"torch": "2.13.1+cpu"}})
    assert "other releases" not in str(same)


@pytest.mark.parametrize(
    ("device", "expected"), [("xpu", "one of this machine"), ("meta", "values"), ("foo", "machine")]
)
def test_a_device_that_is_not_there_is_one_clear_error(device, expected):
    if device in real_devices():
        pytest.skip("this build has it")
    with pytest.raises(ConfigError, match=f"{device}.*{expected}"):
        check_device(device)


def test_what_raises_differs_and_what_cannot_be_pretended_is_unseen():
    def fails(device):
        raise ValueError("first line\nsecond")

    def lacks(device):
        raise ImportError("no such package")

    assert outcome_of(ConformanceCheck("laws", "it", fails), "cpu") == CheckOutcome(
        "laws", "it", "differs", "ValueError: first line", "no error"
    )
    assert outcome_of(ConformanceCheck("laws", "it", lacks), "cpu").result == "not seen"


def test_checks_leave_the_random_numbers_of_the_caller_alone(few):
    import torch

    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    check_device("cpu")
    assert torch.equal(torch.rand(1), expected)
    before = torch.are_deterministic_algorithms_enabled()
    list(running.outcomes_here([c for c in checks_for("cpu") if c.name.startswith("deterministic")], "cpu"))
    assert torch.are_deterministic_algorithms_enabled() == before


# --- in another process --------------------------------------------------------------------------------------------

ENDS = """
import json, os, sys, time
first = int(sys.argv[2])
for k in range(first, 8):
    if k == 2:
        print("failed assertion 7", file=sys.stderr); sys.stderr.flush(); os.abort()
    if k == 4:
        time.sleep(60)
    print(json.dumps({"kind": "laws", "name": str(k), "result": "holds"}), flush=True)
"""


def test_what_ends_its_process_differs_and_the_others_are_run(tmp_path):
    (tmp_path / "ends.py").write_text(ENDS)
    checks = [ConformanceCheck("laws", str(k), _holds) for k in range(8)]
    found = list(running.outcomes_apart(checks, "cpu", [sys.executable, str(tmp_path / "ends.py")], stall_s=3))
    assert [each.name for each in found] == [str(k) for k in range(8)]
    assert [each.name for each in found if each.result == "differs"] == ["2", "4"]
    assert "failed assertion 7" in found[2].got
    assert all(each.result == "holds" for each in found if each.name not in "24")


def test_after_many_ends_the_rest_is_unseen(tmp_path):
    (tmp_path / "ends.py").write_text("import os; os.abort()")
    checks = [ConformanceCheck("laws", str(k), _holds) for k in range(running.MOST_ENDED + 3)]
    found = list(running.outcomes_apart(checks, "cpu", [sys.executable, str(tmp_path / "ends.py")]))
    assert [each.result for each in found].count("differs") == running.MOST_ENDED
    assert [each.result for each in found[-3:]] == ["not seen"] * 3


@pytest.mark.exhaustive  # it starts a process
def test_the_other_process_finds_the_same(monkeypatch):
    monkeypatch.setenv(running.FALLBACK, "1")
    checks = [check for check in checks_for("cpu") if check.kind in ("operators", "dtypes")][:300]
    found = list(running.outcomes_apart(checks, "cpu"))
    assert [encode(each) for each in found] == [encode(each) for each in running.outcomes_here(checks, "cpu")]
    assert os.environ[running.FALLBACK] == "1"


# --- the command and pytest ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("changed", "code"), [({}, 0), ({"laws": _differs}, 1), ({"laws": _unseen}, 2)])
def test_the_command_writes_the_file_prints_the_page_and_ends_with_its_code(few, tmp_path, changed, code):
    few(**changed)
    done = CliRunner().invoke(app, ["devices", "--check", "cpu", "--out", str(tmp_path / "cpu.json")])
    assert done.exit_code == code
    assert f"exit code {code}" in done.output
    assert DeviceCheck.load(tmp_path / "cpu.json").exit_code == code
    as_json = CliRunner().invoke(app, ["devices", "--check", "cpu", "--json"])
    assert DeviceCheck.from_json(as_json.output).outcome == DeviceCheck.load(tmp_path / "cpu.json").outcome


@pytest.mark.skipif(bool(real_devices()), reason="this build of torch has a device itself")
def test_the_command_pretends_where_it_is_told_to(few, tmp_path):
    done = CliRunner().invoke(app, ["devices", "--check", "mps", "--pretend", "--out", str(tmp_path / "mps.json")])
    assert done.exit_code == 0
    assert DeviceCheck.load(tmp_path / "mps.json").how == "pretended"
    assert "PRETENDED" in done.output


@pytest.mark.parametrize("arguments", [["--pretend"], ["--out", "a.json"]])
def test_the_command_needs_the_name_of_a_device(arguments):
    done = CliRunner().invoke(app, ["devices", *arguments])
    assert isinstance(done.exception, ConfigError)
    assert "--check" in str(done.exception)


def test_the_check_that_the_command_runs_is_the_public_one():
    assert command.check_device is check_device


def run_pytest(*arguments, cwd):
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "assay.conformance", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False, cwd=cwd)


@pytest.mark.exhaustive  # each test starts pytest
def test_pytest_runs_the_same_checks_and_names_what_fails(tmp_path):
    done = run_pytest("--device", "cpu", "-k", "values or dtypes", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    count = sum(each.kind in ("values", "dtypes") or "values" in each.name for each in checks_for("cpu"))
    assert f"{count} passed" in done.stdout
    (tmp_path / "fault.py").write_text("import torch\ntorch.erf = lambda x: x\n")
    done = run_pytest("--device", "cpu", "-k", "erf", "-p", "fault", cwd=tmp_path)
    assert done.returncode == 1
    assert "values: erf" in done.stdout
    assert "units in the last place" in done.stdout


@pytest.mark.exhaustive
@pytest.mark.skipif(bool(real_devices()), reason="this build of torch has a device itself")
def test_pytest_checks_a_pretended_device_and_refuses_one_that_is_not_there(tmp_path):
    done = run_pytest("--device", "mps", "--assay-pretend", "mps", "-k", "dtypes", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert "99 passed" in done.stdout
    done = run_pytest("--device", "xpu", cwd=tmp_path)
    assert done.returncode != 0
    assert "one of this machine: cpu" in done.stdout


OWN_OPTION = "def pytest_addoption(parser):\n    parser.addoption('--device', default='a')\n"


@pytest.mark.exhaustive
def test_other_projects_keep_the_name_of_the_option(tmp_path):
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser):\n    parser.addoption('--device', default='own')\n"
    )
    (tmp_path / "test_it.py").write_text(
        "def test_it(pytestconfig):\n    assert pytestconfig.getoption('device') == 'own'\n"
    )
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
