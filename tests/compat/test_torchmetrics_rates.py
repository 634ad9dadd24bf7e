"""Rates of labels under TorchMetrics' names: divided and averaged as there, to all digits."""

from __future__ import annotations

from importlib import import_module

import pytest
import torch


@pytest.mark.parametrize("name", ["Accuracy", "F1Score", "HammingDistance", "NegativePredictiveValue", "Specificity"])
@pytest.mark.parametrize("average", ["macro", "weighted", "micro", "none"])
def test_a_class_that_is_predicted_only_counts_as_in_torchmetrics(name, average):
    """Class 3 is predicted and no target, class 4 is neither."""
    preds, target = torch.tensor([0, 1, 3, 2, 3, 1]), torch.tensor([0, 1, 1, 2, 0, 2])
    there, here = (
        getattr(import_module(f"{package}.classification"), f"Multiclass{name}")(num_classes=5, average=average)
        for package in ("torchmetrics", "assay.compat.torchmetrics")
    )
    torch.testing.assert_close(here(preds, target), there(preds, target))
    here.set_dtype(torch.float64)
    there.update(preds[:5], target[:5])
    here.update(preds[:5], target[:5])
    assert here.compute().dtype == torch.float64
    torch.testing.assert_close(here.compute().float(), there.compute())


@pytest.mark.parametrize("zero_division", [0, 1])
@pytest.mark.parametrize("name", ["Precision", "Recall", "F1Score"])
def test_a_rate_of_nothing_is_what_zero_division_says_as_in_torchmetrics(name, zero_division):
    nothing = torch.zeros(4, dtype=torch.int64)
    there, here = (
        getattr(import_module(f"{package}.classification"), f"Binary{name}")(zero_division=zero_division)
        for package in ("torchmetrics", "assay.compat.torchmetrics")
    )
    for metric in (there, here):
        metric.update(nothing, nothing)
    assert float(here.compute()) == float(there.compute()) == zero_division
