"""Devices that are not there: the CPU's arithmetic under a device's name and by its rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.pretend.errors import PretendError as PretendError
    from assay.pretend.events import KINDS as KINDS
    from assay.pretend.events import Event as Event
    from assay.pretend.events import Frame as Frame
    from assay.pretend.events import Recorder as Recorder
    from assay.pretend.session import PretendDevice as PretendDevice
    from assay.pretend.session import current as current
    from assay.pretend.session import pretend as pretend

__all__, __getattr__, __dir__ = attach(__name__)
