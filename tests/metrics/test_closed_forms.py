"""Closed forms against SciPy, against formulas over all pairs, and which metric has which."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from assay import Meter
from assay.meter.resampling.intervals import closed_forms
from assay.metrics import (
    AUROC,
    Accuracy,
    AveragePrecision,
    BalancedAccuracy,
    CalibrationError,
    CohenKappa,
    CriticalSuccessIndex,
    DiceScore,
    ExactMatch,
    F1Score,
    FBetaScore,
    HammingDistance,
    JaccardIndex,
    KendallRankCorrCoef,
    MatthewsCorrCoef,
    MedianAbsoluteError,
    NegativePredictiveValue,
    PearsonCorrCoef,
    Precision,
    Quantile,
    Recall,
    SelectionRate,
    SpearmanCorrCoef,
    Specificity,
)
from assay.stats.averaged_rankings import AREA, PRECISION, averaged_interval
from assay.stats.intervals import (
    clopper_pearson,
    few_of_a_kind,
    fisher_z,
    on_logit_scale,
    order_statistics,
    wilson,
)
from assay.stats.rank_moves import kendall_moves, spearman_moves
from assay.stats.rankings import area_interval, delong_error, precision_interval
from assay.tally.scores.curves import of_samples
from laws import CASES, CLASSES, value
from thinning import draws, every

LEVELS = st.floats(0.5, 0.999)


@given(st.integers(1, 10**6), st.floats(0, 1), LEVELS)
def test_wilson_is_scipys(n, share, confidence_level):
    successes = round(n * share)
    expected = stats.binomtest(successes, n).proportion_ci(confidence_level, "wilson")
    assert wilson(successes, n, confidence_level) == pytest.approx((expected.low, expected.high), abs=1e-12)


@given(st.integers(4, 60), st.integers(0, 2**32), LEVELS)
def test_fisher_z_is_scipys(n, seed, confidence_level):
    x, y = np.random.default_rng(seed).normal(size=(2, n))
    found = stats.pearsonr(x, y)
    expected = found.confidence_interval(confidence_level)
    assert fisher_z(found.statistic, 1 / (n - 3), confidence_level) == pytest.approx(tuple(expected), abs=1e-9)


@pytest.mark.parametrize("r", [1.0, -1.0, math.nan])
def test_fisher_z_says_nothing_where_it_is_infinite(r):
    assert fisher_z(r, 0.1) is None


@given(st.floats(1e-6, 1 - 1e-6), st.floats(1e-6, 1), LEVELS)
def test_the_logit_interval_is_symmetric_there_and_stays_inside(share, error, confidence_level):
    lower, upper = on_logit_scale(share, error, confidence_level)
    assert 0 <= lower <= share <= upper <= 1
    mirrored = on_logit_scale(1 - share, error, confidence_level)
    assert mirrored == pytest.approx((1 - upper, 1 - lower), abs=1e-9)
    if lower > 1e-6 and upper < 1 - 1e-6:
        logit = stats.logistic.ppf
        half = stats.norm.ppf((1 + confidence_level) / 2) * error / (share * (1 - share))
        assert logit([lower, upper]) == pytest.approx([logit(share) - half, logit(share) + half], abs=1e-6)


@pytest.mark.parametrize(("share", "error"), [(0.0, 0.1), (1.0, 0.1), (0.5, 0.0), (0.5, math.nan), (math.nan, 0.1)])
def test_there_is_no_logit_interval_at_the_ends_or_without_an_error(share, error):
    assert on_logit_scale(share, error) is None


def delong_over_pairs(scores, target):
    """DeLong's standard error as it is defined: from the kernel of every pair."""
    a, b = scores[target == 1][:, None], scores[target == 0][None]
    kernel = (a > b) + (a == b) / 2
    return math.sqrt(kernel.mean(1).var(ddof=1) / len(a) + kernel.mean(0).var(ddof=1) / b.shape[1])


