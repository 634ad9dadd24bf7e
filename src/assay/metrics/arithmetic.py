"""Metrics of metrics: arithmetic on the values of others."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args

import numpy as np
from torch import Tensor

from assay.encode.base import Encoder
from assay.errors import ConfigError, describe
from assay.metrics.base import Metric, number
from assay.metrics.classification.probabilities import BrierScore
from assay.metrics.classification.ranking import AUROC
from assay.metrics.classification.rates import Accuracy, Recall
from assay.metrics.composition import tally_of, values_of, without_data
from assay.metrics.field_values import plain
from assay.metrics.operators import Operation
from assay.tally.base import BatchLayout, Tally

_APPLY: Mapping[str, Callable[..., Tensor]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "neg": operator.neg,
    "abs": operator.abs,
}


@dataclass(frozen=True, repr=False)
class Arithmetic(Metric):
    """The value of an arithmetic expression of metrics; written with operators, as `(Precision() + Recall()) / 2`.

    `a + b`, `a - b`, `a * b`, `a / b`, `a ** b`, `-a` and `abs(a)`, of metrics and numbers. What is counted for them is
    shared: precision and recall of the same labels need one confusion matrix, here and in the whole meter.

    Shapes: the arguments of an update are those that all of the metrics take.

    Rounding: the operations are those of float64, on the values of the metrics.

    Returns:
        float64, of the shape of the operands' values; NaN where one of them is, and for 0 / 0.

    Raises:
        ConfigError: an operand is neither a metric nor a finite number, or its value is a curve or a table; shapes of
            values that do not go together.

    Example:
        >>> import torch
        >>> from assay.metrics import F1Score, Precision, Recall
        >>> p, r = Precision(), Recall()
        >>> preds, target = torch.tensor([0.9, 0.8, 0.7, 0.2]), torch.tensor([1, 0, 1, 1])
        >>> (2 * p * r / (p + r))(preds, target) == F1Score()(preds, target)
        tensor(True)
        >>> abs(p - r)(preds, target)
        tensor(0., dtype=torch.float64)

    Source: IEEE 754-2019, for the operations.
    """

    family = "metrics of metrics"
    examples = (
        {"operation": "/", "operands": (Accuracy(), Recall())},
        {"operation": "-", "operands": (AUROC(), BrierScore())},
    )

    operation: Annotated[Operation, "one of `+`, `-`, `*`, `/`, `**`, `neg` and `abs`."]
    operands: Annotated[
        tuple[Metric | float, ...],
        "one or two metrics and finite numbers, with at least one metric; values per class or output are combined one "
        "by one.",
    ]
    higher_is_better: Annotated[  # type: ignore[misc]  # of each expression, not of the class
        bool | None, "whether higher values are better, where you know; see `with_direction`."
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.operation not in get_args(Operation):
            expected = "one of " + ", ".join(get_args(Operation))
            raise ConfigError(
                describe(
                    "operation",
                    repr(self.operation),
                    expected,
                    "Write the arithmetic with operators, as in Precision() + Recall()",
                )
            )
        parts: Any = self.operands
        if not isinstance(parts, tuple | list):
            got = type(parts).__name__
            raise ConfigError(describe("operands", got, "a tuple of metrics and numbers", "Put it in parentheses"))
        operands = tuple(each if isinstance(each, Metric) else _finite(each) for each in parts)
        object.__setattr__(self, "operands", operands)
        wanted = 1 if self.operation in ("neg", "abs") else 2
        if len(operands) != wanted or not self._metrics:
            got = f"{len(operands)}, with {len(self._metrics)} metrics"
            expected = f"{wanted} for {self.operation}, with a metric among them"
            raise ConfigError(describe("operands", got, expected, "Write it with operators, as Precision() + Recall()"))
        self._combined([_single(metric, without_data("operands", metric)) for metric in self._metrics])
        shared = frozenset.intersection(*(metric.unchanged_by for metric in self._metrics))
        object.__setattr__(self, "unchanged_by", shared)

    @property
    def _metrics(self) -> tuple[Metric, ...]:
        return tuple(each for each in self.operands if isinstance(each, Metric))

    @property
    def estimates(self) -> bool:
        return all(metric.estimates for metric in self._metrics)

    @property
    def without_estimate(self) -> str:
        return next((metric.without_estimate for metric in self._metrics if not metric.estimates), "")

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        return tuple(dict.fromkeys(encoder for metric in self._metrics for encoder in metric.encoders))

    def with_direction(self, higher_is_better: bool | None) -> Arithmetic:
        """The same metric, with whether higher values are better.

        Comparisons, trackers and reports ask for it. It does not follow from the operations.
        """
        return replace(self, higher_is_better=higher_is_better)

    def check(self, layout: BatchLayout) -> None:
        for metric in self._metrics:
            metric.check(layout)

    def tally(self, weighted: bool) -> Tally:
        return tally_of(self._metrics, weighted)

    def compute(self, counts: tuple[Any, ...]) -> Tensor:
        return self._combined(list(values_of(self._metrics, counts)))

    def _combined(self, values: list[Tensor]) -> Tensor:
        rest = iter(values)
        parts = [next(rest).double() if isinstance(each, Metric) else number(each) for each in self.operands]
        shapes = {tuple(part.shape) for part in parts if part.ndim}
        if len(shapes) > 1:
            got = " and ".join(map(str, sorted(shapes)))
            do = "Combine metrics with as many classes, or averages of them"
            raise ConfigError(describe(repr(self), f"values of shapes {got}", "one shape", do))
        return _APPLY[self.operation](*parts)

    def __repr__(self) -> str:
        if self.higher_is_better is not None:
            return f"({self.with_direction(None)!r}).with_direction({self.higher_is_better!r})"
        first, *rest = self.operands
        if self.operation == "abs":
            return f"abs({_operand_text(first)})"
        binds = _BINDS[self.operation]
        if self.operation == "neg":
            return f"-{_within(first, binds + 1)}"
        power = self.operation == "**"  # the only one that binds from the right
        return f"{_within(first, binds + power)} {self.operation} {_within(rest[0], binds + (not power))}"


_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "neg": 3, "**": 4}
"""How tightly operations bind; what is not in here, as metrics and numbers, binds tightest."""


def _within(operand: Metric | float, binds: int) -> str:
    """An operand, in parentheses where it binds less tightly than what it is in asks for."""
    tight = 5
    if isinstance(operand, Arithmetic) and operand.higher_is_better is None:
        tight = _BINDS.get(operand.operation, tight)
    elif not isinstance(operand, Metric) and operand < 0:
        tight = _BINDS["neg"]
    return _operand_text(operand) if tight >= binds else f"({_operand_text(operand)})"


def _operand_text(operand: Metric | float) -> str:
    return repr(operand) if isinstance(operand, Metric) else f"{operand!r}".removesuffix(".0")


def _finite(value: Any) -> float:
    number: float = plain("operands", value, "float")
    if not math.isfinite(number):
        raise ConfigError(describe("operands", repr(number), "metrics and finite numbers", "Correct the number"))
    return number


def _single(metric: Metric, value: Any) -> Tensor:
    """A value that is one tensor; the parts of others have no arithmetic."""
    if not isinstance(value, Tensor):
        do = "Use a metric whose value is a number, or one for each class or output"
        raise ConfigError(describe("operands", f"{metric!r}, which reads a {type(value).__name__}", "numbers", do))
    return value


def arithmetic(operation: Operation, *operands: Any) -> Arithmetic:
    """The metric; or Python's word for operands that are neither metrics nor numbers."""
    numbers = (int, float, np.integer, np.floating, np.ndarray, Tensor)
    if not all(isinstance(each, (Metric, *numbers)) and not isinstance(each, bool) for each in operands):
        return NotImplemented  # type: ignore[no-any-return]
    return Arithmetic(operation, operands)
