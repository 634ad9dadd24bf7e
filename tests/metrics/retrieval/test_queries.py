"""How queries are given: by number or by row, in any order and any parts; what is empty, ignored or invalid."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from dataclasses import replace

import pytest
import torch

import assay.meter.meter
import assay.meter.processes.sync
from assay.devices import policy
from assay.errors import ConfigError, DtypeError, InvalidValuesError, NoDataWarning, ShapeError
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
from assay.metrics.per_sample import per_sample_values
from assay.pretend import pretend
from laws import bits
from ranks import Group

METRICS = {
    "map": RetrievalMAP(),
    "mrr": RetrievalMRR(top_k=3),
    "ndcg": RetrievalNormalizedDCG(gain="exponential"),
    "precision": RetrievalPrecision(top_k=2),
    "recall": RetrievalRecall(top_k=2),
    "hit": RetrievalHitRate(top_k=1),
    "fall-out": RetrievalFallOut(top_k=2),
    "r": RetrievalRPrecision(),
    "auroc": RetrievalAUROC(),
    "curve": RetrievalPrecisionRecallCurve(),
    "rbp": RankBiasedPrecision(),
    "err": ExpectedReciprocalRank(),
}


def documents(seed: int, count: int = 60) -> tuple[torch.Tensor, ...]:
    """Documents of nine queries with scores, a few of them equal, and grades."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randint(-20, 21, (count,), generator=generator) / 4
    grades = torch.randint(-2, 4, (count,), generator=generator).clamp(min=0)
    return scores, grades, torch.randint(-4, 5, (count,), generator=generator)


def counted(*batches: tuple[torch.Tensor, ...], metrics=METRICS, weighted=False, **options) -> Meter:
    meter = Meter(**metrics, weighted=weighted, **options)
    for preds, target, indexes, *weights in batches:
        columns = {"weights": weights[0]} if weights else {}
        meter.update(preds, target, indexes=indexes, **columns)
    return meter


def part(batch, rows):
    return tuple(column[rows] for column in batch)


# --- documents with the numbers of their queries ---------------------------------------------------------------------


def test_documents_are_kept_once_for_all_metrics():
    assert len(Meter(**METRICS).tallies) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_no_order_and_no_split_changes_a_bit(weighted):
    for seed in range(6):
        data = documents(seed)
        if weighted:
            data = (*data, torch.randint(0, 9, (60,), generator=torch.Generator().manual_seed(seed)) / 4)
        whole = bits(counted(data, weighted=weighted))
        order = torch.randperm(60, generator=torch.Generator().manual_seed(seed))
        parts = [part(data, order[start : start + 13]) for start in range(0, 60, 13)]
        assert bits(counted(*parts, weighted=weighted)) == whole
        assert bits(counted(*parts, weighted=weighted, stage_bytes=0)) == whole
        meters = [counted(each, weighted=weighted) for each in parts]
        assert bits(meters[2].merge(meters[4], meters[0], meters[1], meters[3])) == whole


def test_copies_and_files_have_the_same_bits(tmp_path):
    meter = counted(documents(7))
    resumed = Meter(**METRICS)
    resumed.load_state_dict(meter.state_dict())
    for other in (copy.deepcopy(meter), pickle.loads(pickle.dumps(meter)), resumed):
        assert bits(other) == bits(meter)
    assert bits(Meter.from_file(meter.to_file(tmp_path / "meter.safetensors"))) == bits(meter)


def test_documents_of_a_query_may_be_on_several_processes(monkeypatch):
    group = Group(3)
    monkeypatch.setattr(assay.meter.processes.sync, "dist", group)
    monkeypatch.setattr(assay.meter.meter, "dist", group)
    monkeypatch.setattr(assay.meter.processes.sync, "collective_device", lambda group: torch.device("cpu"))
    data = documents(8)
    cuts = [0, 0, 31, 60]  # the first has none
    meters = [counted(part(data, slice(cuts[rank], cuts[rank + 1]))) for rank in range(3)]
    synced = group.run(lambda rank: meters[rank].sync())
    assert {pickle.dumps(bits(meter)) for meter in synced} == {pickle.dumps(bits(counted(data)))}


def test_any_increasing_function_of_the_scores_gives_the_same_bits():
    scores, target, indexes = documents(9)
    expected = bits(counted((scores, target, indexes)).compute())
    for other in (2 * scores - 10, scores**3, scores.double() * 3, scores.half(), scores.bfloat16()):
        assert bits(counted((other, target, indexes)).compute()) == expected
    zeros = torch.where(scores == 0, torch.tensor(-0.0), scores)
    assert bits(counted((zeros, target, indexes)).compute()) == expected