@given(st.integers(0, 2**32), st.integers(2, 40), st.integers(2, 40), st.integers(1, 30))
def test_delong_is_that_of_all_pairs(seed, num_positives, num_negatives, different):
    rng = np.random.default_rng(seed)
    scores = rng.integers(different, size=num_positives + num_negatives) / different
    target = np.repeat([1, 0], [num_positives, num_negatives])
    ranking = of_samples(scores, target == 1)
    found = delong_error(ranking.positives, ranking.negatives)
    assert found == pytest.approx(delong_over_pairs(scores, target), abs=1e-12)


def test_delong_needs_two_of_each():
    assert math.isnan(delong_error(np.array([1, 0]), np.array([0, 5])))


@pytest.mark.parametrize("n", [10, 30, 101, 5000])
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_order_statistics_cover_the_quantile_by_the_binomial_distribution(n, q):
    lower, upper = order_statistics(np.arange(1, n + 1), q) or (-math.inf, math.inf)
    missed = stats.binom.cdf(lower - 1, n, q), stats.binom.sf(upper - 1, n, q)  # the quantile is below, above the end
    assert max(missed) <= 0.025
    closer = stats.binom.cdf(max(lower, 0), n, q), stats.binom.sf(min(upper, n + 1) - 2, n, q)
    assert min(closer) > 0.025


# --- metrics ---------------------------------------------------------------------------------------------------------


@every(CASES)
def test_an_interval_is_around_the_value_and_only_of_independent_samples(case):
    data = case.data(5, 60)
    meter = case.counted(data)
    found = closed_forms(meter)
    rows_are_samples = case.raw or data.preds.ndim == 1 or (data.target is not None and data.target.ndim == 1)
    if type(case.metric).__name__ == "ExactMatch":
        rows_are_samples = True
    if not case.metric.closed_form or case.weighted or not rows_are_samples:
        assert found == {}
        return
    if case.metric.needs_many and not found:
        return  # a class has too few samples
    interval = found["value"]
    assert interval.lower <= float(value(meter)["value"]) <= interval.upper
    assert interval.lower < interval.upper
    assert (interval.confidence_level, interval.method) == (0.95, case.metric.closed_form)
    wider = closed_forms(meter, 0.99)["value"]
    assert wider.lower <= interval.lower <= interval.upper <= wider.upper


def ends(metric, *given):
    found = closed_forms(Meter(value=metric)).get("value")
    assert found is None
    meter = Meter(value=metric)
    meter.update(*map(torch.tensor, given))
    found = closed_forms(meter).get("value")
    return None if found is None else (found.lower, found.upper)


@pytest.mark.parametrize("kind", [JaccardIndex, Specificity, NegativePredictiveValue])
def test_pooled_classes_have_the_interval_of_the_share_that_is_right(kind):
    """Its ends are the values of a million samples of which as many are right as Wilson's ends say."""
    metric, target = kind(num_classes=4, average="micro"), torch.arange(1_000_000) % 4

    def of_share(share):
        meter = Meter(value=metric)
        meter.update(torch.where(torch.arange(1_000_000) < share * 1e6, target, (target + 1) % 4), target)
        return float(meter.compute()["value"])

    meter = Meter(value=metric)
    meter.update(torch.where(torch.arange(60) < 51, target[:60], (target[:60] + 1) % 4), target[:60])
    found = closed_forms(meter)["value"]
    assert (found.lower, found.upper) == pytest.approx(tuple(map(of_share, wilson(51, 60))), abs=2e-6)
    assert found.safe == pytest.approx(tuple(map(of_share, clopper_pearson(51, 60))), abs=2e-6)


def test_a_share_of_pooled_classes_that_is_always_the_same_has_no_interval():
    assert SelectionRate(num_classes=4, average="micro").closed_form == ""
    assert JaccardIndex(num_classes=4, average="micro", ignore_index=0).closed_form == ""
    assert JaccardIndex(num_classes=4, average="micro", top_k=2).closed_form == ""


PREDS, TARGET = [1, 1, 0, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0, 0]


