"""How far each sample moves a rank correlation, times how many samples there are: its influence values.

Their sum of squares over n² is the variance of the correlation, for pairs of any distribution.
"""

from __future__ import annotations

import numpy as np

from assay.stats.intervals import Array


def spearman_moves(x: Array, y: Array) -> Array:
    """The influence values of Spearman's correlation.

    With ranks u and v that are centred and scaled to a variance of 1, a sample moves their covariance by its own
    product, and by how it moves the ranks of the others: those above it in x have v higher or lower than usual.

    Args:
        x: samples of the first variable, neither NaN nor all equal.
        y: those of the second.

    Example:
        >>> moves = spearman_moves(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0]))
        >>> [round(each, 2) for each in moves.tolist()]
        [0.6, -0.6, -0.6, 0.6]

    Source: Borkowf, Computational Statistics & Data Analysis 39 (2002), 271-286.
    """
    u, v = _mid_shares(x), _mid_shares(y)
    scale = u.std() * v.std()
    product = u * v + _mean_above(x, v) + _mean_above(y, u)
    spread = [each**2 + 2 * _mean_above(of, each) for of, each in ((x, u), (y, v))]  # of ties; constant without
    r = float(u @ v) / len(u) / scale
    moves = product / scale - r / 2 * (spread[0] / u.var() + spread[1] / v.var())
    return np.asarray(moves - moves.mean())


def kendall_moves(x: Array, y: Array, *, ties: bool = True) -> Array:
    """The influence values of Kendall's correlation, in `O(n log n)`.

    Args:
        x: samples of the first variable, neither NaN nor all equal.
        y: those of the second.
        ties: of the variant that allows for ties (b); else of the one that leaves them in the number of pairs (a).

    Example:
        >>> moves = kendall_moves(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0]))
        >>> [round(each, 2) for each in moves.tolist()]
        [0.67, -0.67, -0.67, 0.67]

    Source: Hoeffding, Annals of Mathematical Statistics 19 (1948), 293-325.
    """
    ranks = [np.unique(each, return_inverse=True)[1].astype(np.int64) for each in (x, y)]
    a, b = ranks
    n = len(a)
    net = (_below_both(a, b) + _below_both(-a, -b) - _below_both(a, -b) - _below_both(-a, b)) / (n - 1)
    if not ties:
        return np.asarray(2 * (net - net.mean()))
    apart = [(n - np.bincount(each)[each]) / (n - 1) for each in ranks]
    root = np.sqrt(apart[0].mean() * apart[1].mean())
    tau = net.mean() / root
    moves = net / root - tau / 2 * sum(each / each.mean() for each in apart)
    return np.asarray(2 * (moves - moves.mean()))


def _mid_shares(x: Array) -> Array:
    """The share of samples below each one, ties by half, less its mean."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    return np.asarray(((np.cumsum(count) - count / 2) / len(x))[place] - 0.5)


def _mean_above(x: Array, of: Array) -> Array:
    """Of each sample, the sum of numbers of the samples above it, ties by half, over how many there are in all."""
    values, place = np.unique(x, return_inverse=True)
    sums = np.bincount(place, of, len(values))
    return np.asarray(((sums.sum() - np.cumsum(sums) + sums / 2) / len(x))[place])


def _below_both(a: Array, b: Array) -> Array:
    """For each sample, how many others are below it in both: from the highest bit of b down, one pass a bit."""
    order = np.lexsort((-b, a))  # those of the same a come in falling b: none of them counts for another
    rest, found = (b - b.min())[order], np.zeros(len(a), np.int64)
    for bit in reversed(range(int(rest.max()).bit_length())):
        high, group = (rest >> bit) & 1, rest >> (bit + 1)
        low_before = np.cumsum(1 - high)
        first = np.concatenate([[True], group[1:] != group[:-1]])
        start = np.maximum.accumulate(np.where(first, np.arange(len(rest)), 0))
        before_group = low_before[start] - (1 - high[start])
        found[order] += np.where(high == 1, low_before - before_group, 0)
        parted = np.argsort(rest >> bit, kind="stable")
        rest, order = rest[parted], order[parted]
    return found
