"""Metrics of retrieval beside scikit-learn, trec_eval (through pytrec_eval) and TorchMetrics."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torchmetrics.retrieval
from sklearn.metrics import average_precision_score, ndcg_score, roc_auc_score

from assay.meter import Meter
from assay.metrics import (
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
from thinning import draws

DATA_SETS = draws(200)


def rows(seed: int, equal: bool) -> tuple[np.ndarray, np.ndarray]:
    """Queries of 12 documents: scores, all different or many equal, and grades with a relevant and another one."""
    random = np.random.default_rng(seed)
    scores = random.integers(0, 5, (4, 12)) / 4 if equal else random.permuted(np.tile(np.arange(12.0), (4, 1)), axis=1)
    grades = np.maximum(random.integers(-3, 4, (4, 12)), 0)
    grades[:, 0], grades[:, 1] = 2, 0
    return scores, grades


def value(metric, scores, grades):
    indexes = torch.arange(len(scores))[:, None].expand(scores.shape)
    return metric(torch.from_numpy(scores), torch.from_numpy(grades), indexes=indexes)


def test_scikit_learn_has_the_same_ndcg_with_equal_scores():
    for seed in DATA_SETS:
        scores, grades = rows(seed, equal=True)
        for k in (None, 5):
            found = value(RetrievalNormalizedDCG(top_k=k), scores, grades)
            assert float(found) == pytest.approx(ndcg_score(grades, scores, k=k), rel=1e-12)
        exponential = value(RetrievalNormalizedDCG(gain="exponential"), scores, grades)
        assert float(exponential) == pytest.approx(ndcg_score(2**grades - 1, scores), rel=1e-12)


def test_scikit_learn_has_the_same_average_precision_and_auroc():
    for seed in DATA_SETS:
        scores, grades = rows(seed, equal=False)
        expected = np.mean([average_precision_score(g > 0, s) for g, s in zip(grades, scores, strict=True)])
        assert float(value(RetrievalMAP(), scores, grades)) == pytest.approx(expected, rel=1e-12)
        scores, grades = rows(seed, equal=True)
        expected = np.mean([roc_auc_score(g > 0, s) for g, s in zip(grades, scores, strict=True)])
        assert float(value(RetrievalAUROC(), scores, grades)) == pytest.approx(expected, rel=1e-12)


def test_trec_eval_has_the_same_values():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    ours = {
        "map": RetrievalMAP(),
        "map_cut_5": RetrievalMAP(top_k=5),
        "recip_rank": RetrievalMRR(),
        "P_5": RetrievalPrecision(top_k=5),
        "P_15": RetrievalPrecision(top_k=15),
        "recall_5": RetrievalRecall(top_k=5),
        "success_1": RetrievalHitRate(top_k=1),
        "Rprec": RetrievalRPrecision(),
        "ndcg": RetrievalNormalizedDCG(),
        "ndcg_cut_5": RetrievalNormalizedDCG(top_k=5),
    }
    measures = {"map", "map_cut", "recip_rank", "P", "recall", "success", "Rprec", "ndcg", "ndcg_cut"}
    for seed in DATA_SETS:
        scores, grades = rows(seed, equal=False)
        judged = {str(q): {f"d{d}": int(each) for d, each in enumerate(row)} for q, row in enumerate(grades)}
        run = {str(q): {f"d{d}": float(each) for d, each in enumerate(row)} for q, row in enumerate(scores)}
        found = pytrec_eval.RelevanceEvaluator(judged, measures).evaluate(run)
        for name, metric in ours.items():
            expected = np.mean([query[name] for query in found.values()])
            assert float(value(metric, scores, grades)) == pytest.approx(expected, rel=1e-12), name


THEIRS = {
    "RetrievalMAP": RetrievalMAP(),
    "RetrievalMRR": RetrievalMRR(top_k=3),
    "RetrievalPrecision": RetrievalPrecision(top_k=20, adaptive_k=True),
    "RetrievalRecall": RetrievalRecall(top_k=4),
    "RetrievalHitRate": RetrievalHitRate(top_k=2),
    "RetrievalFallOut": RetrievalFallOut(top_k=4),
    "RetrievalRPrecision": RetrievalRPrecision(),
    "RetrievalNormalizedDCG": RetrievalNormalizedDCG(top_k=5),
    "RetrievalAUROC": RetrievalAUROC(),
    "RetrievalPrecisionRecallCurve": RetrievalPrecisionRecallCurve(max_k=14, adaptive_k=True),
    "RetrievalRecallAtFixedPrecision": RetrievalRecallAtFixedPrecision(min_precision=0.41),
}


@pytest.mark.parametrize("name", THEIRS)
def test_torchmetrics_has_the_same_values_of_scores_above_0_that_differ(name):
    metric = THEIRS[name]
    options = {
        each: getattr(metric, each)
        for each in ("top_k", "max_k", "adaptive_k", "min_precision")
        if getattr(metric, each, None) is not None
    }
    for seed in DATA_SETS[::10]:
        scores, grades = rows(seed, equal=False)
        if name != "RetrievalNormalizedDCG":
            grades = (grades > 0).astype(np.int64)
        indexes = torch.arange(4)[:, None].expand(4, 12).reshape(-1)
        preds, target = torch.from_numpy(scores).float().view(-1) + 1, torch.from_numpy(grades).view(-1)
        expected = getattr(torchmetrics.retrieval, name)(**options)(preds, target, indexes=indexes)
        meter = Meter(value=metric)
        meter.update(preds, target, indexes=indexes)
        found = meter.compute()["value"]
        pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        for ours, theirs in pairs:
            assert torch.allclose(ours.double(), theirs.double(), rtol=1e-6, atol=1e-6)
