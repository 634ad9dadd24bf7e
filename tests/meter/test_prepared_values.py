"""Values of batches of one layout, prepared: each is that of its batch alone, by compiled code and by torch."""

from __future__ import annotations

import contextlib

import pytest
import torch

from assay.errors import NoDataWarning, taken_warnings
from assay.meter import Meter
from assay.meter.prepared_values import PreparedValue
from assay.metrics import (
    AUROC,
    ROC,
    Accuracy,
    AveragePrecision,
    CalibrationError,
    ConfusionMatrix,
    EqualErrorRate,
    KendallRankCorrCoef,
    LogAUC,
    MeanAbsoluteError,
    MeanSquaredError,
    PrecisionRecallCurve,
    SpearmanCorrCoef,
)
from assay.native.library import in_torch


@pytest.mark.parametrize(
    "metric", [MeanSquaredError(), MeanAbsoluteError(), SpearmanCorrCoef(), KendallRankCorrCoef()], ids=repr
)
@pytest.mark.parametrize("by", [contextlib.nullcontext, in_torch])
def test_values_of_numbers_are_those_of_each_batch_alone(metric, by):
    check(metric, torch.rand(4, 2, 9, generator=torch.Generator().manual_seed(0)), by)


@pytest.mark.parametrize("metric", [Accuracy(num_classes=3), ConfusionMatrix(num_classes=3)], ids=repr)
@pytest.mark.parametrize("by", [contextlib.nullcontext, in_torch])
def test_values_of_labels_are_those_of_each_batch_alone(metric, by):
    check(metric, torch.randint(3, (4, 2, 9), generator=torch.Generator().manual_seed(0)), by)


@pytest.mark.parametrize(
    "metric",
    [
        *(AUROC(), AUROC(ignore_index=-1), AUROC(exact_up_to=0), AveragePrecision(), EqualErrorRate(), LogAUC()),
        *(AUROC(num_classes=3), AveragePrecision(num_labels=3), CalibrationError(), CalibrationError(num_classes=3)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("by", [contextlib.nullcontext, in_torch])
def test_values_of_scores_are_those_of_each_batch_alone(metric, by):
    generator = torch.Generator().manual_seed(0)
    columns, labels = getattr(metric, "num_classes", None), getattr(metric, "num_labels", None)
    shape = (30, columns or labels) if columns or labels else (30,)
    batches = [
        (
            torch.randint(8, shape, generator=generator) / 8,
            torch.randint(columns or 2, shape if labels else (30,), generator=generator),
        )
        for _ in range(4)
    ]
    check(metric, batches, by)


@pytest.mark.parametrize("curve", [ROC(), PrecisionRecallCurve(), ROC(num_classes=3)], ids=repr)
def test_curves_are_those_of_each_batch_alone(curve):
    generator = torch.Generator().manual_seed(0)
    meter, columns = Meter(m=curve), curve.num_classes
    for k in range(4):
        preds = torch.randint(8, (30, columns) if columns else (30,), generator=generator) / 8
        batch = preds, torch.randint(columns or 2, (30,), generator=generator) * (k != 2)
        with taken_warnings(NoDataWarning):
            meter.values_of(*batch)
            prepared = PreparedValue.of(meter, *batch)
            points = zip(prepared(*batch), curve(*batch), strict=True)
        for found, expected in points:
            torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("wrong", ["score", "not a number", "target"])
@pytest.mark.parametrize("metric", [AUROC(), AUROC(num_labels=2), CalibrationError(), CalibrationError(num_classes=2)])
def test_what_is_invalid_is_left_to_the_meter(metric, wrong):
    shape = (6,) if "num_" not in repr(metric) else (6, 2)
    preds = torch.rand(shape, generator=torch.Generator().manual_seed(0))
    target = torch.tensor([0, 1, 0, 1, 1, 0])
    target = target[:, None].expand(shape).contiguous() if getattr(metric, "num_labels", None) else target
    meter = Meter(m=metric)
    expected = meter.values_of(preds, target)["m"]
    prepared = PreparedValue.of(meter, preds, target)
    bad_preds, bad_target = preds.clone(), target.clone()
    if wrong == "target":
        bad_target[3] = 2
    else:
        bad_preds[3] = 1.5 if wrong == "score" else torch.nan
    assert prepared(bad_preds, bad_target) is None
    assert torch.equal(prepared(preds, target), expected)


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
