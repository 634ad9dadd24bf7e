"""The error of pretend devices."""

from __future__ import annotations

from assay.errors import AssayError


class PretendError(AssayError, RuntimeError):
    """Something that a pretend device cannot do, or a pretend device that cannot be."""
