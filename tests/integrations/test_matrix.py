"""The matrix of the page on hosts says what is tested, and where."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

import pytest

from assay.integrations.optional_packages import PACKAGES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "integrations.md").read_text("utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if "`make test" in line]
ROWS = [row for row in ROWS if len(row) == 5]
PINS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if "==" in line)
RELEASES = set(re.findall(r"mosaicml==([\d.]+)", (ROOT / "Makefile").read_text("utf-8")))


def test_every_host_has_a_row():
    packages = {package for row in ROWS for package, _ in packages_of(row)}
    assert packages == {*PACKAGES.values()} - {"mlflow"} | {"mlflow-skinny"}


def packages_of(row):
    return [tuple(each.split()) for each in row[1].split(", ")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_versions_are_those_that_are_installed(row):
    versions = {version for _, version in packages_of(row)}
    (package,) = {package for package, _ in packages_of(row)}
    if package == "mosaicml":
        assert versions == RELEASES
        return
    assert versions == {PINS[package]}
    if row[2] == "`make test`":
        assert versions == {metadata.version(package)}


@pytest.mark.parametrize("host", [*PACKAGES])
def test_every_host_has_an_example_and_tests(host):
    assert list((ROOT / "examples" / "integrations").glob(f"{host}_*.py"))
    assert (ROOT / "tests" / "integrations" / f"test_{host}.py").is_file()
