"""Intervals of queries by number: those of the queries' values, and how often they cover the value of all queries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from assay import evaluate
from assay.meter import Meter
from assay.meter.resampling.intervals import closed_forms, needing_bootstrap, resampled_queries
from assay.metrics import (
    RetrievalMAP,
    RetrievalMRR,
    RetrievalNormalizedDCG,
    RetrievalPrecision,
    RetrievalRecallAtFixedPrecision,
)
from assay.metrics.per_sample import per_sample_values
from assay.stats.intervals import mean_interval, order_statistics

METRICS = [RetrievalMAP(), RetrievalMRR(top_k=3), RetrievalNormalizedDCG(empty_target_action="skip")]


def drawn(queries: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores and grades of eight documents of each query, some queries of which are harder than others."""
    generator = torch.Generator().manual_seed(seed)
    grades = torch.randint(-6, 4, (queries, 8), generator=generator).clamp(min=0)
    noise, skill = torch.randn(queries, 8, generator=generator), torch.rand(queries, 1, generator=generator)
    return noise + skill * grades, grades


def ends(metric, scores, grades, confidence_level=0.95, **columns):
    meter = Meter(value=metric)
    numbers = torch.arange(len(scores))[:, None].expand(scores.shape)
    meter.update(scores.reshape(-1), grades.reshape(-1), indexes=numbers.reshape(-1), **columns)
    interval = closed_forms(meter, confidence_level).get("value")
    return None if interval is None else (interval.lower, interval.upper)


@pytest.mark.parametrize("metric", METRICS, ids=repr)
def test_they_are_those_of_the_values_of_the_queries(metric):
    scores, grades = drawn(40, 1)
    terms = per_sample_values(replace(metric, by_row=True), scores.double(), grades)
    values = terms.terms[terms.numerator].numpy()
    if terms.denominator:
        values = values[terms.terms[terms.denominator].numpy()]
    assert ends(metric, scores, grades) == pytest.approx(mean_interval(values), abs=1e-12)
    median = order_statistics(np.sort(values), 0.5, 0.9)
    assert ends(replace(metric, aggregation="median"), scores, grades, 0.9) == pytest.approx(median, abs=1e-12)


def test_there_is_none_where_queries_say_nothing_of_others():
    scores, grades = drawn(40, 2)
    metric = RetrievalPrecision(top_k=2)
    assert ends(metric, scores[:12], grades[:12]) is not None
    assert ends(metric, scores[:11], grades[:11]) is None  # too few
    assert ends(metric, scores, torch.zeros_like(grades)) is None  # all alike
    assert ends(replace(metric, aggregation="max"), scores, grades) is None
    meter = Meter(metric, weighted=True)
    numbers = torch.arange(40).repeat_interleave(8)
    meter.update(scores.view(-1), grades.view(-1), weights=torch.ones(320), indexes=numbers)
    assert closed_forms(meter) == {}
    assert needing_bootstrap(meter) is None  # documents of a query depend on each other


def test_they_cover_the_value_of_all_queries():
    metric = RetrievalNormalizedDCG()
    numbers = torch.arange(6_000).repeat_interleave(8)
    scores, grades = drawn(6_000, 3)
    value = float(metric(scores.view(-1), grades.view(-1), indexes=numbers))
    missed = 0
    for part in range(100):  # of the same queries, 60 at a time
        lower, upper = ends(metric, scores[part * 60 :][:60], grades[part * 60 :][:60])
        missed += not lower <= value <= upper
    assert 1 <= missed <= 12  # of 100, 5 are expected


def test_a_report_shows_them():
    scores, grades = drawn(30, 4)
    rows = [
        {"score": score, "target": grade, "query": query}
        for query in range(30)
        for score, grade in zip(scores[query], grades[query], strict=True)
    ]
    loader = torch.utils.data.DataLoader(rows, batch_size=32)
    columns = {"indexes": "query"}
    report = evaluate(lambda x: x, loader, RetrievalMAP(), inputs="score", columns=columns, device="cpu")
    (value,) = report.sections[0].values
    assert (value.lower, value.upper) == ends(RetrievalMAP(), scores, grades)
    assert value.note == "Student's interval of queries, corrected for skewness"


RECALL = RetrievalRecallAtFixedPrecision(max_k=8, min_precision=0.45)


def recall_meter(queries, seed, metric=RECALL, **options):
    scores, grades = drawn(queries, seed)
    numbers = torch.arange(queries).repeat_interleave(8)
    meter = Meter(r=metric, weighted=bool(options))
    meter.update(scores.reshape(-1), grades.reshape(-1), indexes=numbers, **options)
    return meter


def test_recall_at_a_precision_resamples_queries():
    meter = recall_meter(60, 5)
    found = resampled_queries(meter)
    assert list(found) == ["r recall"]
    interval, value = found["r recall"], meter.compute()["r"].recall.item()
    assert 0 <= interval.lower < value < interval.upper <= 1
    assert interval.method == "bootstrap: 400 draws of 60 queries"
    wider = resampled_queries(meter, 0.98, 1000)["r recall"]
    assert (wider.lower, wider.upper) != (interval.lower, interval.upper)
    assert wider.upper - wider.lower >= interval.upper - interval.lower
    whole = recall_meter(60, 5, replace(RECALL, max_k=None))
    assert resampled_queries(whole) == found  # no query has more than 8 documents


def test_recall_at_a_precision_has_none_where_queries_say_nothing_of_others():
    assert resampled_queries(recall_meter(11, 5)) == {}
    assert resampled_queries(recall_meter(40, 5, replace(RECALL, aggregation="median"))) == {}
    assert resampled_queries(recall_meter(40, 5, weights=torch.ones(320))) == {}
    assert resampled_queries(Meter(r=RECALL)) == {}
    every = Meter(r=RECALL)
    every.update(torch.arange(160.0), torch.ones(160, dtype=torch.int64), indexes=torch.arange(160) // 8)
    assert resampled_queries(every) == {}  # all replicates are alike


@pytest.mark.exhaustive
def test_recall_at_a_precision_covers_the_value_of_all_queries():
    true = recall_meter(50_000, 10**6).compute()["r"].recall.item()
    hits = [
        found.lower <= true <= found.upper
        for seed in range(60)
        if (found := resampled_queries(recall_meter(50, seed)).get("r recall"))
    ]
    assert len(hits) == 60
    assert 0.88 <= np.mean(hits) < 1


def test_a_report_has_the_interval_of_recall_at_a_precision():
    scores, grades = drawn(60, 5)
    numbers = torch.arange(60).repeat_interleave(8)
    data = [{"x": scores.reshape(-1), "target": grades.reshape(-1), "indexes": numbers}]
    report = evaluate(lambda x: x, data, {"r": RECALL}, inputs="x", device="cpu")
    found = resampled_queries(recall_meter(60, 5))["r recall"]
    values = {each.name: each for each in report.sections[0].values}
    assert (values["r recall"].lower, values["r recall"].upper) == (found.lower, found.upper)
    assert values["r top_k"].lower is None
