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
