"""What an audit found, as a value: to print, to keep, and to decide whether a change may go in."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from assay.audit.finding import Finding
from assay.audit.observations import Unrun
from assay.audit.rulebook import at_least, rules

SCHEMA = "assay.audit/1"
NONE, FOUND, NOT_RUN = 0, 1, 2


@dataclass(frozen=True)
class Audit:
    """The result of auditing one target.

    Attributes:
        target: as it was named.
        devices: the devices asked for.
        findings: what was found, most severe first; those that a comment explains come with its reason.
        unrun: what was not audited, and why.
        subjects: how many metrics or scripts were run.
        torch: the version of torch whose rules were applied.
        seconds: how long it took.
    """

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
        return tuple(found for found in self.findings if not found.suppressed)

    def exit_code(self, fail_on: str = "warning") -> int:
        """0: nothing found; 1: findings of at least this severity; 2: no finding, and a part could not be audited.

        A metric that needs more than there is here (a download, another package) counts only if there is no other.

        Args:
            fail_on: ``"error"``, ``"warning"`` or ``"note"``.

        Returns:
            The exit code of the command.
        """
        if any(at_least(found.severity, fail_on) for found in self.open):
            return FOUND
        nothing_ran = len({part.subject for part in self.unrun if not part.device}) >= self.subjects
        return NOT_RUN if nothing_ran or any(not part.known for part in self.unrun) else NONE

    def table(self) -> dict[str, Counter[str]]:
        """Rule -> device -> how many lines, of the findings that no comment explains."""
        counts = {name: Counter[str]() for name in rules()}
        for found in self.open:
            counts[found.rule].update(found.devices or ("",))
        return {name: count for name, count in counts.items() if count}

    def to_json(self) -> str:
        """The audit as JSON, for programs."""
        return json.dumps(self.plain(), indent=2)

    def plain(self) -> dict[str, Any]:
        """The audit as plain values."""
        return {
            "schema": SCHEMA,
            "target": self.target,
            "devices": list(self.devices),
            "torch": self.torch,
            "seconds": round(self.seconds, 2),
            "subjects": self.subjects,
            "findings": [found.to_json() for found in self.findings],
            "unrun": [asdict(part) for part in self.unrun],
            "rules": {name: dict(count) for name, count in self.table().items()},
        }
