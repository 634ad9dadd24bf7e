"""Retrieval under TorchMetrics' names: its definitions; with equal scores, the mean over all their orders."""

from __future__ import annotations

import inspect
from itertools import permutations

import pytest
import torch
import torchmetrics.functional.retrieval
import torchmetrics.retrieval
from assay.compat.torchmetrics.functional import retrieval as functional
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st

from assay.compat.drop_ins import QUERY_FUNCTIONS
from assay.compat.for_torchmetrics.few_queries import MOST_DOCUMENTS, MOST_QUERIES
from assay.compat.for_torchmetrics.single_queries import number_of_query
from assay.compat.torchmetrics import retrieval
from assay.meter.values import plain_value

CLASSES = [name for name in torchmetrics.retrieval.__all__ if name != "RetrievalMetric"]
FUNCTIONS = torchmetrics.functional.retrieval.__all__
GENERATOR = torch.Generator().manual_seed(11)


def squares(values, dim=None):
    return (values**2).mean() if dim is None else (values**2).mean(dim=dim)


def queries(high: int = 2):
    """Two batches; some queries have no relevant document, some no other one, and some are in both batches."""
    for _ in range(2):
        indexes = torch.randint(12, (40,), generator=GENERATOR)
        target = torch.randint(high, (40,), generator=GENERATOR)
        target = torch.where(indexes == 3, 0, torch.where(indexes == 4, 1, target))
        yield torch.rand(40, generator=GENERATOR) + 0.01, target, indexes


def value(kind, batches, **given):
    metric = kind(**given)
    for batch in batches:
        metric.update(*batch)
    return metric.compute()


OPTIONS = [
    {"aggregation": squares},
    {"aggregation": "median", "empty_target_action": "pos"},
    {"aggregation": "max", "empty_target_action": "skip"},
    {"ignore_index": 0},
    {"top_k": 2},
    {"top_k": 3, "aggregation": squares, "empty_target_action": "skip"},
    {"max_fpr": 0.4},
    {"max_fpr": 0.4, "top_k": 4},
    {"max_k": 3, "adaptive_k": True},
    {"min_precision": 0.45},
]


@pytest.mark.parametrize("name", CLASSES)
def test_values_are_those_of_torchmetrics(name):
    original, ours = (getattr(module, name) for module in (torchmetrics.retrieval, retrieval))
    takes = set(original.__init__.__annotations__)
    for given in OPTIONS:
        if given.keys() <= takes:
            batches = list(queries(4 if name == "RetrievalNormalizedDCG" else 2))
            found, expected = value(ours, batches, **given), value(original, batches, **given)
            if name == "RetrievalRecallAtFixedPrecision":  # of several k with this recall, rounding decides there
                found, expected = found[0], expected[0]
            torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_one_query(name):
    ours, original = getattr(functional, name), getattr(torchmetrics.functional.retrieval, name)
    cuts = {"r_precision": [{}], "precision_recall_curve": [{}, {"max_k": 9, "adaptive_k": True}]}
    for given in cuts.get(name.removeprefix("retrieval_"), [{}, {"top_k": 2}]):
        for relevant in (0, 1, 3, 7):
            target = torch.arange(7)[torch.randperm(7, generator=GENERATOR)] < relevant
            preds = torch.rand(7, generator=GENERATOR) + 0.01
            torch.testing.assert_close(ours(preds, target.long(), **given), original(preds, target.long(), **given))


