"""`assay verify` of the file of a device check: damage, edits, missing checks, and pretended devices."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from assay._records import seal
from assay.cli import app
from assay.conformance import CheckOutcome, DeviceCheck
from assay.conformance.checks import TRITON, checks_for
from assay.conformance.outcomes import expectations
from assay.conformance.running import machine
from assay.errors import ConfigError
from assay.verify import Verification
from assay.verify.device_file import is_device_file, verify_device_file


@pytest.fixture
def file(tmp_path):
    outcomes = tuple(CheckOutcome(each.kind, each.name, "holds") for each in checks_for("cpu") if str(each) != TRITON)
    expected_of = {"torch": expectations().torch, "digest": expectations().digest}
    DeviceCheck("cpu", "real", "a CPU", machine(), expected_of, "2026-01-01", 9.0, outcomes).save(tmp_path / "cpu.json")
    return tmp_path / "cpu.json"


def edit(file, **changed):
    """Change entries of the file, and repair its digest."""
    file.write_text(json.dumps(seal(json.loads(file.read_text()) | changed)))


def verified(file):
    return Verification.of(*verify_device_file(file))


def test_a_sound_file_is_verified(file):
    done = CliRunner().invoke(app, ["verify", str(file)])
    assert done.exit_code == 0, done.output
    assert "cpu, real: holds" in done.output
    assert is_device_file(file)


@pytest.mark.parametrize("option", ["data", "model", "statement"])
def test_options_that_are_for_reports_are_refused(file, option):
    done = CliRunner().invoke(app, ["verify", str(file), f"--{option}", "it"])
    assert isinstance(done.exception, ConfigError)
    assert f"--{option}" in str(done.exception)


def test_damage_is_found(file):
    text = file.read_text()
    file.write_text(text.replace('"real"', '"pretended"'))
    assert verified(file).exit_code == 1
    file.write_text(text[:-40])
    assert not is_device_file(file)  # nor anything else
    assert CliRunner().invoke(app, ["verify", str(file)]).exit_code == 1


def test_a_missing_a_foreign_and_a_doubled_check_are_found(file):
    outcomes = json.loads(file.read_text())["outcomes"]
    foreign = {"kind": "laws", "name": "it", "result": "holds"}
    for changed in (outcomes[1:], [*outcomes, foreign], [*outcomes, outcomes[0]]):
        edit(file, outcomes=changed)
        (found,) = [each for each in verified(file).checks if each.outcome == "fail"]
        assert found.found.startswith("1 are not")
    edit(file, outcomes=[*outcomes, {"kind": "integers", "name": TRITON.partition(": ")[2], "result": "holds"}])
    assert verified(file).exit_code == 0  # of a build for CUDA


def test_what_differs_fails_and_is_named(file):
    outcomes = json.loads(file.read_text())["outcomes"]
    outcomes[3] |= {"result": "differs", "got": "runs", "expected": "TypeError"}
    edit(file, outcomes=outcomes)
    found = verified(file)
    assert found.exit_code == 1
    assert outcomes[3]["name"] in found.checks[-1].found


def test_a_pretended_device_is_no_evidence(file):
    edit(file, how="pretended")
    found = verified(file)
    assert found.exit_code == 2
    assert "PRETENDED" in found.checks[-1].found


def test_other_expectations_are_not_enough_evidence(file):
    edit(file, expected_of={"torch": "2.13.0", "digest": "0"})
    assert verified(file).exit_code == 2


def test_a_kind_that_was_not_seen_is_not_enough_evidence(file):
    outcomes = json.loads(file.read_text())["outcomes"]
    for each in outcomes:
        if each["kind"] == "laws":
            each["result"] = "not seen"
    edit(file, outcomes=outcomes)
    assert verified(file).exit_code == 2
