"""Samples as columns, one for each output: what sums over samples are formed of."""

from __future__ import annotations

from torch import Tensor

from assay.tally.base import Batch


def as_columns(preds: Tensor, target: Tensor | None, weights: Tensor | None) -> Batch:
    """A batch of one output for compiled code."""
    target, weights = (None if each is None else each.detach().reshape(-1, 1) for each in (target, weights))
    return Batch(preds.detach().reshape(-1, 1), target, weights, compiled=True)


def uncounted(columns: Batch, left_out: Tensor | None) -> Tensor | None:
    """Which samples are not counted, of the shape of the columns: those of weight 0, and those that are left out."""
    if columns.weights is None:
        return left_out
    weightless = columns.weights.eq(0)
    return weightless if left_out is None else weightless | left_out


def split(batch: Batch, elements: int) -> list[Batch]:
    """Chunks of rows whose temporaries stay in the cache."""
    rows, outputs = batch.preds.shape
    if rows * outputs <= elements:
        return [batch]
    size = max(1, elements // outputs)

    def chunk(start: int) -> Batch:
        parts = (None if x is None else x[start : start + size] for x in (batch.preds, batch.target, batch.weights))
        preds, target, weights = parts
        assert preds is not None
        return Batch(preds, target, weights, batch.cache_elements, batch.compiled, terms=batch.terms)

    return [chunk(start) for start in range(0, rows, size)]
