"""Repeated batches of one layout are counted by prepared calls: the states are those of the general way."""

from __future__ import annotations

import math

import pytest
import torch

from assay import Meter
from assay.errors import StateError
from assay.meter.counting.device_counts import PREPARED_BYTES
from assay.metrics import (
    AUROC,
    Accuracy,
    ConcordanceCorrCoef,
    ConfusionMatrix,
    ExactMatch,
    ExplainedVariance,
    HingeLoss,
    MaximumAbsoluteError,
    Mean,
    MeanAbsoluteError,
    MeanSquaredError,
    R2Score,
    Sum,
    TotalVariation,
)
from assay.native.library import MISSING, library
from assay.native.sums import PreparedSums
from assay.tally.base import Batch
from assay.tally.labels.confusion import Confusion
from assay.tally.stores.huge_pages import HUGE_PAGE
from assay.tally.stores.sample_store import SampleStore
from assay.tally.sums.sums import Sums
from counting import counted

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)

ROWS = 5_003  # more than PREPARED_BYTES of float32, and no whole number of blocks


@pytest.fixture
def calls(monkeypatch):
    """How often a prepared call added up, and how often `Sums.add` did."""
    counted = {"prepared": 0, "general": 0}
    prepared, general = PreparedSums.add, Sums.add

    def noted_prepared(self, addresses):
        counted["prepared"] += 1
        prepared(self, addresses)

    def noted_general(self, state, batch):
        counted["general"] += 1
        general(self, state, batch)

    monkeypatch.setattr(PreparedSums, "add", noted_prepared)
    monkeypatch.setattr(Sums, "add", noted_general)
    return counted


def pairs(count, dtype=torch.float32, seed=0):
    generator = torch.Generator().manual_seed(seed)
    for _ in range(count):
        target = torch.randn(ROWS, generator=generator) * 100
        yield (target + torch.randn(ROWS, generator=generator)).to(dtype), target.to(dtype)


def assert_equal_states(meter, other):
    assert meter.rows == other.rows
    for state, expected in zip(meter.states(), other.states(), strict=True):
        assert state.keys() == expected.keys()
        assert all(torch.equal(state[name], expected[name]) for name in state)


def updated(metrics, batches):
    meter = Meter(**metrics)
    for batch in batches:
        meter.update(*batch)
    return meter


def one_by_one(metrics, batches):
    """A meter that counted every batch in the general way."""
    meter = Meter(stage_bytes=0, **metrics)
    for batch in batches:
        meter.update(*(each.clone() for each in batch))
    return meter


