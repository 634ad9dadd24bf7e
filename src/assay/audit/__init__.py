"""Finds the device bugs of a program or a metric without the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.audit.block_checks import no_float64 as no_float64
    from assay.audit.block_checks import no_sync as no_sync
    from assay.audit.cases.case import Case as Case
    from assay.audit.findings.finding import Finding as Finding
    from assay.audit.findings.result import Audit as Audit
    from assay.audit.findings.rulebook import AuditRule as AuditRule
    from assay.audit.findings.rulebook import rules as rules
    from assay.audit.running.runner import audit as audit

__all__, __getattr__, __dir__ = attach(__name__)
