"""Holds a device against the CPU, operator by operator, and names the first that gives other values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.audit.parity.closeness import Difference, Tolerance, tolerances
    from assay.audit.parity.command import run
    from assay.audit.parity.replay import Divergence
    from assay.audit.parity.runs import Parity, compare, compare_runs
    from assay.audit.parity.steps import Place

__all__ = ["Difference", "Divergence", "Parity", "Place", "Tolerance", "compare", "compare_runs", "run", "tolerances"]

_HOMES = {
    "closeness": ("Difference", "Tolerance", "tolerances"),
    "command": ("run",),
    "replay": ("Divergence",),
    "runs": ("Parity", "compare", "compare_runs"),
    "steps": ("Place",),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
