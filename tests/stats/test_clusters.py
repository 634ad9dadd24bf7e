"""Means of samples in clusters, against matrices, and against the samples that clusters repeat."""

import numpy as np
import pytest

from assay.stats.clusters import FEWEST_CLUSTERS, ClusteredMean, difference_of, sums_by_cluster
from assay.stats.distributions import normal_quantile, student_quantile, student_two_sided
from assay.stats.hypothesis_tests import sign_flip
from assay.stats.intervals import clopper_pearson, mean_interval, skewed_ends, wilson
from assay.stats.paired_shares import paired_proportions

RANDOM = np.random.default_rng(3)


def by_matrices(values, codes):
    """CR2 of an intercept and its degrees of freedom, as Bell and McCaffrey define them for any regression."""
    n = len(values)
    rest = np.eye(n) - np.full((n, n), 1 / n)
    vectors = []
    for code in np.unique(codes):
        of = np.flatnonzero(codes == code)
        eigenvalues, vectors_of = np.linalg.eigh(rest[np.ix_(of, of)])
        root = vectors_of @ np.diag(eigenvalues**-0.5) @ vectors_of.T
        vectors.append(rest[:, of] @ root @ np.full(len(of), 1 / n))
    variance = sum(float(vector @ values) ** 2 for vector in vectors)
    gram = np.array([[first @ second for first in vectors] for second in vectors])
    return np.sqrt(variance), np.trace(gram) ** 2 / np.sum(gram**2)


def of_samples(values, codes):
    count = int(codes.max()) + 1
    return ClusteredMean.of(sums_by_cluster([values], codes, count), np.bincount(codes, minlength=count).astype(float))


def test_the_error_and_its_freedom_are_those_of_the_matrices():
    codes = np.repeat(np.arange(7), [1, 2, 9, 4, 3, 3, 5])
    values = RANDOM.standard_normal(len(codes)) + RANDOM.standard_normal(7)[codes]
    found = of_samples(values, codes)
    assert (found.error, found.freedom) == pytest.approx(by_matrices(values, codes))


def test_samples_that_are_repeated_in_their_clusters_say_as_much_as_one_each():
    values = RANDOM.standard_normal(40) ** 3
    found = of_samples(np.repeat(values, 5), np.repeat(np.arange(40), 5))
    assert found.interval() == pytest.approx(mean_interval(values))
    assert found.test(seed=1)[0] == sign_flip(values, 1)


def test_shares_of_repeated_samples_have_the_interval_of_one_each_with_students_quantile():
    right = (np.arange(50) % 5 > 0).astype(float)
    found = of_samples(np.repeat(right, 4), np.repeat(np.arange(50), 4))
    count = 49 * (1.959964 / 2.009575) ** 2  # the variance of 50 has 49 in it, and t of 49 is wider
    (low, high), (least, most) = wilson(0.8 * count, count), mean_interval(right)
    assert found.share_interval(200) == pytest.approx((min(low, least), max(high, most)), abs=1e-6)


@pytest.mark.parametrize("wrong", [1, 2, 3])
def test_few_clusters_that_are_wrong_show_no_more_than_as_many_samples(wrong):
    """Each cluster is right or wrong as a whole: a gate may not trust more than so many independent samples say."""
    right = (np.arange(40) >= wrong).astype(float)
    found = of_samples(np.repeat(right, 10), np.repeat(np.arange(40), 10))
    lower, _ = found.share_interval(400, safe=True)
    assert lower < clopper_pearson(40 - wrong, 40)[0]


def test_a_gate_takes_more_skewness_where_clusters_are_uneven():
    values = np.random.default_rng(9).gamma(16, size=40)  # so skewed that more of it is not yet cut off
    sizes = np.where(np.arange(40) % 4 == 0, 9, 1)
    even = of_samples(np.repeat(values, 5), np.repeat(np.arange(40), 5))
    uneven = of_samples(np.repeat(values, sizes), np.repeat(np.arange(40), sizes))
    assert even.interval(safe=True) == even.interval()
    hidden = 1 + 1.5 * (40 / uneven.effective - 1)
    expected = skewed_ends(uneven.mean, uneven.error, hidden * uneven.skewness, uneven.freedom + 1)
    assert uneven.interval(safe=True) == pytest.approx(expected)
    assert uneven.interval(safe=True)[1] > uneven.interval()[1]


def test_all_right_is_no_proof_beyond_the_number_of_clusters():
    found = of_samples(np.ones(1000), np.repeat(np.arange(10), 100))
    lower, upper = found.share_interval(1000, safe=True)
    assert upper == 1
    assert lower < 0.7  # of 1,000 independent samples it is 0.996


