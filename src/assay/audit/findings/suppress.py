"""Comments that say why a finding does not matter on a line: ``# assay: allow device-sync -- once an epoch``."""

from __future__ import annotations

import io
import linecache
import re
import tokenize
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache

from assay.audit.findings.finding import Finding
from assay.audit.findings.rulebook import rules

COMMENT = re.compile(r"#\s*assay:\s*allow\b\s*(?P<names>[\w\-, ]*?)\s*(?:--\s*(?P<reason>.*))?$")


@dataclass(frozen=True)
class Suppression:
    """One comment: the lines it speaks of, the rules it names, and the reason it gives."""

    line: int
    lines: tuple[int, ...]
    names: tuple[str, ...]
    reason: str

    @property
    def wrong(self) -> str:
        """What is wrong with it, or ``""``."""
        unknown = [name for name in self.names if name not in rules()]
        if unknown or not self.names:
            return f"The comment names no rule of the audit: {', '.join(unknown) or 'none'}"
        return "" if self.reason else "The comment gives no reason"


def suppressed(findings: Iterable[Finding]) -> list[Finding]:
    """The findings, those that a comment explains with its reason, and a finding for each bad comment on their lines.

    A comment stands at the end of the line, or alone on the line above. A bad one has no reason or names no rule.
    """
    findings = list(findings)
    marked = [replace(finding, suppressed=_reason(finding)) for finding in findings]
    lines: dict[str, set[int]] = {}
    for finding in findings:
        lines.setdefault(finding.file, set()).add(finding.line)
    return marked + [bad for file in sorted(lines) for bad in _bad(file, lines[file])]


def _reason(finding: Finding) -> str:
    for comment in comments(finding.file):
        if finding.line in comment.lines and finding.rule in comment.names and not comment.wrong:
            return comment.reason
    return ""


def _bad(file: str, lines: set[int]) -> list[Finding]:
    rule = rules()["suppression"]
    wrong = [comment for comment in comments(file) if comment.wrong and lines.intersection(comment.lines)]
    codes = [linecache.getline(file, comment.line).strip() for comment in wrong]
    return [
        Finding(rule.id, rule.severity, file, comment.line, "", code, comment.wrong, rule.why, rule.fix)
        for comment, code in zip(wrong, codes, strict=True)
    ]


@cache
def comments(file: str) -> tuple[Suppression, ...]:
    """The suppression comments of a file; none where it cannot be read."""
    text = "".join(linecache.getlines(file))
    if "assay:" not in text:
        return ()
    suppressions = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.exact_type == tokenize.COMMENT and (match := COMMENT.match(token.string)):
                line = token.start[0]
                alone = not token.line[: token.start[1]].strip()
                names = tuple(name for name in re.split(r"[,\s]+", match["names"]) if name)
                lines = (line, line + 1) if alone else (line,)
                suppressions.append(Suppression(line, lines, names, (match["reason"] or "").strip()))
    except (tokenize.TokenError, SyntaxError):
        pass
    return tuple(suppressions)
