"""A bootstrap wrapper has the value of a plain meter, and the same intervals however the samples were split."""

from __future__ import annotations

import copy
import itertools
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import AUROC, MeanSquaredError, Meter
from assay.devices import policy
from assay.errors import ConfigError, InvalidValuesError, ShapeError, StateError
from assay.meter.inputs import arguments
from assay.metrics import Classwise, F1Score, Mean, Recall
from assay.wrappers import Bootstrap
from assay.wrappers import bootstrap as module
from laws import bits
from ranks import processes

LIKE = Meter(f1=F1Score(), auroc=AUROC(), half=(AUROC() + F1Score()) / 2)


def samples(rows=500, seed=0):
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(2, (rows,), generator=generator)
    preds = (torch.rand(rows, generator=generator) + target) / 2
    return preds, target, torch.randperm(10 * rows, generator=generator)[:rows]


PREDS, TARGET, IDS = samples()


def fed(wrapped, *parts, named=True):
    for rows in parts or (slice(None),):
        wrapped.update(PREDS[rows], TARGET[rows], ids=IDS[rows] if named else None)
    return wrapped


def seen(wrapped):
    return [bits(group) for group in wrapped.groups], wrapped.intervals(n_resamples=30)


class Seen:
    """What was counted, with a short name for messages."""

    def __init__(self, found):
        self.found = found

    def __eq__(self, other):
        return self.found == (other.found if isinstance(other, Seen) else other)


@pytest.fixture(scope="module")
def whole():
    return Seen(seen(fed(Bootstrap(LIKE, 20))))


@settings(max_examples=5)
@given(cuts=st.lists(st.integers(0, 500), max_size=8), seed=st.integers(0, 99), held=st.sampled_from([1, 50, 10_000]))
def test_no_split_and_no_order_changes_an_interval(whole, cuts, seed, held):
    order = torch.randperm(500, generator=torch.Generator().manual_seed(seed))
    ends = [0, *sorted(cuts), 500]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BUFFER_ROWS", held)
        parts = [Bootstrap(LIKE, 20) for _ in range(2)]
        for k, (start, end) in enumerate(itertools.pairwise(ends)):
            fed(parts[k % 2], order[start:end])
        assert seen(parts[0] + parts[1]) == whole


def test_the_value_is_that_of_a_plain_meter():
    plain = LIKE.fresh()
    plain.update(PREDS, TARGET)
    wrapped = fed(Bootstrap(LIKE), slice(0, 7), slice(7, None))
    assert bits(wrapped.total()) == bits(plain)
    assert wrapped.compute() == plain.compute()
    assert wrapped.rows == 500
    assert len(wrapped.groups) == 128


def test_without_ids_a_sample_is_known_by_its_place():
    one = fed(Bootstrap(LIKE, 20), named=False)
    several = fed(Bootstrap(LIKE, 20), slice(0, 100), slice(100, 101), slice(101, None), named=False)
    assert seen(one) == seen(several)
    named = Bootstrap(LIKE, 20)
    named.update(PREDS, TARGET, ids=range(500))
    assert seen(named) == seen(one)


def test_ids_are_numbers_or_texts_of_any_kind(whole):
    for ids in (IDS, IDS.numpy(), IDS.tolist(), tuple(IDS.tolist())):
        wrapped = Bootstrap(LIKE, 20)
        wrapped.update(PREDS, TARGET, ids=ids)
        assert seen(wrapped) == whole
    named = Bootstrap(LIKE, 20)
    named.update(PREDS, TARGET, ids=[f"image {k}" for k in IDS])
    assert seen(named) != whole


def test_errors_and_quantiles_are_those_of_what_is_drawn():
    wrapped = fed(Bootstrap(LIKE, 20))
    drawn = wrapped.drawn(300)
    assert {name: len(values) for name, values in drawn.items()} == dict.fromkeys(LIKE.metrics, 300)
    spread = {name: np.std(values, ddof=1) * np.sqrt(20 / 19) for name, values in drawn.items()}
    assert wrapped.standard_errors(300) == pytest.approx(spread, rel=1e-12)
    quantiles = {name: np.quantile(values, [0.1, 0.5]).tolist() for name, values in drawn.items()}
    assert wrapped.quantiles((0.1, 0.5), 300) == quantiles
    assert wrapped.quantiles(0.5, 300)["f1"] == [quantiles["f1"][1]]


def test_the_standard_error_of_a_mean_is_the_textbooks():
    values = torch.randn(20_000, generator=torch.Generator().manual_seed(0))
    wrapped = Bootstrap(Meter(mean=Mean()))
    wrapped.update(values)
    assert wrapped.standard_errors(2000)["mean"] == pytest.approx(float(values.std()) / 20_000**0.5, rel=0.2)


def test_classes_have_intervals_under_their_names():
    generator = torch.Generator().manual_seed(0)
    wrapped = Bootstrap(Meter(recall=Classwise(Recall(num_classes=2, average=None), ("cat", "dog"))))
    wrapped.update(torch.randint(2, (900,), generator=generator), torch.randint(2, (900,), generator=generator))
    assert list(wrapped.intervals()) == ["recall cat", "recall dog"]


