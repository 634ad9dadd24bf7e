"""Finds the device bugs of a program or a metric without the device."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.audit.case import Case

__all__ = ["Case"]

_HOMES = {"case": ("Case",)}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
