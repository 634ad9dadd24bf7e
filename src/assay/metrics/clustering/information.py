"""Clusterings compared with classes by entropies, computed from exact counts."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from assay.errors import CapacityError, ConfigError, describe
from assay.metrics.base import AT_MOST_1, SHARE
from assay.metrics.contingency_metric import ContingencyMetric, entropy, log_quotients, mutual_information
from assay.tally.labels.contingency import ContingencyTable

AverageMethod = Literal["arithmetic", "geometric", "min", "max"]
_AVERAGES: Mapping[AverageMethod, Callable[[float, float], float]] = {
    "arithmetic": lambda a, b: (a + b) / 2,
    "geometric": lambda a, b: math.sqrt(a * b),
    "min": min,
    "max": max,
}


@dataclass(frozen=True, kw_only=True)
class InformationMetric(ContingencyMetric):
    """A metric of the entropies of clusters and of classes.

    Rounding: counts are exact; logarithms are rounded to float64 and added up exactly.
    """

    family = "clustering"


@dataclass(frozen=True, kw_only=True)
class MutualInfoScore(InformationMetric):
    """The mutual information of clusters and classes, in nats.

    `sum(n_kc / n log(n n_kc / (n_k n_c)))`, where `n_kc` samples are in cluster `k` and class `c`.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([5, 5, 7, 7]), torch.tensor([0, 0, 1, 2])
        >>> MutualInfoScore()(preds, target)
        tensor(0.6931, dtype=torch.float64)

    Source: C. E. Shannon, A mathematical theory of communication, Bell System Technical Journal 27 (1948).
    """

    unchanged_by = frozenset({"swap"})

    def value(self, table: ContingencyTable) -> float:
        return mutual_information(table)


@dataclass(frozen=True, kw_only=True)
class AveragedInfoMetric(ContingencyMetric):
    """A metric that divides the mutual information by an average of both entropies.

    Rounding: counts are exact; logarithms are rounded to float64 and added up exactly.
    """

    family = "clustering"
    unchanged_by = frozenset({"swap"})

    average_method: Annotated[
        AverageMethod, 'the average of both entropies: "arithmetic", "geometric", "min" or "max".'
    ] = "arithmetic"

    examples = ({}, {"average_method": "geometric"}, {"average_method": "min"}, {"average_method": "max"})

    def value(self, table: ContingencyTable) -> float:
        if len(table.preds_totals) == len(table.target_totals) == 1:
            return 1.0
        average = _AVERAGES[self.average_method](entropy(table.preds_totals), entropy(table.target_totals))
        return self.normalized(table, average)

    @abstractmethod
    def normalized(self, table: ContingencyTable, average: float) -> float:
        """The value, where there are two clusters or two classes."""


@dataclass(frozen=True, kw_only=True)
class NormalizedMutualInfoScore(AveragedInfoMetric):
    """The mutual information of clusters and classes, divided by an average of their entropies.

        I(preds, target) / average(H(preds), H(target))

    1 where there is one cluster and one class; 0 where there is one of them only.

    Raises:
        ConfigError: an unknown `average_method`, or `num_classes` below 2 or too large for a table.
        InvalidValuesError: by `compute`, if a label is not in `0 ... num_classes - 1`, or a weight is negative or NaN.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([5, 5, 7, 7]), torch.tensor([0, 0, 1, 2])
        >>> NormalizedMutualInfoScore()(preds, target)
        tensor(0.8000, dtype=torch.float64)

    Source: A. Strehl, J. Ghosh, Cluster ensembles, Journal of Machine Learning Research 3 (2002), 583-617.
    """

    value_range = SHARE

    def normalized(self, table: ContingencyTable, average: float) -> float:
        information = mutual_information(table)
        return information / average if information else 0.0


@dataclass(frozen=True, kw_only=True)
class AdjustedMutualInfoScore(AveragedInfoMetric):
    """The mutual information of clusters and classes, adjusted for chance: 0 is expected of independent labels.

    `(I - E) / (A - E)`, where `I` is the mutual information, `A` the average of both entropies, and `E` the mean of `I`
    over all permutations of the labels. 1 for full agreement; 0 where all permutations have the same `I`, as with one
    cluster. A sample of weight w counts as w equal samples.

    Raises:
        ConfigError: an unknown `average_method`, or `num_classes` below 2 or too large for a table.
        InvalidValuesError: by `compute`, if a label is not in `0 ... num_classes - 1`, or a weight is no integer.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([5, 5, 7, 7]), torch.tensor([0, 0, 1, 2])
        >>> AdjustedMutualInfoScore()(preds, target)
        tensor(0.5714, dtype=torch.float64)

    Source: N. X. Vinh, J. Epps, J. Bailey, Information theoretic measures for clusterings comparison, Journal of
    Machine Learning Research 11 (2010), 2837-2854.
    """

    value_range = AT_MOST_1

    counts_pairs = True

    def normalized(self, table: ContingencyTable, average: float) -> float:
        size = table.size << table.unit
        groups = len(table.preds_totals), len(table.target_totals)
        if len(table.counts) == groups[0] == groups[1]:
            return 1.0
        if {1, size}.intersection(groups):
            return 0.0
        if size > 1 << 40:  # the expectation is a sum over numbers of samples
            got, do = f"2 ** {size.bit_length() - 1} samples or more", "Divide the weights by what they have in common"
            raise CapacityError(describe(type(self).__name__, got, "at most 2 ** 40", do))
        totals = table.preds_totals, table.target_totals
        rows, columns = (Counter(int(total) << table.unit for total in each) for each in totals)
        expected = expected_information(rows, columns, size)
        return (mutual_information(table) - expected) / (average - expected)


def expected_information(rows: Mapping[int, int], columns: Mapping[int, int], size: int) -> float:
    """The mean mutual information over all permutations of the labels of `size` samples.

    A cell whose row has `a` samples and whose column has `b` then has `n` samples with the hypergeometric probability.
    That is computed from the quotients of neighbouring probabilities, outwards from the largest, without factorials.

    Args:
        rows: how many clusters there are of each size.
        columns: how many classes there are of each size.
        size: the number of samples.
    """
    return math.fsum(
        row_count * column_count * term
        for a, row_count in rows.items()
        for b, column_count in columns.items()
        for term in _cell_terms(min(a, b), max(a, b), size)
    )


def _cell_terms(a: int, b: int, size: int) -> list[float]:
    """The terms of a cell's expected contribution, where `a` and `b` are the totals of its row and column."""
    low, high = max(0, a + b - size), min(a, b)
    mode = min(max((a + 1) * (b + 1) // (size + 2), low), high)
    deviation = math.isqrt(a * b * (size - a) * (size - b) // (size * size * max(size - 1, 1))) + 1
    reach = 12 * deviation + 200  # by Bernstein's inequality, farther away are less than 1e-30 of all
    low, high = max(low, mode - reach), min(high, mode + reach)
    n = np.arange(low, high + 1, dtype=np.float64)
    after = (a - n) * (b - n) / ((n + 1) * (size - a - b + n + 1))  # P(n + 1) / P(n)
    upper, lower = np.cumprod(after[mode - low : -1]), np.cumprod(1 / after[: mode - low][::-1])
    likelihood = np.concatenate([lower[::-1], [1.0], upper])
    probability = likelihood / math.fsum(likelihood)
    likely = [(k, p) for k, p in zip(range(low, high + 1), probability.tolist(), strict=True) if k and p]
    logs = log_quotients([size * k for k, _ in likely], [a * b] * len(likely))
    return [p * k / size * log for (k, p), log in zip(likely, logs, strict=True)]


@dataclass(frozen=True, kw_only=True)
class HomogeneityScore(InformationMetric):
    """Homogeneity: how much of the entropy of the classes the clusters explain; 1 if each cluster has one class.

    `I / H(target)`, with the mutual information `I`; 1 where there is one class.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([5, 5, 7, 7]), torch.tensor([0, 0, 1, 2])
        >>> HomogeneityScore()(preds, target)
        tensor(0.6667, dtype=torch.float64)

    Source: A. Rosenberg, J. Hirschberg, V-measure, EMNLP-CoNLL (2007), 410-420.
    """

    value_range = SHARE

    def value(self, table: ContingencyTable) -> float:
        return explained(table)[0]


@dataclass(frozen=True, kw_only=True)
class CompletenessScore(InformationMetric):
    """Completeness: how much of the entropy of the clusters the classes explain; 1 if each class is in one cluster.

    `I / H(preds)`, with the mutual information `I`; 1 where there is one cluster.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([5, 5, 7, 7]), torch.tensor([0, 0, 1, 2])
        >>> CompletenessScore()(preds, target)
        tensor(1., dtype=torch.float64)

    Source: A. Rosenberg, J. Hirschberg, V-measure, EMNLP-CoNLL (2007), 410-420.
    """

    value_range = SHARE

    def value(self, table: ContingencyTable) -> float:
        return explained(table)[1]


@dataclass(frozen=True, kw_only=True)
class VMeasureScore(InformationMetric):
    """The V-measure: the weighted harmonic mean of homogeneity `h` and completeness `c`.

    `(1 + beta) h c / (beta h + c)`; 0 where both are 0.

    Raises:
        ConfigError: `beta` is negative or not finite; `num_classes` below 2 or too large for a table.
        InvalidValuesError: by `compute`, if a label is not in `0 ... num_classes - 1`, or a weight is negative or NaN.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([5, 5, 7, 7]), torch.tensor([0, 0, 1, 2])
        >>> VMeasureScore()(preds, target)
        tensor(0.8000, dtype=torch.float64)

    Source: A. Rosenberg, J. Hirschberg, V-measure, EMNLP-CoNLL (2007), 410-420.
    """

    value_range = SHARE

    beta: Annotated[float, "how much completeness counts against homogeneity."] = 1.0

    examples = ({}, {"beta": 2.0})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.beta < math.inf:
            raise ConfigError(describe("beta", self.beta, "0 or more, finite", "Pass beta=1.0 for equal weights"))

    def value(self, table: ContingencyTable) -> float:
        homogeneity, completeness = explained(table)
        below = self.beta * homogeneity + completeness
        return (1 + self.beta) * homogeneity * completeness / below if below else 0.0


def explained(table: ContingencyTable) -> tuple[float, float]:
    """Homogeneity and completeness."""
    information = mutual_information(table)
    sides = (entropy(table.target_totals), entropy(table.preds_totals))
    homogeneity, completeness = (information / side if side else 1.0 for side in sides)
    return homogeneity, completeness
