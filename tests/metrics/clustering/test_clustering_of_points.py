"""Clusterings judged by the points: against scikit-learn, TorchMetrics, exact fractions and brute force."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn import metrics as sk
from torchmetrics.functional import clustering as theirs

from assay import Meter
from assay.errors import ConfigError, DtypeError, InvalidValuesError, NoDataWarning, ShapeError
from assay.metrics import CalinskiHarabaszScore, DaviesBouldinScore, DunnIndex, SilhouetteScore, distances
from assay.tally.points import finite_rows
from assay.tally.points.cluster_sums import ClusterSums
from assay.tally.stores import row_store
from thinning import draws

KINDS = (CalinskiHarabaszScore, DaviesBouldinScore, DunnIndex, SilhouetteScore)
EVERY = pytest.mark.parametrize("kind", KINDS)


def points(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Up to 40 points of two clusters or more, of any labels; with ties and clusters of one point."""
    rng = np.random.default_rng(seed)
    size, features = int(rng.integers(4, 41)), int(rng.integers(1, 6))
    kinds = int(rng.integers(2, min(7, size)))
    names = rng.choice(np.arange(-50, 50), kinds, replace=False) * 10 ** rng.integers(0, 17)
    labels = np.concatenate([np.arange(kinds), rng.integers(0, kinds, size - kinds)])
    values = rng.normal(size=(size, features)) + rng.normal() * 5
    if seed % 3 == 0:
        values = np.rint(4 * values)
    values *= 10.0 ** rng.integers(-3, 4)
    if seed % 4 == 0:
        values[0] = values[-1]
    return torch.from_numpy(values), torch.from_numpy(names[labels])


def dunn(values: np.ndarray, labels: np.ndarray, p: float) -> float:
    groups = [values[labels == k] for k in np.unique(labels)]
    centroids = [group.mean(0) for group in groups]
    apart = min(np.linalg.norm(a - b, p) for a, b in itertools.combinations(centroids, 2))
    widest = max(np.linalg.norm(x - c, p) for g, c in zip(groups, centroids, strict=True) for x in g)
    return float(apart / widest) if widest else math.inf


def silhouette(values: np.ndarray, labels: np.ndarray) -> float:
    return float(sk.silhouette_score(cdist(values, values), labels, metric="precomputed"))


def calinski_harabasz(values: np.ndarray, labels: np.ndarray) -> float:
    """Of exact fractions."""
    rows = [[Fraction(float(x)) for x in row] for row in values]
    groups = [[row for row, k in zip(rows, labels, strict=True) if k == name] for name in np.unique(labels)]

    def mean(some):
        return [sum(column) / len(some) for column in zip(*some, strict=True)]

    def squared(a, b):
        return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))

    between = sum(len(group) * squared(mean(group), mean(rows)) for group in groups)
    within = sum(squared(row, mean(group)) for group in groups for row in group)
    ratio = between * (len(rows) - len(groups)) / (within * (len(groups) - 1)) if within else 1
    return float(ratio)


def test_calinski_harabasz_is_exact_and_scikit_learns():
    for seed in draws(200):
        preds, target = points(seed)
        value = float(CalinskiHarabaszScore(num_features=preds.shape[1])(preds, target))
        assert value == calinski_harabasz(preds.numpy(), target.numpy()), seed
        if value and value < 1e20:
            assert value == pytest.approx(sk.calinski_harabasz_score(preds, target), rel=1e-10, abs=1e-12), seed


def test_davies_bouldin_is_scikit_learns(monkeypatch):
    """With distances that are computed from differences there, too, and not from squares that cancel."""
    module = "sklearn.metrics.cluster._unsupervised"
    monkeypatch.setattr(f"{module}.pairwise_distances", lambda a, b=None: cdist(a, a if b is None else b))
    for seed in draws(200):
        preds, target = points(seed)
        value = float(DaviesBouldinScore(num_features=preds.shape[1])(preds, target))
        assert value == pytest.approx(sk.davies_bouldin_score(preds, target), rel=1e-12), seed


