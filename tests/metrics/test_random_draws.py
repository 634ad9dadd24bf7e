"""Many random configurations against scikit-learn and SciPy: slow, and the same draws each time."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics as sk
import torch

from assay.metrics import (
    AUROC,
    Accuracy,
    AveragePrecision,
    BalancedAccuracy,
    CohenKappa,
    ConfusionMatrix,
    F1Score,
    FBetaScore,
    JaccardIndex,
    KendallRankCorrCoef,
    MatthewsCorrCoef,
    Precision,
    Recall,
    SpearmanCorrCoef,
)

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")]
DRAWS = 100
IGNORED = -1
AREAS = [(AUROC, sk.roc_auc_score), (AveragePrecision, sk.average_precision_score)]
AVERAGES = ("micro", "macro", "weighted", None)


def weights_for(rng, *shape):
    """Float32 weights above 0, of one magnitude or of several; the same in float64 for the oracle."""
    weights = rng.random(shape) + 0.1 if rng.random() < 0.5 else 10.0 ** rng.integers(-4, 5, shape)
    return torch.tensor(weights, dtype=torch.float32)


def labels_for(rng):
    """Targets, predictions and weights of classes, some of which may be absent, with some targets ignored."""
    classes, rows = int(rng.integers(2, 7)), int(rng.integers(2, 60))
    used = int(rng.integers(1, classes + 1))
    target, preds = rng.integers(0, used, rows), rng.integers(0, classes, rows)
    ignored = rng.random(rows) < rng.choice([0, 0.3])
    ignored[0] = False
    weights = weights_for(rng, rows)
    given = torch.from_numpy(preds), torch.from_numpy(np.where(ignored, IGNORED, target))
    return classes, given, weights, (target[~ignored], preds[~ignored], weights.double().numpy()[~ignored])


def oracles(classes, target, preds, weights, average):
    """The value of each metric, by scikit-learn, on the labels that occur."""
    how = {"sample_weight": weights}
    present = np.unique(np.concatenate([target, preds]))
    per_class = how | {"average": average, "zero_division": 0, "labels": present}
    yield Accuracy, {}, sk.accuracy_score(target, preds, **how)
    if len(np.unique(target)) == len(present):  # else scikit-learn warns
        yield BalancedAccuracy, {}, sk.balanced_accuracy_score(target, preds, **how)
    yield MatthewsCorrCoef, {}, sk.matthews_corrcoef(target, preds, **how)
    if len(present) > 1:
        yield CohenKappa, {}, sk.cohen_kappa_score(target, preds, labels=np.arange(classes), **how)
    yield ConfusionMatrix, {}, sk.confusion_matrix(target, preds, labels=np.arange(classes), **how)
    for metric, oracle, options in (
        (Precision, sk.precision_score, {}),
        (Recall, sk.recall_score, {}),
        (F1Score, sk.f1_score, {}),
        (FBetaScore, sk.fbeta_score, {"beta": 2.0}),
        (JaccardIndex, sk.jaccard_score, {}),
    ):
        yield metric, {"average": average, **options}, oracle(target, preds, **per_class, **options)


@pytest.mark.parametrize("average", AVERAGES)
def test_label_metrics(average):
    rng = np.random.default_rng(1)
    for draw in range(DRAWS):
        classes, given, weights, kept = labels_for(rng)
        present = np.unique(np.concatenate(kept[:2]))
        for metric, options, expected in oracles(classes, *kept, average):
            got = metric(num_classes=classes, ignore_index=IGNORED, **options)(*given, weights=weights).numpy()
            if np.ndim(expected) == 1:  # a value for each class: others have no data
                assert np.isnan(np.delete(got, present)).all(), (draw, metric)
                got = got[present]
            np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-12, err_msg=f"draw {draw}, {metric.__name__}")


def tied(rng, *shape):
    """Scores in [0, 1], with few or many ties."""
    return np.round(rng.random(shape) * (steps := rng.choice([4, 50, 2**20]))) / steps


@pytest.mark.parametrize(
    ("metric", "oracle"), [(AUROC, sk.roc_auc_score), (AveragePrecision, sk.average_precision_score)]
)
@pytest.mark.parametrize("average", AVERAGES)
def test_rankings_of_labels(metric, oracle, average):
    rng = np.random.default_rng(2)
    for draw in range(DRAWS):
        labels, rows = int(rng.integers(1, 5)), int(rng.integers(4, 60))
        preds, target = tied(rng, rows, labels), rng.integers(0, 2, (rows, labels))
        target[:2] = [[0], [1]]
        weights = weights_for(rng, rows)
        arguments = torch.tensor(preds, dtype=torch.float32), torch.from_numpy(target)
        got = metric(num_labels=labels, average=average)(*arguments, weights=weights)
        oracled = target[:, 0] if labels == 1 else target, preds[:, 0] if labels == 1 else preds
        expected = oracle(*oracled, average=average, sample_weight=weights.double().numpy())
        np.testing.assert_allclose(got.numpy().squeeze(), expected, rtol=1e-9, err_msg=f"draw {draw}")


@pytest.mark.parametrize(
    ("metric", "oracle"), [(AUROC, sk.roc_auc_score), (AveragePrecision, sk.average_precision_score)]
)
@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_rankings_of_logits(metric, oracle, average):
    rng = np.random.default_rng(3)
    for draw in range(DRAWS):
        classes, rows = int(rng.integers(3, 7)), int(rng.integers(8, 60))
        target = np.concatenate([np.arange(classes), rng.integers(0, classes, rows)])
        logits = torch.from_numpy(rng.normal(size=(len(target), classes)) * rng.choice([0.1, 1, 5]))
        weights = weights_for(rng, len(target))
        moved = logits + torch.from_numpy(rng.normal(size=(len(target), 1)))
        got = metric(num_classes=classes, logits=True, average=average)(
            moved, torch.from_numpy(target), weights=weights
        )
        one_hot = np.eye(classes)[target]
        expected = oracle(one_hot, logits.softmax(1).numpy(), average=average, sample_weight=weights.double().numpy())
        np.testing.assert_allclose(got.numpy(), expected, rtol=1e-9, err_msg=f"draw {draw}")


def test_rank_correlations():
    rng = np.random.default_rng(4)
    for draw in range(DRAWS):
        rows, steps = int(rng.integers(3, 80)), rng.choice([2, 8, 1000])
        x = np.round(rng.normal(size=rows) * steps)
        y = np.round(x * rng.normal() + rng.normal(size=rows) * steps)
        if len(np.unique(x)) < 2 or len(np.unique(y)) < 2:
            continue
        given = torch.from_numpy(x), torch.from_numpy(y)
        for metric, expected in (
            (SpearmanCorrCoef(), scipy.stats.spearmanr(x, y).statistic),
            (KendallRankCorrCoef("b"), scipy.stats.kendalltau(x, y).statistic),
            (KendallRankCorrCoef("c"), scipy.stats.kendalltau(x, y, variant="c").statistic),
        ):
            assert metric(*given).item() == pytest.approx(expected, rel=1e-12, abs=1e-14), (draw, metric)
