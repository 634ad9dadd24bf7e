"""Wrappers under TorchMetrics' names that are changed: batches of any device, and a `forward` that forgets nothing."""

from __future__ import annotations

import pickle

import pytest
import torch
import torchmetrics as original

from assay.compat import torchmetrics
from assay.pretend import pretend

pytestmark = pytest.mark.filterwarnings("ignore:Metric `:UserWarning")  # of buffers
LIBRARIES = [original, torchmetrics]


def draw(seed: int, *shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("strategy", ["poisson", "multinomial"])
@pytest.mark.parametrize("by_name", [False, True])
def test_resampled_values_are_those_of_torchmetrics(strategy, by_name):
    found = []
    for library in LIBRARIES:
        options = {
            "num_bootstraps": 7,
            "raw": True,
            "quantile": torch.tensor([0.1, 0.9]),
            "sampling_strategy": strategy,
        }
        metric = library.wrappers.BootStrapper(library.MeanSquaredError(), **options)
        torch.manual_seed(3)
        for step in range(4):
            preds, target = draw(step, 20), draw(-step, 20)
            metric.update(preds=preds, target=target) if by_name else metric.update(preds, target)
        found.append(metric.compute())
    assert found[0].keys() == found[1].keys() == {"mean", "std", "quantile", "raw"}
    torch.testing.assert_close(found[1], found[0])


def test_forward_of_resampled_values_keeps_what_was_counted():
    """TorchMetrics' forgets all batches but the last one."""
    metric = torchmetrics.wrappers.BootStrapper(torchmetrics.MeanMetric(), num_bootstraps=4, raw=True)
    torch.manual_seed(0)
    steps = [metric(torch.full((200,), value))["mean"].item() for value in (1.0, 5.0, 9.0)]
    assert steps == [1, 5, 9]
    assert [each.update_count for each in metric.metrics] == [3] * 4
    assert 4.5 < metric.compute()["mean"] < 5.5
    assert metric._forward_cache["mean"] == 9
    metric.reset()
    assert [each.update_count for each in metric.metrics] == [0] * 4
    there = original.wrappers.BootStrapper(original.MeanMetric(), num_bootstraps=4)
    for value in (1.0, 9.0):
        there(torch.full((200,), value))
    assert there.compute()["mean"] == 9, "TorchMetrics keeps what was counted now: say so in docs/compat.md"


@pytest.mark.filterwarnings("ignore:The ``compute`` method:UserWarning")  # of no data
def test_a_copy_for_which_nothing_was_drawn_has_the_value_of_no_data():
    metric = torchmetrics.wrappers.BootStrapper(torchmetrics.SumMetric(), num_bootstraps=30, raw=True)
    torch.manual_seed(0)
    found = metric(torch.ones(1))["raw"]
    assert 3 < (found == 0).sum() < 20
    torch.testing.assert_close(metric.compute()["raw"], found)


def test_a_batch_without_tensors_is_refused_as_there():
    for library in LIBRARIES:
        with pytest.raises(ValueError, match="could not determine the sampling size"):
            library.wrappers.BootStrapper(library.SumMetric()).update()


def test_the_least_and_the_greatest_value_are_those_of_torchmetrics():
    found = []
    for library in LIBRARIES:
        metric = library.wrappers.MinMaxMetric(library.MeanMetric())
        for value in (4.0, 1.0, 10.0, 2.0):
            metric.update(torch.tensor(value))
            found.append((library is original, metric.compute()))
        metric.reset()
        metric.update(torch.tensor(5.0))
        found.append((library is original, metric.compute()))
    there, here = ([values for is_there, values in found if is_there is side] for side in (True, False))
    torch.testing.assert_close(here, there)


def test_forward_of_a_minimum_keeps_what_was_counted():
    """TorchMetrics' forgets all batches but the last one."""
    metric = torchmetrics.wrappers.MinMaxMetric(torchmetrics.MeanMetric())
    steps = [metric(torch.tensor(value)) for value in (5.0, 1.0, 9.0)]
    assert [[each[name].item() for name in ("raw", "min", "max")] for each in steps] == [
        [5, 5, 5],
        [1, 1, 5],
        [9, 1, 9],
    ]
    assert [metric.compute()[name].item() for name in ("raw", "min", "max")] == [5, 1, 9]
    of_matrix = torchmetrics.wrappers.MinMaxMetric(torchmetrics.ConfusionMatrix(task="binary"))
    with pytest.raises(RuntimeError, match="should be a float or scalar tensor"):
        of_matrix(torch.tensor([0, 1]), torch.tensor([0, 1]))


@pytest.mark.parametrize("remove_nans", [False, True])
def test_values_of_outputs_are_those_of_torchmetrics(remove_nans):
    preds, target = draw(1, 12, 3), draw(2, 12, 3)
    if remove_nans:
        target[3, 1] = torch.nan
    found = []
    for library in LIBRARIES:
        metric = library.wrappers.MultioutputWrapper(library.SpearmanCorrCoef(), 3, remove_nans=remove_nans)
        found.append((metric(preds, target), metric.compute(), metric(preds, target=target)))
    torch.testing.assert_close(found[1], found[0])


def wrapped():
    kinds = torchmetrics.wrappers
    yield kinds.MultioutputWrapper(torchmetrics.MeanSquaredError(), 2), lambda value: value
    yield kinds.BootStrapper(torchmetrics.MeanSquaredError(), num_bootstraps=2), lambda value: value["mean"]
    yield kinds.MinMaxMetric(torchmetrics.MeanSquaredError()), lambda value: value["raw"]


def test_a_batch_comes_from_any_device():
    preds, target = draw(1, 6, 2), draw(2, 6, 2)
    for metric, number in wrapped():
        with pretend("mps"):
            found = metric(preds.to("mps"), target.to("mps"))
            assert number(found).device.type == "mps"
            assert number(metric.compute()).device.type == "mps"


class Holder(torch.nn.Module):
    def __init__(self, metric) -> None:
        super().__init__()
        self.metric = metric

    def forward(self, values):
        return values + 1


@pytest.mark.filterwarnings("ignore:This property:DeprecationWarning")  # of TorchMetrics, which TorchScript reads
def test_a_module_that_holds_a_wrapper_can_be_scripted():
    """Of the others TorchMetrics' own cannot be, either."""
    holder = Holder(torchmetrics.wrappers.MultioutputWrapper(torchmetrics.MeanSquaredError(), 2))
    assert torch.jit.script(holder)(torch.tensor(1.0)) == 2


def test_wrappers_are_those_of_torchmetrics_and_can_be_pickled():
    for metric, number in wrapped():
        name = type(metric).__name__
        assert isinstance(metric, getattr(original.wrappers, name))
        metric.update(draw(1, 6, 2), draw(2, 6, 2))
        assert torch.equal(number(pickle.loads(pickle.dumps(metric)).compute()), number(metric.compute()))