def test_dtypes_and_numbers_of_queries_change_no_bit():
    scores, target, indexes = documents(10)
    expected = bits(counted((scores, target, indexes)).compute())
    for kind in (torch.int8, torch.int32, torch.uint8, torch.float32, torch.bfloat16, torch.float64):
        assert bits(counted((scores, target.to(kind), indexes)).compute()) == expected
    extremes = torch.where(indexes == 0, 2**63 - 1, torch.where(indexes == 1, -(2**63), indexes))
    for numbers in (indexes.to(torch.int8), indexes * 10**17 + 5, extremes, -indexes):
        assert bits(counted((scores, target, numbers)).compute()) == expected
    both = counted((scores[:30].double(), target[:30], indexes[:30]), (scores[30:], target[30:].bool(), indexes[30:]))
    graded = torch.cat([target[:30], target[30:].bool().long()])
    assert bits(both.compute()) == bits(counted((scores, graded, indexes)).compute())


def test_scores_that_only_float64_tells_apart_are_not_equal():
    scores = torch.tensor([1.0, 1.0 + 1e-12], dtype=torch.float64)
    target, indexes = torch.tensor([0, 1]), torch.tensor([0, 0])
    assert float(RetrievalMRR()(scores, target, indexes=indexes)) == 1.0
    assert float(RetrievalMRR()(scores.float(), target, indexes=indexes)) == 0.75
    assert float(RetrievalMRR(by_row=True)(scores[None], target[None])) == 1.0


def test_infinite_scores_rank_and_scores_of_any_sign_count():
    scores = torch.tensor([-math.inf, -3.0, math.inf, -1.0])
    target, indexes = torch.tensor([0, 1, 0, 0]), torch.zeros(4, dtype=torch.int64)
    assert float(RetrievalMRR()(scores, target, indexes=indexes)) == pytest.approx(1 / 3, rel=1e-15)
    padded = torch.tensor([[-math.inf, -math.inf, 5.0]]), torch.tensor([[1, -1, -1]])
    assert float(RetrievalMRR(by_row=True, ignore_index=-1)(*padded)) == 1.0
    assert float(RetrievalMRR(by_row=True, ignore_index=-1)(padded[0].double(), padded[1])) == 1.0


def test_a_query_has_the_mean_weight_of_its_documents():
    scores, target = torch.tensor([2.0, 1.0, 2.0, 1.0]), torch.tensor([1, 0, 0, 1])
    indexes, weights = torch.tensor([5, 5, 6, 6]), torch.tensor([3.0, 3.0, 0.5, 1.5])
    value = RetrievalMRR()(scores, target, indexes=indexes, weights=weights)
    assert float(value) == (3 * 1 + 1 * 0.5) / 4
    rows = RetrievalMRR(by_row=True)(scores.view(2, 2), target.view(2, 2), weights=torch.tensor([3.0, 1.0]))
    assert float(rows) == float(value)


# --- both ways -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METRICS)
def test_rows_give_what_numbers_of_queries_give(name):
    generator = torch.Generator().manual_seed(3)
    scores = torch.randint(-9, 10, (40, 5), generator=generator) / 4
    target = torch.randint(-1, 4, (40, 5), generator=generator)
    metric = replace(METRICS[name], ignore_index=-1)
    rows = replace(metric, by_row=True, **({"max_k": 5} if name == "curve" else {}))
    expected = metric(scores, target, indexes=torch.arange(40)[:, None].expand(40, 5))
    found = rows(scores.double(), target)
    for each, other in zip(expected, found, strict=True) if name == "curve" else [(expected, found)]:
        assert torch.allclose(each, other, rtol=1e-14, atol=1e-14)
    assert bits(rows(scores, target)) == bits(rows(scores.flip(1), target.flip(1)))


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("kind", [RetrievalMAP, RetrievalFallOut, RetrievalAUROC, RankBiasedPrecision])
def test_queries_that_lack_a_document_count_as_the_action_says(kind, by_row):
    scores = torch.tensor([[3.0, 2.0], [3.0, 2.0], [3.0, 2.0]])
    target = torch.tensor([[0, 1], [0, 0], [1, 1]])
    lacking = {"RetrievalFallOut": [2], "RetrievalAUROC": [1, 2]}.get(kind.__name__, [1])

    def value(action, rows):
        metric = kind(by_row=by_row, empty_target_action=action)
        if by_row:
            return float(metric(scores[rows], target[rows]))
        indexes = torch.tensor(rows)[:, None].expand(-1, 2)
        return float(metric(scores[rows], target[rows], indexes=indexes))

    others = [row for row in range(3) if row not in lacking]
    without = value("skip", others)
    assert value("skip", [0, 1, 2]) == without
    assert value("neg", [0, 1, 2]) == pytest.approx(without * len(others) / 3)
    assert value("pos", [0, 1, 2]) == pytest.approx((without * len(others) + len(lacking)) / 3)
    assert value("error", others) == without
    with pytest.raises(InvalidValuesError, match=f"{len(lacking)} of the queries .*empty_target_action='error'"):
        value("error", [0, 1, 2])
    with pytest.warns(NoDataWarning):
        assert math.isnan(value("skip", lacking))


