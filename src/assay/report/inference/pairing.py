"""Which samples two values share, and whether all that was stored of them is equal."""

from __future__ import annotations

import numpy as np

from assay.report.inference.measured_value import MeasuredValue
from assay.report.per_sample.aligned_chunks import aligned_chunks
from assay.report.per_sample.packed_array import Array, PackedArray
from assay.report.per_sample.samples import Samples, align

REPORT, SAMPLES = "report", "samples"
"""What is equal of two sections: the whole report, or all that was stored of each sample."""


def have_equal_samples(a: Samples | None, b: Samples | None, position: Array | str | None) -> bool:
    """Whether all that was stored of each sample is the same in two reports, and shows that the model is.

    That takes scores, see `_hold_scores`. Different models are often right on the same samples, and decide the same:
    of decisions that agree nothing follows for other samples.

    Args:
        a: the samples of one section.
        b: those of the other.
        position: what `align` says of them.

    Example:
        >>> first, second = (Samples.pack(ids, {"loss": np.array(ids) / 7}) for ids in ([1, 2], [2, 1]))
        >>> have_equal_samples(first, second, align(first, second))
        True
        >>> first, second = (Samples.pack(ids, {"correct": np.array(ids) > 1}) for ids in ([1, 2], [2, 1]))
        >>> have_equal_samples(first, second, align(first, second))
        False
    """
    if a is None or b is None or position is None or isinstance(position, str):
        return False
    columns = {column.name: column.values for column in a.columns}
    others = {column.name: column.values for column in b.columns}
    if columns.keys() != others.keys() or (a.decision is None) != (b.decision is None):
        return False
    pairs = [(values, others[name]) for name, values in columns.items()]
    if a.decision is not None and b.decision is not None:
        pairs.append((a.decision, b.decision))
    return any(_hold_scores(first) for first, _ in pairs) and all(
        _are_equal(first, second, position) for first, second in pairs
    )


def _hold_scores(series: PackedArray) -> bool:
    """Whether numbers are scores, which two models do not share by chance: most of the first are fractions that differ.

    Counts, and shares of few words, are not.
    """
    numbers = next(series.chunks(), np.zeros(0))
    if numbers.dtype.kind != "f":
        return False
    fractions = numbers[np.isfinite(numbers) & (numbers != np.round(numbers))]
    return 2 * len(np.unique(fractions)) > len(numbers)


def _are_equal(a: PackedArray, b: PackedArray, position: Array) -> bool:
    return all(
        np.array_equal(first, second, equal_nan=first.dtype.kind == second.dtype.kind == "f")
        for first, second in aligned_chunks(a, b, position)
    )


def have_equal_inputs(a: MeasuredValue, b: MeasuredValue, whole: Array | str | None, equal: str) -> bool:
    """Whether two values are the same number of the same inputs, in sections of which ``equal`` says what is equal."""
    if not equal or a.value.value != b.value.value:
        return False
    return a.samples is None or not isinstance(pair(a, b, whole), str)


def pair(a: MeasuredValue, b: MeasuredValue, whole: Array | str | None = None) -> Array | str:
    """Which terms of ``b`` belong to the samples of the terms of ``a``.

    Args:
        a: a value with its samples, on all of them or on a slice.
        b: another, on the same slice.
        whole: what `align` says of all samples of both, where that is known.

    Returns:
        For each term of ``a`` the position of its partner, or why there are none, as a part of a sentence.

    Example:
        >>> from assay.report.value import Value
        >>> samples = Samples.pack([7, 8, 9], {"x": [1.0, 2.0, 3.0]}), Samples.pack([9, 8, 7], {"x": [3.0, 2.0, 1.0]})
        >>> masks = np.array([True, False, True]), np.array([True, False, True])
        >>> pair(*(MeasuredValue(Value("x", 2.0, numerator="x"), each, mask) for each, mask in zip(samples, masks)))
        array([1, 0])
    """
    assert a.samples is not None, a.value.name
    assert b.samples is not None, b.value.name
    position = align(a.samples, b.samples) if whole is None else whole
    if isinstance(position, str) or (a.members is None and b.members is None):
        return position
    first, second = (np.ones(len(position), bool) if m is None else m for m in (a.members, b.members))
    if not np.array_equal(first, second[position]):
        return "the slice holds other samples in the two"
    return np.asarray((np.cumsum(second) - 1)[position[first]])