@pytest.mark.parametrize(
    ("metric", "successes", "n"),
    [
        (Accuracy(), 4, 7),
        (HammingDistance(), 3, 7),
        (Precision(), 2, 4),
        (Recall(), 2, 3),
        (Specificity(), 2, 4),
        (NegativePredictiveValue(), 2, 3),
        (JaccardIndex(), 2, 5),
        (Accuracy(num_classes=3), 4, 7),
        (Recall(num_classes=3, average="weighted"), 4, 7),
        (F1Score(num_classes=3, average="micro"), 4, 7),
        (HammingDistance(num_classes=3, average="micro"), 3, 7),
        (Recall(ignore_index=0), 2, 3),
        (ExactMatch(), 4, 7),
    ],
    ids=repr,
)
def test_shares_have_wilsons_interval(metric, successes, n):
    assert ends(metric, PREDS, TARGET) == wilson(successes, n)


@pytest.mark.parametrize("metric", [F1Score(), DiceScore()], ids=repr)
def test_an_f1_score_has_that_of_the_jaccard_index_on_its_own_scale(metric):
    lower, upper = wilson(2, 5)
    assert ends(metric, PREDS, TARGET) == (2 * lower / (1 + lower), 2 * upper / (1 + upper))


def test_others_have_none():
    for metric in (FBetaScore(beta=2.0), JaccardIndex(num_classes=3, average="micro", ignore_index=0)):
        assert metric.closed_form == ""
        assert ends(metric, PREDS, TARGET) is None
    assert ends(Accuracy(num_labels=2), [[1, 0], [1, 1]], [[1, 0], [1, 1]]) is None


def test_events_have_wilsons_interval():
    assert ends(CriticalSuccessIndex(0.5), [0.2, 0.7, 0.9, 0.1], [0.4, 0.2, 0.8, 0.6]) == wilson(1, 3)


def test_the_area_under_the_curve_has_delongs_interval():
    rng = np.random.default_rng(3)
    target = rng.integers(0, 2, 80)
    scores = np.round(rng.random(80) * 0.7 + 0.3 * target, 1)
    kept = AUROC()
    a, b = placements(scores, target)
    p, n = len(a), len(b)
    parts = a.var(ddof=1) / p, b.var(ddof=1) / n
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / (p - 1) + parts[1] ** 2 / (n - 1))
    half = stats.t.ppf(0.975, freedom) * math.sqrt(sum(parts)) / (a.mean() * (1 - a.mean()))
    logit = special.expit(special.logit(a.mean()) + half * np.array([-1, 1]))
    newcombe = score_ends_of_area(a.mean(), p, n)
    for metric in (kept, AUROC(exact_up_to=0)):
        found = ends(metric, scores.astype(np.float32), target)
        assert found == pytest.approx((min(logit[0], newcombe[0]), max(logit[1], newcombe[1])), abs=1e-6)
    lower, upper = ends(kept, [0.1, 0.9, 0.2, 0.8], [0, 1, 0, 1])
    assert (lower, upper) == (pytest.approx(score_ends_of_area(1.0, 2, 2)[0], abs=1e-6), 1)
    assert ends(kept, [0.1, 0.9, 0.2], [0, 1, 0]) is None  # one positive


RANKED = [(AUROC, AREA), (AveragePrecision, PRECISION)]


@pytest.mark.parametrize("average", ["macro", "weighted"])
@pytest.mark.parametrize(("kind", "of"), RANKED)
def test_averages_of_classes_have_an_interval_while_scores_are_kept(kind, of, average):
    rng = np.random.default_rng(4)
    target = rng.integers(0, 3, 200)
    scores = special.softmax(rng.normal(size=(200, 3)) + np.eye(3)[target], 1).astype(np.float32)
    metric = kind(num_classes=3, average=average)
    found = ends(metric, scores, target)
    rankings = [(scores[:, k], (target == k).astype(int)) for k in range(3)]
    assert found == pytest.approx(averaged_interval(rankings, of, average=average))
    meter = Meter(value=metric)
    meter.update(torch.tensor(scores), torch.tensor(target))
    safe = averaged_interval(rankings, of, average=average, safe=True)
    assert closed_forms(meter)["value"].safe == pytest.approx(safe)
    assert ends(kind(num_classes=3, average=average, ignore_index=1), scores, target) is None  # no positives of it
    assert ends(kind(num_classes=3, average=average, exact_up_to=0), scores, target) is None
    assert ends(kind(num_classes=3, average=average), scores[:20], target[:20]) is None
    assert kind(num_classes=3, average=None).closed_form == ""


