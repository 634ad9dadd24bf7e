"""Errors that only an evaluation raises."""

from __future__ import annotations

from assay.errors import AssayError, SyncError


class BatchError(AssayError, RuntimeError):
    """A batch could not be loaded, predicted or counted; names its samples."""


def loading_advice(error: Exception) -> str:
    """What to do about samples that torch cannot stack to a batch; empty for any other error.

    Example:
        >>> loading_advice(RuntimeError("stack expects each tensor to be equal size, but got [1] at entry 0"))[:34]
        'Pad the samples with a collate_fn,'
    """
    if "stack expects each tensor to be equal size" not in str(error):
        return ""
    return (
        "Pad the samples with a collate_fn, or, where each row is a batch already, "
        'pass DataLoader(data.with_format("torch"), batch_size=None)'
    )


class RankError(SyncError):
    """Another rank failed, or gave no sign of life; names it."""
