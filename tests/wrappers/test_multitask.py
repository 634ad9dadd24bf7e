"""Several tasks are counted together: each as by a meter of its own, and all of a batch or nothing."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from assay import Accuracy, MeanSquaredError, Meter
from assay.devices import policy
from assay.errors import ConfigError, DtypeError, InputError, ShapeError, StateError
from assay.metrics import Mean
from assay.wrappers import Multitask
from laws import bits
from ranks import processes


def tasks():
    return Multitask(kind=Meter(acc=Accuracy(num_classes=3)), size=Meter(mse=MeanSquaredError()))


def batch(seed, rows=6):
    generator = torch.Generator().manual_seed(seed)
    preds = {"kind": torch.rand(rows, 3, generator=generator), "size": torch.rand(rows, generator=generator)}
    target = {"kind": torch.randint(3, (rows,), generator=generator), "size": torch.rand(rows, generator=generator)}
    return preds, target


def fed(counted, *batches):
    for each in batches:
        counted.update(*each)
    return counted


def all_bits(counted):
    return {name: bits(meter) for name, meter in counted.meters.items()}


def test_each_task_is_measured_as_by_its_own_meter():
    counted = fed(tasks(), batch(0), batch(1))
    for name, meter in tasks().meters.items():
        for preds, target in (batch(0), batch(1)):
            meter.update(preds[name], target[name])
        assert bits(counted.meters[name]) == bits(meter)
    assert counted.compute().keys() == {"kind", "size"}


def test_any_split_has_the_same_bits():
    whole = fed(tasks(), batch(0), batch(1), batch(2))
    assert all_bits(fed(tasks(), batch(2)) + fed(tasks(), batch(0), batch(1))) == all_bits(whole)
    assert all_bits(fed(tasks(), batch(1)).merge(fed(tasks(), batch(0)), fed(tasks(), batch(2)))) == all_bits(whole)
    loaded = tasks()
    loaded.load_state_dict(whole.state_dict())
    for each in (loaded, copy.deepcopy(whole), pickle.loads(pickle.dumps(whole))):
        assert all_bits(each) == all_bits(whole)
    whole.reset()
    assert all_bits(whole) == all_bits(tasks())


def test_a_task_may_be_absent_from_a_batch():
    preds, target = batch(0)
    counted = tasks()
    counted.update({"size": preds["size"]}, {"size": target["size"]})
    assert counted.rows == {"kind": 0, "size": 6}


def test_weights_are_for_all_tasks_or_by_task():
    weights, (preds, target) = torch.rand(6), batch(0)
    values = []
    for given in (weights, {"kind": weights, "size": weights}):
        counted = Multitask(**{name: Meter(weighted=True, **meter.metrics) for name, meter in tasks().meters.items()})
        counted.update(preds, target, weights=given)
        values.append(all_bits(counted))
    assert values[0] == values[1]


def test_metrics_without_a_target_need_none():
    counted = Multitask(loss=Meter(mean=Mean()))
    counted.update({"loss": torch.tensor([1.0, 2.0])})
    assert counted.compute() == {"loss": {"mean": torch.tensor(1.5)}}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda p, t: (p | {"size": p["size"][:2]}, t), ShapeError, "size: target: got 6 samples, expected as many"),
        (lambda p, t: (p | {"other": p["size"]}, t), ShapeError, "preds: got also other, expected some of kind, size"),
        (lambda p, t: ({"kind": p["kind"]}, t), ShapeError, "target: got also size, expected some of kind"),
        (lambda p, t: (p["kind"], t), ShapeError, "preds: got Tensor, expected tensors for kind, size"),
        (lambda p, t: (p | {"size": p["size"] * 1j}, t), DtypeError, "size: "),
        (lambda p, t: (p | {"size": [None]}, t), InputError, "size: preds: got 1 missing value in list"),
    ],
)
def test_a_batch_counts_for_all_tasks_or_for_none(change, error, message):
    counted = fed(tasks(), batch(0))
    before = all_bits(counted)
    with pytest.raises(error, match=f"^{message}"):
        counted.update(*change(*batch(1)))
    assert all_bits(counted) == before


def test_weights_that_nothing_asks_for_are_refused():
    with pytest.raises(ConfigError, match="kind: weights: got weights, expected none"):
        tasks().update(*batch(0), weights=torch.ones(6))


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="Multitask: got no task, expected one meter or more"):
        Multitask()
    with pytest.raises(StateError, match="seg: got Accuracy, expected a meter"):
        Multitask(seg=Accuracy())
    with pytest.raises(StateError, match=r"merge: got .*, expected tasks kind, size"):
        tasks().merge(Multitask(kind=Meter(Mean())))
    counted = fed(tasks(), batch(0))
    before = all_bits(counted)
    other = Multitask(kind=Meter(acc=Accuracy(num_classes=3)), size=Meter(Mean()))
    with pytest.raises(StateError, match="merge: got a meter of"):
        counted.merge(other)
    half = {name: tensor for name, tensor in counted.state_dict().items() if name.startswith("kind/")}
    with pytest.raises(StateError, match="state_dict: got no size, expected every task"):
        counted.load_state_dict(half)
    assert all_bits(counted) == before


@pytest.mark.devices("mps", "cuda:1", "xpu")
def test_no_update_waits_for_a_device(device, pretended):
    policy(device)
    there = [tuple({name: t.to(device) for name, t in part.items()} for part in batch(seed)) for seed in (0, 1)]
    counted = fed(tasks(), there[0])
    if pretended:
        pretended.events.clear()
    fed(counted, there[1])
    assert not pretended or [str(event) for event in pretended.events] == []
    assert all_bits(counted) == all_bits(fed(tasks(), batch(0), batch(1)))


def on_a_rank(rank, size):
    found = fed(tasks(), *([batch(0), batch(1)] if rank else [batch(2)])).sync()
    assert list(found.meters) == ["kind", "size"]
    return {name: float(next(iter(values.values()))).hex() for name, values in found.compute().items()}


def test_processes_add_what_they_counted(tmp_path):
    whole = fed(tasks(), batch(0), batch(1), batch(2)).compute()
    expected = {name: float(next(iter(values.values()))).hex() for name, values in whole.items()}
    assert processes(on_a_rank, 2, tmp_path) == [expected, expected]


def test_one_meter_of_two_tasks_counts_the_rows_of_both():
    meter = Meter(acc=Accuracy(num_classes=3))
    tasks = Multitask(a=meter, b=meter)
    for one, other in (("a", "b"), ("b", "a")):
        preds = {one: torch.tensor([2]), other: torch.tensor([0, 1, 2])}
        tasks.update(preds, {one: torch.tensor([0]), other: torch.tensor([0, 1, 1])})
    assert meter.rows == 8
    assert float(meter.compute()["acc"]) == 4 / 8
