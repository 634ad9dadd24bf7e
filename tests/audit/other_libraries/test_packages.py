"""What the audit found in packages that use torch: the page and the texts for issues are written from one file."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from benchmarks.packages_audited import findings, page

from assay.audit.findings.rulebook import rules

ROOT = Path(__file__).parents[3]
PACKAGES = findings.packages()


def test_the_page_says_what_was_found():
    text = (ROOT / page.PAGE).read_text("utf-8")
    begin, end = text.index(page.BEGIN), text.index(page.END) + len(page.END)
    assert text[begin:end] == page.section(), "Run `python -m benchmarks.packages_audited page`"


def test_there_is_a_text_for_each_package_and_no_other():
    texts = {path.stem: path.read_text("utf-8") for path in (ROOT / page.UPSTREAM).glob("*.md")}
    assert texts == {package.name: page.issue(package) for package in PACKAGES}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_each_finding_can_be_looked_up_and_reproduced_in_a_few_lines(package):
    names = {each.name for each in findings.audited()}
    assert package.name in names
    for finding in package.findings:
        assert finding.rule in rules()
        assert re.fullmatch(r"[\w/]+\.py:\d+", finding.line), finding.line
        assert set(finding.devices) <= {"mps", "cuda", "cuda:1", "xpu", "npu"}, finding.devices
        tree = ast.parse(finding.reproduce)
        imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        imported |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        assert finding.line.partition("/")[0] in {name.partition(".")[0] for name in imported}, finding.line
        assert any(isinstance(node, ast.Name) and node.id == "device" for node in ast.walk(tree)), finding.line
        assert len(finding.reproduce.strip().splitlines()) <= 16, finding.line


def test_no_line_is_told_twice():
    lines = [finding.line for package in PACKAGES for finding in package.findings]
    assert len(lines) == len(set(lines))
    assert sorted(package.name for package in PACKAGES) == [package.name for package in PACKAGES]