@pytest.mark.parametrize("average", ["macro", "micro"])
@pytest.mark.parametrize(("kind", "of"), RANKED)
def test_averages_of_labels_leave_out_what_is_ignored(kind, of, average):
    rng = np.random.default_rng(5)
    target = rng.integers(-1, 2, (200, 2))
    scores = (rng.random((200, 2)) / 2 + np.maximum(target, 0) / 3).astype(np.float32)
    found = ends(kind(num_labels=2, ignore_index=-1, average=average), scores, target)
    rankings = [(scores[:, k], target[:, k]) for k in range(2)]
    assert found == pytest.approx(averaged_interval(rankings, of, average=average))


def placements(scores, target):
    """The placement of each positive among the negatives, and of each negative among the positives."""
    a, b = scores[target == 1][:, None], scores[target == 0][None]
    kernel = (a > b) + (a == b) / 2
    return kernel.mean(1), kernel.mean(0)


def score_ends_of_area(area, p, n):
    """Newcombe's method 5, on a grid."""
    other, k = np.linspace(1e-9, 1 - 1e-9, 2_000_001), (p + n) / 2 - 1
    variance = other * (1 - other) * (1 + k * (1 - other) / (2 - other) + k * other / (1 + other)) / (p * n)
    near = other[np.abs(area - other) <= 1.959964 * np.sqrt(variance)]
    return near[0], near[-1]


@pytest.mark.parametrize("positives", [3, 5, 10])
@pytest.mark.parametrize("found", [1.0, 0.7])
def test_neither_safe_end_of_an_area_misses_more_often_than_it_may(positives, found):
    """Also where a share of the positives is found surely, and the others are like negatives."""
    rng, repeats, below, above, shown = np.random.default_rng(positives), 500, 0, 0, 0
    shift = 1.2 if found == 1 else 9.0
    truth = found * stats.norm.cdf(shift / math.sqrt(2)) + (1 - found) / 2
    for _ in range(repeats):
        scores = rng.normal(size=positives + 57)
        scores[:positives] += shift * (rng.random(positives) < found)
        order = np.argsort(-scores)
        counts = (order < positives).astype(int), (order >= positives).astype(int)
        lower, upper = area_interval(*counts, safe=True)
        below, above = below + (upper < truth), above + (lower > truth)
        narrow = area_interval(*counts)
        assert lower <= narrow[0] <= narrow[1] <= upper
        shown += narrow[0] <= truth <= narrow[1]
    assert max(below, above) <= stats.binom.ppf(0.999, repeats, 0.025)
    assert shown >= stats.binom.ppf(0.001, repeats, 0.93)


def test_quantiles_and_medians_have_order_statistics():
    values = np.random.default_rng(1).exponential(size=50).astype(np.float32)
    meter = Meter(Quantile(0.9))
    meter.update(torch.tensor(values))
    found = closed_forms(meter)["Quantile"]
    assert (found.lower, found.upper) == tuple(np.sort(values)[[40, 49]].astype(float))
    assert ends(MedianAbsoluteError(), values, np.zeros_like(values)) == order_statistics(np.sort(values), 0.5)
    assert order_statistics(np.arange(5), 0.5) is None
    assert order_statistics(np.arange(20), 0.1) == (-math.inf, 5)


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize(("off", "n"), [(0.0, 100), (0.0, 1000), (0.1, 1000)])
def test_the_interval_of_a_calibration_error_holds_the_truth(norm, off, n):
    rng, missed = np.random.default_rng(n), [0, 0]
    data_sets = draws(200)
    for _ in data_sets:
        scores = (0.1 + 0.8 * rng.random(n)).astype(np.float32)
        target = rng.random(n) < scores + off * (1 - 2 * (scores > 0.5))
        truth = off * (14 / 15 if norm == "l1" else (14 / 15) ** 0.5) if off else 0.0  # the middle bin is half of each
        lower, upper = ends(CalibrationError(norm=norm), scores, target.astype(int))
        missed = [missed[0] + (lower > truth), missed[1] + (upper < truth)]
    assert max(missed) <= stats.binom.ppf(0.999, len(data_sets), 0.025)


