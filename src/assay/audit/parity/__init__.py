"""Compares a device with the CPU, operator by operator, and names the first that gives other values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.audit.parity.closeness import Tolerance as Tolerance
    from assay.audit.parity.closeness import ValueDifference as ValueDifference
    from assay.audit.parity.closeness import tolerances as tolerances
    from assay.audit.parity.command import ParityAudit as ParityAudit
    from assay.audit.parity.command import run as run
    from assay.audit.parity.replay import OperatorDivergence as OperatorDivergence
    from assay.audit.parity.runs import ParityResult as ParityResult
    from assay.audit.parity.runs import compare as compare
    from assay.audit.parity.runs import compare_runs as compare_runs
    from assay.audit.parity.steps import CallSite as CallSite

__all__, __getattr__, __dir__ = attach(__name__)
