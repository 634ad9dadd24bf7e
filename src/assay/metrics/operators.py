"""Arithmetic with metrics, written as with numbers: `(Precision() + Recall()) / 2` is a metric, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from assay.metrics.arithmetic import Arithmetic

Operation = Literal["+", "-", "*", "/", "**", "neg", "abs"]
Binary: TypeAlias = "Callable[[Any, Any], Arithmetic]"
Unary: TypeAlias = "Callable[[Any], Arithmetic]"


def binary(operation: Operation) -> tuple[Binary, Binary]:
    """The method of an operator, and that of a metric on the right of a number."""
    return (
        lambda metric, other: _arithmetic(operation, metric, other),
        lambda metric, other: _arithmetic(operation, other, metric),
    )


def unary(operation: Operation) -> Unary:
    """The method of an operator with one operand."""
    return lambda metric: _arithmetic(operation, metric)


def _arithmetic(operation: Operation, *operands: Any) -> Arithmetic:
    from assay.metrics.arithmetic import arithmetic  # it makes a metric, and is met when one is made

    return arithmetic(operation, *operands)
