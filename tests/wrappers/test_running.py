"""A window has the bits of a meter that was given its last updates alone."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import AUROC, Accuracy, MeanSquaredError, Meter
from assay.devices import policy
from assay.errors import ConfigError, ShapeError, StateError
from assay.metrics import Max, Mean, Quantile
from assay.wrappers import Running
from laws import bits
from ranks import processes

LIKE = Meter(accuracy=Accuracy(), auroc=AUROC(), both=AUROC() - MeanSquaredError())


def batches(sizes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [(torch.rand(n, generator=generator), torch.randint(2, (n,), generator=generator)) for n in sizes]


def fed(window, data):
    for batch in data:
        window.update(*batch)
    return window


@given(sizes=st.lists(st.integers(0, 7), max_size=9), updates=st.integers(1, 5), seed=st.integers(0, 99))
def test_the_last_updates_count_and_no_others(sizes, updates, seed):
    data = batches(sizes, seed)
    window = fed(Running(LIKE, updates), data)
    assert bits(window.total()) == bits(fed(LIKE.fresh(), data[-updates:]))
    assert (len(window), window.rows) == (min(len(sizes), updates), sum(sizes[-updates:]))


def test_extremes_and_samples_leave_the_window_too():
    window = Running(Meter(Max(), Quantile(0.5), Mean()), 2)
    for value in (9.0, 1.0, 2.0):
        window.update(torch.tensor([value]))
    assert [float(value) for value in window.compute().values()] == [2, 1.5, 1.5]
    assert list(window.compute(only=["Max"])) == ["Max"]


def test_the_meter_that_describes_it_stays_as_it_was():
    meter = fed(LIKE.fresh(), batches([3]))
    before = bits(meter)
    fed(Running(meter, 2), batches([5, 5]))
    assert bits(meter) == before


def test_copies_and_saved_windows_go_on_alike(tmp_path):
    first, second = batches([4, 3, 2]), batches([5, 1], seed=1)
    window = fed(Running(LIKE, 3), first)
    loaded = Running(LIKE, 3)
    loaded.load_state_dict(window.state_dict())
    torch.save(window.state_dict(), tmp_path / "state.pt")
    read = Running(LIKE, 3)
    read.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    copies = [loaded, read, copy.deepcopy(window), pickle.loads(pickle.dumps(window))]
    expected = bits(fed(window, second).total())
    assert all(bits(fed(each, second).total()) == expected for each in copies)


def test_a_shorter_window_takes_the_last_updates_of_a_longer_one():
    data = batches([1, 2, 3, 4])
    shorter = Running(LIKE, 2)
    shorter.load_state_dict(fed(Running(LIKE, 4), data).state_dict())
    assert bits(shorter.total()) == bits(fed(LIKE.fresh(), data[-2:]))


def test_a_state_that_does_not_fit_changes_nothing():
    window = fed(Running(LIKE, 3), batches([4, 3]))
    before = bits(window.total())
    other = fed(Running(Meter(Mean()), 3), [(torch.ones(2),)]).state_dict()
    gap = {name: tensor for name, tensor in window.state_dict().items() if not name.startswith("0/")}
    for state, message in ((other, "counts for"), (gap, "updates 1"), ({"x/about": torch.ones(1)}, "a part named 'x'")):
        with pytest.raises(StateError, match=message):
            window.load_state_dict(state)
        assert bits(window.total()) == before


def test_a_batch_that_is_refused_leaves_the_window_as_it_was():
    window = fed(Running(LIKE, 2), batches([4, 3]))
    before = bits(window.total())
    with pytest.raises(ShapeError):
        window.update(torch.zeros(3), torch.zeros(4, dtype=torch.long))
    assert bits(window.total()) == before
    window.reset()
    assert (len(window), window.rows) == (0, 0)


@pytest.mark.parametrize("updates", [0, -1, 2.5, True, "many"])
def test_a_window_has_a_number_of_updates(updates):
    with pytest.raises(ConfigError, match=r"updates: got .*, expected an integer of 1 or more"):
        Running(LIKE, updates)


def test_a_window_is_of_a_meter():
    with pytest.raises(StateError, match="meter: got Accuracy, expected a meter"):
        Running(Accuracy(), 3)


@pytest.mark.devices("mps", "cuda:1", "xpu")
def test_no_update_waits_for_a_device(device, pretended):
    data = batches([5, 4, 6, 3])
    policy(device)
    there = [tuple(each.to(device) for each in batch) for batch in data]
    window = Running(LIKE, 2)
    window.update(*there[0])
    if pretended:
        pretended.events.clear()
    fed(window, there[1:])
    assert not pretended or [str(event) for event in pretended.events] == []
    assert bits(window.total()) == bits(fed(LIKE.fresh(), data[-2:]))


def on_a_rank(rank, size):
    window = fed(Running(LIKE, 2), batches([5, 4, 6][: 3 - rank], seed=rank))
    return {name: float(value).hex() for name, value in window.sync().compute().items()}


def test_processes_add_their_windows(tmp_path):
    parts = [batches([5, 4, 6])[-2:], batches([5, 4], seed=1)]
    expected = fed(LIKE.fresh(), [batch for part in parts for batch in part]).compute()
    expected = json.loads(json.dumps({name: float(value).hex() for name, value in expected.items()}))
    assert processes(on_a_rank, 2, tmp_path) == [expected, expected]