@pytest.mark.parametrize(
    ("metrics", "prepared"),
    [
        ({"mse": MeanSquaredError()}, True),
        ({"mse": MeanSquaredError(), "r2": R2Score(), "ccc": ConcordanceCorrCoef()}, True),
        ({"mse": MeanSquaredError(num_outputs=1)}, True),
        ({"explained": ExplainedVariance()}, True),
        ({"mae": MeanAbsoluteError()}, True),  # the sign of a difference is computed in each call
        ({"mse": MeanSquaredError(), "mae": MeanAbsoluteError()}, True),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_states_are_those_of_the_general_way(metrics, prepared, dtype, calls):
    batches = list(pairs(4, dtype))
    expected = one_by_one(metrics, batches)
    meter = updated(metrics, batches)
    assert calls["prepared"] == 3 * prepared  # the first batch may be the only one of its layout
    assert_equal_states(meter, expected)


@pytest.mark.parametrize(
    ("metric", "prepared"),
    [(Mean(), 2), (Mean(nan_policy="raise"), 2), (Mean(nan_policy="ignore"), 2), (Mean(nan_policy=0.5), 0)],
)
def test_one_argument(metric, prepared, calls):
    batches = [(preds,) for preds, _ in pairs(3)]
    meter = Meter(mean=metric)
    for batch in batches:
        meter.update(*batch)
    assert calls["prepared"] == prepared
    assert_equal_states(meter, one_by_one({"mean": metric}, batches))


@pytest.mark.parametrize("policy", ["warn", "ignore"])
def test_nan_are_left_out_as_in_the_general_way(policy, calls):
    metrics = {"sum": Sum(nan_policy=policy), "mean": Mean(nan_policy=policy)}
    batches = [(preds,) for preds, _ in pairs(5)]
    for k, places in ((2, [1, 5]), (3, [0])):
        batches[k][0][places] = torch.nan
    batches[3][0][4], batches[4][0][2] = torch.inf, -torch.inf
    for count in range(2, 6):
        meter = updated(metrics, batches[:count])
        assert_equal_states(meter, one_by_one(metrics, batches[:count]))
    assert calls["prepared"] == 1 + 2 + 3 + 4


def views(kind, tensor):
    """The same numbers, as another kind of tensor."""
    match kind:
        case "strided":
            return torch.stack([tensor, tensor], 1)[:, 0]
        case "backwards":
            return torch._neg_view(-tensor)
        case "offset":
            return torch.cat([tensor[:3], tensor])[3:]
        case "requires grad":
            return tensor.clone().requires_grad_()
        case "parameter":
            return torch.nn.Parameter(tensor.clone())
    raise AssertionError(kind)


@pytest.mark.parametrize("kind", ["strided", "backwards", "offset", "requires grad", "parameter"])
@pytest.mark.parametrize("first", [True, False])
def test_views_of_other_memory(kind, first):
    batches = list(pairs(6))
    given = [(views(kind, p), views(kind, t)) if (k % 2 == 0) == first else (p, t) for k, (p, t) in enumerate(batches)]
    for (preds, target), (own_preds, own_target) in zip(given, batches, strict=True):
        assert torch.equal(preds, own_preds)
        assert torch.equal(target, own_target)
    metrics = {"mse": MeanSquaredError(), "r2": R2Score()}
    meter = Meter(**metrics)
    for batch in given:
        meter.update(*batch)
    assert_equal_states(meter, one_by_one(metrics, batches))


def test_zeros_without_memory():
    metrics = {"mse": MeanSquaredError()}
    zeros = torch._efficientzerotensor(ROWS)
    batches = [(preds, zeros) for preds, _ in pairs(4)]
    meter = updated(metrics, batches)
    assert_equal_states(meter, one_by_one(metrics, [(preds, torch.zeros(ROWS)) for preds, _ in batches]))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_not_finite(value, calls):
    batches = list(pairs(4))
    for k, place in ((1, 7), (2, ROWS - 1)):
        batches[k][k % 2][place] = value
    metrics = {"mse": MeanSquaredError(), "r2": R2Score()}
    meter = updated(metrics, batches)
    assert calls["prepared"] == 3
    assert_equal_states(meter, one_by_one(metrics, batches))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int64, torch.bool])
def test_other_dtypes_are_counted_in_the_general_way(dtype, calls):
    batches = [((preds > 0).to(dtype), (target > 0).to(dtype)) for preds, target in pairs(3)]
    metrics = {"mse": MeanSquaredError()}
    meter = updated(metrics, batches)
    assert calls["prepared"] == 0
    assert_equal_states(meter, one_by_one(metrics, batches))


def test_layouts_that_take_turns(calls):
    batches = [(p[:n], t[:n]) for n, (p, t) in zip([ROWS, 64, ROWS, ROWS, 4_999, 4_999, ROWS], pairs(7), strict=True)]
    metrics = {"mse": MeanSquaredError(), "r2": R2Score()}
    meter = updated(metrics, batches)
    assert calls["prepared"] == 2
    assert_equal_states(meter, one_by_one(metrics, batches))


def test_other_shapes_of_the_same_samples(calls):
    batches = [(p[:5_000].view(50, 100), t[:5_000].view(50, 100)) for p, t in pairs(3)]
    metrics = {"mse": MeanSquaredError()}
    meter = updated(metrics, batches)
    assert calls["prepared"] == 2
    assert_equal_states(meter, one_by_one(metrics, batches))


