"""Checks whether a device does what assay expects of it, as one file to send, and as tests of a back end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.conformance.outcomes import CheckOutcome
    from assay.conformance.result import DeviceCheck
    from assay.conformance.running import check_device

__all__ = ["CheckOutcome", "DeviceCheck", "check_device"]

_HOMES = {"outcomes": ("CheckOutcome",), "result": ("DeviceCheck",), "running": ("check_device",)}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
