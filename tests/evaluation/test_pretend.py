"""On devices that are not there: nothing is mixed, nothing waits in the loop, and the bits are those of the CPU."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay import Accuracy, F1Score, MeanSquaredError
from assay.devices import policy
from assay.evaluation import evaluate
from assay.metrics import LogLoss
from assay.pretend import pretend

DEVICES = ("mps", "cuda:1", "xpu")
CLASSES = 3
METRIC = Accuracy(num_classes=CLASSES)


def data(dtype=torch.int64):
    generator = torch.Generator().manual_seed(3)
    x, y = torch.randn(64, 4, generator=generator), torch.randint(CLASSES, (64,), generator=generator)
    return TensorDataset(x, y.to(dtype))


def model():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Linear(4, CLASSES)


def value(report):
    return report.sections[0].values[0].value


def decisions(report):
    table = next(each for each in report.sections[0].tables if each.name == "Decisions")
    return {row[0]: row[1:] for row in table.rows}


@pytest.fixture(params=DEVICES)
def device(request):
    with pretend(request.param, engine="native") as pretended:
        policy(pretended.device)  # the self-test at the first use of a device reads what it computed
        pretended.events.clear()
        yield pretended


class Nested(nn.Module):
    """What Composer's loop left behind: outputs more than one level deep, and the batch on the device."""

    def __init__(self):
        super().__init__()
        self.net, self.devices = model(), set()

    def forward(self, x):
        logits = self.net(x)
        self.devices |= {x.device, logits.device}
        return {"heads": [{"logits": logits}]}


def test_batch_outputs_and_targets_are_on_one_device_however_deep(device):
    expected = value(evaluate(model(), data(), METRIC, device="cpu"))
    net = Nested()
    batches = [{"input": {"pixels": x}, "label": [y]} for x, y in DataLoader(data(), batch_size=16)]
    report = evaluate(
        net,
        batches,
        METRIC,
        device=device.device,
        inputs=lambda batch: batch["input"]["pixels"],
        target=lambda batch: batch["label"][0],
        preds=lambda outputs: outputs["heads"][0]["logits"],
    )
    assert value(report) == expected
    assert net.devices == {device.device}
    assert {event.kind for event in device.events} <= {"copy", "sync"}
    assert next(net.parameters()).device.type == "cpu"  # the model is back where it was


def syncs(device, act):
    """Where the host waited while batches passed: in the model's step and after it, until the meter was read."""
    device.events.clear()
    act()
    return list(device.syncs)


def test_the_loop_waits_no_more_than_a_bare_one(device):
    def passed(batches):
        loader = DataLoader(data(), batch_size=64 // batches)
        how = {"device": device.device, "recount": "off"}  # which copies the rows of the first flush when it is read
        return len(syncs(device, lambda: evaluate(model(), loader, METRIC, **how)))

    def bare(batches):
        net = model().to(device.device)
        pin = device.type == "cuda"

        def loop():
            for x, y in DataLoader(data(), batch_size=64 // batches, pin_memory=pin):
                net(x.to(device.device, non_blocking=pin))
                y.to(device.device, non_blocking=pin)

        return len(syncs(device, loop))

    assert passed(16) - passed(2) == bare(16) - bare(2)
    if device.type == "cuda":
        assert passed(16) == passed(2)


FOLLOWED = {
    "acc": METRIC,
    "F1": F1Score(num_classes=CLASSES, average="macro"),
    "loss": LogLoss(num_classes=CLASSES, logits=True),
}


def followed(where, batch_size=16):
    """An evaluation with everything that can follow the samples."""
    loader = DataLoader(data(), batch_size=batch_size)
    slices = {"class": 1, "right": lambda batch: batch[0][:, 0] > 0}
    return evaluate(model(), loader, FOLLOWED, device=where, slices=slices).sections[0]


def test_what_follows_the_samples_is_that_of_the_cpu(device):
    there, here = followed(device.device), followed("cpu")
    assert (there.values, there.slices, there.samples, there.plots) == (
        here.values,
        here.slices,
        here.samples,
        here.plots,
    )


def test_what_follows_the_samples_waits_some_times_and_not_for_every_batch(device):
    def waits(batch_size):
        of_loader = len(
            syncs(
                device, lambda: evaluate(model(), data(), METRIC, device=device.device, **bare, batch_size=batch_size)
            )
        )
        return len(syncs(device, lambda: followed(device.device, batch_size))) - of_loader

    bare = {"confidence_level": None, "keep_samples": False, "diagnostics": False}
    assert waits(2) == waits(16)


def test_what_a_device_lacks_is_decided_and_said(device):
    x, y = data().tensors
    wide = TensorDataset(x.double(), y.double() / 3)
    more = {"preds": lambda outputs: outputs[:, 0]}
    report = evaluate(
        model(), wide, MeanSquaredError(), device=device.device, inputs=lambda b: b[0].float(), target=1, **more
    )
    expected = evaluate(
        model(), wide, MeanSquaredError(), device="cpu", inputs=lambda b: b[0].float(), target=1, **more
    )
    assert value(report) == value(expected)
    if device.type == "mps":
        choice, why = decisions(report)["target"]
        assert choice == "torch.float64 meets the predictions on the CPU"
        assert why.startswith("mps:0 has no such dtype")
        rounded = evaluate(model(), wide, MeanSquaredError(), device=device.device, **more)
        assert decisions(rounded)["inputs"][0] == "torch.float64 was rounded to a narrower dtype"


def test_copies_that_do_not_wait_are_made_only_where_they_are_safe(device):
    device.events.clear()
    report = evaluate(model(), DataLoader(data(), batch_size=16), METRIC, device=device.device)
    to_device = [event for event in device.events if event.kind == "copy" and event.source.startswith("cpu")]
    batches = [event for event in to_device if event.elements in (16, 64)]
    assert batches
    assert {event.non_blocking for event in batches} == {device.type == "cuda"}
    assert decisions(report)["pinned memory"][0] == ("yes" if device.type == "cuda" else "no")


def test_auto_takes_the_accelerator_or_the_device_of_the_model(device):
    report = evaluate(model(), data(), METRIC)
    assert decisions(report)["device"] == (f"{device.type}:0", "the first accelerator of this machine")
    report = evaluate(model().to(device.device), data(), METRIC)
    assert decisions(report)["device"] == (str(device.device), "the model is there")


def test_autocast_is_that_of_the_device(device):
    seen = []

    def hook(module, inputs, outputs):
        seen.append(outputs.dtype)

    net = model()
    net.register_forward_hook(hook)
    evaluate(net, data(), METRIC, device=device.device, precision="bfloat16")
    assert seen == [torch.bfloat16]