def test_few_samples_have_no_intervals():
    wrapped = fed(Bootstrap(LIKE, 20), slice(0, 4))
    assert (wrapped.intervals(), wrapped.standard_errors(), wrapped.quantiles(0.5), wrapped.drawn()) == ({}, {}, {}, {})


@pytest.mark.exhaustive
def test_copies_and_saved_states_go_on_alike(tmp_path, whole):
    first, second = slice(0, 123), slice(123, None)
    wrapped = fed(Bootstrap(LIKE, 20), first)
    torch.save(wrapped.state_dict(), tmp_path / "state.pt")
    read = Bootstrap(LIKE, 20)
    read.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    for each in (read, copy.deepcopy(wrapped), pickle.loads(pickle.dumps(wrapped))):
        assert seen(fed(each, second)) == whole
    wrapped.reset()
    assert wrapped.rows == 0
    assert seen(fed(wrapped)) == whole


def test_the_place_in_the_stream_is_saved():
    once = fed(Bootstrap(LIKE, 20), slice(0, 99), slice(99, None), named=False)
    read = Bootstrap(LIKE, 20)
    read.load_state_dict(fed(Bootstrap(LIKE, 20), slice(0, 99), named=False).state_dict())
    assert seen(fed(read, slice(99, None), named=False)) == seen(once)


def test_what_was_made_otherwise_does_not_fit():
    wrapped = fed(Bootstrap(LIKE, 20))
    before = seen(wrapped)
    others = [Bootstrap(LIKE, 21), Bootstrap(LIKE, 20, seed=1), Bootstrap(Meter(Mean()), 20)]
    for other in others:
        with pytest.raises(StateError, match=r"merge: got Bootstrap.*, expected one as Bootstrap"):
            wrapped.merge(other)
        with pytest.raises(StateError, match="state_dict"):
            wrapped.load_state_dict(other.state_dict())
    assert seen(wrapped) == before


def test_the_callers_tensors_may_change_afterwards(whole):
    preds = PREDS.clone()
    wrapped = Bootstrap(LIKE, 20)
    wrapped.update(preds, TARGET, ids=IDS)
    preds.zero_()
    assert seen(wrapped) == whole


def test_large_rows_are_counted_one_by_one(monkeypatch, whole):
    monkeypatch.setattr(arguments, "COPIED_BYTES", 10)
    assert seen(fed(Bootstrap(LIKE, 20))) == whole


def test_bad_batches_are_refused_at_once_and_bad_values_when_read():
    wrapped = Bootstrap(LIKE, 20)
    with pytest.raises(ShapeError, match="target: got 4 samples, expected as many as preds has, 3"):
        wrapped.update(PREDS[:3], TARGET[:4])
    with pytest.raises(ShapeError, match="ids: got 2 ids, expected as many as preds has rows, 3"):
        wrapped.update(PREDS[:3], TARGET[:3], ids=[1, 2])
    with pytest.raises(ShapeError, match="ids: got 2 dimensions, expected one"):
        wrapped.update(PREDS[:3], TARGET[:3], ids=torch.ones(3, 1))
    assert wrapped.rows == 0
    wrapped.update(PREDS, TARGET + 5)
    with pytest.raises(InvalidValuesError):
        wrapped.intervals()


@pytest.mark.parametrize("groups", [0, 15, 5000, 20.0, True])
def test_there_are_enough_groups(groups):
    with pytest.raises(ConfigError, match=r"groups: got .*, expected a number from 16 to 4096"):
        Bootstrap(LIKE, groups)


def test_what_is_too_large_for_groups_says_so():
    from assay.metrics import CohenKappa

    with pytest.raises(ConfigError, match="which are too large for 16 groups"):
        Bootstrap(Meter(CohenKappa(num_classes=1000, weights="linear")))
    with pytest.raises(ConfigError, match=r"q: got 1\.5, expected numbers from 0 to 1"):
        fed(Bootstrap(LIKE, 20)).quantiles(1.5)


@pytest.mark.devices("mps", "cuda:1", "xpu")
def test_an_update_waits_only_for_the_order_of_the_rows_that_are_dealt(device, pretended, whole, monkeypatch):
    monkeypatch.setattr(module, "BUFFER_ROWS", 400)
    policy(device)
    wrapped = Bootstrap(LIKE, 20)
    preds, target = PREDS.to(device), TARGET.to(device)
    waits = []
    for rows in (slice(0, 100), slice(100, 200), slice(200, 450), slice(450, None)):
        if pretended:
            pretended.events.clear()
        wrapped.update(preds[rows], target[rows], ids=IDS[rows])
        waits.append(len([event for event in pretended.events if event.kind == "sync"]) if pretended else 0)
    assert waits == ([0, 0, 1, 0] if pretended else [0, 0, 0, 0])
    assert seen(wrapped) == whole


def on_a_rank(rank, size):
    wrapped = fed(Bootstrap(Meter(f1=F1Score(), mse=MeanSquaredError()), 20), slice(rank, None, size))
    return {name: [each.lower.hex(), each.upper.hex()] for name, each in wrapped.sync().intervals().items()}


def test_processes_have_the_intervals_of_one(tmp_path):
    assert processes(on_a_rank, 2, tmp_path) == [on_a_rank(0, 1)] * 2