def test_small_batches_are_staged(calls):
    rows = PREPARED_BYTES // 8 - 1
    meter = Meter(mse=MeanSquaredError())
    for preds, target in pairs(3):
        meter.update(preds[:rows], target[:rows])
    assert calls == {"prepared": 0, "general": 0}


@pytest.mark.parametrize("metric", [TotalVariation(), HingeLoss()], ids=repr)
def test_terms_of_many_operators_wait_for_more_rows(metric):
    """Sooner they would run as many operators a batch as later in many batches."""
    generator = torch.Generator().manual_seed(0)
    rows = 8 if isinstance(metric, TotalVariation) else PREPARED_BYTES
    shape = (rows, 3, 16, 16) if isinstance(metric, TotalVariation) else (rows,)
    preds, target = torch.rand(shape, generator=generator), torch.randint(0, 2, shape, generator=generator)
    given = (preds,) if isinstance(metric, TotalVariation) else (preds, target)
    meter = Meter(metric)
    for _ in range(3):
        with counted() as counts:
            meter.update(*given)
    assert not counts.ops


def test_a_meter_with_a_tally_that_has_nothing_prepared_is_counted_in_the_general_way(calls):
    batches = list(pairs(3))
    metrics = {"mse": MeanSquaredError(), "max": MaximumAbsoluteError()}
    meter = updated(metrics, batches)
    assert calls["prepared"] == 0
    assert_equal_states(meter, one_by_one(metrics, batches))


def test_steps_of_a_loop_have_the_values_of_their_batches(calls):
    batches = [(p[:40], t[:40]) for p, t in pairs(4)]
    metrics = {"mse": MeanSquaredError(), "r2": R2Score()}
    meter = Meter(**metrics)
    values = [meter.forward(*batch) for batch in batches]
    assert calls["prepared"] == 3 * len(meter.tallies)
    assert values == [Meter(**metrics).values_of(*batch) for batch in batches]
    assert_equal_states(meter, one_by_one(metrics, batches))


