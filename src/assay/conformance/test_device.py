"""The checks of a device as tests: ``pytest --pyargs assay.conformance --device npu``."""

from __future__ import annotations

import pytest

from assay.conformance.checks import ConformanceCheck, checks_for, outcome_of
from assay.conformance.running import require
from assay.errors import AssayError


def _named(config: pytest.Config) -> str:
    return config.getoption("assay_device", None) or "cpu"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each check of the device that ``--device`` names."""
    name = _named(metafunc.config)
    try:
        require(name)
    except AssayError as error:
        raise pytest.UsageError(f"--device {name}: {error}") from None
    metafunc.parametrize("check", checks_for(name), ids=str)


def test_device(check: ConformanceCheck, pytestconfig: pytest.Config) -> None:
    outcome = outcome_of(check, _named(pytestconfig))
    if outcome.result == "not seen":
        pytest.skip(outcome.got)
    if outcome.result == "differs":
        pytest.fail(str(outcome), pytrace=False)
