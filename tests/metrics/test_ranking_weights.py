"""Weighted areas against exact fractions and scikit-learn."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from assay.metrics.classification.ranking import AUROC, AveragePrecision
from metrics.ranked_samples import AREAS, classes
from thinning import draws, every_third


def weights_of(generator, kind, *shape):
    """Weights of several kinds; where labels differ in magnitude, units of their own would show."""
    if kind == "wide":
        return torch.rand(shape, generator=generator) * torch.tensor([1e-20, 1.0, 1e15])[: shape[-1]]
    if kind == "powers":
        return 2.0 ** torch.randint(-3, 4, shape, generator=generator)
    return torch.randint(0, 5, shape, generator=generator) * {"whole": 1.0, "tenths": 0.1}[kind]


def exact_areas(scores, target, weights):
    """AUROC and average precision by their definitions, in fractions; None where there is none."""
    rows = [(s, t, Fraction(w)) for s, t, w in zip(scores, target, weights, strict=True) if w]
    positives, negatives = ([(s, w) for s, t, w in rows if t == kind] for kind in (1, 0))
    p, n = (sum((w for _, w in side), Fraction(0)) for side in (positives, negatives))
    won = sum(w * v * (2 if s > z else s == z) for s, w in positives for z, v in negatives)
    precise, before = Fraction(0), Fraction(0)
    for level in sorted({s for s, _, _ in rows}, reverse=True):
        hits = sum((w for s, w in positives if s >= level), Fraction(0))
        if hits > before:
            precise += (hits - before) * hits / (hits + sum(w for s, w in negatives if s >= level))
        before = hits
    return (won / (2 * p * n) if p and n else None), (precise / p if p else None)


def averaged(columns, average, which):
    """The average of exact areas over columns of (scores, target, weights)."""
    if average == "micro":
        return exact_areas(*(list(itertools.chain(*parts)) for parts in zip(*columns, strict=True)))[which]
    areas = [exact_areas(*column)[which] for column in columns]
    if average is None:
        return areas
    shares = [
        1 if average == "macro" else sum((Fraction(w) for t, w in zip(c[1], c[2], strict=True) if t == 1), Fraction(0))
        for c in columns
    ]
    some = [(area, share) for area, share in zip(areas, shares, strict=True) if area is not None]
    total = sum(share for _, share in some)
    return sum(area * share for area, share in some) / total if total else None


@every_third
@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
@pytest.mark.parametrize("average", ["micro", "macro", "weighted", None])
@pytest.mark.parametrize("kind", ["wide", "powers", "whole", "tenths"])
@pytest.mark.parametrize("shared", [False, True])
def test_weighted_labels_are_added_in_one_unit(average, kind, shared):
    for seed in draws(12):
        generator = torch.Generator().manual_seed(seed)
        preds = torch.randint(0, 9, (12, 3), generator=generator) / 8
        target = torch.randint(-1, 2, (12, 3), generator=generator)  # -1 is ignored
        weights = weights_of(generator, kind, *((12, 1) if shared else (12, 3)))
        every = weights.expand(12, 3)
        columns = [tuple(column[target[:, k] >= 0, k].tolist() for column in (preds, target, every)) for k in range(3)]
        for which, metric in enumerate((AUROC, AveragePrecision)):
            got = metric(num_labels=3, average=average, ignore_index=-1)(
                preds, target, weights=weights[:, 0] if shared else weights
            )
            expected = averaged(columns, average, which)
            floats = [math.nan if e is None else float(e) for e in (expected if average is None else [expected])]
            np.testing.assert_allclose(np.atleast_1d(got.numpy()), floats, rtol=0 if which == 0 else 1e-15)


@pytest.mark.parametrize(("metric", "oracle"), AREAS)
@pytest.mark.parametrize("average", ["micro", "macro", "weighted"])
def test_weighted_labels_are_those_of_scikit_learn(metric, oracle, average):
    for seed in draws(40):
        generator = torch.Generator().manual_seed(seed)
        preds, target = torch.rand(60, 3, generator=generator), torch.randint(0, 2, (60, 3), generator=generator)
        weights = torch.rand(60, generator=generator) + 0.1
        got = metric(num_labels=3, average=average)(preds, target, weights=weights)
        np.testing.assert_allclose(
            got, oracle(target, preds, average=average, sample_weight=weights.double()), rtol=1e-12
        )


@pytest.mark.parametrize(("metric", "oracle"), AREAS)
@pytest.mark.parametrize("average", ["macro", "weighted"])
def test_weighted_classes_are_those_of_scikit_learn(metric, oracle, average):
    for seed in draws(20):
        preds, target = classes(80, 3, seed)
        weights = torch.rand(80, generator=torch.Generator().manual_seed(seed)) + 0.1
        kept = torch.arange(80) % 5 > 0
        got = metric(num_classes=3, average=average, ignore_index=-1)(preds, target.where(kept, -1), weights=weights)
        one_hot = torch.nn.functional.one_hot(target[kept], 3)
        expected = oracle(one_hot, preds[kept], average=average, sample_weight=weights[kept].double())
        np.testing.assert_allclose(got, expected, rtol=1e-12)