def test_what_is_interrupted_is_refused_until_it_is_reset(monkeypatch):
    meter = Meter(mse=MeanSquaredError())
    first, second, third = pairs(3)
    meter.update(*first)
    meter.update(*second)

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(PreparedSums, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            meter.update(*third)
    with pytest.raises(StateError, match="KeyboardInterrupt"):
        meter.update(*third)
    with pytest.raises(StateError, match="KeyboardInterrupt"):
        meter.compute()
    meter.reset()
    for batch in (first, second, third):
        meter.update(*batch)
    assert_equal_states(meter, one_by_one({"mse": MeanSquaredError()}, [first, second, third]))


def test_a_meter_that_was_reset_or_merged_counts_into_states_of_its_own():
    batches = list(pairs(6))
    metrics = {"mse": MeanSquaredError()}
    meter, other = Meter(**metrics), Meter(**metrics)
    for batch in batches[:3]:
        meter.update(*batch)
    before = [{name: value.clone() for name, value in state.items()} for state in meter.states()]
    states = meter.states()
    other.merge(meter)
    for batch in batches[3:]:
        meter.update(*batch)
    assert all(torch.equal(each[name], was[name]) for each, was in zip(states, before, strict=True) for name in was)
    assert_equal_states(other, one_by_one(metrics, batches[:3]))
    assert_equal_states(meter, one_by_one(metrics, batches))
    meter.reset()
    for batch in batches[:2]:
        meter.update(*batch)
    assert_equal_states(meter, one_by_one(metrics, batches[:2]))


def scored(count, rows=ROWS, seed=0):
    """Scores with binary targets, some of which are invalid."""
    generator = torch.Generator().manual_seed(seed)
    for k in range(count):
        scores = torch.rand(rows, generator=generator)
        target = torch.randint(0, 2, (rows,), generator=generator)
        if k % 2:
            scores[5], scores[6], scores[7], target[8], target[9] = math.nan, -0.5, math.inf, 3, -100
        yield scores, target


def assert_equal_scores(meter, other):
    """Canonical states hold stores, which are compared column by column, to the bit."""
    assert meter.rows == other.rows
    for state, expected in zip(meter.states(), other.states(), strict=True):
        assert state.keys() == expected.keys()
        for name, value in state.items():
            if isinstance(value, SampleStore):
                for column in value.columns:
                    ours, theirs = value.column(column), expected[name].column(column)
                    assert ours.dtype == theirs.dtype
                    assert ours.numpy().tobytes() == theirs.numpy().tobytes()
            else:
                assert torch.equal(value, expected[name])


@pytest.mark.parametrize(
    "metric",
    [
        AUROC(exact=True),
        AUROC(exact=True, logits=True),
        AUROC(exact=True, ignore_index=-100),
        AUROC(),
        AUROC(exact_up_to=3 * ROWS),  # the fourth batch goes to the histogram, with all before it
        AUROC(exact_up_to=0),
    ],
)
def test_scores_are_kept_as_in_the_general_way(metric):
    batches = list(scored(6))
    meter = Meter(auroc=metric)
    for batch in batches:
        meter.update(*batch)
    assert_equal_scores(meter, one_by_one({"auroc": metric}, batches))


@pytest.mark.parametrize("kind", ["strided", "requires grad", "offset"])
def test_views_of_scores(kind):
    batches = [(views(kind, scores) if k % 2 else scores, target) for k, (scores, target) in enumerate(scored(5))]
    meter = Meter(auroc=AUROC(exact=True))
    for batch in batches:
        meter.update(*batch)
    expected = [(scores.detach(), target) for scores, target in batches]
    assert_equal_scores(meter, one_by_one({"auroc": AUROC(exact=True)}, expected))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.uint8])
def test_targets_of_other_dtypes(dtype):
    batches = [(scores, (target == 1).to(dtype)) for scores, target in scored(3)]
    meter = Meter(auroc=AUROC(exact=True))
    for batch in batches:
        meter.update(*batch)
    assert_equal_scores(meter, one_by_one({"auroc": AUROC(exact=True)}, batches))


def test_scores_of_many_batches_fill_blocks_in_huge_pages():
    batches = list(scored(40, rows=30_011))
    meter = Meter(auroc=AUROC(exact=True))
    for batch in batches:
        meter.update(*batch)
    (state,) = next(iter(meter.device_states().values()))
    assert state["samples"].allocated["host"] > 2 * HUGE_PAGE
    assert_equal_scores(meter, one_by_one({"auroc": AUROC(exact=True)}, batches))


