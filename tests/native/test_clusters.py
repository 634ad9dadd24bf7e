"""Compiled sums of the points of clusters against exact fractions, and distances to centroids against NumPy."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from assay.metrics import DaviesBouldinScore, DunnIndex, Metric
from assay.metrics.clustering import points as metrics_of_points
from assay.native import clusters
from assay.native.library import MISSING, library
from assay.tally.base import Batch
from assay.tally.points.cluster_sums import ClusterSums
from assay.tally.sums import exact

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)

CLUSTERS = 3
FEATURES = (1, 2, 16)


def drawn(kind: str, dtype: torch.dtype, rows: int, features: int) -> torch.Tensor:
    rng = np.random.default_rng(rows + features)
    values = rng.normal(size=(rows, features))
    largest, smallest = (38, 45) if dtype == torch.float32 else (307, 323)
    match kind:
        case "wide":  # number by number
            values *= 10.0 ** rng.integers(-30, 30, values.shape)
        case "largest":
            values = np.copysign(3.0, values) * 10.0**largest
        case "smallest":  # subnormal
            values = np.rint(values * 3) * 10.0 ** (1 - smallest)
        case "apart":  # by more bits than an int64 has
            values *= 10.0 ** rng.integers(-6, 6, values.shape)
        case "rising":  # from block to block, so that sums need other units
            values *= 10.0 ** np.linspace(-20, 20, rows)[:, None]
        case "zeros":
            values[:] = -0.0
    return torch.from_numpy(values).to(dtype)


def sums_of(points: torch.Tensor, cluster: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, bool]:
    """The limbs and the counts of clusters, from sums that were 1 before."""
    limbs = torch.zeros(CLUSTERS, points.shape[1], exact.num_limbs(1), dtype=torch.int64)
    for own in limbs.view(-1, limbs.shape[-1]):
        exact.add_integer(own, 1, -exact.origin(1))
    counts = torch.ones(CLUSTERS, dtype=torch.int64)
    done = clusters.add_points(limbs, counts, points, cluster, exact.origin(1))
    return limbs, counts, done


@pytest.mark.parametrize("kind", ["normal", "wide", "largest", "smallest", "rising", "zeros"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("features", FEATURES)
def test_sums_are_exact(kind: str, dtype: torch.dtype, features: int) -> None:
    rows = 20_000 // features  # more than one block
    points, cluster = drawn(kind, dtype, rows, features), torch.arange(rows) * 7 % 5 % CLUSTERS
    limbs, counts, done = sums_of(points, cluster)
    assert done
    assert counts.tolist() == [1 + int((cluster == k).sum()) for k in range(CLUSTERS)]
    expected = [
        1 + sum(map(Fraction, points[cluster == k, j].tolist()), Fraction(0))
        for k in range(CLUSTERS)
        for j in range(features)
    ]
    assert exact.fractions(limbs, 1) == expected
    assert torch.equal(exact.canonical(limbs), limbs)


@pytest.mark.parametrize(("value", "label"), [(float("nan"), 0), (float("-inf"), 0), (1.0, -1), (1.0, CLUSTERS)])
@pytest.mark.parametrize("row", [0, 29_999])
def test_invalid_points_are_left_to_others(value: float, label: int, row: int) -> None:
    points, cluster = torch.ones(30_000, 1), torch.zeros(30_000, dtype=torch.int64)
    points[row], cluster[row] = value, label
    limbs, counts, done = sums_of(points, cluster)
    assert not done
    assert counts.tolist() == [1] * CLUSTERS
    assert exact.fractions(limbs, 1) == [1] * CLUSTERS


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_a_tally_has_the_bits_of_torch(dtype: torch.dtype) -> None:
    tally, points = ClusterSums(CLUSTERS, 4), drawn("wide", dtype, 500, 8)[:, ::2]  # in columns that are apart
    cluster = (torch.arange(500) % CLUSTERS).to(torch.int32)
    states = []
    for compiled in (True, False):
        state = tally.zero(torch.device("cpu"))
        tally.add(state, Batch(points, cluster, compiled=compiled))
        states.append(tally.canonicalize(state, 500))
    assert states[0].keys() == states[1].keys()
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert int(states[0]["count"].sum()) == 500


@pytest.mark.parametrize("kind", ["normal", "apart", "wide", "largest", "smallest", "rising", "zeros"])
@pytest.mark.parametrize("features", FEATURES)
def test_sums_and_means_are_rounded_once(kind: str, features: int) -> None:
    points = drawn(kind, torch.float64, 700, features).numpy()
    points[1], points[2] = -points[0], 0.0  # a cluster of which the sum is 0, and one of zeros
    cluster = np.r_[0, 0, 1, 2 + np.arange(697) % 3]
    found = clusters.sums_and_means(points, cluster)
    assert (found is not None) == (kind in {"normal", "apart", "zeros"})
    if found is not None:
        exact_sums = [
            [sum(map(Fraction, column.tolist()), Fraction(0)) for column in points[cluster == k].T] for k in range(5)
        ]
        assert found[0].tolist() == [[float(x) for x in row] for row in exact_sums]
        means = [[float(x / int((cluster == k).sum())) for x in row] for k, row in enumerate(exact_sums)]
        assert found[1].tolist() == means


def test_a_mean_that_is_nearly_between_two_doubles() -> None:
    points = np.array([1.0, 1.0, 2.0**-52 + 2.0**-100])[:, None]  # their mean is (2 + 2 ** -52 + 2 ** -100) / 3
    found = clusters.sums_and_means(points, np.zeros(3, np.int64))
    assert found is not None
    assert found[1][0, 0] == float((2 + Fraction(2) ** -52 + Fraction(2) ** -100) / 3)
    halves = np.array([1.0, 1.0 + 2.0**-52, 2.0**-70, 0.0])[:, None]  # a tie but for the last bit
    found = clusters.sums_and_means(halves, np.array([0, 0, 0, 0]))
    assert found is not None
    assert found[0][0, 0] == float(2 + Fraction(2) ** -52 + Fraction(2) ** -70)
    assert found[1][0, 0] == float((2 + Fraction(2) ** -52 + Fraction(2) ** -70) / 4)


@pytest.mark.parametrize(("value", "label"), [(float("nan"), 0), (float("-inf"), 0), (1.0, -1)])
def test_invalid_points_have_no_means(value: float, label: int) -> None:
    points, cluster = np.ones((9, 2)), np.arange(9) % 2
    points[4, 1], cluster[5] = value, label
    assert clusters.sums_and_means(points, cluster) is None


@pytest.mark.parametrize("unit", [1.0, 2.0**40, 2.0**600, 2.0**-600])
@pytest.mark.parametrize(
    "metric",
    [DaviesBouldinScore(num_features=3), *(DunnIndex(num_features=3, p=p) for p in (1, 2, 3, math.inf))],
    ids=repr,
)
def test_values_of_points_have_the_bits_of_the_sums_in_python(
    metric: Metric, unit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    values, cluster = drawn("normal", torch.float64, 300, 3), torch.arange(300) ** 2 % 7
    expected = metric(values, cluster)
    monkeypatch.setattr(metrics_of_points, "sums_and_means", lambda points, cluster: None)
    assert torch.equal(metric(values * unit, cluster), expected)


@pytest.mark.parametrize("features", [*range(1, 20), 64, 127, 128, 129, 130, 257, 300, 1000])
def test_distances_to_centroids_are_those_of_numpy(features: int) -> None:
    rng = np.random.default_rng(features)
    points, centroids = rng.normal(size=(37, features)), rng.normal(size=(CLUSTERS, features))
    cluster = rng.integers(0, CLUSTERS, 37)
    found = clusters.radii(points, cluster, centroids)
    assert found is not None
    np.testing.assert_array_equal(found, np.linalg.norm(points - centroids[cluster], 2, axis=1))