@st.composite
def single_queries(draw, name):
    """Scores, relevances and the arguments of a function; mostly of different scores, of all sizes and signs."""
    size = draw(st.integers(1, 70))
    scores = st.floats(width=32, allow_nan=False) | st.integers(-3, 3).map(float)
    preds = draw(st.lists(scores, min_size=size, max_size=size, unique=draw(st.integers(0, 3)) > 0))
    most = draw(st.sampled_from([1, 5, 2**40])) if name == "retrieval_normalized_dcg" else 1
    target = draw(st.lists(st.integers(0, most), min_size=size, max_size=size))
    takes = inspect.signature(getattr(functional, name)).parameters
    given = {each: draw(st.none() | st.integers(1, size + 2)) for each in ("top_k", "max_k") if each in takes}
    given |= {"adaptive_k": draw(st.booleans())} if "adaptive_k" in takes else {}
    return torch.tensor(preds), torch.tensor(target), given


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(max_examples=60)
@drawn(data=st.data())
def test_a_function_gives_the_bits_of_the_class_of_one_query(name, data):
    """Functions rank a query whose scores differ by themselves; with equal scores they ask the class."""
    preds, target, given = data.draw(single_queries(name))
    found = getattr(functional, name)(preds, target, **given)
    kind, indexes = getattr(retrieval, QUERY_FUNCTIONS[name]), torch.zeros(len(preds), dtype=torch.int64)
    of_class = value(kind, [(preds, target, indexes)], empty_target_action="neg", **given)
    if isinstance(found, tuple):
        found, of_class = torch.cat(found[:2]), torch.cat([each.reshape(-1) for each in of_class[:2]])
    assert torch.equal(found, of_class)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_only_a_query_whose_scores_differ_is_measured_without_its_class(name):
    preds, target = torch.tensor([0.5, -2.0, 0.25]), torch.tensor([0, 1, 1])
    assert number_of_query(name, preds, target, {}) is not None
    for other in (torch.tensor([0.5, 0.5, 0.25]), torch.tensor([0.5, torch.nan, 0.25]), preds.double()):
        assert number_of_query(name, other, target, {}) is None
    assert number_of_query(name, preds, torch.tensor([0, -1, 1]), {}) is None
    assert number_of_query(name, preds.requires_grad_(), target, {}) is None


@pytest.mark.parametrize("name", ["retrieval_average_precision", "retrieval_auroc"])
@pytest.mark.parametrize("top_k", [1, 3, 4, 6])
def test_equal_scores_give_the_mean_over_their_orders(name, top_k):
    ours, original = getattr(functional, name), getattr(torchmetrics.functional.retrieval, name)
    for _ in range(3):
        scores = torch.randint(1, 4, (6,), generator=GENERATOR).float()
        target = torch.randint(2, (6,), generator=GENERATOR)
        orders = [order for order in permutations(range(6)) if scores[list(order)].diff().max() <= 0]
        ranks = torch.arange(6, 0, -1).float()
        means = torch.stack([original(ranks, target[list(order)], top_k=top_k) for order in orders])
        torch.testing.assert_close(ours(scores, target, top_k=top_k), means.mean())


def test_a_partial_area_of_equal_scores_is_that_under_the_curve():
    for max_fpr in (0.3, 0.5, 0.9):
        scores = torch.randint(1, 4, (9,), generator=GENERATOR).float()
        target = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1, 0])
        expected = torchmetrics.functional.retrieval.retrieval_auroc(scores, target, max_fpr=max_fpr)
        torch.testing.assert_close(functional.retrieval_auroc(scores, target, max_fpr=max_fpr), expected)


def test_no_query_counts_0_and_lacking_ones_can_raise():
    batch = torch.tensor([0.3, 0.2]), torch.tensor([0, 0]), torch.tensor([1, 1])
    assert value(retrieval.RetrievalMAP, [batch], empty_target_action="skip") == 0
    curve = value(retrieval.RetrievalPrecisionRecallCurve, [batch], empty_target_action="skip")
    torch.testing.assert_close(curve, (torch.zeros(2), torch.zeros(2), torch.tensor([1, 2])))
    with pytest.raises(ValueError, match=r"no positive target.*got 1"):
        value(retrieval.RetrievalMAP, [batch], empty_target_action="error")
    with pytest.raises(ValueError, match="no negative target"):
        value(retrieval.RetrievalFallOut, [(batch[0], 1 - batch[1], batch[2])], empty_target_action="error")