LABELS = {
    "binary": ({}, lambda g: (torch.rand(64, generator=g), torch.randint(2, (64,), generator=g))),
    "logits": ({"logits": True}, lambda g: (torch.randn(64, generator=g), torch.randint(2, (64,), generator=g))),
    "positions": (
        {"ignore_index": 0},
        lambda g: (torch.rand(8, 5, generator=g), torch.randint(2, (8, 5), generator=g)),
    ),
    "scores of classes": (
        {"num_classes": 4, "ignore_index": 2},
        lambda g: (torch.randn(64, 4, generator=g), torch.randint(4, (64,), generator=g)),
    ),
    "classes": (
        {"num_classes": 4},
        lambda g: (torch.randint(-2, 7, (64,), generator=g), torch.randint(-2, 7, (64,), generator=g)),
    ),
    "several labels": (
        {"num_labels": 3, "threshold": 0.3, "ignore_index": -1},
        lambda g: (torch.rand(64, 3, generator=g), torch.randint(-1, 2, (64, 3), generator=g)),
    ),
    "positions of several labels": (
        {"num_labels": 3},
        lambda g: (torch.rand(8, 3, 5, generator=g), torch.randint(2, (8, 3, 5), generator=g)),
    ),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_are_counted_as_torch_counts_them(kind):
    fields, batch = LABELS[kind]
    generator = torch.Generator().manual_seed(0)
    batches = [batch(generator) for _ in range(4)]
    batches[2][0].view(-1)[3] = 9 if kind == "classes" else math.nan
    tally = ConfusionMatrix(**fields).tally(False)
    prepared, compiled, by_torch = (tally.zero(torch.device("cpu")) for _ in range(3))
    add = tally.prepare(prepared, Batch(*batches[0], compiled=True))
    for preds, target in batches:
        add(preds, target, None)
        tally.add(compiled, Batch(preds, target, compiled=True))
        tally.add(by_torch, Batch(preds, target))
    assert by_torch["counts"].sum() == sum(target.numel() for _, target in batches)
    assert torch.equal(prepared["counts"], by_torch["counts"])
    assert torch.equal(compiled["counts"], by_torch["counts"])


WHOLE_SAMPLES = {
    **{name: case for name, case in LABELS.items() if "ignore_index" not in case[0]},
    "several labels": LABELS["positions of several labels"],
    "labels alone": (
        {"num_labels": 3},
        lambda g: (torch.rand(64, 3, generator=g), torch.randint(2, (64, 3), generator=g)),
    ),
    "sequences": (
        {"num_classes": 3},
        lambda g: (torch.randint(3, (64, 2), generator=g), torch.randint(3, (64, 2), generator=g)),
    ),
}


@pytest.mark.parametrize("kind", WHOLE_SAMPLES)
def test_samples_that_are_all_right_are_counted_as_torch_counts_them(kind):
    fields, batch = WHOLE_SAMPLES[kind]
    generator = torch.Generator().manual_seed(0)
    batches = [batch(generator) for _ in range(4)]
    batches[2][0].view(-1)[3] = 9 if not batches[2][0].is_floating_point() else math.nan
    batches[3][1].view(-1)[5] = -4
    tally = ExactMatch(**fields).tally(False)
    prepared, by_torch = (tally.zero(torch.device("cpu")) for _ in range(2))
    add = tally.prepare(prepared, Batch(*batches[0], compiled=True))
    for preds, target in batches:
        add(preds, target, None)
        tally.add(by_torch, Batch(preds, target))
    assert torch.equal(prepared["counts"], by_torch["counts"])
    assert by_torch["counts"][3:].sum()


def test_whole_samples_with_ignored_labels_are_not_prepared():
    tally = ExactMatch(num_classes=4, ignore_index=1).tally(False)
    state, target = tally.zero(torch.device("cpu")), torch.randint(4, (8,))
    assert tally.prepare(state, Batch(torch.rand(8, 4), target, compiled=True)) is None


@pytest.mark.parametrize("change", [torch.Tensor.double, torch.Tensor.half])
def test_scores_of_other_dtypes_are_not_prepared(change):
    tally = ConfusionMatrix(num_classes=4).tally(False)
    preds, target = torch.rand(8, 4), torch.randint(4, (8,))
    state = tally.zero(torch.device("cpu"))
    assert tally.prepare(state, Batch(change(preds), target, compiled=True)) is None
    assert tally.prepare(state, Batch(preds, target.int(), compiled=True)) is None
    assert tally.prepare(state, Batch(preds, target)) is None  # not in host memory


def test_a_forward_of_labels_counts_in_the_prepared_way(monkeypatch):
    general, add = [], Confusion.add
    monkeypatch.setattr(Confusion, "add", lambda *given: (general.append(given), add(*given))[1])
    meter = Meter(accuracy=Accuracy(num_classes=3))
    for _ in range(4):
        meter.forward(torch.rand(8, 3), torch.randint(3, (8,)))
    assert len(general) == 1  # the first batch may be the only one of its layout
