"""Values of batches of one layout, prepared: each is that of its batch alone, by compiled code and by torch."""

from __future__ import annotations

import contextlib

import pytest
import torch

from assay.meter import Meter
from assay.meter.prepared_values import PreparedValue
from assay.metrics import Accuracy, ConfusionMatrix, MeanAbsoluteError, MeanSquaredError, SpearmanCorrCoef
from assay.native.library import in_torch


@pytest.mark.parametrize("metric", [MeanSquaredError(), MeanAbsoluteError(), SpearmanCorrCoef()], ids=repr)
@pytest.mark.parametrize("by", [contextlib.nullcontext, in_torch])
def test_values_of_numbers_are_those_of_each_batch_alone(metric, by):
    check(metric, torch.rand(4, 2, 9, generator=torch.Generator().manual_seed(0)), by)


@pytest.mark.parametrize("metric", [Accuracy(num_classes=3), ConfusionMatrix(num_classes=3)], ids=repr)
@pytest.mark.parametrize("by", [contextlib.nullcontext, in_torch])
def test_values_of_labels_are_those_of_each_batch_alone(metric, by):
    check(metric, torch.randint(3, (4, 2, 9), generator=torch.Generator().manual_seed(0)), by)


def check(metric, batches, by):
    meter = Meter(m=metric)
    with by():
        expected = [torch.as_tensor(metric(*batch)) for batch in batches]
        meter.values_of(*batches[-1])
        prepared = PreparedValue.of(meter, *batches[-1])
        assert prepared is not None
        found = [prepared(*batch) for batch in batches]  # None: what it counted had no value
    assert None not in found
    assert torch.equal(torch.stack([torch.as_tensor(each) for each in found]), torch.stack(expected))
