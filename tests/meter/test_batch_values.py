"""A metric that is called reuses a meter; no call may notice another one."""

from __future__ import annotations

import gc
import threading
import weakref
from dataclasses import dataclass, field

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from assay import Accuracy, ConfusionMatrix, MeanSquaredError, Perplexity
from assay.errors import InvalidValuesError, ShapeError
from assay.meter import batch_values
from assay.metrics import PerSample
from assay.metrics.base import Metric

PREDS, TARGET = torch.tensor([1.0, 2.0, 4.0]), torch.tensor([1.0, 1.0, 1.0])
VALUE = 10 / 3


class PassingOn(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def reused() -> dict:
    return batch_values._REUSED.by_key


@pytest.fixture(autouse=True)
def no_meters():
    reused().clear()


def made(monkeypatch) -> list[Metric]:
    """The metrics of the meters that calls make from here on."""
    metrics = []

    class Counted(batch_values.Meter):
        def __init__(self, metric, **options):
            metrics.append(metric)
            super().__init__(metric, **options)

    monkeypatch.setattr(batch_values, "Meter", Counted)
    return metrics


def test_equal_metrics_share_one_meter_for_each_thread(monkeypatch):
    metrics = made(monkeypatch)
    values = [MeanSquaredError()(PREDS, TARGET).item() for _ in range(3)]
    assert values == [VALUE] * 3
    assert len(metrics) == 1
    thread = threading.Thread(target=lambda: values.append(MeanSquaredError()(PREDS, TARGET).item()))
    thread.start()
    thread.join()
    assert values == [VALUE] * 4
    assert len(metrics) == 2


def test_a_call_with_weights_uses_another_meter():
    metric = MeanSquaredError()
    assert metric(PREDS, TARGET).item() == VALUE
    assert metric(PREDS, TARGET, weights=torch.tensor([0.0, 0.0, 1.0])).item() == 9
    assert metric(PREDS, TARGET).item() == VALUE


def test_an_earlier_value_stays_what_it_was():
    metric = ConfusionMatrix(num_classes=2)
    first = metric(torch.tensor([0, 1]), torch.tensor([0, 1]))
    metric(torch.tensor([0, 0]), torch.tensor([1, 1]))
    assert first.tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    ("bad", "error"),
    [((torch.ones(3), torch.ones(2)), ShapeError), ((torch.tensor([0, 7]), torch.tensor([0, 1])), InvalidValuesError)],
)
def test_a_call_that_raises_leaves_no_meter(bad, error):
    metric, labels = Accuracy(num_classes=2), torch.tensor([0, 1])
    assert metric(labels, labels).item() == 1
    with pytest.raises(error):
        metric(*bad)
    assert not reused()
    assert metric(labels, labels).item() == 1


def test_a_call_inside_of_a_call_gets_another_meter():
    inner = []

    class NestedSquaredError(MeanSquaredError):
        def compute(self, counts):
            if not inner:
                inner.append(0.0)
                inner[0] = metric(PREDS, PREDS).item()
            return super().compute(counts)

    metric = NestedSquaredError()
    metric(PREDS, TARGET)
    assert inner == [0.0]
    inner.clear()
    assert metric(PREDS, TARGET).item() == VALUE
    assert inner == [0.0]


def test_modes_of_torch_leave_no_meter():
    metric = MeanSquaredError()
    with torch.device("meta"):
        assert metric(PREDS, TARGET).item() == VALUE
    with PassingOn():
        assert metric(PREDS, TARGET).item() == VALUE
    assert not reused()
    with torch.inference_mode():
        assert metric(PREDS, TARGET).item() == VALUE
    assert metric(PREDS.clone().requires_grad_(), TARGET).item() == VALUE


def test_a_meter_with_much_memory_is_not_kept():
    metric = ConfusionMatrix(num_classes=1000)
    assert metric(torch.tensor([3]), torch.tensor([3])).sum() == 1
    assert not reused()


def test_meters_of_the_metrics_that_were_called_last_are_kept():
    for k in range(2, batch_values.MOST_METERS + 5):
        Accuracy(num_classes=k)(torch.tensor([0]), torch.tensor([0]))
    assert [metric.num_classes for metric, _ in reused()] == list(range(5, batch_values.MOST_METERS + 5))


def test_nothing_of_the_caller_stays_alive():
    metric = MeanSquaredError()
    tensors = [(torch.rand(9), torch.rand(9)) for _ in range(4)]
    for preds, target in tensors:
        metric(preds, target)
    references = [weakref.ref(each) for pair in tensors for each in pair]
    del tensors, preds, target
    gc.collect()
    assert [reference() for reference in references] == [None] * 8


def test_a_metric_without_a_hash_is_measured_by_a_meter_of_its_own():
    @dataclass(frozen=True)
    class Labelled(MeanSquaredError):  # noqa: N818, an error that is no exception
        names: list[str] = field(default_factory=list)

    for _ in range(2):
        assert Labelled(names=["a"])(PREDS, TARGET).item() == VALUE
        assert all(type(metric) is not Labelled for metric, _ in reused())
        MeanSquaredError()(PREDS, TARGET)


def test_a_dtype_after_another_one():
    metric = Perplexity()
    logits, target = torch.randn(4, 5), torch.tensor([0, 1, 2, 3])
    expected = metric(logits, target)
    assert metric(logits.double(), target) == pytest.approx(expected.item())
    assert torch.equal(metric(logits, target), expected)


def test_functions_of_the_caller_are_told_apart_though_their_metrics_are_equal():
    once = PerSample(lambda preds, target: preds, name="same")
    twice = PerSample(lambda preds, target: 2 * preds, name="same")
    assert once == twice
    for one, two in ((once, twice), (once + once, twice + twice)):
        values = [metric(PREDS, TARGET).item() for metric in (one, two, one, two)]
        assert values[0] == values[2] == values[1] / 2 == values[3] / 2