def test_what_torchmetrics_refuses_is_refused():
    preds, target, indexes = torch.rand(4), torch.tensor([0, 1, 2, 0]), torch.zeros(4, dtype=torch.int64)
    with pytest.raises(ValueError, match="binary"):
        retrieval.RetrievalMRR()(preds, target, indexes)
    with pytest.raises(ValueError, match="long integers"):
        retrieval.RetrievalMRR().update(preds, target, indexes.int())
    with pytest.raises(ValueError, match="None"):
        retrieval.RetrievalMRR().update(preds, target, None)
    with pytest.raises(ValueError, match="non-empty"):
        functional.retrieval_auroc(preds[:0], target[:0])


def plain(metric):
    """The value that a few queries have, and the one of all of them; the first is None where it is not asked."""
    name = "value"
    of_all = metric.meter.metrics[name].compute(metric.meter.counts_of(name))
    return plain_value(metric.meter, name), of_all


FEW = [
    {"empty_target_action": "neg"},
    {"empty_target_action": "pos", "top_k": 2},
    {"empty_target_action": "skip", "max_k": 3, "adaptive_k": True},
    {"allow_non_binary_target": True},
]


@pytest.mark.parametrize("name", CLASSES)
def test_a_few_queries_have_the_bits_that_they_have_among_others(name):
    kind = getattr(retrieval, name)
    takes, is_read = set(kind.original.__init__.__annotations__), 0
    for given in FEW:
        for size in (1, 5, 40):
            metric = kind(**{key: each for key, each in given.items() if key in takes})
            for _ in range(3):
                indexes = torch.randint(-2, 5, (size,), generator=GENERATOR)
                preds = torch.randperm(size, generator=GENERATOR) / 8 - 2 + torch.rand((), generator=GENERATOR) / 9
                metric.update(preds, (torch.rand(size, generator=GENERATOR) < 0.4).long(), indexes=indexes)
            few, of_all = plain(metric)
            assert few is None or (few.dtype == of_all.dtype and torch.equal(few, of_all))
            is_read += few is not None
    assert is_read >= 3


@pytest.mark.parametrize("name", ["RetrievalMRR", "RetrievalPrecisionRecallCurve"])
def test_what_few_queries_do_not_take_is_asked_of_all(name):
    preds, target, indexes = torch.tensor([0.1, 0.2, 0.3, 0.4]), torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1])
    many = torch.arange(MOST_QUERIES + 1)
    long = torch.arange(MOST_DOCUMENTS + 1) / 1024
    for batch in (
        (torch.tensor([0.1, 0.1, 0.3, 0.4]), target, indexes),
        (many / 8, many % 2, many),
        (long, (long > 0.2).long(), torch.zeros(len(long), dtype=torch.long)),
    ):
        metric = getattr(retrieval, name)()
        metric.update(*batch)
        assert plain(metric)[0] is None
    assert plain(_counted(name, preds, target, indexes))[0] is not None
    assert plain(_counted(name, many[:-1] / 8, many[:-1] % 2, many[:-1]))[0] is not None


def _counted(name, *batch):
    metric = getattr(retrieval, name)()
    metric.update(*batch)
    return metric


def test_invalid_documents_of_a_few_queries_are_reported():
    indexes, target = torch.tensor([0, 0, 1]), torch.tensor([1, 0, 1])
    with pytest.raises(ValueError, match="scores are NaN"):
        _counted("RetrievalMRR", torch.tensor([0.1, torch.nan, 0.3]), target, indexes).compute()
    graded = retrieval.RetrievalNormalizedDCG()
    graded.update(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, -2, 1]), indexes=indexes)
    with pytest.raises(ValueError, match="relevances are negative"):
        graded.compute()
    alone = retrieval.RetrievalMRR(empty_target_action="error")
    alone.update(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([1, 0, 0]), indexes=indexes)
    with pytest.raises(ValueError, match="no positive target"):
        alone.compute()
