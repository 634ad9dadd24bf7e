"""Rates of labels as TorchMetrics divides and averages them, from true and false positives and negatives."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

Counts = Sequence[Any]
"""True and false positives, true and false negatives: integers, or arrays of one for each class."""


def _accuracy(of: Counts, of_class: bool, beta: float) -> tuple[Any, Any]:
    tp, fp, tn, fn = of
    return (tp, tp + fn) if of_class else (tp + tn, tp + fp + tn + fn)


def _f_beta(of: Counts, of_class: bool, beta: float) -> tuple[Any, Any]:
    tp, fp, _, fn = of
    square = beta**2
    return (1 + square) * tp, (1 + square) * tp + square * fn + fp


@dataclass(frozen=True)
class Rate:
    """How a class of TorchMetrics divides.

    Attributes:
        parts: what is divided, and by what; of the counts, whether each class of several is meant, and beta.
        complement: whether the rate is 1 minus the quotient.
        zero_division: whether the argument of this name says what 0 / 0 is; else it is 0.
        top_k: whether the argument of this name says which classes are absent.
    """

    parts: Callable[[Counts, bool, float], tuple[Any, Any]]
    complement: bool = False
    zero_division: bool = False
    top_k: bool = False


RATES: Mapping[str, Rate] = {
    "Accuracy": Rate(_accuracy, top_k=True),
    "FBetaScore": Rate(_f_beta, zero_division=True),
    "F1Score": Rate(_f_beta, zero_division=True),
    "HammingDistance": Rate(_accuracy, complement=True),
    "NegativePredictiveValue": Rate(lambda of, of_class, beta: (of[2], of[2] + of[3]), top_k=True),
    "Precision": Rate(lambda of, of_class, beta: (of[0], of[0] + of[1]), zero_division=True, top_k=True),
    "Recall": Rate(lambda of, of_class, beta: (of[0], of[0] + of[3]), zero_division=True, top_k=True),
    "Specificity": Rate(lambda of, of_class, beta: (of[2], of[2] + of[1])),
}
"""By the ends of names of classes."""


@functools.cache
def rate_of(name: str) -> Rate | None:
    """The rate of a class of TorchMetrics such as `MulticlassPrecision`; None where it is none."""
    return RATES.get(name.removeprefix("Binary").removeprefix("Multiclass").removeprefix("Multilabel"))


def rate(how: Rate, metric: Any, counts: Sequence[Tensor]) -> Tensor:
    """The rate in float64, from the counts of each class, or of one.

    Args:
        how: it is divided.
        metric: has the arguments of the class of TorchMetrics as attributes.
        counts: true positives, false positives, true negatives and false negatives.
    """
    binary, multiclass = metric.entry.name.startswith("Binary"), metric.entry.name.startswith("Multiclass")
    given = vars(metric)  # a module takes long to say that it has no such attribute
    average = "none" if binary else given["average"]
    undefined = float(given["zero_division"]) if how.zero_division else 0.0
    beta = given.get("beta", 1.0)
    if binary or average == "micro":
        pooled = [each.item() for each in counts] if binary else [int(each.numpy().sum()) for each in counts]
        above, below = how.parts(pooled, multiclass, beta)
        value = above / below if below else undefined
        return torch.tensor(1 - value if how.complement else value, dtype=torch.float64, device="cpu")
    of: Counts = [each.numpy() for each in counts]
    above, below = how.parts(of, multiclass, beta)
    value = _quotient(above, below, undefined)
    value = 1 - value if how.complement else value
    if average in ("macro", "weighted"):
        present = _present(of, given.get("top_k", 1) if how.top_k else 1) if multiclass else np.ones(len(of[0]))
        weights = of[0] + of[3] if average == "weighted" else present
        value = _quotient(weights * value, weights.sum(keepdims=True), 0.0).sum()
    return torch.from_numpy(np.asarray(value))


def _quotient(above: Any, below: Any, undefined: float) -> Any:
    return np.where(below == 0, undefined, above / (below + (below == 0)))


def _present(of: Counts, top_k: int) -> np.ndarray:
    """1 for each class that is predicted or the target; with `top_k` above 1, that is the target."""
    tp, fp, _, fn = of
    seen: np.ndarray = (tp + fp + fn if top_k == 1 else tp + fn) != 0
    return seen.astype(np.float64)
