from __future__ import annotations

import pytest

from assay.audit.findings.finding import Finding
from assay.audit.findings.suppress import comments, suppressed


def finding(file, line, rule="device-sync"):
    return Finding(rule, "warning", str(file), line, "f", "", "", "", "")


@pytest.fixture
def reasons(tmp_path):
    def of(text, *lines):
        file = tmp_path / "code.py"
        file.write_text(text)
        found = suppressed([finding(file, line) for line in lines])
        return [(each.rule, each.line, each.suppressed or each.what) for each in found]

    return of


def test_a_comment_on_the_line_or_alone_above_it(reasons):
    text = (
        "x.item()  # assay: allow device-sync -- once an epoch\n"
        "y.item()\n"
        "# assay: allow unseeded, device-sync -- both are meant\n"
        "z.item()\n"
    )
    assert reasons(text, 1, 2, 4) == [
        ("device-sync", 1, "once an epoch"),
        ("device-sync", 2, ""),
        ("device-sync", 4, "both are meant"),
    ]


@pytest.mark.parametrize(
    ("comment", "wrong"),
    [
        ("# assay: allow device-sync", "The comment gives no reason"),
        ("# assay: allow device-sync --", "The comment gives no reason"),
        ("# assay: allow", "The comment names no rule of the audit: none"),
        ("# assay: allow sync -- because", "The comment names no rule of the audit: sync"),
    ],
)
def test_a_bad_comment_explains_nothing_and_is_a_finding_itself(reasons, comment, wrong):
    assert reasons(f"x.item()  {comment}\n", 1) == [("device-sync", 1, ""), ("suppression", 1, wrong)]


def test_another_rule_is_not_explained(reasons):
    assert reasons("x.item()  # assay: allow unseeded -- it is\n", 1) == [("device-sync", 1, "")]


def test_text_is_no_comment(tmp_path):
    file = tmp_path / "code.py"
    file.write_text('x = "# assay: allow device-sync -- in a string"\n# assay: allowed\n')
    assert comments(str(file)) == ()
    assert comments(str(tmp_path / "missing.py")) == ()
