"""`Running` under TorchMetrics' name: the value of the last updates."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch
import torchmetrics as original

from assay.compat import torchmetrics

GENERATOR = torch.Generator().manual_seed(4)
METRICS = {
    "sum": (lambda kinds: kinds.SumMetric(), lambda: (torch.rand(4, generator=GENERATOR),)),
    "accuracy": (lambda kinds: kinds.Accuracy(task="multiclass", num_classes=3), lambda: labels(3)),
    "binned": (lambda kinds: kinds.AUROC(task="binary", thresholds=9), lambda: scores()),
    "outputs": (
        lambda kinds: kinds.R2Score(multioutput="raw_values"),
        lambda: torch.rand(2, 8, 3, generator=GENERATOR),
    ),
}


def labels(high):
    return torch.randint(high, (2, 12), generator=GENERATOR)


def scores():
    return torch.rand(12, generator=GENERATOR), torch.randint(2, (12,), generator=GENERATOR)


@pytest.mark.parametrize(("made", "batch"), METRICS.values(), ids=METRICS)
def test_values_are_those_of_torchmetrics(made, batch):
    ours, expected = (kinds.wrappers.Running(made(kinds), window=3) for kinds in (torchmetrics, original))
    for step in ("update", "forward") * 4:
        values = batch()
        torch.testing.assert_close(getattr(ours, step)(*values), getattr(expected, step)(*values))
        torch.testing.assert_close(ours.compute(), expected.compute(), rtol=1e-5, atol=1e-5)
    ours.reset()
    expected.reset()
    ours.update(*values)
    expected.update(*values)
    torch.testing.assert_close(ours.compute(), expected.compute())


def test_a_window_of_kept_scores():
    ours = torchmetrics.wrappers.Running(torchmetrics.AUROC(task="binary"), window=2)
    batches = [scores() for _ in range(4)]
    for batch in batches:
        ours.update(*batch)
    preds, target = (torch.cat(each) for each in zip(*batches[2:], strict=True))
    torch.testing.assert_close(ours.compute(), original.functional.auroc(preds, target, task="binary"))


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda each: pickle.loads(pickle.dumps(each)), lambda each: each.clone()]
)
def test_copies_have_a_window_of_their_own(copied):
    ours = torchmetrics.wrappers.Running(torchmetrics.SumMetric(), window=2)
    for value in (1, 2, 3):
        ours.update(value)
    other = copied(ours)
    other.update(10)
    assert (ours.compute(), other.compute()) == (5, 13)
    ours.persistent(True)
    other.persistent(True)
    other.load_state_dict(ours.state_dict())
    assert other.compute() == 5


def test_it_is_a_member_of_a_collection():
    collection = torchmetrics.MetricCollection(
        [torchmetrics.MeanMetric(), torchmetrics.wrappers.Running(torchmetrics.MeanMetric(), 2)]
    )
    for value in (1.0, 2.0, 6.0):
        collection.update(value)
    assert collection.compute() == {"MeanMetric": 3, "Running": 4}


def test_a_metric_of_torchmetrics_itself_is_run_as_there():
    ours = torchmetrics.wrappers.Running(original.SumMetric(), window=2)
    for value in (1, 2, 3):
        assert ours(value) == value
    ours.update(4)
    assert ours.compute() == 7
    assert isinstance(ours, original.wrappers.Running)
    with pytest.raises(ValueError, match="window"):
        torchmetrics.wrappers.Running(torchmetrics.SumMetric(), window=-1)
