"""No adapter synchronizes with the device while a batch is counted."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from assay import Accuracy, F1Score, Meter
from assay.devices import policy
from assay.integrations import accelerate, as_ignite, as_torchmetric, as_torchmetrics, compute_metrics

METRICS = {"acc": Accuracy(num_classes=3), "f1": F1Score(num_classes=3, average="macro")}


def with_torchmetrics(preds, target):
    metric = as_torchmetric(METRICS["acc"])
    return lambda: metric.update(preds, target)


def with_a_collection(preds, target):
    metrics = as_torchmetrics(METRICS)
    return lambda: metrics.update(preds, target)


def with_ignite(preds, target):
    metric = as_ignite(Meter(**METRICS))
    return lambda: metric.update((preds, target))


def with_accelerate(preds, target):
    meter = Meter(**METRICS)
    state = SimpleNamespace(end_of_dataloader=True, remainder=5)
    accelerator = SimpleNamespace(gradient_state=state, num_processes=2, process_index=0, even_batches=True)
    return lambda: accelerate.update(accelerator, meter, preds, target)


def with_transformers(preds, target):
    compute = compute_metrics(METRICS)
    given = SimpleNamespace(predictions=preds, label_ids=target)
    return lambda: compute(given, compute_result=False)


@pytest.mark.devices("mps", "cuda:1", "xpu")
@pytest.mark.parametrize(
    "adapter", [with_torchmetrics, with_a_collection, with_ignite, with_accelerate, with_transformers]
)
def test_an_update_does_not_wait(adapter, device, pretended):
    if not pretended:
        pytest.skip("what a real device waits for is not recorded")
    policy(device)  # the self-test of a device at its first use reads what it computed
    update = adapter(torch.rand(8, 3).to(device), torch.randint(3, (8,)).to(device))
    update()
    pretended.events.clear()
    update()
    assert [str(event) for event in pretended.events] == []
