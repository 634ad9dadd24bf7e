"""An audit as SARIF 2.1.0, the format in which code hosts show findings on the line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from assay import __version__
from assay._atomic import Location, write_text
from assay.audit.findings.finding import Finding
from assay.audit.findings.judge import relative
from assay.audit.findings.result import Audit
from assay.audit.findings.rulebook import AuditRule, rules
from assay.audit.findings.view import MAX_ORIGINS
from assay.audit.watching.observations import Origin
from assay.audit.watching.source_code import is_library

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def save(audit: Audit, path: Path, base: Path | None = None) -> Location:
    """Write an audit as SARIF; paths are relative to ``base``, as code hosts need it: the root of the repository.

    The working folder is the base by default. No location is outside of it: code hosts refuse such a file. A line of
    an installed library is in the message.
    """
    return write_text(path, json.dumps(to_sarif(audit, base or Path.cwd()), indent=2) + "\n")


def to_sarif(audit: Audit, base: Path) -> dict[str, Any]:
    """The audit as a SARIF log.

    Source:
        OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0, 2020.
    """
    ids = list(rules())
    driver = {"name": "assay", "version": __version__, "rules": [_rule(rule) for rule in rules().values()]}
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"SRCROOT": {"uri": base.resolve().as_uri() + "/"}},
        "results": [_result(finding, ids, base.resolve()) for finding in audit.findings],
        "invocations": [
            {
                "executionSuccessful": all(part.known for part in audit.unrun),
                "toolExecutionNotifications": [
                    {"level": "note" if part.known else "error", "message": {"text": str(part)}} for part in audit.unrun
                ],
            }
        ],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(rule: AuditRule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.why}."},
        "help": {"text": f"{rule.fix}."},
        "defaultConfiguration": {"level": rule.severity},
    }


def _result(finding: Finding, ids: list[str], base: Path) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": ids.index(finding.rule),
        "level": finding.severity,
        "message": {"text": _message(finding, base)},
        "occurrenceCount": max(finding.count, 1),
        "properties": {
            "devices": list(finding.devices),
            "usages": list(finding.usages),
            "subjects": list(finding.subjects),
            "operators": list(finding.operators),
            "replaced": finding.replaced,
        },
    }
    if finding.file and _is_below(finding.file, base):
        region = {"startLine": max(finding.line, 1), "snippet": {"text": finding.code}}
        result["locations"] = [{"physicalLocation": {"artifactLocation": _place(finding.file, base), "region": region}}]
    if origins := [origin for origin in finding.origins if _is_below(origin.file, base)]:
        result["relatedLocations"] = [_origin(origin, number, base) for number, origin in enumerate(origins)]
    if finding.suppressed:
        result["suppressions"] = [{"kind": "inSource", "justification": finding.suppressed}]
    return result


def _origin(origin: Origin, number: int, base: Path) -> dict[str, Any]:
    place = {"artifactLocation": _place(origin.file, base), "region": {"startLine": max(origin.line, 1)}}
    return {"id": number, "physicalLocation": place, "message": {"text": origin.what}}


def _message(finding: Finding, base: Path) -> str:
    """What it is, why and what to do, with the places that are outside of the repository: no location may be."""
    lines = [finding.what]
    if finding.file and not _is_below(finding.file, base):
        lines.append(f"at {relative(finding.file, base)}:{finding.line}")
    outside = [origin for origin in finding.origins if not _is_below(origin.file, base)]
    lines += [f"{origin.what} at {relative(origin.file, base)}:{origin.line}" for origin in outside[:MAX_ORIGINS]]
    return "\n".join([*lines, f"{finding.why}.", f"{finding.fix}."])


def _is_below(file: str, base: Path) -> bool:
    """Whether a file is of the repository; an environment in it, with what is installed there, is not."""
    return Path(file).resolve().is_relative_to(base) and not is_library(file)


def _place(file: str, base: Path) -> dict[str, str]:
    return {"uri": quote(Path(file).resolve().relative_to(base).as_posix()), "uriBaseId": "SRCROOT"}
