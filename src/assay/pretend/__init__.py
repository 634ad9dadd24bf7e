"""Devices that are not there: the CPU's arithmetic under a device's name and by its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.pretend.errors import PretendError
    from assay.pretend.events import KINDS, Event, Frame, Recorder
    from assay.pretend.session import PretendDevice, current, pretend

__all__ = ["KINDS", "Event", "Frame", "PretendDevice", "PretendError", "Recorder", "current", "pretend"]

_HOMES = {
    "errors": ("PretendError",),
    "events": ("KINDS", "Event", "Frame", "Recorder"),
    "session": ("PretendDevice", "current", "pretend"),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