def test_the_largest_calibration_error_has_no_interval():
    metric = CalibrationError(norm="max")
    assert (metric.closed_form, metric.estimates) == ("", False)
    assert "by chance" in metric.without_estimate


def test_the_average_precision_has_the_interval_of_its_counts():
    scores, target = [0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1]
    expected = precision_interval(np.array([1, 0, 1, 0]), np.array([0, 1, 0, 1]))
    assert ends(AveragePrecision(), scores, target) == pytest.approx(expected)
    assert ends(AveragePrecision(), scores, [0, 0, 0, 0]) is None


def test_rank_correlations_have_fishers_with_the_variance_of_the_ranks_and_pearsons_none():
    x, y = np.random.default_rng(0).normal(size=(2, 30)).astype(np.float32)
    y = y + x
    rho, tau = stats.spearmanr(x, y).statistic, stats.kendalltau(x, y).statistic
    t = stats.t.ppf(0.975, 29) / stats.norm.ppf(0.975)
    for metric, r, moves, least in (
        (SpearmanCorrCoef(), rho, spearman_moves(x, y), (1 + rho**2 / 2) / 27),
        (KendallRankCorrCoef(), tau, kendall_moves(x, y), 0.437 / 26),
    ):
        variance = max(least, t**2 * (moves**2).sum() / 28**2 / (1 - r**2) ** 2)
        assert ends(metric, x, y) == pytest.approx(fisher_z(r, variance))
        assert ends(metric, x, x) is None
    assert ends(KendallRankCorrCoef("c"), x, y) is None
    assert ends(KendallRankCorrCoef(), x[:4], y[:4]) is None
    assert PearsonCorrCoef().closed_form == ""  # Fisher's holds for normal pairs alone, at any number of them


def test_kendalls_correlation_of_pairs_with_heavy_tails_is_covered():
    """The variance of normal pairs covers fewer than 0.9 of these."""
    random, held, truth = np.random.default_rng(0), 0, 1 / 3  # heavy tails of both do not change it
    for _ in range(300):
        x, y = random.normal(size=(2, 60)) / np.sqrt(random.chisquare(2, 60) / 2)
        lower, upper = ends(KendallRankCorrCoef(), x, x / 2 + math.sqrt(0.75) * y)
        held += lower <= truth <= upper
    assert held >= 0.93 * 300


def test_a_quantile_has_two_of_the_samples():
    values = np.random.default_rng(0).permutation(100).astype(np.float32)
    assert ends(Quantile(0.5), values) == (39.0, 60.0)
    assert ends(Quantile((0.5,)), values) is None
    assert ends(Quantile(0.001), values) == (-math.inf, 1)


def test_values_that_cannot_be_have_no_interval():
    meter = Meter(Accuracy(num_classes=CLASSES))
    meter.update(torch.tensor([1, 2, 9]), torch.tensor([1, 2, 3]))
    assert closed_forms(meter) == {}


@pytest.mark.parametrize(("wrong", "cautions"), [(4, True), (5, False), (55, False), (56, True)])
def test_an_interval_of_few_samples_of_a_kind_has_a_caution(wrong, cautions):
    target = torch.ones(60, dtype=torch.int64)
    preds = torch.where(torch.arange(60) < wrong, 0, 1)
    metrics = {"acc": Accuracy(), "hamming": HammingDistance(), "recall": Recall(), "f1": F1Score()}
    meter = Meter(**metrics)
    meter.update(preds, target)
    for name, found in closed_forms(meter).items():
        assert (found.caution != "") == cautions, name
        assert found.caution in ("", few_of_a_kind(0, 60))


@pytest.mark.parametrize(("wrong", "cautions"), [(9, True), (10, False)])
def test_an_average_over_classes_with_few_mistakes_has_a_caution(wrong, cautions):
    target = torch.arange(90) % 3
    preds = torch.where(torch.arange(90) < wrong, (target + 1) % 3, target)
    metrics = (F1Score, BalancedAccuracy, CohenKappa, MatthewsCorrCoef)
    meter = Meter(**{kind.__name__: kind(num_classes=3) for kind in metrics})
    meter.update(preds, target)
    found = closed_forms(meter)
    assert [each.caution != "" for each in found.values()] == [cautions] * 4