@pytest.mark.parametrize("by_row", [False, True])
def test_a_query_all_of_whose_documents_are_ignored_is_none(by_row):
    metric = RetrievalMAP(by_row=by_row, ignore_index=-1)
    scores, target = torch.tensor([[1.0, 2.0], [1.0, 2.0]]), torch.tensor([[-1, -1], [1, 0]])
    columns = {} if by_row else {"indexes": torch.tensor([[0, 0], [1, 1]])}
    assert float(metric(scores, target, **columns)) == 0.5
    with pytest.warns(NoDataWarning):
        assert math.isnan(float(metric(scores, torch.full_like(target, -1), **columns)))


@pytest.mark.parametrize("by_row", [False, True])
def test_aggregations(by_row):
    scores = torch.tensor([[3.0, 2.0, 1.0]] * 4)
    target = torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]])
    columns = {} if by_row else {"indexes": torch.arange(4)[:, None].expand(4, 3)}

    def value(aggregation, **options):
        metric = RetrievalMRR(by_row=by_row, aggregation=aggregation, **options)
        return float(metric(scores, target, **columns))

    assert value("median") == pytest.approx((1 / 2 + 1 / 3) / 2)
    assert value("median", empty_target_action="skip") == 0.5
    assert (value("min"), value("max")) == (0.0, 1.0)
    assert value("min", empty_target_action="skip") == pytest.approx(1 / 3)
    with pytest.raises(InvalidValuesError, match="1 of the queries"):
        value("max", empty_target_action="error")
    weights = torch.ones(4) if by_row else torch.ones(4, 3)
    with pytest.raises(ConfigError, match="aggregation"):
        RetrievalMRR(by_row=by_row, aggregation="median")(scores, target, weights=weights, **columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoDataWarning)
        assert math.isnan(float(Meter(x=RetrievalMRR(by_row=by_row, aggregation="median")).compute()["x"]))


def test_kept_values_of_rows_merge_in_any_order():
    metrics = {
        "median": RetrievalMAP(by_row=True, aggregation="median"),
        "max": RetrievalMRR(by_row=True, aggregation="max"),
    }
    scores, target = torch.rand(30, 4), torch.rand(30, 4) < 0.4
    whole, *parts = (Meter(**metrics) for _ in range(4))
    whole.update(scores, target)
    for meter, rows in zip(parts, torch.randperm(30).split([4, 15, 11]), strict=True):
        meter.update(scores[rows], target[rows])
    assert bits(parts[1] + parts[2] + parts[0]) == bits(whole)


# --- what is invalid -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize(
    ("change", "what"),
    [
        (("preds", math.nan), "1 of the scores are NaN"),
        (("target", -1), "1 of the relevances are negative"),
        (("target", math.nan), "1 of the relevances are negative, infinite or NaN"),
        (("target", math.inf), "1 of the relevances are negative, infinite or NaN"),
    ],
)
def test_invalid_values_are_counted(by_row, change, what):
    data = {"preds": torch.tensor([[1.0, 2.0, 3.0]]), "target": torch.tensor([[1.0, 0.0, 2.0]])}
    data[change[0]][0, 1] = change[1]
    columns = {} if by_row else {"indexes": torch.zeros(1, 3, dtype=torch.int64)}
    with pytest.raises(InvalidValuesError, match=what):
        RetrievalMAP(by_row=by_row)(*data.values(), **columns)
    ignoring = RetrievalMAP(by_row=by_row, ignore_index=-7)
    data["target"][0, 1] = -7
    assert float(ignoring(*data.values(), **columns)) == 1.0


@pytest.mark.parametrize("by_row", [False, True])
def test_a_relevance_above_the_highest_grade_is_invalid(by_row):
    columns = {} if by_row else {"indexes": torch.zeros(1, 2, dtype=torch.int64)}
    data = torch.tensor([[1.0, 2.0]]), torch.tensor([[1, 3]])
    assert float(ExpectedReciprocalRank(by_row=by_row, max_relevance=3)(*data, **columns)) > 0
    with pytest.raises(InvalidValuesError, match="1 of the relevances are above max_relevance=2"):
        ExpectedReciprocalRank(by_row=by_row, max_relevance=2)(*data, **columns)


