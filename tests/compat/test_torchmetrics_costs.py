"""What a small batch costs by the names of TorchMetrics: exact numbers of operators, and of calls of Python."""

from __future__ import annotations

import functools
import sys
from importlib import import_module

import pytest
import torch

from assay.native.library import MISSING, library
from counting import counted

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)

LABELS = torch.arange(32) % 3
COSTS = [
    ("MeanMetric", {}, (torch.rand(()),), 6, 108),
    ("SumMetric", {}, (torch.rand(()),), 5, 95),
    ("MaxMetric", {}, (torch.rand(()),), 13, 110),
    ("classification.BinaryF1Score", {}, (torch.rand(32), LABELS % 2), 15, 115),
    ("classification.MulticlassAccuracy", {"num_classes": 3}, (torch.rand(32, 3), LABELS), 9, 105),
    ("classification.MulticlassConfusionMatrix", {"num_classes": 3}, (torch.rand(32, 3), LABELS), 4, 76),
    ("regression.MeanSquaredError", {}, (torch.rand(32), torch.rand(32)), 4, 98),
]
"""A class with its arguments and a batch; the most operators of torch, and calls of Python, that its forward takes."""


def number_of_calls(function):
    """How many functions of Python a call enters."""
    entered = []
    sys.setprofile(lambda frame, event, _: entered.append(frame.f_code) if event == "call" else None)
    try:
        function()
    finally:
        sys.setprofile(None)
    return len(entered)


VALUES = [
    ("MaxMetric", {}, (torch.rand(()),), 30),
    ("SumMetric", {}, (torch.rand(()),), 28),
    ("classification.BinaryRecall", {}, (torch.rand(32), LABELS % 2), 33),
    ("classification.BinaryStatScores", {}, (torch.rand(32), LABELS % 2), 31),
    ("regression.MeanSquaredError", {}, (torch.rand(32), torch.rand(32)), 28),
    ("text.WordErrorRate", {}, (["a b"], ["a c"]), 28),
]
"""A class with its arguments and a batch; the most calls of Python that its `compute` takes after an update."""


def metric_of(name, arguments):
    home, _, name = f"assay.compat.torchmetrics.{name}".rpartition(".")
    return getattr(import_module(home), name)(**arguments)


@pytest.mark.parametrize(("name", "arguments", "batch", "calls"), VALUES)
def test_a_value_takes_few_calls_and_none_when_it_is_read_again(name, arguments, batch, calls):
    metric = metric_of(name, arguments)
    for _ in range(3):
        metric.update(*batch)
        metric.compute()
    metric._computed = None  # as an update leaves it, without the rows that it stages
    assert number_of_calls(metric.compute) <= calls
    assert number_of_calls(metric.compute) == 1  # of what was read before


@pytest.mark.parametrize(("name", "arguments", "batch", "operators", "calls"), COSTS)
def test_a_forward_after_a_reset_takes_hardly_more_calls(name, arguments, batch, operators, calls):
    metric = metric_of(name, arguments)
    for _ in range(3):
        metric(*batch)
    metric.reset()
    assert number_of_calls(functools.partial(metric, *batch)) <= calls + 40


@pytest.mark.parametrize(("name", "arguments", "batch", "operators", "calls"), COSTS)
def test_a_forward_takes_few_operators_and_calls(name, arguments, batch, operators, calls):
    forward = functools.partial(metric_of(name, arguments), *batch)
    for _ in range(3):
        forward()  # what is the same for all batches of one layout is known then
    with counted() as counts:
        forward()
    assert counts.calls <= operators
    assert number_of_calls(forward) <= calls
