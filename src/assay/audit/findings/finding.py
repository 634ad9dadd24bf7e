"""A finding: what is wrong, at which line, on which devices, why, and the change that fixes it."""

from __future__ import annotations

from assay._records import Record
from assay.audit.watching.observations import Origin


class Finding(Record):
    """One device bug at one line; what was seen on several devices, in several usages or metrics is one finding.

    Attributes:
        rule: the id of its rule.
        severity: ``"error"``, ``"warning"`` or ``"note"``.
        file: the file of the line.
        line: its number; 0 where no line is known.
        function: the function it stands in.
        code: the line as it stands.
        what: what happened.
        why: why that is wrong there.
        fix: the change that fixes it.
        devices: on which devices.
        usages: ``"moved first"``, ``"not moved"``, or ``"as it is"``.
        subjects: which metrics or scripts came by.
        operators: torch's names of the operators.
        phases: in which phase: ``"update"``, ``"compute"``, ….
        count: how often it was seen.
        origins: for a tensor on the wrong device, the lines at which it was made or moved there: the first cause.
        replaced: it was seen only in a second run, in which other devices that the program names were taken for
            the one there is.
        suppressed: the reason that a comment on the line gives; ``""`` if it is not suppressed.
    """

    rule: str
    severity: str
    file: str
    line: int
    function: str
    code: str
    what: str
    why: str
    fix: str
    devices: tuple[str, ...] = ()
    usages: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    operators: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    count: int = 1
    suppressed: str = ""
    origins: tuple[Origin, ...] = ()
    replaced: bool = False

    @property
    def where(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"