def test_silhouette_is_scikit_learns():
    for seed in draws(200):
        preds, target = points(seed)
        value = float(SilhouetteScore(num_features=preds.shape[1])(preds, target))
        assert value == pytest.approx(silhouette(preds.numpy(), target.numpy()), rel=1e-12, abs=1e-13), seed


@pytest.mark.parametrize("p", [1.0, 1.5, 2.0, math.inf])
def test_dunn_is_torchmetrics(p):
    for seed in draws(200):
        preds, target = points(seed)
        value = float(DunnIndex(num_features=preds.shape[1], p=p)(preds, target))
        assert value == pytest.approx(dunn(preds.numpy(), target.numpy(), p), rel=1e-11, abs=1e-12), seed
        assert value == pytest.approx(float(theirs.dunn_index(preds, target, p)), rel=1e-11, abs=1e-12), seed


@EVERY
def test_order_batches_and_names_of_clusters_change_no_bit(kind):
    for seed in draws(10):
        preds, target = points(seed)
        metric = kind(num_features=preds.shape[1])
        value = float(metric(preds, target))
        order = torch.randperm(len(preds), generator=torch.Generator().manual_seed(seed))
        meter = Meter(value=metric)
        for some in order.split(7):
            meter.update(preds[some], -3 - target[some])
        assert float(meter.compute()["value"]) == value


@EVERY
def test_blocks_change_no_bit(kind, monkeypatch):
    preds, target = points(5)
    metric = kind(num_features=preds.shape[1])
    value = float(metric(preds, target))
    monkeypatch.setattr(distances, "CHUNK", 3)
    monkeypatch.setattr(finite_rows, "_SLICE_BYTES", 1)
    assert float(metric(preds, target)) == value


@EVERY
def test_integer_weights_count_points(kind):
    for seed in draws(20):
        preds, target = points(seed)
        weights = torch.randint(0, 4, (len(preds),), generator=torch.Generator().manual_seed(seed))
        if len(target[weights > 0].unique()) < 2:
            continue
        metric = kind(num_features=preds.shape[1])
        expected = float(metric(preds.repeat_interleave(weights, 0), target.repeat_interleave(weights)))
        assert float(metric(preds, target, weights=weights)) == pytest.approx(expected, rel=1e-12, abs=1e-13), seed


def test_sums_of_known_clusters_give_the_bits_of_all_points():
    generator = torch.Generator().manual_seed(0)
    for _ in range(10):
        preds, target = torch.randn(50, 3, generator=generator), torch.randint(0, 5, (50,), generator=generator)
        weights = torch.randint(0, 4, (50,), generator=generator)
        known, kept = CalinskiHarabaszScore(num_features=3, num_classes=7), CalinskiHarabaszScore(num_features=3)
        assert isinstance(known.tally(False), ClusterSums)
        assert float(known(preds, target)) == float(kept(preds, target))
        assert float(known(preds, target, weights=weights)) == float(kept(preds, target, weights=weights))


def test_small_units_are_not_zero():
    preds, target = torch.randn(30, 2, generator=torch.Generator().manual_seed(0)).double(), torch.arange(30) % 3
    metric = DaviesBouldinScore(num_features=2)
    assert float(metric(preds * 2.0**-40, target)) == float(metric(preds, target))
    assert float(theirs.davies_bouldin_score(preds * 2.0**-40, target)) == 0


@EVERY
def test_one_cluster_gives_nan_with_a_warning(kind):
    metric = kind(num_features=2)
    for count in (1, 3):
        with pytest.warns(NoDataWarning, match="two clusters"):
            assert math.isnan(metric(torch.ones(count, 2), torch.zeros(count, dtype=torch.int64)))


def test_as_many_clusters_as_points():
    preds, target = torch.arange(6.0).view(3, 2), torch.arange(3)
    for kind in (CalinskiHarabaszScore, SilhouetteScore):
        with pytest.warns(NoDataWarning, match="fewer clusters than points"):
            assert math.isnan(kind(num_features=2)(preds, target))
    assert float(DunnIndex(num_features=2)(preds, target)) == math.inf
    assert float(DaviesBouldinScore(num_features=2)(preds, target)) == 0


