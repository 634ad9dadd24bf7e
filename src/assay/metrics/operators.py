"""Arithmetic with metrics, written as with numbers: `(Precision() + Recall()) / 2` is a metric, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from torch import Tensor

if TYPE_CHECKING:
    from assay.metrics.arithmetic import Arithmetic
    from assay.metrics.base import Metric

Operation = Literal["+", "-", "*", "/", "**", "neg", "abs"]


class Operators:
    """The operators of a metric. Operands are metrics and plain numbers; what comes out describes the whole of it.

    Metrics are compared as descriptions, so `==` says whether two are the same, and there is no `<`.
    """

    __array_ufunc__ = None  # so that NumPy leaves `np.float64(2) * metric` to the metric

    def __add__(self, other: Metric | float) -> Arithmetic:
        return _arithmetic("+", self, other)

    def __radd__(self, other: float) -> Arithmetic:
        return _arithmetic("+", other, self)

    def __sub__(self, other: Metric | float) -> Arithmetic:
        return _arithmetic("-", self, other)

    def __rsub__(self, other: float) -> Arithmetic:
        return _arithmetic("-", other, self)

    def __mul__(self, other: Metric | float) -> Arithmetic:
        return _arithmetic("*", self, other)

    def __rmul__(self, other: float) -> Arithmetic:
        return _arithmetic("*", other, self)

    def __truediv__(self, other: Metric | float) -> Arithmetic:
        return _arithmetic("/", self, other)

    def __rtruediv__(self, other: float) -> Arithmetic:
        return _arithmetic("/", other, self)

    def __pow__(self, other: Metric | float) -> Arithmetic:
        return _arithmetic("**", self, other)

    def __rpow__(self, other: float) -> Arithmetic:
        return _arithmetic("**", other, self)

    def __neg__(self) -> Arithmetic:
        return _arithmetic("neg", self)

    def __abs__(self) -> Arithmetic:
        return _arithmetic("abs", self)


def _arithmetic(operation: Operation, *operands: Any) -> Arithmetic:
    """The metric; or Python's word for operands that are neither metrics nor numbers."""
    from assay.metrics.arithmetic import Arithmetic  # it is a metric itself, and is met when one is made

    numbers = (int, float, np.integer, np.floating, np.ndarray, Tensor)
    if not all(isinstance(each, (Operators, *numbers)) and not isinstance(each, bool) for each in operands):
        return NotImplemented  # type: ignore[no-any-return]
    return Arithmetic(operation, operands)
