"""Each metric against its definition, over all orders of equal scores, in fractions."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pytest
import torch

from assay.errors import ConfigError, NoDataWarning
from assay.meter import Meter
from assay.metrics import (
    ExpectedReciprocalRank,
    RankBiasedPrecision,
    RetrievalAUROC,
    RetrievalFallOut,
    RetrievalHitRate,
    RetrievalMAP,
    RetrievalMRR,
    RetrievalNormalizedDCG,
    RetrievalPrecision,
    RetrievalPrecisionRecallCurve,
    RetrievalRecall,
    RetrievalRecallAtFixedPrecision,
    RetrievalRPrecision,
)
from assay.metrics.retrieval.base import RetrievalMetric
from assay.tally.queries.query_terms import GAINS, power_of_two
from metrics.retrieval import orders
from thinning import draws, one_of_each

CASES = {
    "MAP": (RetrievalMAP(), orders.average_precision()),
    "MAP@3": (RetrievalMAP(top_k=3), orders.average_precision(3)),
    "MRR": (RetrievalMRR(), orders.reciprocal_rank()),
    "MRR@2": (RetrievalMRR(top_k=2), orders.reciprocal_rank(2)),
    "precision": (RetrievalPrecision(), orders.precision()),
    "precision@3": (RetrievalPrecision(top_k=3), orders.precision(3)),
    "precision@9": (RetrievalPrecision(top_k=9), orders.precision(9)),
    "precision@5, adaptive": (RetrievalPrecision(top_k=5, adaptive_k=True), orders.precision(5, adaptive=True)),
    "recall": (RetrievalRecall(), orders.recall()),
    "recall@2": (RetrievalRecall(top_k=2), orders.recall(2)),
    "hit": (RetrievalHitRate(), orders.hit()),
    "hit@3": (RetrievalHitRate(top_k=3), orders.hit(3)),
    "fall-out": (RetrievalFallOut(empty_target_action="neg"), orders.fall_out()),
    "fall-out@2": (RetrievalFallOut(empty_target_action="neg", top_k=2), orders.fall_out(2)),
    "R-precision": (RetrievalRPrecision(), orders.r_precision()),
    "AUROC": (RetrievalAUROC(), orders.auroc()),
    "nDCG": (RetrievalNormalizedDCG(), orders.ndcg()),
    "nDCG@3": (RetrievalNormalizedDCG(top_k=3), orders.ndcg(3)),
    "nDCG@4, exponential": (RetrievalNormalizedDCG(top_k=4, gain="exponential"), orders.ndcg(4, exponential=True)),
    "RBP": (RankBiasedPrecision(p=0.5), orders.rank_biased_precision(Fraction(1, 2))),
    "RBP@3": (RankBiasedPrecision(p=0.75, top_k=3), orders.rank_biased_precision(Fraction(3, 4), 3)),
    "ERR": (ExpectedReciprocalRank(max_relevance=3), orders.expected_reciprocal_rank(3)),
    "ERR@3": (ExpectedReciprocalRank(max_relevance=4, top_k=3), orders.expected_reciprocal_rank(4, 3)),
}
DATA_SETS = draws(200)


def queries(seed: int) -> list[tuple[list[float], list[int]]]:
    """One to three queries of one to six documents, many of them with equal scores; none, some or all relevant."""
    drawn = random.Random(seed)
    found = []
    for _ in range(drawn.randint(1, 3)):
        size = drawn.randint(1, 6)
        scores = [drawn.randint(-drawn.choice([0, 1, 4]), 0) / 2 for _ in range(size)]
        found.append((scores, [max(0, drawn.randint(drawn.choice([-9, -2, 0, 1]), 3)) for _ in range(size)]))
    return found


def flat(data: list[tuple[list[float], list[int]]]) -> tuple[torch.Tensor, ...]:
    """Scores, relevances and the numbers of the queries, in a random order."""
    rows = [
        (s, r, 7 * q - 5) for q, (scores, relevance) in enumerate(data) for s, r in zip(scores, relevance, strict=True)
    ]
    random.Random(len(rows)).shuffle(rows)
    scores, relevance, numbers = zip(*rows, strict=True)
    return torch.tensor(scores), torch.tensor(relevance), torch.tensor(numbers)


def padded(data: list[tuple[list[float], list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of six documents; those that a query does not have are to be ignored."""
    scores = torch.tensor([scores + [0.5, -9.0, 0.0, -1.0, 3.0, 0.0][len(scores) :] for scores, _ in data])
    return scores, torch.tensor([relevance + [-100] * (6 - len(relevance)) for _, relevance in data])


METRICS = {name: metric for name, (metric, _) in CASES.items()}


@cache
def expected(seed: int) -> dict[str, float]:
    """The value of every metric on a data set."""
    data = queries(seed)
    found = {}
    for name, (_, definition) in CASES.items():
        values = [orders.expectation(definition, *query) or 0 for query in data]
        found[name] = float(sum(values) / len(values))
    return found


