"""Clusterings compared with classes by the pairs of samples that both put together, computed from exact integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from assay.errors import CapacityError, describe
from assay.metrics.base import AT_MOST_1, SHARE
from assay.metrics.contingency_metric import ContingencyMetric
from assay.metrics.exact_arithmetic import over_root
from assay.tally.labels.contingency import ContingencyTable

LARGEST_MATRIX = 1 << 27
"""Cells of the matrix in which clusters are assigned to classes: 1 GiB."""


@dataclass(frozen=True, kw_only=True)
class PairCountMetric(ContingencyMetric):
    """A metric of the numbers of pairs of samples that are in one cluster, in one class, in both or in neither.

    A sample of weight w counts as w equal samples.

    Raises:
        ConfigError: `num_classes` below 2, or too large for a table.
        InvalidValuesError: by `compute`, if a label is not in `0 ... num_classes - 1`, or a weight is no integer.
    """

    family = "clustering"
    counts_pairs = True
    unchanged_by = frozenset({"swap"})


@dataclass(frozen=True)
class PairCounts:
    """How many pairs of samples share both labels, only that of preds, only that of target, or neither."""

    both: int
    preds: int
    target: int
    neither: int

    @classmethod
    def of(cls, table: ContingencyTable) -> PairCounts:
        """The counts of ordered pairs of different samples."""
        scale = 2**table.unit
        size = table.size * scale
        both, preds, target = (
            int((counts * counts).sum()) * scale * scale - size
            for counts in (table.counts, table.preds_totals, table.target_totals)
        )
        return cls(both, preds - both, target - both, size * (size - 1) - preds - target + both)


@dataclass(frozen=True, kw_only=True)
class RandScore(PairCountMetric):
    """The Rand index: the share of pairs of samples on which clusters and classes agree.

        #{pairs that agree} / (n (n - 1) / 2)

    A pair agrees if it is in one cluster and in one class, or in two of each. 1 for a single sample.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([5, 5, 7, 7]), torch.tensor([0, 0, 1, 2])
        >>> RandScore()(preds, target)
        tensor(0.8333, dtype=torch.float64)

    Source: W. M. Rand, Objective criteria for the evaluation of clustering methods, JASA 66 (1971), 846-850.
    """

    value_range = SHARE

    def value(self, table: ContingencyTable) -> float:
        pairs = PairCounts.of(table)
        agree = pairs.both + pairs.neither
        return agree / total if (total := agree + pairs.preds + pairs.target) else 1.0


@dataclass(frozen=True, kw_only=True)
class AdjustedRandScore(PairCountMetric):
    """The Rand index, adjusted for chance: 0 is expected of independent labels, 1 is full agreement.

    With `a` pairs of samples in one cluster and one class, `b` in one cluster only, `c` in one class only, and `d` in
    neither: `2 (a d - b c) / ((a + c) (c + d) + (a + b) (b + d))`; 1 where no pair disagrees. Integers of any size are
    exact, for any number of samples.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([5, 5, 7, 7]), torch.tensor([0, 0, 1, 2])
        >>> AdjustedRandScore()(preds, target)
        tensor(0.5714, dtype=torch.float64)

    Source: L. Hubert, P. Arabie, Comparing partitions, Journal of Classification 2 (1985), 193-218.
    """

    value_range = AT_MOST_1

    def value(self, table: ContingencyTable) -> float:
        pairs = PairCounts.of(table)
        if not pairs.preds and not pairs.target:
            return 1.0
        above = 2 * (pairs.both * pairs.neither - pairs.preds * pairs.target)
        in_class, in_cluster = pairs.both + pairs.target, pairs.both + pairs.preds
        return above / (in_class * (pairs.target + pairs.neither) + in_cluster * (pairs.preds + pairs.neither))


@dataclass(frozen=True, kw_only=True)
class FowlkesMallowsIndex(PairCountMetric):
    """The Fowlkes-Mallows index: the geometric mean of precision and recall of pairs of samples.

    With `a` pairs of samples in one cluster and one class, `b` in one cluster only and `c` in one class only:
    `a / sqrt((a + b) (a + c))`; 0 where no pair is in both.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([5, 5, 7, 7]), torch.tensor([0, 0, 1, 2])
        >>> FowlkesMallowsIndex()(preds, target)
        tensor(0.7071, dtype=torch.float64)

    Source: E. B. Fowlkes, C. L. Mallows, A method for comparing two hierarchical clusterings, JASA 78 (1983), 553-569.
    """

    value_range = SHARE

    def value(self, table: ContingencyTable) -> float:
        pairs = PairCounts.of(table)
        if not pairs.both:
            return 0.0
        return over_root(Fraction(pairs.both), Fraction((pairs.both + pairs.preds) * (pairs.both + pairs.target)))


@dataclass(frozen=True, kw_only=True)
class ClusterAccuracy(ContingencyMetric):
    """The accuracy of a clustering, where each cluster stands for the class that makes the accuracy largest.

        max over assignments a of #{samples: a(preds) = target} / n

    No two clusters stand for one class: the best assignment is that of the Hungarian method. Where there are more
    clusters than classes, the samples of those that are left over are wrong.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([1, 1, 0, 0, 0]), torch.tensor([0, 0, 1, 1, 0])
        >>> ClusterAccuracy()(preds, target)
        tensor(0.8000, dtype=torch.float64)

    Source: H. W. Kuhn, The Hungarian method for the assignment problem, Naval Research Logistics 2 (1955), 83-97;
    scipy.optimize.linear_sum_assignment.
    """

    value_range = SHARE

    family = "clustering"
    unchanged_by = frozenset({"swap"})

    def value(self, table: ContingencyTable) -> float:
        from scipy.optimize import linear_sum_assignment

        rows, columns = len(table.preds_totals), len(table.target_totals)
        if rows * columns > LARGEST_MATRIX:
            got, do = f"{rows} clusters and {columns} classes", "Merge clusters, or use AdjustedRandScore"
            expected = f"at most {LARGEST_MATRIX} pairs of a cluster and a class"
            raise CapacityError(describe("ClusterAccuracy", got, expected, do))
        matrix = table.matrix()
        beyond = max(0, int(matrix.max(initial=0)).bit_length() - 1000)  # of float64, as sums of the largest weights
        preds, target = linear_sum_assignment((matrix >> beyond).astype(float), maximize=True)
        return int(matrix[preds, target].sum()) / table.size
