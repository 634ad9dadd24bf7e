from __future__ import annotations

import json
import re

import pytest

from assay.audit.findings.finding import Finding
from assay.audit.findings.result import Audit
from assay.audit.findings.rulebook import rules
from assay.audit.watching.observations import Origin, Unrun
from assay.errors import StateError
from assay.render.terminal import to_text


def finding(rule="device-sync", severity=None, line=3, **details):
    whole = {
        "file": "/elsewhere/site-packages/lib/metric.py",
        "function": "update",
        "code": "x.item() [red]",
        "what": "it waits",
    }
    whole |= {"why": "It is slow", "fix": "Do not", "devices": ("mps",), "usages": ("moved first",), "count": 4}
    return Finding(rule, severity or rules()[rule].severity, line=line, **whole | details)


def result(*findings, unrun=()):
    return Audit("target", ("mps", "cuda:1"), findings, unrun, 2, "2.13.0", 1.4)


def shown(audit, **options):
    return to_text(audit.to_document(**options), 100)


def test_a_finding_shows_its_line_and_says_what_why_and_what_mends_it():
    text = shown(result(finding(subjects=("A", "B", "C", "D", "E"))))
    for part in (
        "lib/metric.py ──",
        "3  warning  device-sync  mps; moved first",
        "x.item() [red]",
        "what it waits",
        "why  It is slow.",
        "fix  Do not.",
        "in   A, B, C and 2 more",
        "1 finding: 2 targets on mps, cuda:1, in 1 s",
        "Devices are pretended, by the rules of torch 2.13.0; values are the CPU's.",
    ):
        assert part in text
    assert "site-packages" not in text


def test_the_table_counts_lines_by_rule_and_device():
    both = finding(line=9, devices=("mps", "cuda:1"))
    lines = shown(result(finding(), both, finding("unseeded", line=1))).splitlines()
    (head,) = (line for line in lines if line.startswith("  lines"))
    assert head.split() == ["lines", "mps", "cuda:1"]
    assert any(line.split()[:3] == ["device-sync", "2", "1"] for line in lines)
    assert any(line.split()[:3] == ["unseeded", "1", "·"] for line in lines)


def test_notes_are_counted_and_printed_on_request():
    audit = result(finding("nondeterministic"))
    assert "x.item()" not in shown(audit, notes=False)
    assert "1 note not printed (--notes)." in shown(audit, notes=False)
    assert "x.item()" in shown(audit, notes=True)


def test_what_was_not_audited_is_said_and_is_no_success():
    parts = (
        Unrun("train.py", "mps", "", "crashed"),
        *(Unrun(f"m{k}", "", "", "a download", known=True) for k in range(14)),
    )
    text = shown(result(unrun=parts))
    assert re.search(r"Not audited ─+\n  · train.py \(mps\): crashed", text)
    assert "Left out, 14" in text
    assert "and 2 more (--json names all)" in text
    assert "not audited: 2 targets" in text
    assert "no finding" not in text


def test_a_clean_audit_says_so():
    assert "no finding: 2 targets" in shown(result())
    assert "1 finding explained by comments" in shown(result(finding(suppressed="meant")))


def test_away_from_a_terminal_it_is_plain_text(capsys):
    result(finding()).show()
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert all(line == line.rstrip() for line in printed.splitlines())
    assert max(map(len, printed.splitlines())) <= 160


@pytest.mark.parametrize(
    ("findings", "unrun", "fail_on", "code"),
    [
        ((), (), "note", 0),
        (("note",), (), "warning", 0),
        (("note",), (), "note", 1),
        (("warning",), (), "warning", 1),
        (("warning",), (), "error", 0),
        (("error",), (), "error", 1),
        ((), (Unrun("m", "", "", "why"),), "warning", 2),
        ((), (Unrun("m", "", "", "why", known=True),), "warning", 0),
        (("error",), (Unrun("m", "", "", "why"),), "warning", 1),
    ],
)
def test_the_exit_code(findings, unrun, fail_on, code):
    audit = result(*(finding(severity=severity) for severity in findings), unrun=unrun)
    assert audit.exit_code(fail_on) == code


def test_what_a_comment_explains_does_not_fail():
    assert result(finding(severity="error", suppressed="meant")).exit_code() == 0


def test_json_holds_everything():
    audit = result(finding(), unrun=(Unrun("m", "mps", "", "why"),))
    plain = json.loads(audit.to_json())
    assert plain["schema"] == "assay.audit/2"
    assert plain["findings"][0]["rule"] == "device-sync"
    assert plain["findings"][0]["devices"] == ["mps"]
    assert plain["unrun"] == [{"subject": "m", "device": "mps", "usage": "", "why": "why", "known": False}]
    assert Audit.from_json(audit.to_json()) == audit
    assert Audit.from_json(audit.to_json()).table() == {"device-sync": {"mps": 1}}


def test_it_is_saved_whole_and_a_changed_file_is_refused(tmp_path):
    audit = result(finding(origins=(Origin("`w` was made on cpu", "b.py", 2),), suppressed="meant"))
    path = audit.save(tmp_path / "audit.json")
    assert Audit.load(tmp_path) == audit
    path.write_text(path.read_text().replace("meant", "cheated"))
    with pytest.raises(StateError, match="digest"):
        Audit.load(path)


def test_it_is_markdown_and_html_too(tmp_path):
    audit = result(finding())
    for text in (audit.to_markdown(), audit.to_html(tmp_path / "audit.html").read_text()):
        assert "Audit of target" in text
        assert "device-sync" in text


def test_the_first_cause_and_the_second_run_are_shown(tmp_path):
    file = tmp_path / "b.py"
    file.write_text("\nw = torch.ones(3)\n")
    text = shown(result(finding(origins=(Origin("`w` was made on cpu", str(file), 2),), replaced=True)))
    assert "from `w` was made on cpu at" in text
    assert "w = torch.ones(3)" in text
    assert "when seen in a second run" in text
    assert "when" not in shown(result(finding()))