def by_row(metric: RetrievalMetric) -> RetrievalMetric:
    return replace(metric, by_row=True, ignore_index=-100)


@pytest.mark.parametrize("way", ["indexes", "rows in float64", "rows in float32"])
@one_of_each()
def test_values_are_expectations_over_all_orders_of_equal_scores(way):
    rows, tolerance = way != "indexes", 1e-6 if way.endswith("32") else 1e-12
    metrics = {name: by_row(metric) if rows else metric for name, metric in METRICS.items()}
    for seed in DATA_SETS:
        meter = Meter(**metrics)
        if rows:
            scores, target = padded(queries(seed))
            meter.update(scores if way.endswith("32") else scores.double(), target)
        else:
            scores, target, indexes = flat(queries(seed))
            meter.update(scores, target, indexes=indexes)
        values = {name: float(value) for name, value in meter.compute().items()}
        assert values == pytest.approx(expected(seed), rel=tolerance, abs=tolerance), seed


def test_curves_have_precision_and_recall_at_each_number_of_documents():
    for seed in DATA_SETS[::10]:
        scores, target, indexes = flat(queries(seed))
        for adaptive in (False, True):
            curve = RetrievalPrecisionRecallCurve(max_k=4, adaptive_k=adaptive)
            value = curve(scores, target, indexes=indexes)
            of_rows = by_row(curve)(padded(queries(seed))[0].double(), padded(queries(seed))[1])
            for k in range(1, 5):
                precision = RetrievalPrecision(top_k=k, adaptive_k=adaptive)(scores, target, indexes=indexes)
                recall = RetrievalRecall(top_k=k)(scores, target, indexes=indexes)
                for found in (value, of_rows):
                    assert float(found.precision[k - 1]) == pytest.approx(float(precision), rel=1e-12, abs=1e-12)
                    assert float(found.recall[k - 1]) == pytest.approx(float(recall), rel=1e-12, abs=1e-12)
            assert value.top_k.tolist() == [1, 2, 3, 4]


def test_the_curve_of_all_documents_is_as_long_as_the_longest_query():
    scores, target, indexes = torch.rand(9), torch.ones(9, dtype=torch.int64), torch.tensor([3] * 5 + [-2] * 4)
    assert RetrievalPrecisionRecallCurve()(scores, target, indexes=indexes).recall.shape == (5,)
    with pytest.raises(ConfigError, match="max_k"):
        RetrievalPrecisionRecallCurve(by_row=True)


def test_recall_at_fixed_precision_is_the_best_of_the_curve():
    scores, target = torch.tensor([5.0, 4.0, 3.0, 2.0, 1.0]), torch.tensor([1, 0, 1, 0, 0])
    indexes = torch.zeros(5, dtype=torch.int64)

    def best(min_precision, **options):
        metric = RetrievalRecallAtFixedPrecision(min_precision=min_precision, **options)
        recall, k = metric(scores, target, indexes=indexes)
        return float(recall), int(k)

    assert best(1.0) == (0.5, 1)
    assert best(0.6) == (1.0, 3)
    assert best(0.0) == (1.0, 5)
    assert best(0.9, max_k=2) == (0.5, 1)
    none = RetrievalRecallAtFixedPrecision(min_precision=0.9)
    recall, k = none(scores, 1 - target, indexes=indexes)
    assert (float(recall), int(k)) == (0.0, 5)


