"""assay inside Ignite's engines: its values, its usages, arithmetic, checkpoints, and processes."""

from __future__ import annotations

import pytest
import torch
from ignite.engine import Engine, Events, create_supervised_evaluator
from ignite.metrics import Accuracy as TheirAccuracy
from ignite.metrics import Metric, RunningAverage
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from assay import Accuracy, F1Score, Meter
from assay.errors import ConfigError, ShapeError, StateError
from assay.integrations import as_ignite, attach
from ranks import processes

CLASSES = 5
BATCHES = [
    (torch.randn(16, CLASSES, generator=torch.Generator().manual_seed(k)), torch.arange(16) % CLASSES) for k in range(4)
]
ALL = tuple(map(torch.cat, zip(*BATCHES, strict=True)))


def metrics():
    return Meter(acc=Accuracy(num_classes=CLASSES), f1=F1Score(num_classes=CLASSES, average="macro"))


def engine():
    return Engine(lambda engine, batch: batch)


def values_of(batch):
    meter = metrics()
    meter.update(*batch)
    return {name: value.item() for name, value in meter.compute().items()}


def test_a_meter_is_read_once_an_epoch():
    evaluator = engine()
    attach(evaluator, metrics())
    assert evaluator.run(BATCHES, max_epochs=2).metrics == values_of(ALL)


def test_every_usage_of_ignite():
    evaluator, seen = engine(), []
    attach(evaluator, metrics(), usage="batch_wise")
    evaluator.add_event_handler(Events.ITERATION_COMPLETED, lambda e: seen.append(dict(e.state.metrics)))
    evaluator.run(BATCHES)
    assert seen == [values_of(batch) for batch in BATCHES]
    running, seen = engine(), []
    attach(running, metrics(), usage="running_batch_wise")
    running.add_event_handler(Events.ITERATION_COMPLETED, lambda e: seen.append(dict(e.state.metrics)))
    running.run(BATCHES)
    assert seen == [values_of(tuple(map(torch.cat, zip(*BATCHES[: k + 1], strict=True)))) for k in range(4)]


def test_evaluators_take_it_beside_their_own():
    evaluator = create_supervised_evaluator(
        nn.Identity(), {"ours": as_ignite(Accuracy(num_classes=CLASSES)), "theirs": TheirAccuracy()}
    )
    found = evaluator.run(BATCHES).metrics
    assert found["ours"] == pytest.approx(found["theirs"])
    assert isinstance(as_ignite(Accuracy()), Metric)


def test_arithmetic_and_running_averages():
    evaluator = engine()
    accuracy = as_ignite(Accuracy(num_classes=CLASSES))
    (1 - accuracy).attach(evaluator, "error")
    RunningAverage(as_ignite(Accuracy(num_classes=CLASSES)), alpha=0.5).attach(evaluator, "average")
    found = evaluator.run(BATCHES).metrics
    assert found["error"] == 1 - values_of(ALL)["acc"]
    assert 0 < found["average"] < 1


def test_outputs_are_transformed_and_weighted():
    evaluator = Engine(lambda engine, batch: {"logits": batch[0], "labels": batch[1]})
    as_ignite(
        Accuracy(num_classes=CLASSES), lambda o: (o["logits"], o["labels"], torch.ones(16)), weighted=True
    ).attach(evaluator, "acc")
    assert evaluator.run(BATCHES).metrics["acc"] == values_of(ALL)["acc"]


def test_counts_go_through_a_checkpoint():
    one, two = as_ignite(metrics()), as_ignite(metrics())
    one.update(BATCHES[0])
    two.load_state_dict(one.state_dict())
    assert two.compute() == values_of(BATCHES[0])
    with pytest.raises(StateError, match="expected for"):
        as_ignite(Accuracy()).load_state_dict(one.state_dict())


def test_it_can_be_detached():
    evaluator = engine()
    attached = attach(evaluator, metrics())
    attached.detach(evaluator)
    assert evaluator.run(BATCHES).metrics == {}


def test_bad_input():
    with pytest.raises(ConfigError, match="metric: got Linear, expected a metric or a meter of assay"):
        as_ignite(nn.Linear(1, 1))
    evaluator = Engine(lambda engine, batch: batch[0])
    attach(evaluator, metrics())
    with pytest.raises(ShapeError, match=r"output of the engine: got Tensor, expected \(y_pred, y\)"):
        evaluator.run(BATCHES)


def padded(rank, size):
    """Five samples on three processes, of which four are right: a sampler that pads gives the first one twice."""
    data = TensorDataset(torch.tensor([0, 1, 1, 1, 1]), torch.tensor([0, 1, 1, 1, 0]))
    sampler = DistributedSampler(data, num_replicas=size, rank=rank, shuffle=False)
    evaluator = engine()
    attach(evaluator, Meter(accuracy=Accuracy()))
    return evaluator.run(DataLoader(data, sampler=sampler)).metrics


def test_a_sampler_that_pads_counts_nothing_twice(tmp_path):
    assert processes(padded, 3, tmp_path) == [{"accuracy": 0.8}] * 3


@pytest.mark.devices("mps", "cuda:1")
def test_batches_of_a_device_stay_there(device, pretended):
    evaluator = engine()
    attach(evaluator, metrics())
    there = [(preds.to(device), target.to(device)) for preds, target in BATCHES]
    assert evaluator.run(there).metrics == values_of(ALL)


def test_only_a_meter_names_what_is_attached():
    with pytest.raises(
        ConfigError, match=r"meter: got Accuracy, expected a meter, which names its metrics\. Pass Meter"
    ):
        attach(engine(), Accuracy(num_classes=CLASSES))
