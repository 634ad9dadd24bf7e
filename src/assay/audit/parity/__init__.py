"""Compares a device with the CPU, operator by operator, and names the first that gives other values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.audit.parity.closeness import Tolerance, ValueDifference, tolerances
    from assay.audit.parity.command import ParityAudit, run
    from assay.audit.parity.replay import OperatorDivergence
    from assay.audit.parity.runs import ParityResult, compare, compare_runs
    from assay.audit.parity.steps import CallSite

__all__ = [
    "CallSite",
    "OperatorDivergence",
    "ParityAudit",
    "ParityResult",
    "Tolerance",
    "ValueDifference",
    "compare",
    "compare_runs",
    "run",
    "tolerances",
]

_HOMES = {
    "closeness": ("ValueDifference", "Tolerance", "tolerances"),
    "command": ("ParityAudit", "run"),
    "replay": ("OperatorDivergence",),
    "runs": ("ParityResult", "compare", "compare_runs"),
    "steps": ("CallSite",),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
