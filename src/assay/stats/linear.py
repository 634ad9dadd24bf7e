"""Replicates of the bootstrap to first order: what each group of samples moves a value by, once for all draws.

A value that is a smooth function of means changes by the sum of what samples contribute, as long as there are many.
Then replicates need not be computed one by one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from assay.stats.bootstrap import Floats, Whole
from assay.stats.intervals import Array

FROM_ROWS = 20_000
"""Samples from which on replicates of a value that is smooth are taken to first order."""
FEWEST_OF_CLASS = 100
"""Samples that each class has then at least."""


@dataclass(frozen=True, eq=False)
class AreaPlaces:
    """What samples of each score contribute to the area under the ROC curve, as integers.

    Attributes:
        scores: the distinct scores, rising.
        below: twice the negatives below each, and those with that score once.
        above: twice the positives above each, and those with that score once.
    """

    scores: Array
    below: Whole
    above: Whole

    @classmethod
    def of(cls, scores: Array, positives: Whole, negatives: Whole) -> AreaPlaces:
        """From the distinct scores, from the highest down, and how many positives and negatives each has."""
        below = 2 * (negatives.sum() - np.cumsum(negatives)) + negatives
        above = 2 * np.cumsum(positives) - positives
        return cls(*(np.ascontiguousarray(each[::-1]) for each in (scores, below, above)))

    def sums(self, scores: Array, positives: Whole, negatives: Whole) -> tuple[int, int, int, int]:
        """What a group of the samples contributes, of which the arguments are as in `of`.

        Returns:
            Over the positives of the group, the sum of twice the negatives below each, ties once; over its negatives,
            that of twice the positives above each; how many positives and negatives the group has.

        Example:
            >>> places = AreaPlaces.of(np.array([3.0, 2.0, 1.0]), np.array([1, 1, 0]), np.array([0, 1, 2]))
            >>> places.sums(np.array([3.0, 1.0]), np.array([1, 0]), np.array([0, 1]))
            (6, 4, 1, 1)
        """
        places = np.searchsorted(self.scores, scores, side="right") - 1
        sums = positives @ self.below[places], negatives @ self.above[places], positives.sum(), negatives.sum()
        return tuple(map(int, sums))  # type: ignore[return-value]


def area_replicates(sums: Whole, draws: Whole) -> Floats:
    """The areas under the ROC curve of replicates, to first order; of a row of ones, that of all samples.

    With A the area, of P positives and N negatives a replicate has P* and N*:
    ``A + Σ m (S - A p 2N) / (2N P*) + Σ m (T - A n 2P) / (2P N*)`` over the groups, of which each is drawn m times.

    Args:
        sums: what `AreaPlaces.sums` gives of each group, `(groups, 4)`.
        draws: how often each group counts in each replicate, `(replicates, groups)`.
    """
    above, below, p, n = (column.astype(np.float64) for column in sums.T)
    positives, negatives = p.sum(), n.sum()
    area = above.sum() / (2 * positives * negatives)
    with np.errstate(all="ignore"):  # of a replicate without positives
        first = draws @ (above / (2 * negatives) - area * p) / (draws @ p)
        second = draws @ (below / (2 * positives) - area * n) / (draws @ n)
    return np.asarray(area + first + second)
