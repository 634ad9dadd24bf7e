"""Finds the device bugs of a program or a metric without the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.audit.block_checks import no_float64, no_sync
    from assay.audit.cases.case import Case
    from assay.audit.findings.finding import Finding
    from assay.audit.findings.result import Audit
    from assay.audit.findings.rulebook import AuditRule, rules
    from assay.audit.running.runner import audit

__all__ = ["Audit", "AuditRule", "Case", "Finding", "audit", "no_float64", "no_sync", "rules"]

_HOMES = {
    "block_checks": ("no_float64", "no_sync"),
    "cases.case": ("Case",),
    "findings.finding": ("Finding",),
    "findings.result": ("Audit",),
    "findings.rulebook": ("AuditRule", "rules"),
    "running.runner": ("audit",),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