def test_many_equal_scores_cost_no_digits():
    """All orders of 3,000 documents of one score; 500 are relevant."""
    scores, target = torch.zeros(3_000), (torch.arange(3_000) < 500).long()
    indexes = torch.zeros(3_000, dtype=torch.int64)
    missing = Fraction(1)
    for j in range(10):
        missing *= Fraction(2_500 - j, 3_000 - j)
    mrr, none = Fraction(0), Fraction(1)
    for j in range(2_501):
        mrr += none * Fraction(500, 3_000 - j) / (j + 1)
        none *= Fraction(2_500 - j, 3_000 - j)
    discounts = [1 / math.log2(i + 2) for i in range(3_000)]
    exact = {
        "hit": 1 - missing,
        "mrr": mrr,
        "precision": Fraction(1, 6),
        "ndcg": math.fsum(discounts) / 6 / math.fsum(discounts[:500]),
    }
    metrics = {
        "hit": RetrievalHitRate(top_k=10),
        "mrr": RetrievalMRR(),
        "precision": RetrievalPrecision(top_k=100),
        "ndcg": RetrievalNormalizedDCG(),
    }
    for name, metric in metrics.items():
        assert float(metric(scores, target, indexes=indexes)) == pytest.approx(float(exact[name]), rel=1e-12)
        rows = replace(metric, by_row=True)(scores[None].double(), target[None])
        assert float(rows) == pytest.approx(float(exact[name]), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gains_of_fractions_keep_their_digits(dtype):
    x = torch.tensor([0.0, 1e-6, 0.3, 1.0, 2.5, 10.0, 50.25], dtype=dtype)
    exact = torch.tensor([math.expm1(float(each) * math.log(2)) for each in x], dtype=dtype)
    found = GAINS["exponential"](x, torch.zeros(()))
    assert torch.allclose(found, exact, rtol=8 * torch.finfo(dtype).eps, atol=0)
    whole = torch.arange(-140.0, 128.0, dtype=dtype)[20:]
    assert power_of_two(whole).tolist() == [2.0 ** float(each) for each in whole]


@pytest.mark.parametrize("gain", ["linear", "exponential"])
def test_gains_beyond_floats_are_those_of_larger_ones(gain):
    """With relevances this far apart, only documents with the highest have a gain in float64."""
    scores = torch.tensor([0.1, 0.9, 0.5])
    for largest, dtype in ((3e38, torch.float32), (1.5e308, torch.float64)):
        relevance = torch.tensor([largest, largest / 4, largest], dtype=dtype)
        share = {"linear": 0.25, "exponential": 0.0}[gain]
        ideal = 1 + 1 / math.log2(3) + share / 2
        expected = (share + 1 / math.log2(3) + 1 / 2) / ideal
        found = RetrievalNormalizedDCG(gain=gain)(scores, relevance, indexes=torch.zeros(3, dtype=torch.long))
        rows = RetrievalNormalizedDCG(gain=gain, by_row=True)(scores[None], relevance[None])
        assert [float(found), float(rows)] == pytest.approx([expected] * 2, rel=1e-6)


def test_gains_of_any_size_have_one_value():
    chance = torch.Generator().manual_seed(0)
    for exponent in (-1000, -200, 0, 100, 1000):
        scores, relevance = torch.rand(2, 9, generator=chance, dtype=torch.float64)
        expected = RetrievalNormalizedDCG(by_row=True)(scores[None], relevance[None])
        found = RetrievalNormalizedDCG(by_row=True)(scores[None], relevance[None] * 2.0**exponent)
        assert float(found) == float(expected)


def test_weights_near_the_largest_float():
    scores, target = torch.tensor([0.1, 0.9, 0.2, 0.8]), torch.tensor([1, 0, 0, 1])
    indexes, weights = torch.tensor([0, 0, 1, 1]), torch.tensor([1.5e308, 1.5e308, 5e307, 5e307], dtype=torch.float64)
    assert float(RetrievalMAP()(scores, target, indexes=indexes, weights=weights)) == pytest.approx(0.625)


@pytest.mark.parametrize("kind", [RetrievalPrecisionRecallCurve, RetrievalRecallAtFixedPrecision])
def test_curves_without_a_query_that_weighs_warn(kind):
    batch = torch.tensor([[0.1, 0.9]]), torch.tensor([[1, 0]])
    with pytest.warns(NoDataWarning, match="queries that have documents"):
        value = kind(by_row=True, max_k=2)(*batch, weights=torch.zeros(1))
    assert value.recall.isnan().all()
    with pytest.warns(NoDataWarning, match="queries that have documents"):
        kind(max_k=2)(*(x[0] for x in batch), weights=torch.zeros(2), indexes=torch.zeros(2, dtype=torch.long))


@pytest.mark.parametrize("top_k", [None, 45, 300])
def test_large_groups_of_equal_scores_give_what_small_ones_do(top_k):
    """By row in float64, each document of a group is added to all choices of those before it."""
    generator = torch.Generator().manual_seed(top_k or 0)
    scores = torch.randint(0, 3, (6, 400), generator=generator).masked_fill(torch.rand(6, 400) < 0.1, 1.5).double()
    scores[3], scores[4, :50] = 0, torch.arange(50)
    grades = torch.randint(0, 5, (6, 400), generator=generator) * torch.randint(0, 2, (6, 400), generator=generator)
    grades[5] = (torch.arange(400) == 70).long()
    metric = ExpectedReciprocalRank(top_k=top_k)
    for row in range(6):
        value = metric(scores[row], grades[row], indexes=torch.zeros(400, dtype=torch.int64))
        wanted = replace(metric, by_row=True)(scores[row : row + 1], grades[row : row + 1])
        assert float(value) == pytest.approx(float(wanted), rel=1e-13)


@pytest.mark.parametrize("relevance", [1e-12, 1.0, 4.0])
def test_equal_scores_of_very_many_documents_take_no_long_time(relevance):
    count = 100_000
    stop = math.expm1(relevance * math.log(2)) / 16
    wanted = -stop * math.log(stop) / (1 - stop)  # of infinitely many
    if relevance < 1:
        wanted = stop * sum(1 / rank for rank in range(1, count + 1))  # to the first order of a small number
    columns = {"indexes": torch.zeros(count, dtype=torch.int64)}
    value = ExpectedReciprocalRank()(torch.zeros(count), torch.full((count,), relevance).double(), **columns)
    assert float(value) == pytest.approx(wanted, rel=1e-7 if relevance < 1 else 1e-12)
