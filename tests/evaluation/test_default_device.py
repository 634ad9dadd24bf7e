"""Under `torch.set_default_device("cuda")`, as many notebooks begin: nothing of assay is made there unasked."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

from assay import AUROC, Accuracy, F1Score, MeanSquaredError, Meter, R2Score, SpearmanCorrCoef, evaluate, score
from assay.integrations import as_torchmetric
from assay.pretend import pretend

ROWS, CLASSES = 200, 3
RANDOM = np.random.default_rng(0)
X = torch.from_numpy(RANDOM.standard_normal((ROWS, 4), dtype=np.float32))
Y = torch.from_numpy(RANDOM.integers(0, CLASSES, ROWS))


def model():
    layers = nn.Linear(4, CLASSES, device="cpu"), nn.Softmax(1)
    layers[0].weight.data.copy_(X[:CLASSES])
    layers[0].bias.data.zero_()
    return nn.Sequential(*layers)


def numbers(report):
    return [(value.name, value.value, value.lower, value.upper) for value in report.sections[0].values]


def of_a_model():
    metrics = [Accuracy(num_classes=CLASSES), F1Score(num_classes=CLASSES, average="macro"), AUROC(num_classes=CLASSES)]
    return numbers(evaluate(model(), TensorDataset(X, Y), metrics, progress=False, batch_size=16, n_resamples=50))


def of_a_table():
    pa = pytest.importorskip("pyarrow")
    scores = torch.softmax(X[:, :CLASSES], 1)
    columns = {f"p{k}": scores[:, k].numpy() for k in range(CLASSES)}
    table = pa.table({**columns, "y": Y.numpy(), "third": [str(k % 3) for k in range(ROWS)]})
    options = {"preds": "p0..p2", "target": "y", "slices": ["third"], "progress": False, "n_resamples": 50}
    return numbers(score(table, "accuracy,auroc", **options))


def of_meters(folder):
    meter = Meter(MeanSquaredError(), R2Score(), SpearmanCorrCoef())
    meter.update(X[:, 0], X[:, 1])
    meter.to_file(folder / "meter.safetensors")
    read = Meter.from_file(folder / "meter.safetensors")
    return [value.item() for each in (meter, read, meter + read) for value in each.compute().values()]


def of_steps():
    metric, scores = as_torchmetric(AUROC(exact_up_to=0)), X[:, 0].sigmoid()
    return [metric(scores, Y > 0).item(), metric(scores, Y > 1).item(), metric.compute().item()]


def test_a_default_device_changes_no_value(tmp_path):
    def everything():
        return of_a_model(), of_a_table(), of_meters(tmp_path), of_steps()

    expected = everything()
    try:
        with pretend("cuda"):
            torch.set_default_device("cuda")
            assert everything() == expected
            torch.set_default_device(None)
    finally:
        torch.set_default_device(None)
