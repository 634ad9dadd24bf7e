"""Compiled sums of the points of clusters against exact fractions, and distances to centroids against NumPy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

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


@pytest.mark.parametrize("features", [*range(1, 20), 64, 127, 128, 129, 130, 257, 300, 1000])
def test_distances_to_centroids_are_those_of_numpy(features: int) -> None:
    rng = np.random.default_rng(features)
    points, centroids = rng.normal(size=(37, features)), rng.normal(size=(CLUSTERS, features))
    cluster = rng.integers(0, CLUSTERS, 37)
    found = clusters.radii(points, cluster, centroids)
    assert found is not None
    np.testing.assert_array_equal(found, np.linalg.norm(points - centroids[cluster], 2, axis=1))