def test_few_clusters_with_differing_pairs_show_no_more_pairs_than_clusters():
    apart = np.zeros(400)
    apart[:3] = -1
    found = of_samples(apart, np.repeat(np.arange(40), 10))
    for_one = found.pairs_for_one(3, 0, 400, 1)
    assert for_one > 10
    assert paired_proportions(3 / for_one, 0, 400 / for_one)[0] < -0.05


def test_means_that_share_clusters_are_compared_with_their_covariance():
    shared = RANDOM.standard_normal(30)
    codes = np.repeat(np.arange(30), 2)
    a, b = (of_samples(shared[codes] + 0.01 * RANDOM.standard_normal(60), codes) for _ in range(2))
    correlation = float(a.apart @ b.apart) / (a.error * b.error)
    (_, alone), (_, together) = difference_of(a, b), difference_of(a, b, correlation=correlation)
    assert together[1] - together[0] < 0.1 * (alone[1] - alone[0])


def test_below_the_fewest_clusters_no_flip_of_signs_is_significant():
    assert sign_flip(np.ones(FEWEST_CLUSTERS)) < 0.05 < sign_flip(np.ones(FEWEST_CLUSTERS - 1))


def inflation(freedom):
    """How many samples count of each, as the error is that of so many degrees of freedom."""
    return (normal_quantile(0.975) / student_quantile(0.975, freedom)) ** 2


def pairs(changes, sizes):
    """Pairs of which the first so many of each cluster change, with their number for one and the design effect."""
    apart = np.concatenate(
        [np.where(np.arange(n) < abs(k), np.sign(k), 0) for k, n in zip(changes, sizes, strict=True)]
    )
    found = of_samples(apart.astype(float), np.repeat(np.arange(len(sizes)), sizes))
    b, c = int((apart < 0).sum()), int((apart > 0).sum())
    for_one = found.pairs_for_one(b, c, len(apart), int(np.count_nonzero(changes)))
    plain = apart.var() / len(apart)
    return for_one * inflation(found.freedom), found.error**2 / plain, found


def test_pairs_alone_in_their_clusters_count_one_each():
    effect, by_error, _ = pairs([-1] * 10 + [1] * 3 + [0] * 87, [1] * 100)
    assert effect == pytest.approx(by_error)
    assert effect == pytest.approx(100 / 99)


def test_pairs_count_no_more_than_one_each_and_few_clusters_no_more_than_clusters():
    assert pairs([-1] * 30, [5] * 30)[0] == pytest.approx(1)  # every cluster changes by the same
    (six, by_error, _), (five, _, _) = (pairs([-1] * n + [0] * (30 - n), [5] * 30) for n in (6, 5))
    assert six == pytest.approx(max(1.0, by_error))
    assert five == pytest.approx(5)
    effect, by_error, found = pairs([-50] + [0] * 70, [50] + [5] * 70)
    assert effect == pytest.approx(by_error)
    assert effect > 2 * 400 / found.effective  # most of all, a whole cluster that changed


def test_a_share_counts_no_more_samples_than_there_are():
    right = np.array([1.0, 1, 0, 0] * 20 + [1, 1, 1, 0])  # clusters differ less than by chance
    found = of_samples(right, np.repeat(np.arange(21), 4))
    count = 84 * inflation(found.freedom)
    (low, high), (least, most) = wilson(right.mean() * count, count), found.interval()
    assert found.share_interval(84) == pytest.approx((min(low, least), max(high, most)))


def test_weights_say_how_many_clusters_of_equal_size_there_are():
    weights = np.array([1.0, 2, 3, 4])
    found = ClusteredMean.of(np.array([1.0, 0, 2, 1]), np.full(4, 5.0), weights)
    assert found.effective == pytest.approx(weights.sum() ** 2 / (weights**2).sum())
    assert found.apart == pytest.approx(np.array([0.0, -1, 1, 0]) / 20 / np.sqrt(1 - weights / 10))
    normal = np.random.default_rng(5).standard_normal(12)
    assert [of_samples(normal[:n], np.arange(n)).risky for n in (11, 12)] == ["both", ""]


def test_means_that_share_clusters_have_the_fewer_degrees_of_freedom():
    a, b = (of_samples(RANDOM.standard_normal(n), np.arange(n)) for n in (8, 20))
    p, (lower, upper) = difference_of(a, b, correlation=1e-6)
    error = np.sqrt(a.error**2 + b.error**2 - 2e-6 * a.error * b.error)
    assert p == pytest.approx(student_two_sided((b.mean - a.mean) / error, 7))
    assert (upper - lower) / 2 == pytest.approx(error * student_quantile(0.975, 7))
    assert difference_of(a, a, correlation=1.001) == (1.0, (0.0, 0.0))
