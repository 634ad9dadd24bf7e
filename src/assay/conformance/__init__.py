"""Checks whether a device does what assay expects of it, as one file to send, and as tests of a back end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.conformance.outcomes import CheckOutcome as CheckOutcome
    from assay.conformance.result import DeviceCheck as DeviceCheck
    from assay.conformance.running import check_device as check_device

__all__, __getattr__, __dir__ = attach(__name__)
