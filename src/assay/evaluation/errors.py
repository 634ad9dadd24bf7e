"""What can end an evaluation, besides the errors of the whole library."""

from __future__ import annotations

from assay.errors import AssayError, SyncError


class BatchError(AssayError, RuntimeError):
    """A batch could not be loaded, predicted or counted; names its samples."""


class RankError(SyncError):
    """Another rank failed, or gave no sign of life; names it."""
