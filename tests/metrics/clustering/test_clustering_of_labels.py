"""Clusterings compared with classes: against scikit-learn, exact fractions and brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment
from sklearn import metrics as sk
from sklearn.metrics.cluster import contingency_matrix

from assay import Meter
from assay.errors import CapacityError, ConfigError, DtypeError, InvalidValuesError, NoDataWarning, ShapeError
from assay.metrics import (
    AdjustedMutualInfoScore,
    AdjustedRandScore,
    ClusterAccuracy,
    CompletenessScore,
    FowlkesMallowsIndex,
    HomogeneityScore,
    MutualInfoScore,
    NormalizedMutualInfoScore,
    RandScore,
    VMeasureScore,
)
from assay.metrics.clustering import pairs
from assay.metrics.clustering.information import expected_information
from assay.metrics.contingency_metric import log_quotients
from assay.tally.labels.confusion import Confusion
from thinning import draws, every_third

METHODS = ("arithmetic", "geometric", "min", "max")


def cluster_accuracy(target, preds):
    table = contingency_matrix(target, preds)
    return table[linear_sum_assignment(table, maximize=True)].sum() / len(target)


REFERENCES = {
    AdjustedRandScore(): sk.adjusted_rand_score,
    RandScore(): sk.rand_score,
    MutualInfoScore(): sk.mutual_info_score,
    HomogeneityScore(): sk.homogeneity_score,
    CompletenessScore(): sk.completeness_score,
    VMeasureScore(): sk.v_measure_score,
    VMeasureScore(beta=0.5): lambda t, p: sk.v_measure_score(t, p, beta=0.5),
    FowlkesMallowsIndex(): sk.fowlkes_mallows_score,
    ClusterAccuracy(): cluster_accuracy,
    **{
        NormalizedMutualInfoScore(average_method=method): lambda t, p, m=method: sk.normalized_mutual_info_score(
            t, p, average_method=m
        )
        for method in METHODS
    },
    **{
        AdjustedMutualInfoScore(average_method=method): lambda t, p, m=method: sk.adjusted_mutual_info_score(
            t, p, average_method=m
        )
        for method in METHODS
    },
}
EVERY = pytest.mark.parametrize("metric", REFERENCES, ids=repr)


def labels(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Up to 40 samples of any labels; at times one sample, one cluster, or a cluster for each sample."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 41)) if seed % 10 else 1
    sides = []
    for _ in range(2):
        kinds = rng.integers(1, 7) if rng.random() < 0.9 else size
        names = rng.choice(np.arange(-50, 50), int(kinds), replace=False) * 10 ** rng.integers(0, 17)
        sides.append(rng.choice(names, size))
    if seed % 7 == 0:
        sides[1] = -sides[0]  # full agreement
    return torch.from_numpy(sides[0]), torch.from_numpy(sides[1])


@EVERY
def test_it_is_scikit_learns(metric):
    for seed in draws(200):
        preds, target = labels(seed)
        groups = {len(preds.unique()), len(target.unique())}
        if isinstance(metric, AdjustedMutualInfoScore) and metric.average_method == "min" and len(preds) in groups:
            continue  # 0 / 0, where scikit-learn's value depends on rounding
        expected = REFERENCES[metric](target.numpy(), preds.numpy())
        assert float(metric(preds, target)) == pytest.approx(expected, rel=1e-12, abs=1e-12), seed


@EVERY
def test_a_table_of_known_classes_gives_the_bits_of_kept_labels(metric):
    of_classes = type(metric)(num_classes=7, **{name: getattr(metric, name) for name in arguments(metric)})
    assert isinstance(of_classes.tally(False), Confusion)
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        preds, target = torch.randint(0, 7, (2, 50), generator=generator)
        assert float(of_classes(preds, target)) == float(metric(preds, target))
        assert float(of_classes(torch.eye(7)[preds], target)) == float(metric(preds, target))


def arguments(metric):
    return [name for name in ("beta", "average_method") if hasattr(metric, name)]


@every_third
@EVERY
def test_names_of_labels_change_no_bit(metric):
    for seed in draws(20):
        preds, target = labels(seed)
        value = float(metric(preds, target))
        assert float(metric(-3 - preds, target)) == value
        assert float(metric(preds, (target + 5).bitwise_not())) == value


@every_third
@EVERY
def test_whole_weights_count_samples(metric):
    for seed in draws(20):
        preds, target = labels(seed)
        times = torch.randint(0, 4, (len(preds),), generator=torch.Generator().manual_seed(seed))
        times[0] = 1
        expected = float(metric(preds.repeat_interleave(times), target.repeat_interleave(times)))
        assert float(metric(preds, target, weights=times)) == expected
        assert float(metric(preds, target, weights=times.float())) == expected


def pairs_of(preds, target):
    """How many pairs share both labels, that of preds only, that of target only, neither."""
    found = dict.fromkeys(itertools.product((True, False), repeat=2), 0)
    for i, j in itertools.combinations(range(len(preds)), 2):
        found[bool(preds[i] == preds[j]), bool(target[i] == target[j])] += 1
    return found[True, True], found[True, False], found[False, True], found[False, False]


def test_indices_of_pairs_are_exact_and_rounded_once():
    for seed in draws(30):
        preds, target = labels(seed)
        a, b, c, d = (Fraction(each) for each in pairs_of(preds, target))
        if len(preds) < 2 or not (b or c):
            continue
        assert float(RandScore()(preds, target)) == float((a + d) / (a + b + c + d))
        adjusted = 2 * (a * d - b * c) / ((a + c) * (c + d) + (a + b) * (b + d))
        assert float(AdjustedRandScore()(preds, target)) == float(adjusted)


@pytest.mark.parametrize("size", [100_000, 3_000_000, 10**12])
def test_no_number_of_samples_overflows(size):
    """TorchMetrics' int64 products wrap from 100,000 samples on."""
    counts = np.array([[5, 3, 0], [2, 7, 1], [0, 4, 6]], dtype=object) * (size // 28)
    meter = Meter(ari=AdjustedRandScore(num_classes=3), rand=RandScore(num_classes=3))
    meter.update(torch.tensor([0]), torch.tensor([0]))
    (state,) = meter.states()
    table = state["counts"].zero_()
    table[0, 1:4, 1:4] = torch.from_numpy(counts.T.astype(np.int64))
    tally = meter.tallies[0]
    n, rows, columns = int(counts.sum()), counts.sum(1), counts.sum(0)
    both, in_row, in_column = (sum(math.comb(int(k), 2) for k in each.ravel()) for each in (counts, rows, columns))
    pairs_all = math.comb(n, 2)
    chance = Fraction(in_row * in_column, pairs_all)
    expected = (both - chance) / (Fraction(in_row + in_column, 2) - chance)
    computed = tally.compute(state)
    assert float(meter.metrics["ari"].compute(computed)) == float(expected)
    agree = Fraction(pairs_all - in_row - in_column + 2 * both, pairs_all)
    assert float(meter.metrics["rand"].compute(computed)) == float(agree)


@pytest.mark.exhaustive
def test_three_million_kept_samples():
    generator = torch.Generator().manual_seed(0)
    preds = torch.randint(0, 5, (3_000_000,), generator=generator)
    target = torch.where(torch.rand(3_000_000, generator=generator) < 0.3, preds, preds.roll(1))
    value = float(AdjustedRandScore()(preds, target))
    assert value == pytest.approx(sk.adjusted_rand_score(target.numpy(), preds.numpy()), rel=1e-12)
    assert value == float(AdjustedRandScore(num_classes=5)(preds, target))


def exact_expectation(preds, target):
    """The mean mutual information over all permutations, by trying all of them."""
    values = [sk.mutual_info_score(order, preds) for order in itertools.permutations(target)]
    return math.fsum(values) / len(values)


@pytest.mark.exhaustive
def test_the_expected_information_is_the_mean_over_permutations():
    for preds, target in (([0, 0, 1, 1, 2], [0, 1, 1, 1, 0]), ([0, 0, 0, 1, 1, 2], [4, 4, 5, 5, 6, 6])):
        info, expected = sk.mutual_info_score(target, preds), exact_expectation(preds, target)
        average = (sk.mutual_info_score(preds, preds) + sk.mutual_info_score(target, target)) / 2
        value = AdjustedMutualInfoScore()(torch.tensor(preds), torch.tensor(target))
        assert float(value) == pytest.approx((info - expected) / (average - expected), rel=1e-12)


@pytest.mark.exhaustive
def test_the_expected_information_of_many_samples_is_its_limit():
    half = 2**35  # two clusters and two classes: a chi-square with one degree of freedom, over twice the samples
    assert expected_information({half: 2}, {half: 2}, 2 * half) == pytest.approx(1 / (4 * half), rel=1e-6)


def test_adjusted_information_where_all_permutations_are_alike_is_0_or_1():
    singles, one, two = torch.arange(6), torch.zeros(6, dtype=torch.int64), torch.tensor([0, 0, 0, 1, 1, 1])
    for method in METHODS:
        metric = AdjustedMutualInfoScore(average_method=method)
        assert float(metric(singles, two)) == float(metric(one, two)) == float(metric(one, singles)) == 0
        assert float(metric(singles, singles - 9)) == float(metric(one, one)) == float(metric(two, 1 - two)) == 1


def test_information_of_nearly_independent_labels_keeps_its_digits():
    """`log(1 + x)` of the exact quotient: the terms cancel to a share of 1e-12 of each."""
    n = 10**6
    matrix = [[n + 1, n - 1], [n - 1, n + 1]]
    expected = 1 / (2 * n * n)  # x^2 / 2, with x = 1 / n
    cells = [(k, c, matrix[k][c]) for k in range(2) for c in range(2)]
    preds, target, weights = (torch.tensor(each) for each in zip(*cells, strict=True))
    assert float(MutualInfoScore()(preds, target, weights=weights)) == pytest.approx(expected, rel=1e-9)
    assert log_quotients([10**30 + 1], [10**30]) == pytest.approx([1e-30], rel=1e-15, abs=0)


def test_cluster_accuracy_is_the_best_of_all_assignments():
    generator = torch.Generator().manual_seed(3)
    for _ in range(20):
        preds, target = torch.randint(0, 4, (2, 15), generator=generator)
        best = max(
            sum(order[p] == t for p, t in zip(preds.tolist(), target.tolist(), strict=True))
            for order in itertools.permutations(range(4))
        )
        assert float(ClusterAccuracy()(preds, target)) == best / 15
    more_clusters, more_classes = torch.tensor([0, 1, 2, 3]), torch.tensor([0, 0, 1, 1])
    assert float(ClusterAccuracy()(more_clusters, more_classes)) == 0.5
    assert float(ClusterAccuracy()(more_classes, more_clusters)) == 0.5


def test_a_matrix_that_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(pairs, "LARGEST_MATRIX", 100)
    with pytest.raises(CapacityError, match=r"20 clusters and 20 classes"):
        ClusterAccuracy()(torch.arange(20), torch.arange(20))
    assert ClusterAccuracy()(torch.arange(10), torch.arange(10)) == 1


@EVERY
def test_bad_input_raises_one_clear_error(metric):
    ints = torch.tensor([0, 1, 2])
    with pytest.raises(DtypeError, match=r"preds: got torch\.float32"):
        metric(torch.rand(3), ints)
    with pytest.raises(DtypeError, match=r"target: got torch\.float64"):
        metric(ints, torch.rand(3).double())
    with pytest.raises(ShapeError, match="target"):
        metric(ints, ints[:, None].expand(-1, 2))
    with pytest.raises(ConfigError, match="num_classes: got 1"):
        type(metric)(num_classes=1)
    with pytest.raises(InvalidValuesError, match="targets are outside"):
        type(metric)(num_classes=2)(torch.tensor([0, 1, 1]), ints)
    with pytest.raises(InvalidValuesError, match="weights are negative"):
        metric(ints, ints, weights=torch.tensor([1.0, -1.0, 1.0]))
    with pytest.warns(NoDataWarning):
        assert metric(ints[:0], ints[:0]).isnan()


@pytest.mark.parametrize("num_classes", [None, 3])
def test_pairs_of_fractions_of_samples_are_refused(num_classes):
    ints = torch.tensor([0, 1, 2])
    for kind in (AdjustedRandScore, RandScore, FowlkesMallowsIndex, AdjustedMutualInfoScore):
        with pytest.raises(InvalidValuesError, match="weights: got fractions"):
            kind(num_classes=num_classes)(ints, ints, weights=torch.tensor([0.5, 1, 1]))


def test_unknown_options_are_refused():
    with pytest.raises(ConfigError, match="average_method: got 'mean'"):
        NormalizedMutualInfoScore(average_method="mean")
    for beta in (-1.0, math.inf, math.nan):
        with pytest.raises(ConfigError, match="beta"):
            VMeasureScore(beta=beta)