def test_wrong_metadata_raises_at_once():
    scores, target, indexes = documents(0)
    meter = counted((scores, target, indexes))
    before = bits(meter)
    wrong = [
        (DtypeError, "preds", (scores.long(), target, indexes)),
        (DtypeError, "indexes", (scores, target, indexes.float())),
        (DtypeError, "target", (scores, target.to(torch.complex64), indexes)),
        (ShapeError, "target", (scores[:, None].expand(60, 2), target, indexes)),
        (ShapeError, "indexes", (scores, target, indexes[:, None].expand(60, 2))),
        (ShapeError, "indexes", (scores, target, indexes[:-1])),
    ]
    for kind, name, batch in wrong:
        with pytest.raises(kind, match=f"^{name}: got"):
            meter.update(*batch[:2], indexes=batch[2])
    with pytest.raises(ConfigError, match="indexes"):
        meter.update(scores, target)
    with pytest.raises(ShapeError, match="by_row"):
        RetrievalMAP(by_row=True)(scores, target)
    with pytest.raises(ConfigError, match="indexes"):
        RetrievalMAP(by_row=True)(scores[None], target[None], indexes=indexes[None])
    assert bits(meter) == before


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (RetrievalMAP, {"top_k": 0}),
        (RetrievalMAP, {"empty_target_action": "zero"}),
        (RetrievalMAP, {"aggregation": "sum"}),
        (RetrievalPrecisionRecallCurve, {"max_k": -1}),
        (RetrievalRecallAtFixedPrecision, {"min_precision": -0.01}),
        (RetrievalRecallAtFixedPrecision, {"min_precision": 1.01}),
        (RankBiasedPrecision, {"p": 1.0}),
        (ExpectedReciprocalRank, {"max_relevance": 0}),
        (RetrievalNormalizedDCG, {"gain": "square"}),
    ],
)
def test_arguments_out_of_range_raise(kind, options):
    (name,) = options
    with pytest.raises(ConfigError, match=f"^{name}: got"):
        kind(**options)


# --- per-sample values, devices ---------------------------------------------------------------------------------------


def test_rows_have_per_sample_values_whose_mean_is_the_value():
    scores, target = torch.rand(20, 6), torch.randint(-1, 3, (20, 6))
    target[3] = 0
    for action in ("neg", "pos", "skip"):
        for metric in METRICS.values():
            if isinstance(metric, RetrievalPrecisionRecallCurve):
                continue
            metric = replace(metric, by_row=True, ignore_index=-1, empty_target_action=action)
            found = per_sample_values(metric, scores, target)
            mean = found.terms[found.numerator].mean() / found.terms[found.denominator].float().mean()
            assert float(mean) == pytest.approx(float(metric(scores, target)), rel=1e-5)
    assert per_sample_values(RetrievalMAP(), scores, target, indexes=torch.zeros(20, 6, dtype=torch.int64)) is None


@pytest.mark.devices("mps", "cuda:1", "xpu")
def test_documents_are_kept_where_they_are_and_have_the_bits_of_the_cpu(device, pretended):
    policy(device)
    data = documents(11)
    events = pretended.events if pretended else []
    meter = Meter(**METRICS, stage_bytes=0)
    there = [column.to(device) for column in data]
    events.clear()
    meter.update(*there[:2], indexes=there[2])
    assert [str(event) for event in events] == []
    assert bits(meter) == bits(counted(data))


def test_a_relevance_of_minus_zero_is_zero():
    scores, relevance = torch.tensor([[0.9, 0.5, 0.1]]), torch.tensor([[-0.0, 1.0, -0.0]])
    for dtype in (torch.float16, torch.float32, torch.float64):
        assert RetrievalMRR(by_row=True)(scores, relevance.to(dtype)) == 0.5
    indexes = torch.zeros(3, dtype=torch.int64)
    meters = [Meter(RetrievalMRR()) for _ in range(2)]
    for meter, target in zip(meters, (relevance[0], relevance[0].flip(0).abs()), strict=True):
        meter.update(scores[0], target, indexes=indexes)
    (one,), (two,) = (meter.states() for meter in meters)
    assert torch.equal(one["documents"].column("relevance").signbit(), two["documents"].column("relevance").signbit())


def test_weights_and_other_aggregations_are_refused_at_once():
    with pytest.raises(ConfigError, match="aggregation"):
        Meter(RetrievalMRR(aggregation="median"), weighted=True)


def test_equal_scores_are_counted_on_an_apple_gpu_of_torch_2_6():
    """Which has no `cummax` and no `cummin`: the groups of equal scores are found without."""
    preds, target = torch.tensor([[3.0, 2.0, 2.0, 2.0, 1.0, 1.0]]), torch.tensor([[0, 1, 0, 0, 1, 0]])
    with pretend("mps", release="2.6", engine="python"):
        meter = Meter(RetrievalMRR(by_row=True))
        meter.update(preds.to("mps"), target.to("mps"))
        assert float(meter.compute()["RetrievalMRR"]) == pytest.approx((1 / 2 + 1 / 3 + 1 / 4) / 3)
