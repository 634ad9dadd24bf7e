"""Rankings in compiled code against those that NumPy gives."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import torch

from assay import Meter
from assay.meter.resampling import replicates
from assay.meter.resampling.replicates import drawn_values
from assay.metrics import AUROC, ROC, AveragePrecision, PrecisionRecallCurve
from assay.metrics.classification import ranking
from assay.native.library import MISSING, library
from assay.native.rankings import (
    area_sums,
    area_sums_of_cells,
    count_inversions,
    join_cells,
    order_scores,
    pairs_of_draws,
    rank_products,
    rank_scores,
    twice_below,
)
from assay.stats import rankings as stats_rankings
from assay.stats.linear import AreaPlaces
from assay.tally.scores import scores as tally_of_scores
from assay.tally.scores.curves import of_samples, pairs_of
from thinning import every_third

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)


def drawn(kind, rows):
    generator = torch.Generator().manual_seed(rows)
    match kind:
        case "uniform":
            return torch.rand(rows, generator=generator)
        case "tied":
            return torch.randint(0, 5, (rows,), generator=generator) / 4
        case "logits":
            return 5 * torch.randn(rows, generator=generator)
        case "any bits":
            bits = torch.randint(-(2**31), 2**31 - 1, (rows,), generator=generator, dtype=torch.int32)
            return bits.view(torch.float32).nan_to_num(0.5, math.inf, -math.inf)
        case "ends":
            ends = torch.tensor([0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 2.0**-149, -(2.0**-149), 3.4e38, -3.4e38])
            return ends[torch.randint(0, len(ends), (rows,), generator=generator)]
    raise AssertionError(kind)


@pytest.mark.parametrize("rows", [0, 1, 2, 31, 3_000, 70_001])
@pytest.mark.parametrize("kind", ["uniform", "tied", "logits", "any bits", "ends"])
@pytest.mark.parametrize("positive", [0, 1, 2])
def test_rankings_are_those_of_numpy(kind, rows, positive):
    scores, classes = drawn(kind, rows), torch.randint(-1, 3, (rows,), generator=torch.Generator().manual_seed(1))
    counted = (classes >= 0).numpy()
    expected = of_samples(scores.numpy()[counted], (classes == positive).numpy()[counted])
    levels, positives, negatives, hits, alarms, pairs, _ = rank_scores(scores, classes.to(torch.int8), positive)
    assert {each.dtype for each in (levels, positives, negatives)} == {np.dtype(np.int64)}
    assert scores.numpy()[levels].tolist() == expected.thresholds.tolist()
    assert positives.tolist() == expected.positives.tolist()
    assert negatives.tolist() == expected.negatives.tolist()
    assert hits.tolist() == np.cumsum(expected.positives).tolist()
    assert alarms.tolist() == np.cumsum(expected.negatives).tolist()
    assert pairs == pairs_of(expected)


@pytest.mark.parametrize("rows", [1, 2, 31, 3_000, 70_001])
@pytest.mark.parametrize("kind", ["uniform", "tied", "logits", "any bits", "ends"])
@pytest.mark.parametrize("positive", [0, 2])
def test_samples_below_are_those_of_numpy(kind, rows, positive):
    scores, classes = drawn(kind, rows), torch.randint(-1, 3, (rows,), generator=torch.Generator().manual_seed(1))
    table = torch.stack([torch.zeros(rows), scores], 1)  # columns of any stride
    kept = (classes >= 0).numpy()
    labels = (classes == positive).numpy().astype(np.int64)
    found = twice_below(order_scores(table[:, 1], classes.to(torch.int8), positive), rows)
    assert found.dtype == np.int64
    assert found[kept].tolist() == stats_rankings.twice_below(scores.numpy()[kept], labels[kept]).tolist()
    assert not found[~kept].any()


def test_moves_of_an_area_are_those_of_numpy():
    scores = drawn("tied", 3_000).numpy()
    labels = np.random.default_rng(0).integers(-1, 2, 3_000)
    kept = labels >= 0
    (area, moves), (plain_area, plain) = ranking._area_moves(scores, labels), stats_rankings.area_moves(scores, labels)
    assert area == plain_area
    assert moves.tolist() == plain.tolist()
    pairs = scores[labels == 1][:, None] - scores[labels == 0]
    assert area == pytest.approx(((pairs > 0) + (pairs == 0) / 2).mean(), abs=1e-12)
    assert moves[~kept].tolist() == [0] * int((~kept).sum())


def test_moves_of_an_area_from_the_scores_that_it_is_computed_of():
    """The two of one class, whose scores are sorted once for both, and those of samples that come without an order."""
    scores, target = drawn("tied", 900).view(300, 3), torch.arange(300) % 3
    metric = AUROC(num_classes=3, logits=True)
    meter = Meter(value=metric)
    meter.update(scores, target)
    for each in meter.plan.state_of("value", meter.states())[0].compute(meter.states()[0]):
        *samples, twice = metric.ranked_samples(each)
        assert twice.tolist() == stats_rankings.twice_below(*samples).tolist()
        (area, moves), (plain_area, plain) = ranking._area_moves(*samples, twice), ranking._area_moves(*samples)
        assert (area, moves.tolist()) == (plain_area, plain.tolist())


def test_thresholds_have_the_zero_without_a_sign():
    curve = ROC(logits=True)(torch.tensor([-0.0, 0.0, -1.0]), torch.tensor([0, 1, 0]))
    assert curve.thresholds.tolist() == [math.inf, 0.0, -1.0]
    assert not curve.thresholds[1].signbit()


@pytest.mark.parametrize("rows", [1, 2, 31, 3_000])
@pytest.mark.parametrize("kind", ["uniform", "tied", "logits", "any bits", "ends"])
def test_products_of_ranks_are_those_of_scipy(kind, rows):
    x, y = drawn(kind, rows).numpy(), drawn("tied", rows).flip(0).numpy()
    r, s = (2 * scipy.stats.rankdata(each) - (rows + 1) for each in (x, y))  # whole numbers
    assert rank_products(x, y) == (int(r @ s), int(r @ r), int(s @ s))


def test_products_of_many_ranks_have_all_their_digits():
    rows = 3_100_001  # whose sum of squares is above 2 ** 63
    x = np.random.default_rng(0).permutation(rows).astype(np.float32)
    expected = rows * (rows**2 - 1) // 3
    assert rank_products(x, x) == (expected,) * 3
    assert expected > 2**63


def test_columns_of_a_table():
    scores, classes = torch.rand(50, 3), torch.randint(0, 2, (50, 3), dtype=torch.int8)
    expected = order_scores(scores[:, 1].clone(), classes[:, 1].clone(), 1)
    assert order_scores(scores[:, 1], classes[:, 1], 1).tolist() == expected.tolist()


def same(ours, theirs):
    if isinstance(ours, torch.Tensor):
        return ours.dtype == theirs.dtype and ours.numpy().tobytes() == theirs.numpy().tobytes()
    return type(ours) is type(theirs) and len(ours) == len(theirs) and all(map(same, ours, theirs))


def batches(kind):
    generator = torch.Generator().manual_seed(3)
    for rows in (1, 40, 500):
        match kind:
            case "binary":
                yield drawn("tied", rows), torch.randint(0, 2, (rows,), generator=generator)
            case "labels":
                yield torch.rand(rows, 4, generator=generator), torch.randint(0, 2, (rows, 4), generator=generator)
            case "classes":
                logits = torch.randn(rows, 4, generator=generator)
                yield logits.softmax(1), torch.randint(0, 4, (rows,), generator=generator)


@every_third
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("metric", [AUROC, AveragePrecision, ROC, PrecisionRecallCurve])
@pytest.mark.parametrize("limit", [{"exact": True}, {"exact_up_to": 0}, {"exact_up_to": 100}])
@pytest.mark.parametrize("kind", ["binary", "labels", "classes"])
def test_values_have_the_bits_of_those_by_numpy(metric, limit, kind, monkeypatch):
    task = {"labels": {"num_labels": 4}, "classes": {"num_classes": 4}}.get(kind, {})
    given = list(batches(kind))

    def values():
        steps, whole = Meter(value=metric(**task, **limit)), Meter(value=metric(**task, **limit))
        found = [steps.forward(*batch)["value"] for batch in given]
        for batch in reversed(given):
            whole.update(*batch)
        assert same(steps.compute()["value"], whole.compute()["value"])
        return [*found, steps.compute()["value"]]

    ours = values()
    monkeypatch.setattr(tally_of_scores, "takes", lambda *tensors: False)
    assert same(ours, values())


def drawn_groups(kind, rows, groups=6):
    generator = torch.Generator().manual_seed(rows + 1)
    classes = torch.randint(-1, 3, (rows,), generator=generator).to(torch.int8)
    return drawn(kind, rows), classes, torch.randint(0, groups, (rows,), generator=generator).to(torch.int32)


@pytest.mark.parametrize("rows", [0, 1, 2, 31, 3_000])
@pytest.mark.parametrize("kind", ["uniform", "tied", "logits", "any bits", "ends"])
def test_what_groups_contribute_to_an_area_is_counted_for_each_score(kind, rows):
    scores, classes, groups = drawn_groups(kind, rows)
    known = (classes >= 0).numpy()
    positive = (classes == 1).numpy()
    whole = of_samples(scores.numpy()[known], positive[known])
    places = AreaPlaces.of(whole.thresholds, whole.positives, whole.negatives)
    found = area_sums(scores, classes, groups, 1, 6)
    for group in range(6):
        own = known & (groups == group).numpy()
        part = of_samples(scores.numpy()[own], positive[own])
        assert tuple(found[group]) == places.sums(part.thresholds, part.positives, part.negatives)


@pytest.mark.parametrize("rows", [0, 1, 2, 31, 3_000])
@pytest.mark.parametrize("kind", ["uniform", "tied", "logits", "any bits", "ends"])
def test_what_cells_contribute_to_the_areas_of_their_parts(kind, rows):
    scores, classes, cells = drawn_groups(kind, rows)
    part_of = np.array([1, 0, 1, 2, 0, 1], np.int32)
    found = area_sums_of_cells(order_scores(scores, classes, 1), cells.numpy(), part_of)
    for part in range(3):
        own = torch.from_numpy(part_of)[cells.long()] == part
        assert np.array_equal(
            found[part_of == part], area_sums(scores[own], classes[own], cells[own], 1, 6)[part_of == part]
        )
    by_cell = order_scores(scores, classes, 1, 5 - cells)
    assert np.array_equal(area_sums_of_cells(by_cell, np.arange(5, -1, -1, dtype=np.int32), part_of), found)


@pytest.mark.parametrize("rows", [0, 1, 2, 3_000])
def test_pairs_of_cells_are_numbered_as_they_come(rows):
    random = np.random.default_rng(rows)
    cells, others = (random.integers(0, count, rows).astype(np.int32) for count in (7, 40))
    joint, pairs = join_cells(cells, others, 7, 40)
    both = cells.astype(np.int64) * 40 + others
    assert pairs.tolist() == list(dict.fromkeys(both.tolist()))
    assert np.array_equal(pairs[joint], both)
    assert joint.dtype == np.int32
    strided = join_cells(np.repeat(cells, 2)[::2], others.astype(np.int64)[::-1][::-1], 7, 40)
    assert all(np.array_equal(*each) for each in zip(strided, (joint, pairs), strict=True))


@pytest.mark.parametrize("rows", [0, 1, 31, 400])
@pytest.mark.parametrize("kind", ["uniform", "tied", "logits", "any bits", "ends"])
def test_pairs_of_draws_are_those_of_samples_that_are_repeated(kind, rows):
    scores, classes, groups = drawn_groups(kind, rows)
    draws = np.random.default_rng(0).poisson(1, (9, 6))
    found = pairs_of_draws(scores, classes, groups, 1, draws)
    for k, times in enumerate(draws):
        index = torch.arange(rows).repeat_interleave(torch.from_numpy(times)[groups.long()])
        index = index[classes[index] >= 0]
        above, below = (scores[index[(classes[index] == 1) == side]].double().numpy() for side in (True, False))
        right = (2 * (above[:, None] > below) + (above[:, None] == below)).sum()
        assert found[:, k].tolist() == [right, len(above), len(below)]


def test_columns_of_a_table_of_groups():
    scores, classes, groups = torch.rand(50, 3), torch.randint(0, 2, (50, 3), dtype=torch.int8), torch.arange(50) % 4
    groups, draws = groups.to(torch.int32), np.array([[1, 1, 1, 1], [0, 2, 1, 3]])
    plain = scores[:, 1].clone(), classes[:, 1].clone(), groups, 1
    of_table = scores[:, 1], classes[:, 1], groups, 1
    assert np.array_equal(area_sums(*of_table, 4), area_sums(*plain, 4))
    assert np.array_equal(pairs_of_draws(*of_table, draws), pairs_of_draws(*plain, draws))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("first_order", [True, False])
@pytest.mark.parametrize("average", ["macro", "weighted"])
@pytest.mark.parametrize("kind", ["binary", "labels", "classes", "many classes"])
def test_replicates_have_the_bits_of_those_without_compiled_code(kind, average, first_order, monkeypatch):
    generator = torch.Generator().manual_seed(5)
    monkeypatch.setattr(replicates, "FROM_ROWS", 0 if first_order else 10**6)
    monkeypatch.setattr(ranking, "FEWEST_OF_CLASS", 1)
    many = kind == "many classes"
    task = {"labels": {"num_labels": 4}, "binary": {}}.get(kind, {"num_classes": 200 if many else 4})
    groups = [Meter(value=AUROC(**task, average=average)) for _ in range(12)]
    for group in groups:
        preds = (
            torch.randint(0, 50, (50, *([] if kind == "binary" else [max(task.values())])), generator=generator) / 64
        )
        target = torch.randint(0, 2, preds.shape, generator=generator)
        group.update(preds, target if "num_classes" not in task else preds.argmax(1))
    ours = drawn_values(groups, 30)["value"]
    monkeypatch.setattr(tally_of_scores, "takes", lambda *tensors: False)
    assert drawn_values(groups, 30)["value"] == ours
    whole = groups[0].fresh().merge(*groups)
    assert ours[0] == float(whole.compute()["value"])


@pytest.mark.parametrize("most", [1, 3, 1000, 2**31 - 1])
@pytest.mark.parametrize("count", [0, 1, 2, 15, 16, 17, 33, 100, 1000])
def test_inversions_are_the_pairs_in_falling_order(count: int, most: int) -> None:
    ranks = np.random.default_rng(count).integers(0, most, count)
    for numbers in (ranks, np.sort(ranks), np.sort(ranks)[::-1]):
        later = np.triu(numbers[:, None] > numbers[None, :])
        before = numbers.copy()
        assert count_inversions(numbers) == later.sum()
        assert np.array_equal(numbers, before)


def test_inversions_of_runs_of_all_lengths() -> None:
    for count in range(1, 200):
        numbers = np.arange(count)[::-1]
        assert count_inversions(numbers) == count * (count - 1) // 2
