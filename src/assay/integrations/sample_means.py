"""Values of other tools that are means over the samples that these kept."""

from __future__ import annotations

from dataclasses import replace

from assay.report import Samples, Value
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.tests_and_intervals import interval_of
from assay.report.per_sample.packed_array import Array

LEVEL = 0.95
"""Of the intervals that are stored; `assay compare` and `assay gate` find others from the samples."""

CLOSE = 1e-6
"""How near a mean must be to the value in the results, relative to its size."""


def is_mean(terms: Array, number: float) -> bool:
    """Whether a value is the mean of what samples contributed.

    Example:
        >>> import numpy as np
        >>> is_mean(np.array([1.0, 0.0]), 0.5), is_mean(np.array([1.0, 0.0]), 0.6)
        (True, False)
    """
    return abs(float(terms.mean()) - number) <= CLOSE * max(1.0, abs(number))


def with_interval(value: Value, samples: Samples | None) -> Value:
    """A value with the interval that its samples give; as it is where they give none.

    Example:
        >>> samples = Samples.pack(range(4), {"acc": [True, False, True, True]})
        >>> with_interval(Value("acc", 0.75, numerator="acc"), samples).note
        'Clopper-Pearson interval'
    """
    if not value.numerator:
        return value
    found = interval_of(MeasuredValue(value, samples), LEVEL)
    if found.lower is None:
        return value
    return replace(value, lower=found.lower, upper=found.upper, confidence_level=LEVEL, note=found.method)