def test_equal_points():
    preds, target = torch.ones(4, 2), torch.tensor([0, 0, 1, 1])
    assert float(CalinskiHarabaszScore(num_features=2)(preds, target)) == 1 == sk.calinski_harabasz_score(preds, target)
    assert float(DaviesBouldinScore(num_features=2)(preds, target)) == 0 == sk.davies_bouldin_score(preds, target)
    assert float(SilhouetteScore(num_features=2)(preds, target)) == 0 == sk.silhouette_score(preds, target)
    with pytest.warns(NoDataWarning):
        assert math.isnan(DunnIndex(num_features=2)(preds, target))


@EVERY
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_features_that_are_not_finite_raise(kind, bad):
    metrics = [kind(num_features=2)]
    metrics += [kind(num_features=2, num_classes=2)] if kind is CalinskiHarabaszScore else []
    for metric in metrics:
        with pytest.raises(InvalidValuesError, match=r"got 1 of the points are NaN or infinite"):
            metric(torch.tensor([[0.0, 1.0], [bad, 2.0], [1.0, 1.0]]), torch.tensor([0, 1, 1]))


def test_what_is_invalid_raises():
    preds, target = torch.ones(3, 2), torch.tensor([0, 1, 1])
    for metric in (SilhouetteScore(num_features=2), CalinskiHarabaszScore(num_features=2, num_classes=2)):
        with pytest.raises(InvalidValuesError, match="weights"):
            metric(preds, target, weights=torch.tensor([1.0, 0.5, 1.0]))
        with pytest.raises(InvalidValuesError, match="weights"):
            metric(preds, target, weights=torch.tensor([1.0, -1.0, 1.0]))
        with pytest.raises(ShapeError, match="num_features"):
            metric(torch.ones(3, 4), target)
        with pytest.raises(ShapeError, match="target"):
            metric(preds)
        with pytest.raises(DtypeError, match="target"):
            metric(preds, target.float())
    with pytest.raises(InvalidValuesError, match=r"labels are outside 0 \.\.\. 1"):
        CalinskiHarabaszScore(num_features=2, num_classes=2)(preds, target + 1)
    for wrong in ({"num_features": 0}, {"num_features": 2, "num_classes": 1}):
        with pytest.raises(ConfigError, match="num_"):
            CalinskiHarabaszScore(**wrong)
    with pytest.raises(ConfigError, match="p"):
        DunnIndex(num_features=2, p=0.5)


@pytest.mark.parametrize("kind", [DaviesBouldinScore, DunnIndex, SilhouetteScore])
def test_units_do_not_matter(kind):
    generator = torch.Generator().manual_seed(0)
    points, labels = torch.randn(30, 2, generator=generator, dtype=torch.float64), torch.arange(30) % 3
    expected = kind(num_features=2)(points, labels)
    for exponent in (-1000, -600, 500, 1000):
        assert kind(num_features=2)(points * 2.0**exponent, labels) == expected


@EVERY
def test_the_numbers_of_clusters_do_not_matter(kind):
    values, clusters = torch.randn(60, 2, generator=torch.Generator().manual_seed(0)), torch.arange(60) % 3
    few = kind(num_features=2)(values, 2 * clusters)  # 0, 2 and 4, of which there are fewer than points
    assert few == kind(num_features=2)(values, clusters) == kind(num_features=2)(values, 10**6 * clusters - 5)


@EVERY
def test_points_are_not_sorted_to_be_read(kind, monkeypatch):
    def refused(store):
        raise AssertionError("sorting takes longer than what follows")

    monkeypatch.setattr(row_store, "canonical", refused)
    values, clusters = torch.randn(60, 2, generator=torch.Generator().manual_seed(0)), torch.arange(60) % 3
    assert math.isfinite(kind(num_features=2)(values, clusters))
