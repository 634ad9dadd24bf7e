"""Metrics and functions of TorchMetrics' names in a loss."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch
import torchmetrics as original
from torch import Tensor

from assay.compat import torchmetrics
from assay.compat.drop_ins import FAMILIES, FAMILY_FUNCTIONS
from assay.migrate.table import library
from migrate.test_draws import Drawn
from migrate.test_table import theirs

ENTRIES = [each for each in library("torchmetrics").entries.values() if not each.tasks]
GENERATOR = torch.Generator().manual_seed(0)
INPUTS = torch.rand(16, generator=GENERATOR) + 0.1


def value_and_gradient(call, drawn):
    """The value of a batch whose predictions require a gradient, and the gradient; None where it has none."""
    preds, *target = drawn.batch
    preds = preds.clone().requires_grad_()
    value = call(preds, *target)
    if not isinstance(value, Tensor) or not value.requires_grad:
        return value, None
    value.sum().backward()
    return value.detach(), preds.grad


def drawn_for(entry):
    """A call with predictions that can require a gradient and a value that is defined."""
    if not entry.function and theirs("torchmetrics", entry.name).is_differentiable is False:
        return None
    drawn = (Drawn(entry, seed) for seed in range(40))
    return next((each for each in drawn if isinstance(each.batch[0], Tensor) and len(each.batch[0]) >= 8), None)


def called(kind, entry, drawn):
    given = {name: eval(value) for name, value in drawn.given.items()}
    return (lambda *batch: kind(*batch, **given)) if entry.function else kind(**given)


@pytest.mark.filterwarnings("ignore")  # of batches without a class, there
@pytest.mark.exhaustive
def test_every_differentiable_name_gives_the_gradient_of_torchmetrics():
    with_gradient = set()
    for entry in ENTRIES:
        drawn = None if entry.name in {*FAMILIES, *FAMILY_FUNCTIONS} else drawn_for(entry)
        if drawn is None or not drawn.batch[0].is_floating_point():
            continue
        kind = theirs("torchmetrics", entry.name)
        here = getattr(import_module(f"assay.compat.{kind.__module__}"), entry.name)
        try:
            expected, gradient = value_and_gradient(called(kind, entry, drawn), drawn)
        except (IndexError, ValueError):
            continue
        value, found = value_and_gradient(called(here, entry, drawn), drawn)
        assert (found is None) == (gradient is None), entry.name
        if gradient is not None:
            with_gradient.add(entry.name)
            torch.testing.assert_close(value, expected, rtol=0, atol=0, equal_nan=True)
            torch.testing.assert_close(found, gradient, rtol=0, atol=0, equal_nan=True)
    assert len(with_gradient) > 45
    differentiable = {each.name for each in ENTRIES if not each.function and _is_differentiable(each)}
    assert with_gradient >= differentiable


def _is_differentiable(entry) -> bool:
    kind = theirs("torchmetrics", entry.name)
    return kind.is_differentiable is not False and not kind.__module__.startswith("torchmetrics.clustering")


def trained(kinds, made):
    """The weight after 50 steps of SGD, and the value of all of them."""
    weight, metric = torch.zeros(1, requires_grad=True), made(kinds)
    optimizer = torch.optim.SGD([weight], lr=0.05)
    for _ in range(50):
        found = metric(weight * INPUTS, 2 * INPUTS)
        loss = sum(found.values()) if isinstance(found, dict) else found
        optimizer.zero_grad()
        (loss + 1e-3 * (weight**2).sum()).backward()
        optimizer.step()
    return weight.detach(), metric


@pytest.mark.parametrize(
    "made",
    [
        lambda kinds: kinds.MeanSquaredError(),
        lambda kinds: kinds.MetricCollection([kinds.MeanSquaredError(), kinds.MeanAbsoluteError()]),
        lambda kinds: kinds.MetricCollection({"mse": kinds.MeanSquaredError()}, compute_groups=False),
        lambda kinds: kinds.MeanSquaredError(dist_sync_on_step=True) + kinds.LogCoshError(),
        lambda kinds: kinds.wrappers.Running(kinds.MeanSquaredError(), window=3),
        lambda kinds: type("Named", (kinds.MeanSquaredError,), {})(),
    ],
)
def test_a_loss_trains_to_the_weight_that_torchmetrics_trains_to(made):
    weight, metric = trained(torchmetrics, made)
    expected, there = trained(original, made)
    assert torch.equal(weight, expected)
    assert weight > 0.5
    torch.testing.assert_close(metric.compute(), there.compute())


def test_what_was_counted_holds_no_graph():
    metric = torchmetrics.MeanSquaredError()
    preds = torch.ones(4, requires_grad=True)
    with torch.no_grad():
        assert not metric(preds, torch.zeros(4)).requires_grad
    assert metric(preds, torch.zeros(4)).requires_grad
    metric.update(preds, torch.zeros(4))
    assert not metric.compute().requires_grad
    assert torch.equal(metric.clone().compute(), torch.tensor(1.0))
    assert metric.meter.rows == 12
    metric.set_dtype(torch.float64)
    assert metric(preds.double(), torch.zeros(4).double()).dtype == torch.float64
    assert torchmetrics.MeanSquaredError.is_differentiable
    assert not torchmetrics.classification.BinaryAccuracy()(preds.sigmoid(), torch.ones(4).long()).requires_grad
