"""Influence values of rank correlations: compared with leaving each sample out."""

import numpy as np
import pytest
from scipy import stats

from assay.stats.rank_moves import kendall_moves, spearman_moves


def left_out(correlation, x, y):
    """How far each sample moves a correlation, by leaving it out, less the mean."""
    whole = correlation(x, y).statistic
    moves = np.array([whole - correlation(np.delete(x, k), np.delete(y, k)).statistic for k in range(len(x))])
    return (len(x) - 1) * (moves - moves.mean())


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    ("moves", "correlation"), [(spearman_moves, stats.spearmanr), (kendall_moves, stats.kendalltau)]
)
def test_they_are_what_leaving_samples_out_says(moves, correlation, ties):
    x, y = np.random.default_rng(0).normal(size=(2, 300))
    y = y + x
    if ties:
        x, y = np.rint(2 * x), np.rint(y)
    assert moves(x, y) == pytest.approx(left_out(correlation, x, y), abs=0.06)


def test_without_ties_both_variants_of_kendalls_agree():
    x, y = np.random.default_rng(0).normal(size=(2, 100))
    assert kendall_moves(x, y) == pytest.approx(kendall_moves(x, y, ties=False))
