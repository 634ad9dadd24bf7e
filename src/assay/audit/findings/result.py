"""The result of an audit: to show, to save, and to decide whether a change may go in."""

from __future__ import annotations

from collections import Counter

from assay._records import Record
from assay.audit.findings.finding import Finding
from assay.audit.findings.rulebook import at_least, rules
from assay.audit.findings.view import audit_document
from assay.audit.watching.observations import Unrun
from assay.render import Document, Viewable

NONE, FOUND, NOT_RUN = 0, 1, 2


class Audit(Record, Viewable, schema="assay.audit/2"):
    """The result of auditing one target.

    Attributes:
        target: its name, as it was passed.
        devices: the names of the devices.
        findings: the findings, most severe first; those that a comment explains have its reason.
        unrun: what was not audited, and why.
        subjects: how many metrics or scripts were run.
        torch: the version of torch whose rules were applied.
        seconds: how long it took.
    """

    pipe_width = 160  # nobody can widen a pipe: few broken lines

    target: str
    devices: tuple[str, ...]
    findings: tuple[Finding, ...]
    unrun: tuple[Unrun, ...]
    subjects: int
    torch: str
    seconds: float = 0.0

    @property
    def open(self) -> tuple[Finding, ...]:
        """The findings that no comment explains."""
        return tuple(finding for finding in self.findings if not finding.suppressed)

    def exit_code(self, fail_on: str = "warning") -> int:
        """0: nothing found; 1: findings of at least this severity; 2: no finding, and a part could not be audited.

        A metric that needs more than there is here (a download, another package) counts only if there is no other.

        Args:
            fail_on: ``"error"``, ``"warning"`` or ``"note"``.

        Returns:
            The exit code of the command.
        """
        if any(at_least(finding.severity, fail_on) for finding in self.open):
            return FOUND
        nothing_ran = len({part.subject for part in self.unrun if not part.device}) >= self.subjects
        return NOT_RUN if nothing_ran or any(not part.known for part in self.unrun) else NONE

    def table(self) -> dict[str, Counter[str]]:
        """Rule -> device -> how many lines, of the findings that no comment explains."""
        counts = {name: Counter[str]() for name in rules()}
        for finding in self.open:
            counts[finding.rule].update(finding.devices or ("",))
        return {name: count for name, count in counts.items() if count}

    def to_document(self, *, notes: bool = True) -> Document:
        """The document that is shown: findings by file and line, then a grid of rules and devices.

        Args:
            notes: whether findings of the severity ``note`` are shown one by one; they are counted in any case.
        """
        return audit_document(self, notes=notes)
