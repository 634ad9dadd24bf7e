"""Sums and products of features, against fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch

from assay.devices import policies
from assay.errors import ConfigError, InvalidValuesError
from assay.tally.base import Batch, merge
from assay.tally.points import feature_moments
from assay.tally.points.feature_moments import FeatureMoments
from assay.tally.sums.integer_products import LARGEST, LIMB_BITS, add_products, padded, slabs, table_size
from thinning import one_of_each

KERNELS = pytest.mark.parametrize("kernel", ["int8", "float32", "float64"])


def full_tables(limbs: torch.Tensor, width: int) -> np.ndarray:
    """Both square tables, as Python integers."""
    size = padded(width)
    full = np.zeros((2, size, size), dtype=object)
    for rows, places in slabs(width):
        low, high = (limbs[:, k, places].numpy().astype(object) for k in range(2))
        tile = (low + high * (1 << LIMB_BITS)).reshape(2, rows.stop - rows.start, size - rows.start)
        full[:, rows, rows.start :] = tile
        full[:, rows.start :, rows] = tile.transpose(0, 2, 1)
    assert not full[:, width:].any()
    return full[:, :width, :width]


@KERNELS
@pytest.mark.parametrize(("rows", "width"), [(1, 1), (7, 3), (300, 40), (1500, 140)])
@one_of_each(lambda rows, **_: rows)
def test_products_are_exact_for_any_groups(kernel, rows, width):
    generator = torch.Generator().manual_seed(rows)
    values = torch.randint(-LARGEST, LARGEST + 1, (rows, width), generator=generator, dtype=torch.int32)
    values[:, -1] = LARGEST
    mixed = torch.randint(0, 2, (rows,), generator=generator)
    for groups in (mixed, torch.zeros_like(mixed), torch.ones_like(mixed)):
        limbs = torch.zeros(2, 2, table_size(width), dtype=torch.int64)
        add_products(limbs, values, groups, kernel)
        tables = full_tables(limbs, width)
        for k in range(2):
            some = values[groups == k].numpy().astype(np.int64)
            assert (tables[k] == some.T @ some).all()


def counted(tally: FeatureMoments, *batches: Batch) -> dict:
    state = tally.zero(torch.device("cpu"))
    for batch in batches:
        tally.add(state, batch)
    return state


def rows_of(seed: int, count: int, width: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    preds = torch.randn(count, width, generator=generator) + 3
    return Batch(preds, torch.randint(0, 2, (count,), generator=generator))


def scatter(rows: list[list[Fraction]]) -> list[list[Fraction]]:
    means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
    moved = [[x - mean for x, mean in zip(row, means, strict=True)] for row in rows]
    return [[sum(row[j] * row[k] for row in moved) for k in range(len(means))] for j in range(len(means))]


@KERNELS
@pytest.mark.parametrize("count", [9, 40])
def test_moments_are_those_of_fractions(monkeypatch, kernel, count):
    monkeypatch.setattr(feature_moments, "integer_product", lambda device: kernel)
    tally, batch = FeatureMoments(3, 7.5), rows_of(count, count, 3)
    assert tally.unit == -20
    state = counted(tally, batch)
    assert ("products" in state) == (count > tally.keep)
    for k, moments in enumerate(tally.compute(tally.canonicalize(state, count))):
        rows = (batch.preds[batch.target == k].double() * 2**20).round().long().tolist()
        assert moments.count == len(rows)
        assert moments.sums == [sum(column) for column in zip(*rows, strict=True)]
        exact = scatter([[Fraction(x, 2**20) for x in row] for row in rows])
        np.testing.assert_allclose(moments.scatter, np.array(exact, float), rtol=1e-14, atol=0)


def test_large_means_cost_no_digits():
    preds = torch.tensor([[1000.0], [1000.5], [999.5]], dtype=torch.float64)
    batch = Batch(preds, torch.zeros(3, dtype=torch.int64))
    tally = FeatureMoments(1, 1024.0)
    moments, none = tally.compute(counted(tally, batch))
    assert moments.scatter.item() == 0.5
    assert none.count == 0


def test_split_order_and_merging_change_no_bit():
    tally, batch = FeatureMoments(5, 30.0), rows_of(1, 60, 5)

    def part(rows: torch.Tensor) -> Batch:
        return Batch(batch.preds[rows], batch.needed_target[rows])

    whole = tally.canonicalize(counted(tally, batch), 60)
    order = torch.randperm(60, generator=torch.Generator().manual_seed(2))
    singles = counted(tally, *(part(order[k : k + 1]) for k in range(60)))
    halves = merge(tally, [counted(tally, part(order[:19])), counted(tally, part(order[19:]))])
    few = merge(tally, [counted(tally, part(order[start : start + 15])) for start in range(0, 60, 15)])
    assert "products" not in few
    for state in (singles, halves, few):
        done = tally.canonicalize(state, 60)
        assert done["rows"].rows == whole["rows"].rows == 0
        assert all(torch.equal(done[name], whole[name]) for name in ("invalid", "count", "sums", "products"))


def test_integer_weights_are_repetitions():
    batch = rows_of(3, 12, 4)
    weights = torch.tensor([0, 1, 2, 3, 1000, 5, 1, 1, 7, 2, 1, 9])
    weighted, plain = FeatureMoments(4, 30.0, weighted=True), FeatureMoments(4, 30.0)
    some = counted(weighted, Batch(batch.preds, batch.target, weights.float()))
    many = counted(plain, Batch(batch.preds.repeat_interleave(weights, 0), batch.target.repeat_interleave(weights)))
    for a, b in zip(weighted.compute(some), plain.compute(many), strict=True):
        assert (a.count, list(a.sums), a.rounded) == (b.count, list(b.sums), b.rounded)
        assert a.rounded
        assert (a.scatter == b.scatter).all()


def test_what_should_not_be_there_is_counted():
    preds = torch.tensor([[0.0, 1.0], [float("nan"), 99.0], [8.0, 0.0], [0.0, -7.5], [0.0, 0.0], [1.0, 1.0]])
    weights = torch.tensor([1.0, 1.0, 1.0, -1.0, 0.5, 2.0])
    target = torch.tensor([0, 1, 1, 0, 1, 2])
    tally = FeatureMoments(2, 7.5, weighted=True)
    found = tally.invalid_values(counted(tally, Batch(preds, target, weights)))
    assert [problem.count for problem in found] == [1] * 5
    assert "feature_range=7.5" in found[1].what


def test_weights_beyond_what_is_exact_raise():
    tally = FeatureMoments(1, 7.5, weighted=True)
    weights = torch.full((256,), 2**31 - 1)
    state = counted(tally, Batch(torch.ones(256, 1), torch.zeros(256, dtype=torch.int64), weights))
    with pytest.raises(InvalidValuesError, match="weights"):
        tally.compute(state)


@pytest.mark.parametrize("feature_range", [0.0, -1.0, float("nan"), float("inf")])
def test_feature_range_is_checked(feature_range):
    with pytest.raises(ConfigError, match="feature_range"):
        FeatureMoments(2, feature_range)


@pytest.mark.parametrize("feature_range", [7.5, 7.97, 8.0, 30.0, 1e-9, 1e9])
def test_the_unit_is_the_finest_that_fits(feature_range):
    unit = FeatureMoments(1, feature_range).unit
    assert feature_range / 2.0**unit <= LARGEST + 1 < 2 * feature_range / 2.0**unit + 2


def test_devices_multiply_in_what_they_have():
    kernels = [policies.integer_product(torch.device(name)) for name in ("cpu", "cuda:1", "mps")]
    assert kernels == ["float64", "int8", "float32"]
