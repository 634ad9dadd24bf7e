"""Counts of more samples than anything can draw: the same samples added to themselves have the same values."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import metrics as m
from assay.meter import Meter

ROWS = 200
CLASSES = {
    "accuracy": m.Accuracy(num_classes=4),
    "F1": m.F1Score(num_classes=4, average="macro"),
    "kappa": m.CohenKappa(num_classes=4),
    "MCC": m.MatthewsCorrCoef(num_classes=4),
    "Jaccard": m.JaccardIndex(num_classes=4),
    "AUROC": m.AUROC(num_classes=4, exact_up_to=0),
    "ECE": m.CalibrationError(num_classes=4),
    "log loss": m.LogLoss(num_classes=4),
    "AUROC of thresholds": m.AUROC(num_classes=4, thresholds=50),
}
BINARY = {"AUROC": m.AUROC(exact_up_to=0), "AP": m.AveragePrecision(exact_up_to=0), "accuracy": m.Accuracy()}
NUMBERS = {
    "MSE": m.MeanSquaredError(),
    "MAE": m.MeanAbsoluteError(),
    "R2": m.R2Score(),
    "Pearson": m.PearsonCorrCoef(),
    "explained variance": m.ExplainedVariance(),
}


def times(meter, count):
    total, power = meter.fresh(), meter
    while count:
        total, power, count = total + power if count & 1 else total, power + power, count >> 1
    return total


def drawn(kind):
    random = torch.Generator().manual_seed(3)
    if kind is NUMBERS:
        preds = torch.randn(ROWS, generator=random) * 1e10
        return preds, preds + torch.randn(ROWS, generator=random) * 1e9
    if kind is BINARY:  # scores of which each has a bin of its own
        return torch.randint(65, (ROWS,), generator=random) / 64, torch.randint(2, (ROWS,), generator=random)
    return torch.randn(ROWS, 4, generator=random).softmax(1), torch.randint(4, (ROWS,), generator=random)


@pytest.mark.parametrize("kind", [CLASSES, BINARY, NUMBERS], ids=["classes", "binary", "numbers"])
@pytest.mark.parametrize("count", [50_000_000, 51_200_001, 2**33, 2**48])
def test_repeated_samples_have_the_values_of_one_time(kind, count):
    """10^10 samples (50,000,000 times 200) and beyond; products of such counts do not fit into 64 bits."""
    once = Meter(**kind)
    once.update(*drawn(kind))
    many, expected = times(once, count), once.compute()
    assert many.rows == count * ROWS
    for name, value in many.compute().items():
        rounding = 1e-14 if name == "AP" else 0  # a sum of floats; all others are fractions, rounded once
        assert torch.allclose(value, expected[name], rtol=rounding, atol=0), (name, value, expected[name])


@pytest.mark.filterwarnings("ignore")
@given(counts=st.lists(st.integers(0, 2**50), min_size=9, max_size=9))
def test_confusion_matrices_are_exact_for_any_counts(counts):
    """Every cell counted so many times, and precision as the fraction of Python integers."""
    total = Meter(m.ConfusionMatrix(num_classes=3), m.Precision(num_classes=3, average=None))
    for cell, count in enumerate(counts):
        one = total.fresh()
        one.update(torch.tensor([cell % 3]), torch.tensor([cell // 3]))
        total.merge(times(one, count))
    values = total.compute()
    assert values["ConfusionMatrix"].tolist() == [counts[row : row + 3] for row in (0, 3, 6)]
    for label, value in enumerate(values["Precision"].tolist()):
        column = counts[label::3]
        assert value == column[label] / sum(column) if sum(column) else value in (0, 1) or math.isnan(value)
