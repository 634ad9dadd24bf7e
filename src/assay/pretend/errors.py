"""The error of pretend devices."""

from __future__ import annotations

from assay.errors import AssayError


class PretendError(AssayError, RuntimeError):
    """A pretend device does not support an operation, or is not available."""
